"""The rounds of a search: every frontier's next batch, as soon as its batches so far are complete.

Rounds are replayed from the store each time, so a search that was stopped goes on with the very runs it would have
trained. A batch in which runs failed is not complete: its frontier waits until another go has trained them.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire.experiments.frontiers import LineSearch
from fewfire.experiments.store import SqliteStore, final, succeeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fewfire._types import IdArray
    from fewfire.experiments.frontiers import FrontierEstimate
    from fewfire.experiments.spec import FrontierSearch, RunSpec, Sweep
    from fewfire.experiments.store import Store


GUESSES = 8
"""Different guesses at what is left for frontiers of which the same is known."""


@dataclass(frozen=True)
class FoundFrontier:
    """What a search has found out for one combination of the other axes.

    Parameters
    ----------
    spec : RunSpec
        A run of it, with the smallest value of the axis.
    estimate : FrontierEstimate
    over : bool
        Whether the search is over; if not, more runs are to come.
    settled : bool
        Whether it found what was asked for; one that is over and is not has spent its budget.
    """

    spec: RunSpec
    estimate: FrontierEstimate
    over: bool
    settled: bool


class SearchRounds:
    """The frontiers of a sweep, as far as known outcomes carry them.

    Parameters
    ----------
    sweep : Sweep
        With a search.
    known : mapping of hash to bool
        Whether each run that is final succeeded.
    """

    def __init__(self, sweep: Sweep, known: Mapping[str, bool]) -> None:
        self._sweep, self._known = sweep, dict(known)
        self._cells = _search(sweep).lines(sweep)
        self.lines = [LineSearch(_search(sweep)) for _ in self._cells]
        self._tried: set[int] = set()
        self._batches: list[list[tuple[int, int]]] = [[] for _ in self.lines]
        self._advance()

    def learn(self, outcomes: Mapping[str, bool]) -> None:
        """Take in runs that have become final."""
        self._known |= outcomes
        self._advance()

    def missing(self) -> list[int]:
        """The numbers of the runs that the next batches lack, each handed out once."""
        found = [n for place in range(len(self.lines)) for n in self._numbers(place) if not self._is_known(n)]
        fresh = [number for number in found if number not in self._tried]
        self._tried.update(fresh)
        return fresh

    def trained(self) -> list[int]:
        """The numbers of the runs of all batches so far that are final."""
        past = [
            trial * self._sweep.settings + int(self._cells[place][at])
            for place, line in enumerate(self.lines)
            for at in np.flatnonzero(line.runs)
            for trial in range(int(line.runs[at]))
        ]
        return past + [n for place in range(len(self.lines)) for n in self._numbers(place) if self._is_known(n)]

    def successes(self) -> int:
        """How many of these succeeded."""
        return sum(self._known[self._sweep.run_at(number).hash] for number in self.trained())

    def foreseen(self) -> list[int]:
        """A guess at the numbers of all runs that are still to come, for estimates."""
        guesses: dict[tuple[bytes, bytes, int], list[tuple[int, int]]] = {}  # those that know the same share a few
        found = []
        for place, line in enumerate(self.lines):
            state = line.runs.tobytes(), line.successes.tobytes(), place % GUESSES
            if state not in guesses:
                guesses[state] = line.foreseen(place % GUESSES)
            found += self._numbered(place, guesses[state])
        return [number for number in found if not self._is_known(number)]

    def found(self) -> list[FoundFrontier]:
        """What is known of each frontier."""
        return [
            FoundFrontier(self._sweep.run_at(int(cells[0])), line.estimate, not batch, line.settled)
            for cells, line, batch in zip(self._cells, self.lines, self._batches, strict=True)
        ]

    def _advance(self) -> None:
        """Decide batches until one is not complete."""
        for place, line in enumerate(self.lines):
            while True:
                self._batches[place] = self._batches[place] or line.batch()
                outcomes = [self._known.get(self._sweep.run_at(number).hash) for number in self._numbers(place)]
                if not outcomes or None in outcomes:
                    break
                line.observe(self._batches[place], [bool(outcome) for outcome in outcomes])
                self._batches[place] = []

    def _numbers(self, place: int) -> list[int]:
        return self._numbered(place, self._batches[place])

    def _numbered(self, place: int, batch: Iterable[tuple[int, int]]) -> list[int]:
        """The numbers that `Sweep.run_at` gives to (place of the value, trial) of one line."""
        cells: IdArray = self._cells[place]
        return [trial * self._sweep.settings + int(cells[at]) for at, trial in batch]

    def _is_known(self, number: int) -> bool:
        return self._sweep.run_at(number).hash in self._known


def outcomes_of(store: Store, success_error: float) -> dict[str, bool]:
    """Whether each final run of a store succeeded, by hash."""
    columns = store.columns()
    kept = final(columns["status"])
    good = succeeded(columns["status"], columns["best_test_error"], success_error)
    return dict(zip(columns["hash"][kept].tolist(), good[kept].tolist(), strict=True))


def found_frontiers(sweep: Sweep, store: Store | str | Path) -> list[FoundFrontier]:
    """What a search has found so far, one entry per combination of the other axes.

    Parameters
    ----------
    sweep : Sweep
        With a search.
    store : path of a store file, or a Store
    """
    _search(sweep)
    opened: Any = SqliteStore(store) if isinstance(store, str | Path) else nullcontext(store)
    with opened as kept:
        return SearchRounds(sweep, outcomes_of(kept, sweep.success_error)).found()


def _search(sweep: Sweep) -> FrontierSearch:
    if sweep.search is None:
        raise invalid("sweep", "must have a search", sweep.name, "add a table [search] to its spec")
    return sweep.search
