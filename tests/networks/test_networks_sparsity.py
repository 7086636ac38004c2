"""The sparsity check: exact on small cubes, with a stated bound on large ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from fewfire._cube import cube
from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.networks import TwoLayer, _evaluate, check_sparsity


def rare(n):
    """One neuron that always fires, and two that fire only on the all-minus input."""
    hidden = np.zeros((3, n))
    hidden[1:] = -1
    return TwoLayer(hidden, [1, 1 - n, 1 - n], [1, 1, 1])


def test_exact_check_finds_the_one_bad_input(monkeypatch):
    monkeypatch.setattr(_evaluate, "BLOCK_ELEMENTS", 1000)  # several blocks
    report = check_sparsity(rare(10), 2)
    assert (report.max_active, report.exact, report.inputs_checked) == (3, True, 1024)
    np.testing.assert_array_equal(report.witness, -np.ones(10))
    assert report.witness.dtype == np.int8
    assert not report.holds()
    assert report.holds(3)
    assert report.exceed_probability == 0.0


def test_exact_check_agrees_with_the_dense_table():
    draw = np.random.default_rng(0)
    net = TwoLayer(draw.normal(size=(20, 8)), draw.normal(size=20), np.ones(20))
    counts = (cube(8) @ net.hidden.T + net.bias > 0).sum(axis=1)
    report = check_sparsity(net)
    assert report.max_active == counts.max()
    assert net.activity(report.witness[None]).max_active == report.max_active


def test_sampled_check_states_its_bound():
    report = check_sparsity(rare(30), samples=1000)
    assert (report.max_active, report.exact, report.inputs_checked) == (1, False, 1000)
    assert report.exceed_probability == pytest.approx(1 - 0.05 ** (1 / 1000), rel=1e-12)
    assert report.exceed_probability <= -math.log(0.05) / 1000
    assert report.holds(1)


def test_the_bound_misses_in_at_most_5_percent_of_the_draws_and_is_tight():
    # The neuron fires on 1/8 of the cube. With 23 inputs the bound is 0.122 when none fires, a miss, and
    # that happens with probability (7/8)^23 = 4.6%.
    net = TwoLayer([[1, 1, 1, 0]], [-2], [1])
    draws = 2000
    missed = 0
    for seed in range(draws):
        report = check_sparsity(net, samples=23, seed=seed, exact_up_to=3)
        missed += report.max_active == 0 and report.exceed_probability < 1 / 8
    expected = draws * (7 / 8) ** 23
    assert abs(missed - expected) <= 4 * math.sqrt(expected)  # four standard errors
    assert expected <= 0.05 * draws


def test_drawn_inputs_depend_on_the_seed_alone(monkeypatch):
    draw = np.random.default_rng(1)
    net = TwoLayer(draw.normal(size=(9, 25)), draw.normal(size=9), np.ones(9))
    whole = check_sparsity(net, samples=300, seed=5)
    monkeypatch.setattr(_evaluate, "BLOCK_ELEMENTS", 700)
    blocked = check_sparsity(net, samples=300, seed=Stream(5, "sparsity"))
    np.testing.assert_array_equal(whole.witness, blocked.witness)
    assert whole.max_active == blocked.max_active


def test_bad_arguments():
    net = rare(5)
    with pytest.raises(InvalidArgument) as caught:
        check_sparsity(net, 4)
    expected = "k must be an integer of at least 0 and at most 3; got 4. Remedy: no more than all neurons can fire."
    assert str(caught.value) == expected
    with pytest.raises(InvalidArgument, match="samples must be an integer of at least 1; got 0"):
        check_sparsity(net, samples=0)
    with pytest.raises(InvalidArgument, match=r"exact_up_to must be .* at most 30; got 40\. Remedy: 2\*\*30"):
        check_sparsity(net, exact_up_to=40)
    with pytest.raises(InvalidArgument, match=r"k must be .* got None\. Remedy: pass k here or to check_sparsity"):
        check_sparsity(net).holds()


def shares(probability, rows, seed):
    """Rows of which two neurons fire with the given probability, else none."""
    x = np.where(np.random.default_rng(seed).random(rows) < probability, 1.0, -1.0)[:, None]
    return TwoLayer([[1.0], [2.0]], [0.0, 0.0], [1.0, 1.0]), x


def test_rows_of_a_distribution_instead_of_the_cube():
    """On the cube both neurons fire somewhere; on these rows never, and k = 0 holds there."""
    net, X = shares(0.0, 50, 0)
    assert not check_sparsity(net, 0).holds()
    report = check_sparsity(net, 0, X=X)
    assert report.holds() and report.exceeding() == 0 and not report.exact and report.inputs_checked == 50
    assert report.exceeds().low == 0.0 and report.exceeds().high == pytest.approx(1 - 0.025 ** (1 / 50))


def test_rows_on_which_more_fire_refute_k_and_are_counted(monkeypatch):
    monkeypatch.setattr(_evaluate, "BLOCK_ELEMENTS", 60)  # several blocks
    net, X = shares(0.1, 1000, 1)
    report, over = check_sparsity(net, 1, X=X), int((X > 0).sum())
    assert not report.holds() and report.holds(2) and report.exceeding() == over and report.exceeding(2) == 0
    np.testing.assert_array_equal(report.counts, [1000 - over, 0, over])
    assert report.witness.tolist() == [1.0]
    found = report.exceeds()
    exact = binomtest(over, 1000).proportion_ci(0.95, "exact")
    assert found.value == over / 1000 and found.low < 0.1 < found.high
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert report.exceeds(confidence=0.5).low > found.low
    everything = check_sparsity(net, 0, X=np.ones((7, 1)))
    assert everything.exceeds().value == 1.0 == everything.exceeds().high and everything.exceeds().low > 0.5


def test_the_interval_covers_the_probability():
    """At least 95% of 2000 draws; Clopper and Pearson's is cautious, so four standard errors below would be a fault."""
    covered = 0
    for seed in range(2000):
        net, X = shares(0.03, 60, seed)
        found = check_sparsity(net, 1, X=X).exceeds()
        covered += found.low <= 0.03 <= found.high
    assert covered / 2000 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_the_interval_of_the_whole_cube_is_a_point():
    assert check_sparsity(rare(10), 2).exceeds() == (1 / 1024,) * 3
    assert check_sparsity(rare(10), 2).counts.tolist() == [0, 1023, 0, 1]
    assert "1024 inputs, the whole cube: max_active=3, more than k=2 on 1" in repr(check_sparsity(rare(10), 2))


def test_bad_rows():
    net, X = shares(0.5, 10, 0)
    with pytest.raises(InvalidArgument) as caught:
        check_sparsity(net, X=X, samples=5)
    assert str(caught.value) == "samples must be left out where X is given; got 5. Remedy: pass as many rows of X."
    with pytest.raises(InvalidArgument, match=r"X must be a table of shape \(rows, 1\)"):
        check_sparsity(net, X=np.ones((3, 2)))
    with pytest.raises(InvalidArgument, match="confidence must be a finite number"):
        check_sparsity(net, 1, X=X).exceeds(confidence=1.0)
