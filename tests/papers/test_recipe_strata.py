"""Comparisons within strata: exact where they can be, blind to cells without information, and of the size they claim."""

from math import inf

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from fewfire.papers._statistics import more_often
from fewfire.papers.pareto.recipes._grid import (
    gain,
    gain_power,
    longer_power,
    longer_within,
    more_often_within,
    probability_of_longer,
)


def test_one_stratum_is_fishers_test():
    for won, other in ((10, 3), (5, 5), (0, 10), (10, 0), (7, 6)):
        assert more_often_within([won], [other], 10) == pytest.approx(more_often(won, other, 10))


def test_strata_where_all_do_alike_count_for_nothing():
    alone = more_often_within([9, 8], [4, 5], 10)
    assert more_often_within([9, 0, 8, 10], [4, 0, 5, 10], 10) == pytest.approx(alone)
    assert more_often_within([0, 10], [0, 10], 10) == pytest.approx(1.0)
    # Pooled, the same counts show less: the settled cells add noise.
    assert more_often(27, 19, 40) > 5 * alone


def test_the_exact_test_has_its_level():
    alarms = gain_power(0.5, 0.5, strata=4, trials=12, level=0.05)
    assert 0.01 <= alarms <= 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5
    assert gain_power(0.9, 0.3, strata=4, trials=12) > 0.99


def test_gains_are_means_over_strata():
    found = gain("gain", [10, 8], [0, 4], 10)
    assert found.value == pytest.approx(0.7) and found.low < 0.7 < found.high
    settled = gain("gain", [10, 10], [10, 10], 10)
    assert settled.value == 0 and settled.low < 0 < settled.high  # ten of ten does not prove always


def test_gains_cover_the_truth():
    rng, held = np.random.default_rng(0), 0
    chances, others = np.array([0.1, 0.5, 0.95, 1.0]), np.array([0.3, 0.5, 0.9, 0.4])
    truth = float((chances - others).mean())
    for _ in range(1000):
        found = gain("", rng.binomial(20, chances), rng.binomial(20, others), 20)
        held += found.low <= truth <= found.high
    assert held >= 930


def test_one_stratum_is_mann_and_whitneys_test():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 8, 15) + 1.0, rng.integers(0, 8, 12)
    expected = mannwhitneyu(first, second, alternative="greater", method="asymptotic", use_continuity=False).pvalue
    assert longer_within([first], [second]) == pytest.approx(expected)
    found = probability_of_longer("", [first], [second])
    wins = np.greater.outer(first, second).mean() + np.equal.outer(first, second).mean() / 2
    assert found.value == pytest.approx(wins) and found.low < wins < found.high


def test_runs_that_never_converge_are_the_longest_and_tie():
    never, some = [inf] * 6, [10.0, 20.0, 30.0, inf, inf, inf]
    assert longer_within([never], [some]) < 0.05 < longer_within([some], [never])
    assert longer_within([never, never], [never, never]) == 1.0
    assert probability_of_longer("", [never], [never]).value == 0.5
    assert longer_within([never, some], [never, some]) == pytest.approx(0.5)


def test_the_test_on_times_has_its_level_and_its_power():
    assert longer_power(1.0, 0.5, strata=3, trials=20, level=0.05) <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5
    assert longer_power(1.5, 0.5, strata=3, trials=20) > 0.9
