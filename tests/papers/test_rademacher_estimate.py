"""Rademacher complexity from below: every number is attained by a network of the class."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._random import Stream
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.papers import sparse_activations as theory
from fewfire.papers.sparse_activations.rademacher_table import rademacher_table

CLASSES = [(1, 1), (2, 1), (8, 1), (8, 2), (8, 8), (7, 3), (5, 1), (1, 1)]


def inputs(m, n, seed=0):
    return Stream(seed, "rademacher test").sign_rows(m, n)


@pytest.fixture(scope="module")
def table():
    return rademacher_table(inputs(60, 8), W=1.5, B=2.0, max_block=8, draws=6, restarts=3, steps=40)


def witness(found, s, k, draw):
    """The network of s neurons, at most k active on any input of the cube, that attains `found.values(s, k)[draw]`."""
    copies, block = found.chosen(s, k)[draw]
    spare = s - copies * len(block.bias)
    hidden = np.vstack([np.tile(block.hidden, (copies, 1)), np.zeros((spare, found.X.shape[1]))])
    bias, output = (np.append(np.tile(part, copies), np.zeros(spare)) for part in (block.bias, block.output))
    return TwoLayer(hidden, bias, output)


@settings(max_examples=20)
@given(
    st.integers(1, 7), st.integers(1, 20), st.floats(0.1, 5), st.sampled_from([0.0, 0.3, 5.0]), st.integers(0, 2**32),
    st.sampled_from(CLASSES),
)  # fmt: skip
def test_witnesses_are_in_the_class_and_attain_the_value(n, m, W, B, seed, sizes):
    s, k = sizes
    X = inputs(m, n, seed)
    found = rademacher_table(X, W, B, max_block=min(8, 2**n), draws=2, restarts=2, steps=10, seed=seed)
    for draw in range(2):
        net = witness(found, s, k, draw)
        assert net.width == s
        report = check_sparsity(net, k)
        assert report.exact and report.holds()
        assert net.norms().W <= W and net.norms().B <= B
        attained = float(found.zeta[draw] @ net(X)) / m
        assert attained == pytest.approx(found.values(s, k)[draw], rel=1e-9, abs=1e-12)
        assert attained >= 0


def test_estimates_respect_the_bounds(table):
    m, n = table.X.shape
    for s, k in CLASSES:
        row = table.row(s, k)
        value = table.values(s, k)
        assert row["estimate"] == pytest.approx(value.mean())
        assert row["standard_error"] == pytest.approx(value.std(ddof=1) / np.sqrt(6))
        assert row["estimate"] - 4 * row["standard_error"] <= row["explicit"]
        assert row["estimate"] - 4 * row["standard_error"] <= row["theorem_19"]
        assert row["explicit"] == theory.rademacher_explicit(n, s, k, 1.5, 2.0, m)
        assert row["theorem_19"] == theory.rademacher(n, s, k, 1.5, 2.0, m)
        assert row["conjecture_20"] == theory.rademacher_conjectured(n, s, k, 1.5, 2.0, m)
        assert row["classical"] == theory.rademacher_classical(n, s, 1.5, 2.0, m)


def test_estimates_grow_with_the_class(table):
    for k in (1, 2, 4):
        values = [table.values(s, k) for s in (4, 5, 8, 16)]
        assert all((a <= b).all() for a, b in pairwise(values))
    values = [table.values(16, k) for k in (1, 2, 3, 8, 16)]
    assert all((a <= b).all() for a, b in pairwise(values))
    assert table.values(16, 1).mean() > table.values(1, 1).mean()


def test_one_neuron_does_at_least_as_well_as_a_linear_one():
    # With B ≥ W√n the neuron σ(⟨w, x⟩ + B) is linear on the cube, and its best correlation is known.
    n, m, W = 5, 40, 1.0
    B = W * np.sqrt(n)
    X = inputs(m, n)
    found = rademacher_table(X, W, B, max_block=1, draws=8, steps=200)
    sums = found.zeta.astype(float) @ X
    linear = (W * np.linalg.norm(sums, axis=1) + B * np.abs(found.zeta.sum(axis=1))) / m
    assert (found.values(1, 1) >= (1 - 1e-5) * linear).all()


def test_one_sample_is_solved_exactly():
    X = inputs(1, 6)
    found = rademacher_table(X, 2.0, 0.5, max_block=1, draws=4, steps=200)
    assert found.values(3, 3) == pytest.approx(np.full(4, 3 * (2 * np.sqrt(6) + 0.5)), rel=0.01)


def test_opposite_points_attain_conjecture_20():
    # s = m = 2, k = 1: two neurons, each alone on its half of the line, reach W + B whatever ζ is.
    X = np.array([[1], [-1]], dtype=np.int8)
    found = rademacher_table(X, 1.0, 1.0, max_block=2, draws=4, restarts=1, steps=300)
    bound = theory.rademacher_conjectured(1, 2, 1, 1.0, 1.0, 2)
    assert found.values(2, 1).max() <= bound
    assert found.values(2, 1).min() >= (1 - 1e-6) * bound


def test_runs_repeat():
    settings_ = {"W": 1.0, "B": 1.0, "max_block": 4, "draws": 2, "restarts": 2, "steps": 5}
    first = rademacher_table(inputs(20, 4), **settings_, seed=3)
    again = rademacher_table(inputs(20, 4), **settings_, seed=3)
    other = rademacher_table(inputs(20, 4), **settings_, seed=4)
    assert np.array_equal(first.values(4, 1), again.values(4, 1))
    assert not np.array_equal(first.zeta, other.zeta)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W": 0.0}, "W must be a finite number in (0, inf); got 0.0."),
        ({"draws": 1}, "draws must be an integer of at least 2; got 1. Remedy: a standard error needs two draws."),
        ({"max_block": 17}, "max_block must be an integer of at least 1 and at most 16; got 17."),
        ({"X": np.zeros((2, 4))}, "X may hold only +1 and −1; got 0.0. Remedy: map 0 to +1 and 1 to −1, or threshold it."),
    ],
)  # fmt: skip
def test_arguments_are_checked(changes, message):
    arguments = {"X": inputs(5, 4), "W": 1.0, "B": 1.0, "max_block": 4} | changes
    with pytest.raises(ValueError) as error:
        rademacher_table(**arguments)
    assert str(error.value) == message


def test_classes_are_checked(table):
    with pytest.raises(ValueError, match="k must be an integer of at least 1 and at most 4; got 5."):
        table.values(4, 5)
