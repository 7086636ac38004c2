"""Two sides compared within many cells of a grid at once: who succeeds more often, and who takes longer.

A grid's cells differ by far more than the two sides do, so pooling them all hides a difference: cells where both sides
always or never succeed only add noise. These tests compare within each cell (stratum) and add up. Differences and
probabilities are means over the strata, with 95% intervals.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from fewfire.papers._claims._recipe import Effect
from fewfire.papers._claims._statistics import simulated_power

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array

LEVEL = 0.01  # of the tests of a claim on a grid
DRAWS = 4000  # of a simulated power: its standard error is at most 0.008


def more_often_within(won: ArrayLike, other: ArrayLike, trials: ArrayLike, others: ArrayLike | None = None) -> float:
    """The exact test of Mantel and Haenszel: the first side succeeds more often, of (strata,) successes and runs.

    Within a stratum the first side's successes are hypergeometric given both sides' together; their sum over the strata
    is what is looked at. With one stratum this is Fisher's test. `trials` are of both sides unless `others` is given.
    """
    strata = np.broadcast_arrays(won, other, trials, trials if others is None else others)
    probabilities, least = np.ones(1), 0
    for mine, theirs, runs, rest in zip(*(table.tolist() for table in strata), strict=True):
        probabilities = np.convolve(probabilities, _shares(mine + theirs, runs, rest))
        least += max(0, mine + theirs - rest)
    return float(min(1.0, probabilities[int(np.sum(won)) - least :].sum()))


def gain(
    name: str, won: ArrayLike, other: ArrayLike, trials: ArrayLike, others: ArrayLike | None = None, level: float = 0.05
) -> Effect:
    """The first side's share of success less the other's, the mean over strata (Agresti and Caffo's interval)."""
    sides = [(np.asarray(won), trials), (np.asarray(other), trials if others is None else others)]
    first, second = (counts / runs for counts, runs in sides)
    value = round(float((first - second).mean()), 15)  # gains that cancel are 0
    variance = 0.0
    for counts, runs in sides:
        size = np.asarray(runs) + 2
        padded = (counts + 1) / size
        variance += float((padded * (1 - padded) / size).sum())
    half = float(stats.norm.isf(level / 2) * np.sqrt(variance) / len(first))
    return Effect(name, value, value - half, value + half)


@cache
def gain_power(share: float, other: float, strata: int, trials: int, level: float = LEVEL) -> float:
    """How often `more_often_within` notices these shares in each of so many strata: simulated."""

    def notices(rng: np.random.Generator) -> bool:
        won, lost = rng.binomial(trials, share, strata), rng.binomial(trials, other, strata)
        return more_often_within(won, lost, trials) <= level

    return simulated_power(notices, DRAWS)


def longer_within(values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> float:
    """Van Elteren's test, strata weighing alike: the first side takes longer; infinite values rank last and tie."""
    shift, variance = 0.0, 0.0
    for mine, theirs in zip(values, others, strict=True):
        wins, both = _wins(mine, theirs), np.concatenate([mine, theirs])
        _, ties = np.unique(both, return_counts=True)
        shift += wins.mean() - 0.5
        scale = 1.0 - float((ties**3 - ties).sum()) / (len(both) ** 3 - len(both))
        variance += (len(both) + 1) * scale / (12 * wins.size)
    return float(stats.norm.sf(shift / np.sqrt(variance))) if variance > 0 else 1.0


def probability_of_longer(name: str, values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> Effect:
    """P(X > Y) + P(X = Y)/2, the mean over strata, with DeLong's variance within each."""
    seen, variance = [], 0.0
    for mine, theirs in zip(values, others, strict=True):
        wins = _wins(mine, theirs)
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
def _shares(both: int, trials: int, others: int) -> Float64Array:
    """Probabilities of the first side's successes, from the fewest possible on, given both sides' together."""
    counts = np.arange(max(0, both - others), min(both, trials) + 1)
    return np.asarray(stats.hypergeom.pmf(counts, trials + others, both, trials), dtype=np.float64)


def _wins(mine: ArrayLike, theirs: ArrayLike) -> Float64Array:
    """For every pair 1 where the first is larger, ½ where they tie: shape (first, second)."""
    return np.asarray(np.greater.outer(mine, theirs) + 0.5 * np.equal.outer(mine, theirs), dtype=np.float64)
