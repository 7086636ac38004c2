"""The tests by which recipes judge: each gives the p-value of one side, so small means the claim was seen.

`lower_end` and `upper_end` are ends of an interval instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest, fisher_exact, mannwhitneyu, page_trend_test
from scipy.stats import t as student

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def more_often(won: int, other: int, trials: int) -> float:
    """Fisher's exact test: the first side succeeds more often, both out of `trials`."""
    table = np.array([[won, trials - won], [other, trials - other]])
    return float(fisher_exact(table, alternative="greater").pvalue)


def in_most(count: int, total: int) -> float:
    """The binomial (sign) test: more than one half. Nothing counted says nothing, p = 1."""
    return float(binomtest(count, total, 0.5, alternative="greater").pvalue) if total else 1.0


def larger(values: ArrayLike, others: ArrayLike) -> float:
    """Mann and Whitney's test: the first sample tends to be larger; infinite values rank last."""
    return float(mannwhitneyu(_ranked(values), _ranked(others), alternative="greater", method="asymptotic").pvalue)


def rising(table: ArrayLike) -> float:
    """Page's trend test: values rise from column to column within the rows of a table of shape (blocks, levels).

    Rows that do not vary tell nothing and are left out; ties make the test cautious.
    """
    rows = np.asarray(table, dtype=np.float64)
    rows = rows[rows.min(axis=1) < rows.max(axis=1)]
    return float(page_trend_test(rows, method="asymptotic").pvalue) if len(rows) > 1 else 1.0


def lower_end(values: ArrayLike) -> float:
    """The lower end of Student's 95% interval for the mean; the value itself where there is one only."""
    return -upper_end(-np.asarray(values, dtype=np.float64))


def upper_end(values: ArrayLike) -> float:
    """The upper end of Student's 95% interval for the mean; the value itself where there is one only."""
    table = np.asarray(values, dtype=np.float64)
    if len(table) < 2:
        return float(table.mean())
    return float(table.mean() + student.ppf(0.975, len(table) - 1) * table.std(ddof=1) / np.sqrt(len(table)))


def _ranked(values: ArrayLike) -> np.ndarray:
    """Infinities as one number above all others: ties among them must count as ties."""
    table = np.asarray(values, dtype=np.float64)
    return np.where(np.isinf(table), np.finfo(np.float64).max, table)
