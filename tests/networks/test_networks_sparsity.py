"""The sparsity check: exact on small cubes, with a stated bound on large ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

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
