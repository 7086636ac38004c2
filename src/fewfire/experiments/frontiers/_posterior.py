"""Where success turns from rare to common along an axis: a posterior on a grid of location, slope and shape.

The probability of success at a value v is γ + (1 − γ − λ)·Φ((log v − θ)/σ + z), where z puts the target exactly at
v = exp(θ): θ is the logarithm of what is looked for, whatever σ (the width of the turn) and λ (the share of runs that
fail however large v is). γ = 0.5% are lucky ones. A curve may be lopsided, σ·√α below θ and σ/√α above it, so that runs
far to one side say little about the other. The prior is flat in θ and log σ, on a bracket widened to both sides, so
that "beyond the bracket" is an answer like any other; σ, λ and α are averaged out of everything that is said of θ.

A grid has nothing to converge, and is the same on every machine; it is also why data that contradict the curve
(successes far below the frontier) widen the interval and do not break it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray, Float64Array

LUCK = 0.005
CEILINGS = (0.005, 0.05, 0.15, 0.3)
"""λ, the share that fails at any value; those that put the target out of reach are left out."""

CEILING_WEIGHTS = (0.7, 0.2, 0.08, 0.02)
LOPSIDED = (0.5, 1.0, 2.0)
"""α: how much wider the turn is below the frontier than above it."""

LOPSIDED_WEIGHTS = (0.2, 0.6, 0.2)
SLOPES = 8
WIDEST = 1.5
"""The largest σ: from 16% to 84% within a factor of e³."""

WIDENED = 1.0
"""By how much, in log v, the locations reach beyond each end of the bracket."""

FINENESS = 4
"""Locations for every log(1 + precision), a half of the interval that is asked for."""

MOST_LOCATIONS = 1000


@dataclass(frozen=True)
class FrontierCurve:
    """The curves that are held possible.

    Parameters
    ----------
    low, high : float
        The bracket, 0 < low < high.
    target : float
        The share of successes at exp(θ), between 0.05 and 0.95.
    precision : float
        The relative accuracy that the grid has to resolve.
    """

    low: float
    high: float
    target: float = 0.5
    precision: float = 0.1

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

    def chances(self, values: Sequence[float]) -> tuple[Float64Array, Float64Array, Float64Array]:
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
def _shared_chances(curve: FrontierCurve, values: tuple[float, ...]) -> tuple[Float64Array, Float64Array, Float64Array]:
    return curve.chances(values)


class FrontierPosterior:
    """What outcomes say about the value at which a share of the runs succeeds."""

    def __init__(self, curve: FrontierCurve) -> None:
        self.curve = curve
        shapes = np.log(curve.shapes[2])
        self._log: Float64Array = np.zeros((len(curve.locations), SLOPES, len(shapes))) + shapes

    def observe(
        self, values: Sequence[float], successes: AnyArray, failures: AnyArray, *, shared: bool = False
    ) -> None:
        """Take in the numbers of successes and failures at each value; shape (values,) each.

        `shared` says that others will be asked about the same values, for which the curves are then kept.
        """
        _, good, bad = _shared_chances(self.curve, tuple(values)) if shared else self.curve.chances(values)
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

    def place(self, candidates: Sequence[float], count: int) -> list[int]:
        """Which candidates tell most about the location, one after the other: positions, some perhaps repeated.

        Each is the one with the smallest entropy of the location to be expected after its outcome. For the next one it
        is taken to have come out as expected: a share of a success and the rest of a failure.
        """
        chances, good, bad = _shared_chances(self.curve, tuple(candidates))
        weights, chosen = self.weights, []
        for _ in range(count):
            won = np.einsum("cijk,ijk->ci", chances, weights)
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
