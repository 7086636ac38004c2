"""parities: Forster's bound, the best threshold on D_A, Theorem 2, and the luck of Lemmas 7 and 8."""

from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.fourier import monomials
from fewfire.papers import parities
from fewfire.problems import CorrelatedParity


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (7, 1)])
def test_the_parity_matrix_has_the_stated_norm_and_bound(n, k):
    X = cube(n).astype(float)
    sets = [row[:k] for row in monomials(n, k) if (row >= 0).sum() == k]
    matrix = np.array([X[:, members].prod(axis=1) for members in sets]).T
    norm = np.linalg.norm(matrix, 2)
    assert norm == pytest.approx(2 ** (n / 2))
    bound = parities.forster_bound(2**n, comb(n, k), norm)
    assert bound == pytest.approx(sqrt(comb(n, k))) == pytest.approx(parities.embedding_dimension(n, k))
    # The features χ_A themselves realise all parities, so the bound may not exceed their number.
    assert bound <= comb(n, k)


@given(seed=st.integers(0, 200), dimension=st.integers(1, 6), rows=st.integers(1, 30), columns=st.integers(1, 30))
def test_forster_holds_for_matrices_that_are_realised(seed, dimension, rows, columns):
    stream = Stream(seed, "forster")
    points, planes = (
        stream.child("points").normal((rows, dimension)),
        stream.child("planes").normal((columns, dimension)),
    )
    signs = np.where(points @ planes.T > 0, 1.0, -1.0)
    assert parities.forster_bound(rows, columns, np.linalg.norm(signs, 2)) <= dimension + 1e-9


def test_the_dimension_is_exponential_in_k():
    for k in (3, 5, 7, 9):
        assert parities.embedding_dimension(2 * k, k) >= 2 ** (k / 2)
        assert parities.embedding_dimension(2 * k, k, randomised=True) >= 2 ** (k / 3)
    assert parities.embedding_dimension(1500, 751) > 1e200
    assert parities.embedding_dimension(3000, 1501) == np.inf


def test_best_half_spaces_on_the_support():
    assert parities.halfspace_accuracy(3) == 0.875
    assert parities.halfspace_accuracy(5) == 0.84375
    assert parities.halfspace_accuracy(7) == 0.828125


def test_half_spaces_of_three_bits_by_linear_programming():
    """All 256 labellings of the cube: the best one that a half-space gives has the stated accuracy."""
    X = cube(3).astype(float)
    mass = np.full(8, 1 / 16)
    mass[[0, 7]] += 0.25
    best = 0.0
    for code in range(256):
        labels = 1 - 2 * ((code >> np.arange(8)) & 1)
        margins = -labels[:, None] * np.column_stack([X, np.ones(8)])
        if linprog(np.zeros(4), A_ub=margins, b_ub=-np.ones(8), bounds=(None, None)).success:
            best = max(best, mass[labels == X.prod(axis=1)].sum())
    assert best == parities.halfspace_accuracy(3)


def test_the_mass_used_is_that_of_the_problem():
    X, y = CorrelatedParity(9, 5).sample(40_000, seed=0)
    majority = np.where(X[:, :5].sum(axis=1) > 0, 1, -1)
    # Standard error at most 1/400.
    assert abs((majority == y).mean() - parities.halfspace_accuracy(5)) < 0.01


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_balanced_probability_by_enumeration(k):
    sums = np.array(list(product((-1, 0, 1), repeat=k))).sum(axis=1)
    assert parities.balanced_probability(k) == pytest.approx((sums == 0).mean())
    assert parities.balanced_probability(k) >= 1 / (6 * sqrt(k)) >= parities.good_neuron_bound(k)


@given(seed=st.integers(0, 50), alpha=st.floats(0.25, 1), r=st.sampled_from([-7, -5, -3, -1, 1, 3, 5, 7]))
def test_lemma_8_with_the_plain_relu(seed, alpha, r):
    """The share of u for which the neuron is φ_r within ε on all of [−k, k] is at least ε/(8k²)."""
    k, n, epsilon = 7, 1000, 0.5
    b = 1 / (8 * k)
    u = np.linspace(-n / k, n / k, 20_001)
    z = np.arange(-k, k + 1.0)
    near = np.abs(u + b * n / (alpha * r)) < n / (2 * k)  # the rest of the range is far off
    feature = np.maximum(-np.sign(r) * z + abs(r), 0)
    values = abs(r) / b * np.maximum(alpha / n * u[near][:, None] * z + b, 0)
    within = (np.abs(values - feature) <= epsilon).all(axis=1).sum() / len(u)
    assert within >= parities.feature_probability(k, epsilon) - 1e-4


def test_lemma_8_fails_with_the_printed_relu6():
    """φ_r(z) = σ(−sign(r)z + |r|) reaches 2k; cut at 6 it is none of the scaled neurons, which are not cut."""
    k, n, alpha, r = 7, 1000, 0.5, 7
    b = 1 / (8 * k)
    z = np.arange(-k, k + 1.0)
    u = -b * n / (alpha * r)
    value = abs(r) / b * np.clip(alpha / n * u * z + b, 0, 6)
    assert np.allclose(value, np.maximum(-z + r, 0))
    assert np.abs(value - np.clip(-z + r, 0, 6)).max() == pytest.approx(8)


def test_theorem_2_terms_and_conditions():
    found = parities.theorem_2(n=10**6, k=7, pairs=10**4, steps=1000)
    assert (found.separator_norm, found.drift) == (7**10 / 1e4, 7**8 / 100)
    assert (found.initial_output, found.step_size) == (70.0, 49 * 100 / 1000)
    assert found.error == pytest.approx(7**10 / 1e4 + 7**8 / 100 + 70 + 4.9)
    assert [text.split(";")[1] for text in found.violated] == [" k is 7", " q is 10000"]
    assert parities.theorem_2(301, 5, 500, 10).violated[0] == "k ≥ 7; k is 5"


def test_theorem_2_promises_only_at_astronomical_sizes():
    assert parities.theorem_2(10**28, 7, 10**13, 10**20).error > 1
    vast = parities.theorem_2(10**40, 7, 10**15, 10**20)
    assert not vast.violated and vast.error < 1


def test_learning_rates_of_theorem_2():
    rates = parities.learning_rates(n=500, k=7, pairs=400, steps=100)
    assert (rates.first, rates.first_regularisation) == (1.0, 0.5)
    assert rates.later == pytest.approx(49 / (100 * 20))
    assert rates.later_regularisation == 7 / 500


@pytest.mark.parametrize("call", [parities.halfspace_accuracy, lambda k: parities.learning_rates(9, k, 1, 1)])
def test_even_k_is_refused(call):
    with pytest.raises(ValueError, match=r"k must be odd; got 4\. Remedy: parities treats odd k only\."):
        call(4)
