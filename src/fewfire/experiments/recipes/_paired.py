"""Paired comparisons: the mean of differences, one per target, with Student's interval and the power of its test.

The power answers before the fact: how often would a true difference of a stated size be seen, with as many pairs that
spread as these do? A verdict without it cannot tell "not there" from "not visible".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from fewfire.experiments.recipes._power import LEVEL, mean_power

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class PairedMean(NamedTuple):
    """A mean of differences, the ends of its one-sided intervals, and its standard deviation and number of pairs."""

    mean: float
    low: float
    high: float
    deviation: float
    pairs: int

    def power(self, effect: float, level: float = LEVEL) -> float:
        """The probability that a true difference of `effect` > 0 has its lower end above 0, at this deviation."""
        return mean_power(effect, self.deviation, self.pairs, level)


def paired_mean(differences: ArrayLike) -> PairedMean:
    """The mean of at least two differences; each end holds with 95% confidence, both together with 90%."""
    values = np.asarray(differences, dtype=np.float64)
    deviation, mean = float(values.std(ddof=1)), float(values.mean())
    half = float(stats.t.ppf(1 - LEVEL, len(values) - 1)) * deviation / np.sqrt(len(values))
    return PairedMean(mean, mean - half, mean + half, deviation, len(values))
