"""The tests by which recipes judge: exact values, and no verdict from nothing."""

from math import comb, inf, isnan, nan

import numpy as np
import pytest

from fewfire.experiments.recipes._statistics import in_most, larger, lower_end, more_often, rising, upper_end


def test_fisher_is_exact():
    assert more_often(10, 0, 10) == pytest.approx(1 / comb(20, 10))
    assert more_often(5, 5, 10) > 0.5
    assert more_often(0, 10, 10) == 1.0


def test_the_sign_test_is_exact():
    assert in_most(7, 7) == 2.0**-7
    assert in_most(6, 7) == pytest.approx(8 * 2.0**-7)
    assert in_most(0, 7) == 1.0
    assert in_most(0, 0) == 1.0


def test_infinite_values_rank_last_and_tie():
    assert larger([inf] * 8, range(8)) < 0.001
    assert larger(range(8), [inf] * 8) > 0.99
    assert larger([inf] * 8, [inf] * 8) == pytest.approx(1.0, abs=0.5)
    assert larger([3.0, inf], [inf, 3.0]) >= 0.5


def test_trends_need_rows_that_vary():
    up = np.tile(np.arange(5.0), (6, 1))
    assert rising(up) < 1e-4
    assert rising(up[:, ::-1]) > 0.999
    assert rising(np.zeros((6, 5))) == 1.0
    # Rows that do not vary change nothing.
    assert rising(np.vstack([up, np.ones((9, 5))])) == rising(up)


def test_ends_of_intervals():
    values = [0.9, 0.95, 1.0]
    half = 4.302652729911275 * 0.05 / 3**0.5  # Student's t with 2 degrees of freedom
    assert lower_end(values) == pytest.approx(0.95 - half)
    assert upper_end(values) == pytest.approx(0.95 + half)
    assert lower_end([0.7]) == upper_end([0.7]) == 0.7
    assert isnan(lower_end([1.0, nan]))
