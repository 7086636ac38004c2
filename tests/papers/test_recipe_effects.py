"""Effects with intervals: values from the literature, coverage by simulation, and ends that never shrink to nothing."""

from math import inf, isinf, isnan, nan

import numpy as np
import pytest

from fewfire.papers import _effects as effects


def test_exact_numbers_have_no_width():
    found = effects.exact("violations", 0)
    assert (found.name, found.value, found.low, found.high) == ("violations", 0.0, 0.0, 0.0)


def test_shares_at_the_edge():
    none, every = effects.share("s", 0, 20), effects.share("s", 20, 20)
    assert (none.low, every.high) == (0.0, 1.0)
    assert none.high == pytest.approx(1 - every.low) == pytest.approx(0.1611, abs=1e-4)


def test_differences_of_shares_are_newcombes():
    # Newcombe (1998), Table II, method 10: 56/70 less 48/80, 9/10 less 3/10 and 10/10 less 0/10.
    for counts, ends in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((10, 10, 0, 10), (0.6075, 1.0)),
    ):
        found = effects.difference_of_shares("d", *counts)
        assert (found.low, found.high) == pytest.approx(ends, abs=1e-4)


def test_means_are_students():
    found = effects.mean("m", [0.9, 0.95, 1.0])
    assert (found.value, found.high - found.value) == pytest.approx((0.95, 4.302652729911275 * 0.05 / 3**0.5))
    assert isnan(effects.mean("m", [1.0, nan]).low)
    alone = effects.mean("m", [0.5])
    assert (alone.value, alone.low, alone.high) == (0.5, -inf, inf)


def test_medians_by_order_statistics():
    found = effects.median("m", [*range(1, 11)])
    assert (found.value, found.low, found.high) == (5.5, 2.0, 9.0)  # the second from either end: 97.9%
    assert effects.median("m", [1.0, 2.0, 3.0]).low == -inf
    late = effects.median("m", [1.0] * 9 + [inf])
    assert (late.value, late.high) == (1.0, 1.0)
    assert isinf(effects.median("m", [1.0] * 2 + [inf] * 8).value)


@pytest.mark.parametrize(("sizes", "shift"), [((10, 10), 0.0), ((12, 8), 1.0), ((15, 15), 2.0)])
def test_probabilities_of_larger_cover_the_truth(sizes, shift):
    rng, truth, covered = np.random.default_rng(0), 0.0, 0
    truth = np.mean(rng.normal(shift, 1, 10**6) > rng.normal(0, 1, 10**6))
    for _ in range(400):
        found = effects.probability_of_larger("p", rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]))
        assert found.low <= found.value <= found.high
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / 400 <= 0.99


def test_probabilities_of_larger_at_the_edge_with_ties_and_without_end():
    every = effects.probability_of_larger("p", [2.0] * 8, [1.0] * 8)
    assert (every.value, every.high) == (1.0, 1.0)
    assert 0.5 < every.low < 0.9
    none = effects.probability_of_larger("p", [1.0] * 8, [2.0] * 8)
    assert (none.low, none.high) == pytest.approx((0.0, 1 - every.low), abs=1e-6)
    assert effects.probability_of_larger("p", [inf, inf], [inf, inf]).value == 0.5
    assert isnan(effects.probability_of_larger("p", [nan], [1.0]).value)
