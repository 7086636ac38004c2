"""What the commands print: lines as they are, the progress of a sweep, durations and sizes in words."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from fewfire.experiments import Progress, Sweep


def wide_console() -> Console:
    """A console of at least 100 columns, for tables; numbers are not coloured."""
    return Console(width=max(100, Console().width), highlight=False)


def say(line: str, console: Console | None = None) -> None:
    """Print a line as it is: names of files and specs are no markup, and nothing is wrapped."""
    (console or Console()).print(line, highlight=False, soft_wrap=True, markup=False)


class SweepBar:
    """Runs done, runs per second, success so far, time left; silent where there is no terminal.

    `state` is the last that was shown.
    """

    def __init__(self, console: Console) -> None:
        counted, told = TextColumn("{task.completed}/{task.total} runs"), TextColumn("{task.fields[facts]}")
        columns = (BarColumn(), counted, told, TimeElapsedColumn())
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=None, facts="planning")
        self.state: Progress | None = None

    def show(self, state: Progress) -> None:
        """Draw this state."""
        self.state = state
        self._bar.update(self._task, completed=state.done, total=state.total, facts=facts(state))

    def __enter__(self) -> SweepBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


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


def facts(state: Progress) -> str:
    """The line beside the bar."""
    parts = [f"{state.rate:.1f} runs/s"]
    if not math.isnan(state.success):
        parts.append(f"success {state.success:.0%}")
    if state.diverged or state.failed:
        parts.append(f"{state.diverged} diverged, {state.failed} failed")
    if not math.isnan(state.remaining_seconds):
        parts.append(f"{duration(state.remaining_seconds)} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """A time in words: 8 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if seconds >= 1 else "less than 1 s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    first = next(i for i, (_, size) in enumerate(units) if whole >= size)
    (big, size), (small, rest) = units[first], units[first + 1]
    remainder = whole % size // rest
    return f"{whole // size} {big}" + (f" {remainder} {small}" if remainder else "")


def file_size(count: int) -> str:
    """A number of bytes: 340 kB, 2.9 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
