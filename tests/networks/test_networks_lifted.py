"""Lifted parities and learning with rounding, on every input against plain Python targets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._errors import InvalidArgument
from fewfire.networks import construct
from fewfire.networks.construct._lifted import bumps
from fewfire.problems import LearningWithRounding


def test_lift_by_hand():
    np.testing.assert_array_equal(construct.lift([[1, -1, -1]]), [[1, -1, -1, -1, -1, 1, -1, 1, -1]])
    assert construct.lift(np.array([[1, -1]])).dtype == np.int8


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=5), st.integers(-9, 9))
def test_a_bump_is_the_lifted_square(v, a):
    hidden, bias = bumps(np.array(v, dtype=float), np.array([a, a + 0.5]))
    Y = cube(len(v))
    for row, centre in enumerate((a, a + 0.5)):
        expected = [0.5 - (sum(p * t for p, t in zip(v, y, strict=True)) - centre) ** 2 for y in Y.tolist()]
        np.testing.assert_array_equal(construct.lift(Y) @ hidden[row] + bias[row], expected)


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_lifted_parity_on_every_support_and_input(m):
    X = construct.lift(cube(m))
    for size in range(m + 1):
        for support in combinations(range(m), size):
            even = [sum(y[i] == -1 for i in support) % 2 == 0 for y in cube(m).tolist()]
            net, signed = construct.lifted_parity(m, support), construct.lifted_parity(m, support, signed=True)
            np.testing.assert_array_equal(net(X), np.array(even, dtype=float))
            np.testing.assert_array_equal(signed(X), np.where(even, 1.0, -1.0))
            np.testing.assert_array_equal(net.activity(X).per_input, np.array(even, dtype=int))
            assert len(net.activity(X).dead) == 0
            assert (net.inputs, net.width) == (m * m, size // 2 + 1)


@pytest.mark.parametrize("m", [4, 16, 64])
def test_lifted_parity_norms_grow_as_stated(m):
    # ‖w‖₂ = √(m(m − 1) + 4a²m) with |a| ≤ m, so W ≤ 2·√(4m³ + m²), and B ≤ 2(m² + m).
    W, B = construct.lifted_parity(m, range(m)).norms()
    assert pytest.approx(2 * math.sqrt(m * (m - 1) + 4 * m**3)) == W
    assert pytest.approx(2 * (m + m**2 - 0.5)) == B


@pytest.mark.parametrize(("m", "p", "q"), [(1, 2, 2), (2, 2, 4), (2, 3, 5), (3, 2, 3), (2, 4, 8)])
def test_learning_with_rounding_on_every_vector(m, p, q):
    Y = np.array(list(product(range(q), repeat=m)))
    X = construct.lift(LearningWithRounding(m, p, q).encode(Y))
    secrets = list(product(range(q), repeat=m))
    for secret in [*secrets[:: max(1, len(secrets) // 8)], secrets[-1]]:
        residues = [sum(w * t for w, t in zip(secret, y, strict=True)) % q for y in Y.tolist()]
        printed = construct.learning_with_rounding(m, p, q, secret, rounding="remainder")
        np.testing.assert_array_equal(printed(X), [residue % p for residue in residues])
        net = construct.learning_with_rounding(m, p, q, secret)
        np.testing.assert_array_equal(net(X), [math.floor(Fraction(p * residue, q)) for residue in residues])
        sets = net.active(X)
        np.testing.assert_array_equal(sets.counts, 1)
        np.testing.assert_array_equal(sets.indices, Y @ np.array(secret))
        assert net.width == m * (q - 1) ** 2 + 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: construct.lift([[1, 0]]), "Y may hold only +1 and −1; got 0. Remedy: map 0 to +1 and 1 to −1, or threshold it."),
        (lambda: construct.lift([[1.0, math.nan]]), "Y may hold only +1 and −1; got NaN. Remedy: drop or impute the missing values."),
        (lambda: construct.lift(np.ones((0, 3))), "Y must not be empty; got shape (0, 3). Remedy: pass at least one row and one column."),
        (lambda: construct.lift([1, -1]), "Y must be a table of shape (rows, columns); got shape (2,). Remedy: reshape it."),
        (lambda: construct.lifted_parity(3, (0, 3)), "support[1] must be an integer of at least 0 and at most 2; got 3."),
        (lambda: construct.lifted_parity(0, ()), "m must be an integer of at least 1; got 0."),
        (lambda: construct.learning_with_rounding(2, 5, 4, (1, 1)), "p must be an integer of at least 2 and at most 4; got 5. Remedy: the outer modulus is at most the inner one."),
        (lambda: construct.learning_with_rounding(1, 2, 4, (1,), rounding="up"), "rounding must be one of 'floor', 'remainder'; got 'up'."),
        (lambda: construct.learning_with_rounding(2, 2, 4, (1,)), "secret must hold m = 2 integers; got a sequence of 1."),
        (lambda: construct.learning_with_rounding(2, 2, 4, (1, 4)), "secret[1] must be an integer of at least 0 and at most 3; got 4. Remedy: reduce it modulo q."),
    ],
)  # fmt: skip
def test_lifted_refusals(call, message):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert str(caught.value) == message
