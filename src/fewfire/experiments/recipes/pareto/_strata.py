"""Two sides compared within many cells of a grid at once: who succeeds more often, and who takes longer.

A grid's cells differ by far more than the two sides do, so pooling them all hides a difference: cells where both sides
always or never succeed say nothing and only add noise. These tests compare within each cell (stratum) and add up.
Differences and chances are means over the strata, with 95% intervals.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from fewfire.experiments.recipes._judgement import Effect
from fewfire.experiments.recipes._power import simulated_power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array

LEVEL = 0.01
"""Of the tests of a claim on a grid."""

DRAWS = 4000
"""Of a simulated power: its standard error is at most 0.008."""


def more_often_within(won: Sequence[int], other: Sequence[int], trials: int) -> float:
    """The exact test of Mantel and Haenszel: the first side succeeds more often, both out of `trials` per stratum.

    Within a stratum the first side's successes are hypergeometric given both sides' together; their sum over the
    strata is what is looked at. With one stratum this is Fisher's test.
    """
    chances, least = np.ones(1), 0
    for mine, theirs in zip(won, other, strict=True):
        both = int(mine) + int(theirs)
        chances = np.convolve(chances, _shares(both, trials))
        least += max(0, both - trials)
    return float(min(1.0, chances[int(np.sum(won)) - least :].sum()))


def gain(name: str, won: ArrayLike, other: ArrayLike, trials: int, level: float = 0.05) -> Effect:
    """The first side's share of success less the other's, the mean over strata (Agresti and Caffo's interval)."""
    first, second = (np.asarray(counts, dtype=np.float64) for counts in (won, other))
    value = float((first - second).mean() / trials)
    padded = np.stack([first, second]) + 1.0
    variance = padded / (trials + 2) * (1 - padded / (trials + 2)) / (trials + 2)
    half = float(stats.norm.isf(level / 2) * np.sqrt(variance.sum()) / len(first))
    return Effect(name, value, value - half, value + half)


@cache
def gain_power(chance: float, other: float, strata: int, trials: int, level: float = LEVEL) -> float:
    """How often `more_often_within` notices these chances in each of so many strata: simulated."""

    def notices(rng: np.random.Generator) -> bool:
        won, lost = rng.binomial(trials, chance, strata), rng.binomial(trials, other, strata)
        return more_often_within(won.tolist(), lost.tolist(), trials) <= level

    return simulated_power(notices, DRAWS)


def longer_within(values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> float:
    """Van Elteren's test, strata weighing alike: the first side takes longer; infinite values rank last and tie."""
    shift, variance = 0.0, 0.0
    for mine, theirs in zip(values, others, strict=True):
        table = _finite(mine), _finite(theirs)
        sizes = len(table[0]), len(table[1])
        total = sum(sizes)
        _, ties = np.unique(np.concatenate(table), return_counts=True)
        shift += _wins(*table).mean() - 0.5
        scale = 1.0 - float((ties**3 - ties).sum()) / (total**3 - total)
        variance += (total + 1) * scale / (12 * sizes[0] * sizes[1])
    return float(stats.norm.sf(shift / np.sqrt(variance))) if variance > 0 else 1.0


def chance_of_longer(name: str, values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> Effect:
    """P(X > Y) + P(X = Y)/2, the mean over strata, with DeLong's variance within each."""
    seen, variance = [], 0.0
    for mine, theirs in zip(values, others, strict=True):
        wins = _wins(_finite(mine), _finite(theirs))
        seen.append(wins.mean())
        variance += sum(wins.mean(axis=axis).var(ddof=1) / wins.shape[1 - axis] for axis in (0, 1))
    value, half = float(np.mean(seen)), float(stats.norm.isf(0.025) * np.sqrt(variance) / len(seen))
    return Effect(name, value, max(0.0, value - half), min(1.0, value + half))


@cache
def longer_power(ratio: float, spread: float, strata: int, trials: int, level: float = LEVEL) -> float:
    """How often `longer_within` notices times `ratio` as long, log-normal with that spread in all strata: simulated."""

    def notices(rng: np.random.Generator) -> bool:
        mine, theirs = rng.standard_normal((2, strata, trials)) * spread
        return longer_within(list(mine + np.log(ratio)), list(theirs)) <= level

    return simulated_power(notices, DRAWS // 2)


@cache
def _shares(both: int, trials: int) -> Float64Array:
    """Chances of the first side's successes when both sides have so many together, from the fewest possible on."""
    counts = np.arange(max(0, both - trials), min(both, trials) + 1)
    return np.asarray(stats.hypergeom.pmf(counts, 2 * trials, both, trials), dtype=np.float64)


def _wins(mine: Float64Array, theirs: Float64Array) -> Float64Array:
    return np.asarray(np.greater.outer(mine, theirs) + 0.5 * np.equal.outer(mine, theirs), dtype=np.float64)


def _finite(values: ArrayLike) -> Float64Array:
    """Infinities as one number above all others."""
    table = np.asarray(values, dtype=np.float64)
    return np.where(np.isinf(table), np.finfo(np.float64).max, table)
