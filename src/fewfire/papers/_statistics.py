"""The tests behind verdicts, and with what probability they notice an effect of a stated size.

A test gives the p-value of one side, so small means the claim was seen. A power takes the sample sizes of a run and an
effect and gives the probability that the test passes at `level`: exact for counts (every outcome is enumerated) and
for means of normal values (the noncentral t), simulated with a fixed seed for tests on ranks, with a standard error of
at most 0.005. At an effect of nothing at all it is the probability of a false alarm, so at most `level`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

LEVEL = 0.05
DRAWS = 10_000


def more_often(won: int, other: int, trials: int, others: int | None = None) -> float:
    """Fisher's exact test: the first side succeeds more often, out of `trials` and `others`, the same unless given."""
    return float(stats.hypergeom.sf(won - 1, trials + (others or trials), won + other, trials))


def in_most(count: int, total: int) -> float:
    """The binomial (sign) test: more than one half; p = 1 where nothing was counted."""
    return float(stats.binomtest(count, total, 0.5, alternative="greater").pvalue) if total else 1.0


def larger(values: ArrayLike, others: ArrayLike) -> float:
    """Mann and Whitney's test: the first sample tends to be larger; infinite values rank last."""
    return float(
        stats.mannwhitneyu(_ranked(values), _ranked(others), alternative="greater", method="asymptotic").pvalue
    )


def rising(table: ArrayLike) -> float:
    """Page's trend test: values rise from column to column within the rows of a table of shape (blocks, levels)."""
    rows = np.asarray(table, dtype=np.float64)
    rows = rows[rows.min(axis=1) < rows.max(axis=1)]
    return float(stats.page_trend_test(rows, method="asymptotic").pvalue) if len(rows) > 1 else 1.0


def _ranked(values: ArrayLike) -> np.ndarray:
    """Infinities as one number above all others: ties among them must count as ties."""
    table = np.asarray(values, dtype=np.float64)
    return np.where(np.isinf(table), np.finfo(np.float64).max, table)


def more_often_power(probability: float, other: float, trials: int, level: float = LEVEL) -> float:
    """Fisher's exact test, `trials` on either side, when the sides succeed with these probabilities: exact."""
    won, lost = (stats.binom.pmf(np.arange(trials + 1), trials, p) for p in (probability, other))
    # The p-value falls as the first side wins more, so only its smallest passing count is looked for.
    total, least = 0.0, 0
    for losses in range(trials + 1):
        while least <= trials and more_often(least, losses, trials) > level:
            least += 1
        total += float(lost[losses] * won[least:].sum())
    return min(total, 1.0)


def in_most_power(probability: float, total: int, level: float = LEVEL) -> float:
    """The sign test on `total` pairs that differ, when each goes the claimed way with this probability: exact."""
    passing = [count for count in range(total + 1) if in_most(count, total) <= level]
    return float(stats.binom.sf(passing[0] - 1, total, probability)) if passing else 0.0


def share_power(share: float, bound: float, total: int, level: float = LEVEL / 2) -> float:
    """Clopper and Pearson's lower end of a share above `bound`: exact; for the upper end pass what is left to 1."""
    counts = np.arange(1, total + 1)
    passing = counts[stats.beta.ppf(level, counts, total - counts + 1) >= bound]
    return float(stats.binom.sf(passing[0] - 1, total, share)) if len(passing) else 0.0


@cache
def larger_power(sizes: tuple[int, int], shift: float, level: float = LEVEL) -> float:
    """Mann and Whitney's test on normal samples of these sizes, the first `shift` deviations up: simulated."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((DRAWS, size)) for size in sizes)
    test = stats.mannwhitneyu(first + shift, second, alternative="greater", method="asymptotic", axis=1)
    return float(np.mean(test.pvalue <= level))


@cache
def rising_power(
    means: tuple[float, ...], deviation: float, blocks: int, level: float = LEVEL, trials: int | None = None
) -> float:
    """Page's test on rows of such means with normal noise, or of shares of so many trials: simulated."""
    rng = np.random.default_rng(0)
    table = np.asarray(means) + deviation * rng.standard_normal((DRAWS, blocks, len(means)))
    if trials is not None:
        table = rng.binomial(trials, np.clip(table, 0.0, 1.0)) / trials
    levels = len(means)
    used = np.count_nonzero(table.min(axis=2) < table.max(axis=2), axis=1)  # constant rows are left out
    ranks = stats.rankdata(table, axis=2) - (levels + 1) / 2  # 0 throughout in a constant row
    score = (ranks @ np.arange(1, levels + 1)).sum(axis=1)
    spread = np.sqrt(used * levels**2 * (levels + 1) * (levels**2 - 1) / 144)
    return float(np.mean((used > 1) & (score >= stats.norm.isf(level) * spread)))


def mean_power(effect: float, deviation: float, count: int, level: float = LEVEL) -> float:
    """One end of Student's interval for a mean of `count` values that lies `effect` > 0 beyond the bound: exact."""
    if count < 2:
        return 0.0
    if deviation == 0.0:
        return float(effect > 0.0)
    # Beyond a million standard errors SciPy's distribution is not a number.
    shift = min(effect / (deviation / np.sqrt(count)), 1e6)
    return float(stats.nct.sf(stats.t.isf(level, count - 1), count - 1, shift))


def spread_power(values: ArrayLike, effect: float, level: float = LEVEL) -> float:
    """`mean_power` at the number of these values and their standard deviation."""
    table = np.asarray(values, dtype=np.float64)
    return mean_power(effect, float(np.std(table, ddof=1)), len(table), level) if len(table) > 1 else 0.0


def simulated_power(notices: Callable[[np.random.Generator], bool], draws: int = DRAWS) -> float:
    """Any other test: the share of draws in which `notices`, which draws a run and judges it, is true."""
    rng = np.random.default_rng(0)
    return sum(bool(notices(rng)) for _ in range(draws)) / draws
