"""What the commands print, and the files they write: text as it is, a sweep run with its progress shown, paths checked.

Names of files, keys and sweeps come from outside: no console here reads markup or emoji codes in them, and characters
that would steer the terminal are shown as escapes, as Python writes them.

Paths that a command will write to are checked before it computes, since hours of work should not end in an error. What
is refused here would be refused by the system later; what passes can still fail (a disk that fills up), which is
reported in one line too.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fewfire._atomic import same_file
from fewfire._errors import invalid
from fewfire.sweeps.run._progress import SweepBar

if TYPE_CHECKING:
    from fewfire.sweeps import Sweep
    from fewfire.sweeps.run._progress import Progress


def bare(kind: type[Any]) -> type[Any]:
    """A kind of command whose help shows no type for options that take no value."""

    def get_params(self: Any, ctx: Any) -> list[Any]:
        options: list[Any] = kind.get_params(self, ctx)
        for option in options:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return options

    return type(kind.__name__, (kind,), {"get_params": get_params})


def as_typed(*words: str) -> str:
    """A command of fewfire that a shell here runs as it is printed, also where `fewfire` is on no PATH."""
    called, found = Path(sys.argv[0]), shutil.which("fewfire")
    start = ["fewfire"]
    if called.name == "__main__.py" and called.parent.name == "fewfire":
        start = [sys.executable, "-m", "fewfire"]
    elif called.stem == "fewfire" and not (found and same_file(Path(found), called)):
        start = [sys.argv[0]]
    return shlex.join([*start, *words])


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
    known = console.is_terminal or "COLUMNS" in os.environ
    return console if known else PlainConsole(width=max(100, console.width))


def plain_table(*titles: str, right: int = 0) -> Table:
    """A table without lines; the last `right` columns hold numbers. Without titles it has no head."""
    table = Table(box=None, pad_edge=False, show_header=bool(titles))
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index >= len(titles) - right else "left")
    return table


def visible(text: str) -> str:
    r"""One line of text: control characters, line ends, lone surrogates and invisible marks are written as escapes.

    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(line: str, console: Console | None = None) -> None:
    """Print one line as it is, controls as escapes; nothing is wrapped."""
    (console or PlainConsole()).print(Text(visible(line)), soft_wrap=True)


def complain(text: str, mark: str = "error:", style: str = "bold red") -> None:
    """Print an error or a warning as one line on standard error."""
    PlainConsole(stderr=True).print(Text.assemble((mark, style), " ", visible(text)), soft_wrap=True)


def never_fail_to_encode() -> None:
    """Where the terminal's encoding lacks a character, print its escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def run_sweep(console: Console, sweep: Sweep, store: Path, **options: Any) -> Progress:
    """Run a sweep into a store with its progress shown; when it is stopped, say what is kept and how to resume."""
    with terminated_as_interrupted(), SweepBar(console) as bar:
        try:
            return sweep.run(store, progress=bar.show, **options)
        except KeyboardInterrupt:
            kept = f" {bar.state.done} of {bar.state.total} runs are kept in {store}." if bar.state else ""
            say(f"Stopped.{kept}", console)
            say(f"Resume with: {as_typed(*sys.argv[1:])}", console)
            raise typer.Exit(130) from None


def file_size(count: int) -> str:
    """A number of bytes: 340 kB, 2.9 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, which batch systems send before they kill."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written: a folder, one in a folder that does not exist or may not be written to."""
    if path is None:
        return
    rule, folder = "must be a file that can be written", path.parent
    _check_name(option, rule, path)
    if path.is_dir():
        raise invalid(option, f"{rule} (Is a directory)", str(path), "name a file inside it")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise invalid(option, f"{rule} (Permission denied)", str(path))
        if not path.is_file():  # a pipe, /dev/stdout: its folder does not matter
            return
    if not folder.is_dir():
        raise invalid(option, f"{rule} (there is no folder {folder})", str(path), f"make it with: mkdir -p {folder}")
    _try(option, rule, path, folder)


def check_folder(option: str, path: Path | None) -> None:
    """Refuse a folder that cannot be made or written to; nothing is made yet."""
    if path is None:
        return
    _check_name(option, "must be a folder that can be written to", path)
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise invalid(option, f"must be a folder that can be written to ({there} is a file)", str(path))
    _try(option, "must be a folder that can be written to", path, there)


def _try(option: str, rule: str, path: Path, folder: Path) -> None:
    """Write a nameless file into a folder: permissions say little about read-only disks, quotas and root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise invalid(option, f"{rule} ({error.strerror or error} in {folder})", str(path)) from None


def _check_name(option: str, rule: str, path: Path) -> None:
    """Refuse names that the system does not take: too long, a loop of links, a zero byte."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise invalid(option, f"{rule} ({getattr(error, 'strerror', None) or error})", str(path)) from None


def read_json(option: str, path: Path, command: str) -> dict[str, Any]:
    """The table that a file of JSON holds, which a command has written."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        rule = f"must be a file of JSON ({error})"
        raise invalid(option, rule, str(path), f"write it with: {command}") from None
    if not isinstance(table, dict):
        raise invalid(option, "must hold a table", f"a {type(table).__name__}", f"write it with: {command}")
    return table


def in_words(error: OSError) -> str:
    """An error of the system in one line: where, and what."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{error.strerror or error}"
