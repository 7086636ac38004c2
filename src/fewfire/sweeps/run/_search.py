"""The rounds of a search: every frontier's next batch, as soon as its batches so far are complete.

Rounds are replayed from the store each time, so a search that was stopped goes on with the very runs it would have
trained. A batch in which runs failed is not complete: its frontier continues when another call has trained them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewfire._errors import invalid
from fewfire._types import IdArray
from fewfire.sweeps.frontiers import FrontierEstimate, LineSearch
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.spec._search import FrontierSearch
from fewfire.sweeps.spec._sweep import Sweep
from fewfire.sweeps.store._protocol import Store
from fewfire.sweeps.store._row import final, succeeded
from fewfire.sweeps.store._sqlite import SqliteStore

GUESSES = 8  # different guesses at what is left, for frontiers with the same counts


@dataclass(frozen=True)
class FoundFrontier:
    """What a search has found out for one combination of the other axes.

    `spec` is a run of it with the smallest value of the axis. `over`: whether no more runs are to come; `settled`:
    whether it found what was asked for. One that is over and not settled has spent its budget.
    """

    spec: RunSpec
    estimate: FrontierEstimate
    over: bool
    settled: bool


class SearchRounds:
    """The frontiers of a sweep, as far as it is known by hash whether runs succeeded."""

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
        fresh = [n for n in self._under_way() if not self._is_known(n) and n not in self._tried]
        self._tried.update(fresh)
        return fresh

    def trained(self) -> list[int]:
        """The numbers of the runs of all batches so far that are final."""
        found: list[int] = []
        for line_index, line in enumerate(self.lines):
            ended = ((at, trial) for at, runs in enumerate(line.runs.tolist()) for trial in range(runs))
            found += self._numbered(line_index, ended)
        return found + [number for number in self._under_way() if self._is_known(number)]

    def successes(self) -> int:
        """How many of these succeeded."""
        return sum(self._known[self._sweep.run_at(number).hash] for number in self.trained())

    def foreseen(self) -> list[int]:
        """A guess at the numbers of all runs that are still to come, for estimates."""
        guesses: dict[tuple[bytes, bytes, int], list[tuple[int, int]]] = {}  # those with the same counts share a few
        found = []
        for line_index, line in enumerate(self.lines):
            state = line.runs.tobytes(), line.successes.tobytes(), line_index % GUESSES
            if state not in guesses:
                guesses[state] = line.foreseen(line_index % GUESSES)
            found += self._numbered(line_index, guesses[state])
        return [number for number in found if not self._is_known(number)]

    def found(self) -> list[FoundFrontier]:
        """The state of each frontier."""
        return [
            FoundFrontier(self._sweep.run_at(int(cells[0])), line.estimate, not batch, line.settled)
            for cells, line, batch in zip(self._cells, self.lines, self._batches, strict=True)
        ]

    def _advance(self) -> None:
        """Decide batches until one is not complete."""
        for line_index, line in enumerate(self.lines):
            while True:
                self._batches[line_index] = self._batches[line_index] or line.batch()
                numbers = self._numbered(line_index, self._batches[line_index])
                outcomes = [self._known.get(self._sweep.run_at(number).hash) for number in numbers]
                if not outcomes or None in outcomes:
                    break
                line.observe(self._batches[line_index], [bool(outcome) for outcome in outcomes])
                self._batches[line_index] = []

    def _under_way(self) -> list[int]:
        """The numbers of the runs of all batches that are not complete."""
        return [n for line_index, batch in enumerate(self._batches) for n in self._numbered(line_index, batch)]

    def _numbered(self, line_index: int, batch: Iterable[tuple[int, int]]) -> list[int]:
        """The numbers that `Sweep.run_at` gives to (index of the value, trial) of one line."""
        cells: IdArray = self._cells[line_index]
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
