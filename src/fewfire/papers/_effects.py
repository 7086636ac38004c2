"""Effects with 95% intervals: the size of what a test noticed, in the claim's own unit.

Counts have Wilson's interval and Newcombe's for differences, which stay inside their range and do not shrink to nothing
at 0 or all; means have Student's, medians that of order statistics, ranks Newcombe's for P(X > Y).
"""

from __future__ import annotations

from math import inf, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import brentq

from fewfire.papers._claims import Effect


def exact(name: str, value: float) -> Effect:
    """A number that is not estimated: every case was checked."""
    return Effect(name, float(value), float(value), float(value))


def share(name: str, count: int, total: int) -> Effect:
    """Wilson's interval for a share."""
    found = stats.binomtest(count, total).proportion_ci(method="wilson")
    return Effect(name, count / total, float(found.low), float(found.high))


def difference_of_shares(name: str, won: int, total: int, other: int, others: int) -> Effect:
    """Newcombe's hybrid score interval (1998, method 10) for the first share less the second."""
    first, second = share("", won, total), share("", other, others)
    gap = first.value - second.value
    return Effect(
        name,
        gap,
        gap - sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2),
        gap + sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2),
    )


def mean(name: str, values: ArrayLike, level: float = 0.025) -> Effect:
    """Student's interval for a mean, each end wrong with probability `level`; infinite ends of one value only."""
    table = np.asarray(values, dtype=np.float64)
    middle, half = float(table.mean()), inf
    if len(table) > 1:
        half = float(stats.t.ppf(1 - level, len(table) - 1) * stats.sem(table))
    return Effect(name, middle, middle - half, middle + half)


def median(name: str, values: ArrayLike) -> Effect:
    """The interval of order statistics for a median; values may be infinite, and few of them give infinite ends."""
    table = np.sort(np.asarray(values, dtype=np.float64))
    below = int(stats.binom.ppf(0.025, len(table), 0.5))  # fewer lie below the median with probability ≤ 0.025
    ends = (table[below - 1], table[-below]) if below > 0 else (-inf, inf)
    with np.errstate(invalid="ignore"):  # the mean of two infinite values in the middle
        return Effect(name, float(np.median(table)), float(ends[0]), float(ends[1]))


def probability_of_larger(name: str, values: ArrayLike, others: ArrayLike) -> Effect:
    """P(X > Y) + P(X = Y)/2, what Mann and Whitney's test is about, with Newcombe's interval (2006, method 5)."""
    first, second = (np.asarray(table, dtype=np.float64) for table in (values, others))
    if np.isnan(first).any() or np.isnan(second).any():
        return Effect(name, nan, nan, nan)
    pairs = np.greater.outer(first, second) + 0.5 * np.equal.outer(first, second)
    seen, counts, middle = float(pairs.mean()), pairs.size, (len(first) + len(second)) / 2 - 1

    def gap(truth: float) -> float:
        """How many standard errors, squared, `seen` is from `truth`, less how many are allowed."""
        factor = 1 + middle * ((1 - truth) / (2 - truth) + truth / (1 + truth))
        return (seen - truth) ** 2 - stats.norm.ppf(0.975) ** 2 * truth * (1 - truth) * factor / counts

    inside = min(max(seen, 1e-9), 1 - 1e-9)  # 0 and 1 are roots of their own, besides those looked for
    low = brentq(gap, 0.0, inside) if seen > 0 else 0.0
    high = brentq(gap, inside, 1.0) if seen < 1 else 1.0
    return Effect(name, seen, float(low), float(high))
