"""Medians, bootstrap intervals and ranks against values computed by hand."""

import numpy as np
import pytest
from scipy.stats import binom

from fewfire.papers.pareto.tables import mean_ranks, summarise


def interval(values):
    found = summarise(values)
    return found["median"], found["low"], found["high"]


def test_small_samples_by_hand():
    assert interval([0.3]) == (0.3, 0.3, 0.3)
    # Three values: the resampled median is the smallest one with probability 7/27, the largest one too.
    assert interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert summarise([0.1, 0.4, 0.1, 0.2])["median"] == pytest.approx(0.15)
    assert summarise([0.1, 0.4, 0.1, 0.2])["mean"] == pytest.approx(0.2) and summarise([0.1, 0.2])["trials"] == 2
    assert summarise([0.1, 0.3])["deviation"] == pytest.approx(0.2 / np.sqrt(2)) and summarise([0.1])["deviation"] == 0


def test_the_interval_is_the_exact_one_of_the_bootstrap():
    """P(resampled median ≤ x_(j)) = P(Binomial(n, j/n) ≥ (n + 1)/2) for odd n; 2000 draws find it to one place."""
    n = 25
    below = binom.sf((n - 1) / 2, n, np.arange(1, n + 1) / n)
    low, high = np.searchsorted(below, [0.025, 0.975]) + 1
    assert (low, high) == (8, 18)
    middle, left, right = interval(list(range(1, n + 1)))
    assert middle == 13 and abs(left - low) <= 1 and abs(right - high) <= 1


def test_the_same_values_give_the_same_interval_in_any_order():
    values = [0.3, 0.1, 0.25, 0.2, 0.4, 0.15]
    assert interval(values) == interval(values[::-1])


def test_intervals_cover_the_median():
    """Of 300 normal samples of 21, the interval contains the true median in about 95%: at least 88% (10 standard errors: 3%)."""
    generator = np.random.default_rng(0)
    ends = [interval(generator.normal(size=21).tolist())[1:] for _ in range(300)]
    assert 0.88 < np.mean([low <= 0 <= high for low, high in ends]) <= 1


def test_ranks_by_hand():
    cells = [{"a": 0.1, "b": 0.2, "c": 0.2}, {"a": 0.3, "b": 0.1, "c": 0.2}, {"a": 0.5, "b": 0.9}]
    assert mean_ranks(cells) == {"a": 2.0, "b": 1.75, "c": 2.25}  # the last cell lacks c and does not count
    assert mean_ranks([]) == {} and mean_ranks([{"a": 0.1}, {"b": 0.2}]) == {}
