"""Juntas, indexing and dense-weight networks, on every input of a small cube against plain Python targets."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._errors import InvalidArgument
from fewfire.networks import check_sparsity, construct
from fewfire.networks._two_layer import Norms


@settings(max_examples=40)
@given(st.data())
def test_junta_is_its_table_on_every_input(data):
    n = data.draw(st.integers(1, 8))
    support = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, min(n, 4)))]
    table = data.draw(st.lists(st.integers(-5, 5), min_size=2 ** len(support), max_size=2 ** len(support)))
    net = construct.junta(n, support, table)
    for x, value in zip(product((1, -1), repeat=n), net(np.array(list(product((1, -1), repeat=n)))), strict=True):
        index = sum(2**i for i, coordinate in enumerate(support) if x[coordinate] == -1)
        assert value == table[index]
    assert set(net.activity(cube(n)).per_input) == {1}
    assert len(net.activity(cube(n)).dead) == 0
    assert net.width == 2 ** len(support)


def test_junta_norms_are_those_of_theorem_13():
    # Theorem 13 claims W = √p and B = p for values ±1; the construction has B = p − 1.
    net = construct.junta(6, (1, 3, 4), [1, -1, 1, 1, -1, -1, 1, -1])
    assert net.norms() == pytest.approx(Norms(math.sqrt(3), 2.0))


def test_a_parity_junta():
    table = [(-1) ** bin(i).count("1") for i in range(8)]
    X = cube(6)
    np.testing.assert_array_equal(construct.junta(6, (0, 2, 5), table)(X), X[:, 0] * X[:, 2] * X[:, 5])


@pytest.mark.parametrize("b", [1, 2, 3])
def test_indexing_on_every_input(b):
    net, signed = construct.indexing(b), construct.indexing(b, signed=True)
    n = b + 2**b
    expected = []
    for z in cube(n).tolist():
        position = int("".join("1" if digit == 1 else "0" for digit in z[:b]), 2)
        expected.append(1 if z[b + position] == 1 else 0)
    np.testing.assert_array_equal(net(cube(n)), expected)
    np.testing.assert_array_equal(signed(cube(n)), 2 * np.array(expected) - 1)
    # The neuron of the address fires exactly when the bit is +1: preactivation (1 + y)/2.
    np.testing.assert_array_equal(net.activity(cube(n)).per_input, expected)
    np.testing.assert_array_equal(signed.activity(cube(n)).per_input, expected)
    assert (net.inputs, net.width) == (n, 2**b)


@pytest.mark.parametrize(("b", "q"), [(1, 1), (2, 5), (3, 6)])
def test_dense_weights_return_the_named_neuron_on_every_input(b, q):
    net = construct.dense_weights(b, q, seed=4)
    X = cube(b + q)
    vectors = net.hidden[:, b:]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-12)
    assert np.count_nonzero(vectors) == vectors.size
    expected = []
    for row in X.tolist():
        alpha = sum(2**i for i in range(b) if row[i] == -1)
        expected.append(max(0.0, sum(w * y for w, y in zip(vectors[alpha], row[b:], strict=True))))
    np.testing.assert_allclose(net(X), expected, atol=1e-12)
    report = check_sparsity(net, 1)
    assert report.exact
    assert report.holds()


def test_dense_weights_given_and_gamma():
    weights = np.array([[0.6, 0.8], [1.0, 0.0]])
    net = construct.dense_weights(1, 2, weights)
    np.testing.assert_allclose(net(np.array([[1, 1, 1], [-1, 1, 1], [1, -1, -1]])), [1.4, 1.0, 0.0], atol=1e-12)
    aligned = np.full((2, 9), 1 / 3)
    assert check_sparsity(construct.dense_weights(1, 9, aligned), 1).holds()
    assert not check_sparsity(construct.dense_weights(1, 9, aligned, gamma=1.4), 1).holds()  # below √9 / 2
    assert construct.dense_weights(2, 3, seed=1).equals(construct.dense_weights(2, 3, seed=1))
    assert not construct.dense_weights(2, 3, seed=1).equals(construct.dense_weights(2, 3, seed=2))


def test_a_smaller_gamma_is_one_sparse_on_most_inputs():
    # Γ of order √log s: with s = 8 and Γ = 2·√(ln 8), hardly any uniform input activates two neurons.
    net = construct.dense_weights(3, 12, seed=0, gamma=2 * math.sqrt(math.log(8)))
    counts = net.activity(cube(15)).per_input
    assert np.mean(counts > 1) < 1 / 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: construct.junta(0, (), [1]), "n must be an integer of at least 1; got 0."),
        (lambda: construct.junta(3, (0, 3), [1] * 4), "support[1] must be an integer of at least 0 and at most 2; got 3."),
        (lambda: construct.junta(3, (1, 1), [1] * 4), "support must hold distinct coordinates; got (1, 1). Remedy: remove the repeated ones."),
        (lambda: construct.junta(3, (0, 1), [1] * 3), "table must hold 4 numbers, one for each pattern of the 2 coordinates of support; got shape (3,), dtype int64. Remedy: use the order of the index bits."),
        (lambda: construct.junta(3, (0,), ["a", "b"]), "table must hold 2 numbers, one for each pattern of the 1 coordinates of support; got shape (2,), dtype <U1. Remedy: use the order of the index bits."),
        (lambda: construct.junta(3, (0,), [1, math.nan]), "table must hold finite numbers; got a nan at index (1,). Remedy: drop or impute the missing values."),
        (lambda: construct.junta(30, range(21), [1]), "support must have at most 20 coordinates; got 21. Remedy: the network has 2**p neurons."),
        (lambda: construct.indexing(0), "b must be an integer of at least 1 and at most 12; got 0. Remedy: the network has 2**b neurons with b + 2**b weights each."),
        (lambda: construct.indexing(13), "b must be an integer of at least 1 and at most 12; got 13. Remedy: the network has 2**b neurons with b + 2**b weights each."),
        (lambda: construct.dense_weights(1, 0), "q must be an integer of at least 1; got 0."),
        (lambda: construct.dense_weights(1, 2, gamma=0.0), "gamma must be a finite number in (0, inf); got 0.0."),
        (lambda: construct.dense_weights(1, 2, np.ones((2, 3))), "weights must have shape (2, 2), one row per pattern of x; got shape (2, 3)."),
        (lambda: construct.dense_weights(1, 2, [[1, 0], [3, 4]]), "weights must have rows of norm 1; got a norm of 5 in row 1. Remedy: divide each row by its norm."),
        (lambda: construct.dense_weights(1, 2, [[1, 0], [math.nan, 1]]), "weights must have rows of norm 1; got a norm of nan in row 1. Remedy: divide each row by its norm."),
    ],
)  # fmt: skip
def test_construction_refusals(call, message):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert str(caught.value) == message
