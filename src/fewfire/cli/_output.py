"""What the commands print: text as it is, a sweep that is run with its progress shown, sizes in words.

Names of files, keys and sweeps come from outside: no console here reads markup or emoji codes in them, and characters
that would steer the terminal are shown as escapes, as Python writes them.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from fewfire.experiments.run._bar import SweepBar

if TYPE_CHECKING:
    from fewfire.experiments import Progress, Sweep


class PlainConsole(Console):
    """Prints text as it is: no markup, no emoji codes, no colours for numbers; what is to be styled is a `Text`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Lines and cells of tables alike come through here."""
        return super().render_str("\n".join(map(visible, text.split("\n"))), **options)


def wide_console() -> PlainConsole:
    """A console for tables: as wide as the terminal, and of at least 100 columns where there is none."""
    console = PlainConsole()
    told = console.is_terminal or "COLUMNS" in os.environ
    return console if told else PlainConsole(width=max(100, console.width))


def visible(text: str) -> str:
    r"""One line of text: control characters, line ends, lone surrogates and invisible marks are written as escapes.

    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(line: str, console: Console | None = None) -> None:
    """Print one line as it is, controls as escapes; nothing is wrapped."""
    (console or PlainConsole()).print(Text(visible(line)), soft_wrap=True)


def complain(error: str) -> None:
    """Print an error as one line on standard error."""
    PlainConsole(stderr=True).print(Text.assemble(("error:", "bold red"), " ", visible(error)), soft_wrap=True)


def never_fail_to_encode() -> None:
    """Where the terminal's encoding lacks a character, print its escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def run_sweep(console: Console, sweep: Sweep, store: Path, resume: str, **options: Any) -> Progress:
    """Run a sweep into a store with its progress shown; when it is stopped, say what is kept and how to go on.

    Parameters
    ----------
    console : Console
    sweep : Sweep
    store : path of the store file
    resume : str
        How to go on after a stop, as a sentence.
    options
        Those of `Sweep.run`.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)  # batch systems ask politely before they kill
    try:
        with SweepBar(console) as bar:
            try:
                return sweep.run(store, progress=bar.show, **options)
            except KeyboardInterrupt:
                kept = f" {bar.state.done} of {bar.state.total} runs are kept in {store}." if bar.state else ""
                say(f"Stopped.{kept}", console)
                say(resume, console)
                raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def file_size(count: int) -> str:
    """A number of bytes: 340 kB, 2.9 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
