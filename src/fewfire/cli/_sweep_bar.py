"""The progress of a sweep on a terminal; silent elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rich.console import Console

    from fewfire.experiments import Progress as State


class SweepBar:
    """Runs done, runs a second, success so far, time left; `state` is the last that was shown."""

    def __init__(self, console: Console) -> None:
        columns = (BarColumn(), TextColumn("{task.completed}/{task.total} runs"), TextColumn("{task.fields[facts]}"),
                   TimeElapsedColumn())  # fmt: skip
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=None, facts="planning")
        self.state: State | None = None

    def show(self, state: State) -> None:
        """Draw this state."""
        self.state = state
        self._bar.update(self._task, completed=state.done, total=state.total, facts=facts(state))

    def __enter__(self) -> SweepBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def facts(state: State) -> str:
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
