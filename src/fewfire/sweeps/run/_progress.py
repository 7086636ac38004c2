"""How far a sweep is, and one bar for it: in a notebook, on a terminal, and elsewhere as a line now and then.

rich draws the terminal's; its own bar for notebooks needs a package of widgets and shows nothing without it, so a
notebook has that of `fewfire._progress`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from fewfire._html import card
from fewfire._progress import LINES, NotebookBar, in_notebook


@dataclass(frozen=True, repr=False)
class Progress:
    """The state of a sweep while it runs, or at its end.

    `already` counts runs that were in the store before, `ran` those finished by this call. Successes, diverged and
    failed runs are among all finished ones, earlier ones included; failed ones among those of this call. `seconds` are
    since this call started; `share` is, of the work that it found to do, by cost, how much is done.
    """

    total: int
    already: int
    ran: int
    successes: int
    diverged: int
    failed: int
    seconds: float
    share: float
    engine: str
    executor: str

    @property
    def done(self) -> int:
        """Runs that are in the store."""
        return self.already + self.ran

    @property
    def rate(self) -> float:
        """Runs per second, in this call."""
        return self.ran / self.seconds if self.seconds > 0 else 0.0

    @property
    def success(self) -> float:
        """The share of successes among the finished runs; NaN when there are none."""
        return self.successes / self.done if self.done else math.nan

    @property
    def remaining_seconds(self) -> float:
        """An estimate from the work done so far; NaN before anything is done."""
        return self.seconds * (1 - self.share) / self.share if self.share > 0 else math.nan

    def summary(self, where: str = "") -> str:
        """A sentence or two for the end of a sweep; `where` the runs are."""
        done = f"{self.done} of {self.total} runs{where}: {self.already} from before"
        if self.ran:
            how = f"{self.rate:.1f} runs/s, {self.engine} engine, {self.executor}"
            done += f", {self.ran} trained in {duration(self.seconds)} ({how})"
        return done

    def __str__(self) -> str:
        outcome = f"{self.successes} succeeded, {self.diverged} diverged, {self.failed} failed"
        return f"{self.summary()}; {outcome}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        runs, _, ended = str(self).partition("; ")
        return card("Sweep.run", {"runs": runs, "ended": ended})


class SweepBar:
    """Runs done, runs per second, success so far, time left; where there is no terminal, a line now and then."""

    def __init__(self, console: Console | None = None) -> None:
        self._page = NotebookBar() if console is None and in_notebook() else None
        self._console, self._printed = console or Console(force_jupyter=False), time.monotonic()
        counted, noted = TextColumn("{task.completed}/{task.total} runs"), TextColumn("{task.fields[facts]}")
        columns = (BarColumn(), counted, noted, TimeElapsedColumn())
        self._drawn = self._page is None and self._console.is_terminal
        self._bar = Bar(*columns, console=self._console, transient=True, disable=not self._drawn)
        self._task = self._bar.add_task("", total=None, facts="planning")
        self.state: Progress | None = None

    def show(self, state: Progress) -> None:
        """Draw this state."""
        self.state = state
        self._bar.update(self._task, completed=state.done, total=state.total, facts=facts(state))
        line = f"{state.done}/{state.total} runs · {facts(state)}"
        if self._page is not None:
            self._page.show(state.done, state.total, line)
        elif not self._drawn and time.monotonic() - self._printed >= LINES:
            self._printed = time.monotonic()
            self._console.print(Text(line), soft_wrap=True)

    def __enter__(self) -> SweepBar:
        if self._drawn:  # a disabled bar of an older rich writes an empty line
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn:
            self._bar.stop()


def facts(state: Progress) -> str:
    """The line next to the bar."""
    parts = [f"{state.rate:.1f} runs/s"]
    if not math.isnan(state.success):
        parts.append(f"success {state.success:.0%}")
    if state.diverged or state.failed:
        parts.append(f"{state.diverged} diverged, {state.failed} failed")
    if state.remaining_seconds > 0:  # NaN is not
        parts.append(f"{duration(state.remaining_seconds)} left")
    return " · ".join(parts)


def about(seconds: float) -> str:
    """A time that is a guess: "about 8 s", "less than 1 s"."""
    return f"{'about ' * (seconds >= 1)}{duration(seconds)}"


def duration(seconds: float) -> str:
    """A time as text, such as "3 min 20 s"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if seconds >= 1 else "less than 1 s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    first = next(i for i, (_, size) in enumerate(units) if whole >= size)
    (big, size), (small, rest) = units[first], units[first + 1]
    remainder = whole % size // rest
    return f"{whole // size} {big}" + (f" {remainder} {small}" if remainder else "")
