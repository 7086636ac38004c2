"""Wilson's interval: known values and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import InvalidArgument
from fewfire.sweeps.store._protocol import wilson_interval


def test_known_values():
    # From the defining quadratic (p̂ − p)² = z² p (1 − p) / n, solved by hand for z = 1.959964.
    assert wilson_interval(4, 5) == pytest.approx([0.375535, 0.963776], abs=1e-6)
    assert wilson_interval(0, 10) == pytest.approx([0.0, 0.277533], abs=1e-6)
    assert wilson_interval(10, 10) == pytest.approx([0.722467, 1.0], abs=1e-6)
    assert wilson_interval(np.array([[1, 2]]), np.array([[2, 4]])).shape == (2, 1, 2)


def test_no_runs_exclude_nothing():
    assert wilson_interval(0, 0).tolist() == [0.0, 1.0]


@given(runs=st.integers(1, 10_000), share=st.floats(0, 1), level=st.floats(0.5, 0.999))
def test_ends_solve_the_quadratic(runs, share, level):
    won = round(share * runs)
    low, high = wilson_interval(won, runs, level)
    assert 0 <= low <= won / runs <= high <= 1
    assert wilson_interval(runs - won, runs, level) == pytest.approx([1 - high, 1 - low], abs=1e-12)
    wider = wilson_interval(won, runs, (1 + level) / 2)
    assert wider[0] <= low and high <= wider[1]
    for end in (low, high):
        if 0 < end < 1:  # at the ends of [0, 1] the root is cut
            z = abs(won / runs - end) / np.sqrt(end * (1 - end) / runs)
            tail = 0.5 * (1 + level)
            from scipy.special import ndtr

            assert ndtr(z) == pytest.approx(tail, abs=1e-6)


def test_coverage():
    """At p = 0.3 and 40 runs the interval holds p in 93% to 97% of all outcomes, counted exactly."""
    from scipy.stats import binom

    outcomes = np.arange(41)
    low, high = wilson_interval(outcomes, np.full(41, 40))
    covered = binom.pmf(outcomes, 40, 0.3)[(low <= 0.3) & (high >= 0.3)].sum()
    assert 0.93 < covered < 0.97


def test_a_level_outside_is_refused():
    with pytest.raises(InvalidArgument, match=r"level must be a finite number in \(0, 1\); got 1"):
        wilson_interval(1, 2, level=1)
