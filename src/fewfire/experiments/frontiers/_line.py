"""The search for one frontier: which runs come next, decided by the complete batches before them and by nothing else.

So it is the same whatever trains the runs, in whatever order they end, and however often it was stopped. It ends when
the interval is as narrow as was asked for, when the frontier is clearly beyond the bracket, when two neighbouring
values of the axis hold it, or when the budget is spent.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import log
from typing import TYPE_CHECKING

import numpy as np

from fewfire._random import Stream
from fewfire.experiments.frontiers._estimate import FrontierEstimate, read
from fewfire.experiments.frontiers._posterior import FrontierCurve, FrontierPosterior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import IdArray
    from fewfire.experiments.spec import FrontierSearch

CANDIDATES = 80
"""Values that are compared for a run; of more, those around the frontier, evenly thinned."""

AROUND = 1.5
"""How far around, in the logarithm."""


class LineSearch:
    """One frontier under way.

    Parameters
    ----------
    search : FrontierSearch

    Attributes
    ----------
    values : array of shape (values,)
        What may be tried.
    runs, successes : int arrays of shape (values,)
    """

    def __init__(self, search: FrontierSearch) -> None:
        self.search = search
        self.values = np.array(search.values(), dtype=np.float64)
        self.runs: IdArray = np.zeros(len(self.values), dtype=np.int64)
        self.successes: IdArray = np.zeros(len(self.values), dtype=np.int64)
        # A falling axis is a rising one of the reciprocals.
        self._scale = self.values if search.rising else 1 / self.values

    @classmethod
    def at(cls, search: FrontierSearch, runs: IdArray, successes: IdArray) -> LineSearch:
        """A search that has got so far; it is all there is to know of it."""
        line = cls(search)
        line.runs, line.successes = runs.copy(), successes.copy()
        return line

    @cached_property
    def _posterior(self) -> FrontierPosterior:
        """A function of the counts alone, whatever the order they came in: the same after a stop, to the last bit."""
        search = self.search
        low, high = sorted((float(self._scale[0]), float(self._scale[-1])))
        posterior = FrontierPosterior(FrontierCurve(low, high, search.target, search.precision))
        few = len(self.values) <= CANDIDATES
        used = slice(None) if few else self.runs > 0
        if self.runs.any():
            values = [float(value) for value in self._scale[used]]
            posterior.observe(values, self.successes[used], (self.runs - self.successes)[used], shared=few)
        return posterior

    @property
    def estimate(self) -> FrontierEstimate:
        """What is known so far."""
        search = self.search
        bracket = (float(self.values[0]), float(self.values[-1]))
        return read(self._posterior, self.values, self.successes, self.runs, bracket, search.level, search.rising)

    @property
    def settled(self) -> bool:
        """Whether what was asked for is known."""
        if not self.runs.any():
            return False
        found = self.estimate
        if found.side != "inside" or found.factor <= (1 + self.search.precision) ** 2:
            return True
        return found.factor < np.inf and not ((self.values > found.low) & (self.values < found.high)).any()

    def batch(self) -> list[tuple[int, int]]:
        """The next runs as (place of the value, trial), each trial a new one; none when the search is over."""
        return list(_batch(self.search, self.runs.tobytes(), self.successes.tobytes()))

    def _place(self) -> list[tuple[int, int]]:
        left = self.search.budget - int(self.runs.sum())
        if left <= 0 or self.settled:
            return []
        places = self._candidates()
        chosen = self._posterior.place([float(self._scale[i]) for i in places], min(left, self.search.batch))
        next_trial, batch = self.runs.copy(), []
        for place in (places[position] for position in chosen):
            batch.append((place, int(next_trial[place])))
            next_trial[place] += 1
        return batch

    def observe(self, batch: Sequence[tuple[int, int]], outcomes: Sequence[bool]) -> None:
        """Take in whether each run of the batch succeeded."""
        places = np.array([place for place, _ in batch])
        won = np.array(outcomes, dtype=np.int64)
        np.add.at(self.runs, places, 1)
        np.add.at(self.successes, places, won)
        self.__dict__.pop("_posterior", None)

    def foreseen(self, seed: int) -> list[tuple[int, int]]:
        """The runs that would follow if a curve drawn from what is known were the truth: one guess at what is left."""
        stream = Stream(seed, "frontier/foreseen")
        line = LineSearch.at(self.search, self.runs, self.successes)
        runs: list[tuple[int, int]] = []
        weights = self._posterior.weights
        curve = int(np.searchsorted(np.cumsum(weights), float(stream.child("curve").uniform(1)[0])))
        place = np.unravel_index(min(curve, weights.size - 1), weights.shape)
        luck = stream.child("outcomes").uniform(self.search.budget)
        while batch := line.batch():
            chances = self._posterior.curve.chances([float(self._scale[at]) for at, _ in batch])[0]
            line.observe(batch, [bool(luck[len(runs) + i] < chances[(i, *place)]) for i in range(len(batch))])
            runs += batch
        return runs

    def _candidates(self) -> list[int]:
        """Places of the values to choose from."""
        if len(self.values) <= CANDIDATES:
            return list(range(len(self.values)))
        first, last = self._posterior.quantiles([0.001, 0.999])
        at = np.log(self._scale)
        near = np.flatnonzero((at >= log(first) - AROUND) & (at <= log(last) + AROUND))
        return sorted({int(near[i]) for i in np.linspace(0, len(near) - 1, CANDIDATES).round().astype(int)})


@lru_cache(maxsize=256)  # frontiers of which the same is known, all of them at first, go on in the same way
def _batch(search: FrontierSearch, runs: bytes, successes: bytes) -> tuple[tuple[int, int], ...]:
    counts = (np.frombuffer(counted, dtype=np.int64) for counted in (runs, successes))
    return tuple(LineSearch.at(search, *counts)._place())
