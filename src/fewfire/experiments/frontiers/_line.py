"""The search for one frontier: which runs come next, decided by the complete batches before them and by nothing else.

So it is the same whatever trains the runs, in whatever order they end, and however often it was stopped. It ends when
the interval is as narrow as was asked for, when the frontier is clearly beyond the bracket, when two neighbouring
values of the axis hold it, or when the budget is spent.
"""

from __future__ import annotations

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

CANDIDATES = 64
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
        low, high = sorted((float(self._scale[0]), float(self._scale[-1])))
        self._posterior = FrontierPosterior(FrontierCurve(low, high, search.target, search.precision))

    def copy(self) -> LineSearch:
        """One that goes on from here by itself."""
        other = LineSearch(self.search)
        other.runs, other.successes = self.runs.copy(), self.successes.copy()
        other._posterior._log = self._posterior._log
        return other

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
        self._posterior.observe([float(self._scale[place]) for place in places], won, 1 - won)

    def foreseen(self, seed: int) -> list[tuple[int, int]]:
        """The runs that would follow if a curve drawn from what is known were the truth: one guess at what is left."""
        stream, line = Stream(seed, "frontier/foreseen"), self.copy()
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
