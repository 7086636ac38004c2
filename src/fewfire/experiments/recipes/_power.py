"""With what probability the tests of `_statistics` and `_paired` notice an effect of a stated size.

Each function takes the sample sizes of a run and an effect and gives the probability that the test passes at `level`:
exact for counts (every outcome is enumerated) and for means and slopes of normal values (the noncentral t), simulated
with a fixed seed for tests on ranks. Simulations have a standard error of at most 0.005. At an effect of nothing at all
the probability is that of a false alarm, so at most `level`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from fewfire.experiments.recipes._statistics import in_most, more_often

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.05
DRAWS = 10_000


def more_often_power(chance: float, other: float, trials: int, level: float = LEVEL) -> float:
    """Fisher's exact test, `trials` on either side, when the sides succeed with these chances: exact."""
    won, lost = (stats.binom.pmf(np.arange(trials + 1), trials, p) for p in (chance, other))
    # The p-value falls as the first side wins more, so only its smallest passing count is looked for.
    total, least = 0.0, 0
    for losses in range(trials + 1):
        while least <= trials and more_often(least, losses, trials) > level:
            least += 1
        total += float(lost[losses] * won[least:].sum())
    return min(total, 1.0)


def in_most_power(chance: float, total: int, level: float = LEVEL) -> float:
    """The sign test on `total` pairs that differ, when each goes the claimed way with this chance: exact."""
    passing = [count for count in range(total + 1) if in_most(count, total) <= level]
    return float(stats.binom.sf(passing[0] - 1, total, chance)) if passing else 0.0


def share_power(chance: float, bound: float, total: int, level: float = LEVEL / 2) -> float:
    """The exact (Clopper–Pearson) lower end of a share above `bound`, when the true share is `chance`: exact.

    For "the upper end is below the bound" pass 1 − chance and 1 − bound.
    """
    counts = np.arange(1, total + 1)
    passing = counts[stats.beta.ppf(level, counts, total - counts + 1) >= bound]
    return float(stats.binom.sf(passing[0] - 1, total, chance)) if len(passing) else 0.0


def larger_power(sizes: tuple[int, int], shift: float, level: float = LEVEL, seed: int = 0) -> float:
    """Mann and Whitney's test on normal samples of these sizes, the first `shift` deviations up: simulated."""
    rng = np.random.default_rng(seed)
    first, second = (rng.standard_normal((DRAWS, size)) for size in sizes)
    test = stats.mannwhitneyu(first + shift, second, alternative="greater", method="asymptotic", axis=1)
    return float(np.mean(test.pvalue <= level))


def rising_power(
    means: Sequence[float],
    deviation: float,
    blocks: int,
    level: float = LEVEL,
    trials: int | None = None,
    seed: int = 0,
) -> float:
    """Page's test on `blocks` rows whose columns have these means: simulated.

    Parameters
    ----------
    means : sequence of float
        One per level, the same in every row: the profile that would be worth noticing.
    deviation : float
        Of normal noise within a row. Noise that a row has in common with itself does not matter.
    blocks : int
    level : float
    trials : int, optional
        Cells are shares of so many trials with chances `means` instead; then `deviation` is that of the chances.
    seed : int
    """
    rng = np.random.default_rng(seed)
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
    """One end of Student's interval for a mean of `count` values that lies `effect` > 0 beyond the bound: exact.

    `level` is that of the end: 0.025 for `lower_end` and `upper_end`, 0.05 for those of `paired_mean`.
    """
    return _beyond(effect, deviation / np.sqrt(count), count - 1, level)


def slope_power(places: Sequence[float], effect: float, deviation: float, level: float = LEVEL / 2) -> float:
    """One end of the interval for a least-squares slope at `places`, off the bound by `effect` > 0: exact.

    `deviation` is that of the points about the line; log work against log width gives exponents.
    """
    spread = np.sqrt(np.sum((np.asarray(places) - np.mean(places)) ** 2))
    return _beyond(effect, deviation / spread, len(places) - 2, level)


def simulated_power(notices: Callable[[np.random.Generator], bool], draws: int = DRAWS, seed: int = 0) -> float:
    """Any other test: the share of draws in which `notices`, which draws a run and judges it, is true.

    The standard error is at most 1/(2√draws); keep it below 0.01 with at least 2500 draws.
    """
    rng = np.random.default_rng(seed)
    return sum(bool(notices(rng)) for _ in range(draws)) / draws


def _beyond(effect: float, error: float, freedom: int, level: float) -> float:
    """The probability of t > its quantile when the estimate, of this standard error, is off by `effect`."""
    if freedom < 1:
        return 0.0
    if error == 0.0:
        return float(effect > 0.0)
    # Beyond a million standard errors SciPy's distribution is not a number.
    return float(stats.nct.sf(stats.t.isf(level, freedom), freedom, min(effect / error, 1e6)))
