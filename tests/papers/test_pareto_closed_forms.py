"""pareto: majority coefficients, gradients of good neurons, luck and the separator, against enumeration."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers import pareto
from fewfire.papers.pareto.statements._lemmas import separator_features


def majority_weight(length, size):
    """The sum of Maj's squared coefficients on sets of a size."""
    return comb(length, size) * pareto.majority_coefficient(length, size) ** 2


def limit_weight(size):
    """ρ(v) = 4 C(v−1, (v−1)/2)/(π v 2^v): for odd v < length/2 Maj's weight on sets of size v lies in [ρ, 2ρ]."""
    return 4 * comb(size - 1, (size - 1) // 2) / (np.pi * size * 2.0**size)


def start_failure(n, k, s, width):
    """At most the probability that a bias has fewer than r′/2 or more than 2r′ good neurons: tails summed over biases."""
    pairs, biases = width // 2, k // 2
    probability = pareto.good_neuron_probability(n, k, s) / biases
    expected = pairs * probability
    low, high = (
        binom.cdf(np.ceil(expected / 2) - 1, pairs, probability),
        binom.sf(int(2 * expected), pairs, probability),
    )
    return biases * (low + high)


def ratio(gap):
    return abs(gap.relevant / gap.irrelevant)


@given(half=st.integers(0, 5), size=st.integers(0, 11))
def test_majority_and_half_by_enumeration(half, size):
    length = 2 * half + 1
    size = min(size, length)
    X = cube(length).astype(int)
    exact = (np.sign(X.sum(axis=1)) * X[:, :size].prod(axis=1)).mean()
    assert pareto.majority_coefficient(length, size) == pytest.approx(exact, abs=1e-14)
    if 0 < length - 1 >= size:
        Z = cube(length - 1).astype(int)
        exact = ((Z.sum(axis=1) == 0) * Z[:, :size].prod(axis=1)).mean()
        assert pareto.half_coefficient(length - 1, size) == pytest.approx(exact, abs=1e-14)


def test_majority_satisfies_parseval_at_any_length():
    for length in (1, 9, 101, 1001):
        assert sum(majority_weight(length, size) for size in range(1, length + 1, 2)) == pytest.approx(1)


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_the_limit_weight_bounds_the_weight_and_its_printed_half_does_not(size):
    """The proof of Lemma 8 prints ρ(v) = 2 C(v−1, (v−1)/2)/(π v 2^v), and an upper bound 2ρ(v)."""
    rho, printed = limit_weight(size), limit_weight(size) / 2
    for length in (2 * size + 1, 21, 101, 1001):
        weight = majority_weight(length, size)
        assert rho <= weight <= 2 * rho
        assert weight > 2 * printed
    assert majority_weight(100_001, size) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(("k", "s"), [(2, 9), (2, 13), (4, 17)])
@pytest.mark.parametrize("bias", [-0.45, 0.0])
def test_over_sparse_gradients_by_enumeration(k, s, bias):
    X = cube(s).astype(int)
    parity = X[:, :k].prod(axis=1)
    slope = X.sum(axis=1) + bias > 0
    gradient = (slope * parity) @ X / len(X)
    gap = pareto.over_sparse_gap(k, s)
    assert gradient[:k] == pytest.approx(gap.relevant, abs=1e-12)
    assert gradient[k:] == pytest.approx(gap.irrelevant, abs=1e-12)


@given(half=st.integers(1, 5), extra=st.integers(0, 300))
def test_over_sparse_ratio_is_exact_and_within_lemma_8(half, extra):
    k = 2 * half
    s = 4 * k + 1 + 2 * extra
    gap = pareto.over_sparse_gap(k, s)
    assert ratio(gap) == pytest.approx((s - k) / (k - 1))
    assert 1 / ratio(gap) <= 4 * k / s
    kappa = np.sqrt(limit_weight(k - 1)) / 2
    assert abs(gap.relevant) >= kappa * comb(s, k - 1) ** -0.5


@pytest.mark.parametrize(("n", "k", "s"), [(9, 4, 2), (11, 4, 2), (11, 6, 2), (11, 6, 4), (9, 4, 0)])
def test_under_sparse_gradients_by_enumeration(n, k, s):
    X = cube(n).astype(int)
    weights = np.where(np.arange(n) < s, 1.0, 0.9 / (n - s))
    slope = X @ weights > 1e-9
    gradient = (slope * X[:, :k].prod(axis=1)) @ X / len(X)
    gap = pareto.under_sparse_gap(n, k, s)
    assert gradient[:s] == pytest.approx(0, abs=1e-12)
    assert gradient[s:k] == pytest.approx(gap.relevant, abs=1e-12)
    assert gradient[k:] == pytest.approx(gap.irrelevant, abs=1e-12)
    assert ratio(gap) == pytest.approx((n - k) / (k - s - 1))


def test_under_sparse_precision_scales_as_the_relevant_gradient():
    """Theorem 21 prints |ξ_out|/2 = c (n−s)^(−(k−s−1)/2): that is the scale of ξ_in; ξ_out falls by one power more."""
    small, large = pareto.under_sparse_gap(1001, 6, 2), pareto.under_sparse_gap(4001, 6, 2)
    growth = 3999 / 999
    assert small.relevant / large.relevant == pytest.approx(growth**1.5, rel=0.01)
    assert small.precision / large.precision == pytest.approx(growth**1.5, rel=0.01)
    assert small.irrelevant / large.irrelevant == pytest.approx(growth**2.5, rel=0.01)


@pytest.mark.parametrize(("n", "k", "s"), [(12, 2, 9), (10, 3, 2), (8, 3, 3), (9, 4, 1)])
def test_good_neurons_by_enumeration(n, k, s):
    support = set(range(k))
    rows = list(combinations(range(n), s))
    good = sum(support <= set(row) if s >= k else set(row) <= support for row in rows)
    assert pareto.good_neuron_probability(n, k, s) == pytest.approx(good / len(rows))


@given(k=st.integers(1, 6), extra=st.integers(1, 40), spare=st.integers(0, 200))
def test_lemma_7_holds(k, extra, spare):
    s = 4 * k + extra
    assert (s / (2 * (s + spare))) ** k <= pareto.good_neuron_probability(s + spare, k, s)


def test_lemma_15_needs_the_exact_probability():
    """Printed: r ≥ 20k(2n/s)^k log(2k/δ) keeps every count within [r′/2, 2r′], r′ = (r/2k)(s/2n)^k. It does not."""
    n, k, s, delta = 40, 4, 21, 0.05
    width = 2 * int(10 * k * (2 * n / s) ** k * np.log(2 * k / delta))
    printed = width / (2 * k) * (s / (2 * n)) ** k
    stream = Stream(0, "lemma 15")
    rows = stream.subsets(width // 2, n, s)
    good = (np.sort(rows, axis=1)[:, :k] == np.arange(k)).all(axis=1)
    biases = stream.child("bias").integers(k // 2, width // 2)
    counts = np.bincount(biases[good], minlength=k // 2)
    assert (counts > 2 * printed).all()
    expected = pareto.good_neurons(n, k, s, width)
    assert (counts >= expected / 2).all() and (counts <= 2 * expected).all()


@given(half=st.integers(1, 4), extra=st.integers(0, 10), delta=st.floats(1e-6, 0.4))
def test_the_width_for_a_good_start_suffices(half, extra, delta):
    k = 2 * half
    s, n = 4 * k + 1 + 2 * extra, 6 * k + 40
    width = pareto.width_for_good_start(n, k, s, delta)
    assert width % 2 == 0
    assert start_failure(n, k, s, width) <= delta


def test_start_failure_against_simulation():
    n, k, s, width = 20, 2, 9, 120
    bound = start_failure(n, k, s, width)
    expected = pareto.good_neurons(n, k, s, width)
    rows = Stream(1, "starts").subsets(width // 2 * 2000, n, s)
    counts = ((rows == 0).any(axis=1) & (rows == 1).any(axis=1)).reshape(2000, -1).sum(axis=1)
    failed = ((counts < expected / 2) | (counts > 2 * expected)).mean()
    # k = 2 has one bias, so the bound is exact; 2000 starts deviate by at most 0.0112 (one sigma).
    assert abs(failed - bound) < 0.04


def test_separator_norms_are_those_of_the_errata():
    assert [round(pareto.separator_norm(k)) for k in (2, 4, 6, 8)] == [23, 231, 1205, 5059]
    assert pareto.separator_norm(4, 1 / 16) == pytest.approx(1.2e4, rel=0.01)
    assert pareto.separator_norm(8, 1 / 16) == pytest.approx(2.3e7, rel=0.01)


@pytest.mark.parametrize("k", [2, 4, 6])
@pytest.mark.parametrize("offset", [1 / 16, 0.5])
def test_the_separator_is_the_parity_on_the_cube(k, offset):
    X = cube(k).astype(int)
    features = separator_features(k, X.sum(axis=1).astype(float), offset)
    assert np.allclose(features @ pareto.separator_coefficients(k, offset), X.prod(axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: pareto.over_sparse_gap(3, 21), r"k must be even \(pareto, Lemma 8\); got 3"),
        (lambda: pareto.over_sparse_gap(4, 20), r"s must be odd and above k = 4 \(pareto, Lemma 8\); got 20"),
        (lambda: pareto.under_sparse_gap(10, 4, 2), r"n must be odd, so that n − s is \(pareto, Lemma 17\); got 10"),
        (lambda: pareto.under_sparse_gap(11, 4, 1), r"k and s must be even \(pareto, Lemma 20\); got \(4, 1\)"),
        (lambda: pareto.separator_norm(3), r"k must be even \(pareto, Theorem 4\); got 3"),
    ],
)
def test_what_the_lemmas_exclude_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
