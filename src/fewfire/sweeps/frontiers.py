"""The value along an axis at which a share of the runs succeeds: its posterior, its estimate, and the search for it.

The probability of success at a value v is γ + (1 − γ − λ)·Φ((log v − θ)/σ + z), where z puts the target exactly at
v = exp(θ): θ is the logarithm of what is looked for, whatever σ (the width of the turn) and λ (the share of runs that
fail however large v is). γ = 0.5% are lucky ones. A curve may be lopsided, σ·√α below θ and σ/√α above it, so that runs
far to one side say little about the other. The prior is flat in θ and log σ, on a bracket widened to both sides, so
that "beyond the bracket" is a possible answer; σ, λ and α are integrated out of every statement about θ.

A grid has nothing to converge, and is the same on every machine; it is also why data that contradict the curve
(successes far below the frontier) widen the interval and do not break it.

A search decides which runs come next by the complete batches before them and by nothing else. So it is the same
whatever trains the runs, in whatever order they end, and however often it was stopped. It ends when the interval is as
narrow as was asked for, when the frontier is clearly beyond the bracket, when two neighbouring values of the axis hold
it, or when the budget is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, inf, isinf, isnan, log, nan
from typing import Literal, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire._validate import check_number
from fewfire.sweeps.spec._search import FrontierSearch

LUCK = 0.005
CEILINGS = (0.005, 0.05, 0.15, 0.3)
"""λ, the share that fails at any value; those that put the target out of reach are left out."""

CEILING_WEIGHTS = (0.7, 0.2, 0.08, 0.02)
LOPSIDED = (0.5, 1.0, 2.0)  # α: how much wider the turn is below the frontier than above it
LOPSIDED_WEIGHTS = (0.2, 0.6, 0.2)
SLOPES = 8
WIDEST = 1.5  # the largest σ: from 16% to 84% within a factor of e³
WIDENED = 1.0  # by how much, in log v, the locations reach beyond each end of the bracket
FINENESS = 4  # locations for every log(1 + precision), a half of the interval that is asked for
MOST_LOCATIONS = 1000


@dataclass(frozen=True)
class FrontierCurve:
    """The curves that are possible a priori: in a bracket, with a share `target` of successes at exp(θ)."""

    low: float
    high: float
    target: float = 0.5
    precision: float = 0.1  # the relative accuracy that the grid resolves

    @cached_property
    def locations(self) -> Float64Array:
        """θ: shape (locations,)."""
        first, last = log(self.low) - WIDENED, log(self.high) + WIDENED
        count = ceil((last - first) / log(1 + self.precision) * FINENESS) + 1
        return np.linspace(first, last, min(MOST_LOCATIONS, count))

    @cached_property
    def slopes(self) -> Float64Array:
        """σ: shape (slopes,)."""
        fine = log(1 + self.precision)
        return np.geomspace(fine / 2, max(WIDEST, fine), SLOPES)

    @cached_property
    def shapes(self) -> Float64Array:
        """λ, α and their prior probabilities: shape (3, shapes)."""
        found = [
            (ceiling, side, weight * other)
            for ceiling, weight in zip(CEILINGS, CEILING_WEIGHTS, strict=True)
            for side, other in zip(LOPSIDED, LOPSIDED_WEIGHTS, strict=True)
            if ceiling == CEILINGS[0] or (self.target - LUCK) / (1 - LUCK - ceiling) < 0.95
        ]
        table = np.array(found).T
        table[2] /= table[2].sum()
        return np.asarray(table)

    def probabilities(self, values: Sequence[float]) -> tuple[Float64Array, Float64Array, Float64Array]:
        """The probability of success at each value under each curve, its logarithm, and that of failure.

        Shape (values, locations, slopes, shapes).
        """
        from scipy.special import ndtr, ndtri  # late, because the workers of a sweep need none of this

        ceilings, sides, _ = self.shapes
        offsets = ndtri(np.minimum((self.target - LUCK) / (1 - LUCK - ceilings), 0.999))
        distance = np.log(np.array(values, dtype=np.float64))[:, None] - self.locations
        stretched = distance[..., None] * np.where(distance[..., None] < 0, sides**-0.5, sides**0.5)
        good = LUCK + (1 - LUCK - ceilings) * ndtr(stretched[:, :, None, :] / self.slopes[:, None] + offsets)
        return good, np.log(good), np.log1p(-good)


@lru_cache(maxsize=2)  # frontiers of one search have the same candidates, those of one map the same columns
def _shared_probabilities(
    curve: FrontierCurve, values: tuple[float, ...]
) -> tuple[Float64Array, Float64Array, Float64Array]:
    return curve.probabilities(values)


class FrontierPosterior:
    """The posterior of the value at which a share of the runs succeeds."""

    def __init__(self, curve: FrontierCurve) -> None:
        self.curve = curve
        shapes = np.log(curve.shapes[2])
        self._log: Float64Array = np.zeros((len(curve.locations), SLOPES, len(shapes))) + shapes

    def observe(
        self, values: Sequence[float], successes: AnyArray, failures: AnyArray, *, shared: bool = False
    ) -> None:
        """Take in successes and failures at each value, (values,) each; curves at `shared` values are kept."""
        _, good, bad = _shared_probabilities(self.curve, tuple(values)) if shared else self.curve.probabilities(values)
        self._log = self._log + np.tensordot(np.asarray(successes, dtype=np.float64), good, 1)
        self._log += np.tensordot(np.asarray(failures, dtype=np.float64), bad, 1)
        self.__dict__.pop("weights", None)

    @cached_property
    def weights(self) -> Float64Array:
        """The probability of each curve: shape (locations, slopes, shapes), sum 1."""
        found = np.exp(self._log - self._log.max())
        return np.asarray(found / found.sum())

    @property
    def marginal(self) -> Float64Array:
        """The probability of each location: shape (locations,)."""
        return np.asarray(self.weights.sum(axis=(1, 2)))

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The values below which exp(θ) lies with these probabilities, between locations by interpolation."""
        mass = self.marginal
        below = np.cumsum(mass) - mass / 2
        return [float(value) for value in np.exp(np.interp(shares, below, self.curve.locations))]

    @property
    def beyond(self) -> tuple[float, float]:
        """The probabilities that what is looked for lies below the bracket and above it."""
        mass, at = self.marginal, self.curve.locations
        return float(mass[at < log(self.curve.low)].sum()), float(mass[at > log(self.curve.high)].sum())

    def choose(self, candidates: Sequence[float], count: int) -> list[int]:
        """The most informative candidates, one after the other: their positions, some perhaps repeated.

        Each is the one with the smallest entropy of the location to be expected after its outcome. For the next one it
        is taken to have come out as expected: a share of a success and the rest of a failure.
        """
        probabilities, good, bad = _shared_probabilities(self.curve, tuple(candidates))
        weights, chosen = self.weights, []
        for _ in range(count):
            won = np.einsum("cijk,ijk->ci", probabilities, weights)
            share, lost = won.sum(axis=1), np.maximum(weights.sum(axis=(1, 2)) - won, 0.0)
            # Rounded, so that the last bit of a sum cannot decide between two that are equally good.
            best = int(np.argmin(np.round(_entropy(won) + _entropy(lost), 9)))
            chosen.append(best)
            logs = np.log(np.maximum(weights, 1e-300)) + share[best] * good[best] + (1 - share[best]) * bad[best]
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
        return chosen


def _entropy(masses: Float64Array) -> Float64Array:
    """Of each row, which need not sum to 1, times its sum: shape (rows,)."""
    total = masses.sum(axis=1, keepdims=True)
    shares = masses / np.maximum(total, 1e-300)
    return np.asarray(-(masses * np.log(np.maximum(shares, 1e-300))).sum(axis=1))


Side: TypeAlias = Literal["inside", "below", "above"]
"""Where the frontier is, as far as the runs say: in the bracket, or clearly below or above it."""

FEW = 64  # up to so many values, those without runs are looked at as well: the rows of a map then share their curves


@dataclass(frozen=True)
class FrontierEstimate:
    """Where half of the runs (or another share) succeed.

    `value`, `low` and `high` are the median of the posterior and the ends of its interval, which holds the frontier
    with probability `level`. 0 and infinity stand for values beyond the bracket: what was not tried is not named. NaN
    without runs. `end` is (value, successes, runs) at the end of the bracket that the frontier lies beyond; at the
    nearest value tried for those inside.
    """

    value: float
    low: float
    high: float
    side: Side
    level: float
    runs: int
    successes: int
    end: tuple[float, int, int]

    @property
    def factor(self) -> float:
        """high / low: how wide the interval is; infinite where it is open."""
        return inf if self.low == 0 or isinf(self.high) or isnan(self.value) else self.high / self.low

    def __str__(self) -> str:
        if isnan(self.value):
            return "no runs"
        at, won, tried = self.end
        seen = f"{won} of {tried} runs succeed at {at:,.6g}"
        if self.side != "inside":
            return f"not {'below' if self.side == 'above' else 'above'} {at:,.6g}: {seen}"
        ends = ("below the bracket" if self.low == 0 else _number(self.low)) + " to "
        ends += "above the bracket" if isinf(self.high) else _number(self.high)
        middle = "" if self.value == 0 or isinf(self.value) else f"{_number(self.value)}, "
        return f"{middle}{self.level:.0%} interval {ends}"

    __repr__ = __str__


def estimate_frontier(
    values: AnyArray,
    successes: AnyArray,
    runs: AnyArray,
    *,
    low: float | None = None,
    high: float | None = None,
    target: float = 0.5,
    level: float = 0.95,
    precision: float = 0.05,
    rising: bool = True,
) -> FrontierEstimate:
    """Where a share of the runs succeeds, from how many did at each value.

    Parameters
    ----------
    values : array of shape (values,)
        Positive and distinct.
    successes, runs : int arrays of shape (values,)
    low, high : float, optional
        The bracket; by default the smallest and the largest value. A frontier beyond it is not located.
    target : float
        The share of successes.
    level : float
        Of the interval.
    precision : float
        How finely the posterior is computed, as a relative accuracy.
    rising : bool
        Whether success becomes more frequent with the value.

    Examples
    --------
    >>> from fewfire.sweeps import estimate_frontier
    >>> found = estimate_frontier([100, 200, 400, 800], successes=[0, 2, 9, 10], runs=[10, 10, 10, 10])
    >>> 200 < found.low < found.value < found.high < 400
    True
    """
    at, won, tried = (np.asarray(part, dtype=np.float64) for part in (values, successes, runs))
    if at.ndim != 1 or at.shape != won.shape or at.shape != tried.shape or not at.size:
        shapes = f"shapes {at.shape}, {won.shape}, {tried.shape}"
        raise invalid("values, successes and runs", "must be vectors of one length", shapes)
    if (at <= 0).any():
        raise invalid("values", "must be positive", float(at.min()), "the curve is one of their logarithms")
    if (won > tried).any() or (won < 0).any():
        raise invalid("successes", "must be between 0 and the number of runs", successes)
    bracket = (float(at.min()) if low is None else low, float(at.max()) if high is None else high)
    if not 0 < bracket[0] <= bracket[1]:
        raise invalid("low and high", "must be positive and in order", bracket)
    check_number("target", target, 0.05, 0.95)
    check_number("level", level, 0.5, 0.999)
    inner = bracket if rising else (1 / bracket[1], 1 / bracket[0])
    posterior = FrontierPosterior(FrontierCurve(*inner, target, precision))
    kept = tried > 0 if len(at) > FEW else np.ones(len(at), dtype=bool)
    if tried.any():
        posterior.observe(list(at[kept] if rising else 1 / at[kept]), won[kept], (tried - won)[kept], shared=True)
    return _read(posterior, at, won, tried, bracket, level, rising)


def _read(
    posterior: FrontierPosterior,
    values: AnyArray,
    successes: AnyArray,
    runs: AnyArray,
    bracket: tuple[float, float],
    level: float,
    rising: bool,
) -> FrontierEstimate:
    """A posterior, in the axis' own values; one of a falling axis was fed their reciprocals."""
    total, won = int(runs.sum()), int(successes.sum())
    if not total:
        return FrontierEstimate(nan, nan, nan, "inside", level, 0, 0, (nan, 0, 0))
    tail = (1 - level) / 2
    found = posterior.quantiles([tail, 0.5, 1 - tail])
    below, above = posterior.beyond
    if not rising:
        found, (below, above) = [1 / value for value in reversed(found)], (above, below)
    side: Side = "above" if above >= level else "below" if below >= level else "inside"
    if side == "above":
        found = [bracket[1], inf, inf]
    elif side == "below":
        found = [0.0, 0.0, bracket[0]]
    else:
        found = [0.0 if value < bracket[0] else inf if value > bracket[1] else value for value in found]
    wanted = {"above": bracket[1], "below": bracket[0], "inside": found[1]}[side]
    tried = np.flatnonzero(runs > 0)
    near = int(tried[np.argmin(np.abs(np.log(values[tried]) - np.log(max(min(wanted, bracket[1]), bracket[0]))))])
    end = (float(values[near]), int(successes[near]), int(runs[near]))
    return FrontierEstimate(found[1], found[0], found[2], side, level, total, won, end)


def _number(value: float) -> str:
    """Whole where it is large, three digits where it is small."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


CANDIDATES = 80  # values that are compared for a run; of more, those around the frontier, evenly thinned
AROUND = 1.5  # how far around, in the logarithm


class LineSearch:
    """One frontier under way: the values that may be tried, and their runs and successes, shape (values,) each."""

    def __init__(self, search: FrontierSearch, runs: IdArray | None = None, successes: IdArray | None = None) -> None:
        self.search = search
        self.values = np.array(search.values(), dtype=np.float64)
        self.runs, self.successes = (
            np.zeros(len(self.values), dtype=np.int64) if known is None else known.copy() for known in (runs, successes)
        )
        # A falling axis is a rising one of the reciprocals.
        self._scale = self.values if search.rising else 1 / self.values

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
        return _read(self._posterior, self.values, self.successes, self.runs, bracket, search.level, search.rising)

    @property
    def settled(self) -> bool:
        """Whether what was asked for is known."""
        if not self.runs.any():
            return False
        found = self.estimate
        if found.side != "inside" or found.factor <= (1 + self.search.precision) ** 2:
            return True
        return found.factor < inf and not ((self.values > found.low) & (self.values < found.high)).any()

    def batch(self) -> list[tuple[int, int]]:
        """The next runs as (index of the value, trial), each trial a new one; none when the search is over."""
        return list(_batch(self.search, self.runs.tobytes(), self.successes.tobytes()))

    def _next_batch(self) -> list[tuple[int, int]]:
        left = self.search.budget - int(self.runs.sum())
        if left <= 0 or self.settled:
            return []
        indices = self._candidates()
        chosen = self._posterior.choose([float(self._scale[i]) for i in indices], min(left, self.search.batch))
        next_trial, batch = self.runs.copy(), []
        for index in (indices[position] for position in chosen):
            batch.append((index, int(next_trial[index])))
            next_trial[index] += 1
        return batch

    def observe(self, batch: Sequence[tuple[int, int]], outcomes: Sequence[bool]) -> None:
        """Take in whether each run of the batch succeeded."""
        indices = np.array([index for index, _ in batch])
        won = np.array(outcomes, dtype=np.int64)
        np.add.at(self.runs, indices, 1)
        np.add.at(self.successes, indices, won)
        self.__dict__.pop("_posterior", None)

    def foreseen(self, seed: int) -> list[tuple[int, int]]:
        """The runs that would follow if a curve drawn from what is known were the truth: one guess at what is left."""
        stream = Stream(seed, "frontier/foreseen")
        line = LineSearch(self.search, self.runs, self.successes)
        runs: list[tuple[int, int]] = []
        weights = self._posterior.weights
        at = int(np.searchsorted(np.cumsum(weights), float(stream.child("curve").uniform(1)[0])))
        curve = np.unravel_index(min(at, weights.size - 1), weights.shape)
        draws = stream.child("outcomes").uniform(self.search.budget)
        while batch := line.batch():
            probabilities = self._posterior.curve.probabilities([float(self._scale[at]) for at, _ in batch])[0]
            line.observe(batch, [bool(draws[len(runs) + i] < probabilities[(i, *curve)]) for i in range(len(batch))])
            runs += batch
        return runs

    def _candidates(self) -> list[int]:
        """Indices of the values to choose from."""
        if len(self.values) <= CANDIDATES:
            return list(range(len(self.values)))
        first, last = self._posterior.quantiles([0.001, 0.999])
        at = np.log(self._scale)
        near = np.flatnonzero((at >= log(first) - AROUND) & (at <= log(last) + AROUND))
        return sorted({int(near[i]) for i in np.linspace(0, len(near) - 1, CANDIDATES).round().astype(int)})


@lru_cache(maxsize=256)  # frontiers with the same counts, all of them at first, continue in the same way
def _batch(search: FrontierSearch, runs: bytes, successes: bytes) -> tuple[tuple[int, int], ...]:
    counts = (np.frombuffer(counted, dtype=np.int64) for counted in (runs, successes))
    return tuple(LineSearch(search, *counts)._next_batch())
