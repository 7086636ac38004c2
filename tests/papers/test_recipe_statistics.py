"""The tests behind verdicts: exact values, and no verdict from nothing."""

from math import comb, inf

import numpy as np
import pytest

from fewfire.papers._statistics import in_most, larger, more_often, rising


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
