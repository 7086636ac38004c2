"""The power of the tests behind verdicts, against brute force: runs drawn and decided by the tests themselves."""

from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from scipy import stats

from fewfire.papers import _effects
from fewfire.papers import _statistics as power
from fewfire.papers._statistics import in_most, larger, more_often, rising

DRAWS = 1500
ERROR = 4 * sqrt(0.25 / DRAWS)
"""Four standard errors of a share of so many draws: the tests below are seeded, so they pass or fail for good."""


def drawn(notices, draws=DRAWS, seed=1):
    rng = np.random.default_rng(seed)
    return np.mean([bool(notices(rng)) for _ in range(draws)])


@pytest.mark.parametrize(
    ("chance", "other", "trials", "level"), [(0.9, 0.3, 10, 0.05), (0.6, 0.5, 7, 0.2), (1, 0, 3, 0.05)]
)
def test_fisher_over_all_outcomes(chance, other, trials, level):
    def mass(count, p):
        return comb(trials, count) * p**count * (1 - p) ** (trials - count)

    outcomes = product(range(trials + 1), repeat=2)
    expected = sum(mass(a, chance) * mass(b, other) for a, b in outcomes if more_often(a, b, trials) <= level)
    assert power.more_often_power(chance, other, trials, level) == pytest.approx(expected)


def test_fisher_keeps_its_level_and_sees_what_is_plain():
    assert power.more_often_power(0.5, 0.5, 30) <= 0.05
    assert power.more_often_power(1.0, 0.0, 10) == pytest.approx(1.0)
    assert power.more_often_power(1.0, 0.0, 2) == 0.0  # even 2 of 2 against none is not enough, p = 1/6


@pytest.mark.parametrize(("chance", "total"), [(0.9, 8), (0.5, 20), (1.0, 4), (1.0, 5)])
def test_the_sign_test_over_all_outcomes(chance, total):
    expected = sum(
        comb(total, count) * chance**count * (1 - chance) ** (total - count)
        for count in range(total + 1)
        if in_most(count, total) <= 0.05
    )
    assert power.in_most_power(chance, total) == pytest.approx(expected)
    assert power.in_most_power(1.0, 4) == 0.0


def test_shares_above_a_bound():
    passing = [c for c in range(61) if stats.binomtest(c, 60).proportion_ci(0.95).low >= 0.85]
    assert power.share_power(0.95, 0.85, 60) == pytest.approx(stats.binom.pmf(passing, 60, 0.95).sum())
    assert power.share_power(0.85, 0.85, 60) <= 0.025
    assert power.share_power(1.0, 0.9, 5) == 0.0


@pytest.mark.parametrize(("sizes", "shift"), [((12, 12), 1.0), ((8, 20), 0.7), ((10, 10), 0.0)])
def test_mann_and_whitney(sizes, shift):
    def notices(rng):
        return larger(rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])) <= 0.05

    assert power.larger_power(sizes, shift) == pytest.approx(drawn(notices), abs=ERROR)


def test_page_on_normal_values():
    means, deviation = [0.0, 0.1, 0.2, 0.3], 0.25

    def notices(rng):
        return rising(rng.normal(means, deviation, (5, 4))) <= 0.05

    assert power.rising_power(tuple(means), deviation, 5) == pytest.approx(drawn(notices), abs=ERROR)
    assert power.rising_power((0.0,) * 4, 1.0, 20) == pytest.approx(0.05, abs=0.02)
    assert power.rising_power((0.0, 1.0, 2.0), 0.0, 1) == 0.0  # one row is no test


def test_page_on_shares_with_ties_and_constant_rows():
    chances = [0.02, 0.1, 0.3]

    def notices(rng):
        return rising(rng.binomial(5, chances, (6, 3))) <= 0.05

    assert power.rising_power(tuple(chances), 0.0, 6, trials=5) == pytest.approx(drawn(notices), abs=ERROR)


def test_ends_of_intervals_for_means():
    def above(rng):
        return _effects.mean("", rng.normal(1.0, 1.0, 9)).low > 0.0

    def below(rng):
        return _effects.mean("", rng.normal(-1.0, 1.0, 9)).high < 0.0

    expected = power.mean_power(1.0, 1.0, 9, level=0.025)
    assert expected == pytest.approx(drawn(above), abs=ERROR)
    assert expected == pytest.approx(drawn(below), abs=ERROR)


def test_paired_means_have_the_stated_power():
    def notices(rng):
        return _effects.mean("", rng.normal(0.5, 1.0, 12), 0.05).low > 0.0

    assert power.mean_power(0.5, 1.0, 12) == pytest.approx(drawn(notices), abs=ERROR)
    assert power.spread_power([0.0, 1.0, 2.0], 0.5) == power.mean_power(0.5, 1.0, 3)


def test_without_noise_or_without_freedom():
    assert power.mean_power(0.1, 0.0, 5) == 1.0
    assert power.mean_power(0.0, 0.0, 5) == 0.0
    assert power.mean_power(10.0, 1.0, 1) == 0.0


def test_any_other_test_is_simulated_and_comes_again():
    def notices(rng):
        return in_most(rng.binomial(20, 0.8), 20) <= 0.05

    found = power.simulated_power(notices, draws=DRAWS)
    assert found == pytest.approx(power.in_most_power(0.8, 20), abs=ERROR)
    assert found == power.simulated_power(notices, draws=DRAWS)
