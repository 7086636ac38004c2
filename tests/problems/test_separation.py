"""Distances of whole sets: against the plain double loop, across block borders, and Definition 3.7."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.problems import _sphere_slice, gamma, separation


def plain(X):
    return min(
        (math.dist(X[i], X[j]) for i in range(len(X)) for j in range(i)),
        default=math.inf,
    )


@given(rows=st.integers(1, 12), d=st.integers(1, 6), seed=st.integers(0, 500), block=st.integers(1, 5))
def test_against_the_double_loop(rows, d, seed, block):
    X = Stream(seed, "points").normal((rows, d))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sphere_slice, "ROWS", block)
        assert separation(X) == pytest.approx(plain(X.tolist()), rel=1e-12)


def test_small_sets_by_hand():
    assert separation([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]]) == 1.0
    assert separation([[1.0, 2.0]]) == math.inf
    assert separation([[1.0, 2.0], [7.0, 1.0], [1.0, 2.0]]) == 0.0
    assert separation(np.array([[1, 1, 1], [1, -1, -1]], dtype=np.int8)) == math.sqrt(8)
    assert separation([[0], [2]]) == 2.0


def test_a_far_origin_does_not_hide_small_distances():
    X = np.array([[1e3, 0.0], [1e3 + 1e-3, 0.0], [1e3, 1.0]])
    assert separation(X) == pytest.approx(1e-3, rel=1e-9)


def test_a_close_pair_is_found_wherever_it_is():
    X = Stream(3, "points").normal((2500, 8)) * 10
    for i, j in ((0, 2499), (1023, 1024), (7, 8), (2498, 2499), (1500, 2100)):
        Y = X.copy()
        Y[j] = Y[i] + 1e-4
        assert separation(Y) == pytest.approx(1e-4 * math.sqrt(8), rel=1e-6)


def test_twenty_thousand_points_in_bounded_memory():
    X = Stream(1, "points").normal((20_000, 6)).astype(np.float32)
    X[12_345] = X[17_000] + np.float32(2**-10)
    copied = X.nbytes * 2 + 20_000
    tracemalloc.start()
    found = separation(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found <= 2**-10 * math.sqrt(6) * 1.001
    # Two tables of BLOCK × BLOCK and their row views; the full table would be 3.2 GB.
    assert peak < copied + 4 * 8 * _sphere_slice.ROWS**2


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.3, 0.5, 0.6])
def test_gamma_is_the_definition(rho):
    X = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    assert gamma(X, rho) == pytest.approx(1.0 - 2.0 * rho, abs=1e-15)
    for value in (0.05, 0.2, 0.4, 0.8, 1.0, 1.1):
        assert (gamma(X, rho) >= value) == (value <= 1.0 - 2.0 * rho)


def test_one_point_is_separable():
    assert gamma([[1.0]], 0.5) == math.inf
    assert gamma([[1.0]], 0.5) >= 100.0


def test_the_gap_of_inner_products_is_half_gamma():
    # Definition 3.7 on the sphere: own product at least 1 − ρ²/2, others at most 1 − (ε − ρ)²/2.
    rng = Stream(8, "gap")
    X = rng.child("x").normal((6, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    epsilon = separation(X)
    rho = 0.3 * epsilon
    moved = X[:, None] + rng.child("step").normal((6, 400, 4))
    moved = X[:, None] + (moved - X[:, None]) * rho / 4
    moved /= np.linalg.norm(moved, axis=2, keepdims=True)
    moved = np.where(np.linalg.norm(moved - X[:, None], axis=2, keepdims=True) <= rho, moved, X[:, None])
    products = np.einsum("id,jsd->ijs", X, moved)
    own = products[np.arange(6), np.arange(6)].min()
    others = products[~np.eye(6, dtype=bool)].max()
    assert own >= 1 - rho**2 / 2 - 1e-12 and others <= 1 - (epsilon - rho) ** 2 / 2 + 1e-12
    assert (1 - rho**2 / 2) - (1 - (epsilon - rho) ** 2 / 2) == pytest.approx(gamma(X, rho) / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: separation(np.zeros((0, 2))), r"^X must not be empty; got shape \(0, 2\)"),
        (lambda: separation([1.0, 2.0]), r"^X must be a table of shape \(rows, columns\); got shape \(2,\)"),
        (lambda: separation([[1.0], [np.nan]]), r"^X must hold finite numbers; got a nan at index \(1, 0\)"),
        (lambda: separation([["a"], ["b"]]), "^X must hold numbers; got dtype <U1"),
        (lambda: gamma([[1.0]], -0.1), r"^rho must be a finite number in \[0, inf\); got -0\.1"),
        (lambda: gamma([[1.0]], np.nan), "^rho must be a finite number"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
