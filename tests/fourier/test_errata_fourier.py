"""Statements on Fourier coefficients that fail as printed, each with the form that holds.

Population gradients are those of one neuron relu(⟨w, x⟩), w = 1 on the s coordinates of S' and ε < 1/(n − s) elsewhere,
against the parity on S, |S| = k (pareto, section B.3), by summing over the whole cube.
"""

from itertools import combinations

import numpy as np
import pytest

from fewfire import fourier
from fewfire._cube import cube
from fewfire.papers import pareto


def gradient(n, S, chosen):
    points = cube(n).astype(float)
    weights = np.full(n, 0.5 / (n - len(chosen)))
    weights[list(chosen)] = 1.0
    active = points @ weights > 1e-9
    return (active * points[:, list(S)].prod(axis=1)) @ points / 2**n


def lemmas_18_and_19(n, S, chosen, i, majority=pareto.majority_coefficient):
    S, chosen, s = set(S), set(chosen), len(chosen)
    inside = S & chosen
    if i in S:
        return 0.5 * pareto.half_coefficient(s, len(inside - {i})) * majority(n - s, len(S - inside - {i}))
    return 0.5 * pareto.half_coefficient(s, len(inside | (chosen & {i}))) * majority(n - s, len((S | {i}) - chosen))


@pytest.mark.parametrize(("n", "k", "s"), [(7, 4, 2), (9, 4, 2), (9, 6, 4), (8, 4, 2), (10, 6, 2)])
def test_pareto_lemmas_18_and_19_hold_with_majority_of_either_parity(n, k, s):
    S = range(k)
    for chosen in combinations(range(n), s):
        expected = [lemmas_18_and_19(n, S, chosen, i) for i in range(n)]
        assert np.allclose(gradient(n, S, chosen), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("n", "k", "s"), [(8, 4, 2), (10, 4, 2), (10, 6, 2)])
def test_pareto_lemma_17_at_the_odd_length_below_does_not_serve_an_even_one(n, k, s):
    """ERRATA 9: with n − s even there are ties, and Lemma 17 does not cover Maj at that length."""

    def below(length, size):
        return pareto.majority_coefficient(length - 1, size)

    observed = gradient(n, range(k), range(s))
    printed = np.array([lemmas_18_and_19(n, range(k), range(s), i, below) for i in range(n)])
    assert np.abs(observed - printed).max() > 1e-3


@pytest.mark.parametrize(("n", "k", "s"), [(8, 4, 3), (9, 4, 3)])
def test_pareto_lemma_18_needs_s_below_k_by_more_than_one(n, k, s):
    """ERRATA 9: its proof states k < s; it uses s + 1 < k, which s < k gives for even s and k only."""
    observed = gradient(n, range(k), range(s))
    expected = np.array([lemmas_18_and_19(n, range(k), range(s), i) for i in range(n)])
    assert np.abs(observed - expected).max() > 0.2


@pytest.mark.parametrize(("n", "k", "s"), [(9, 4, 2), (9, 6, 4), (11, 4, 2), (11, 6, 2)])
def test_pareto_theorem_21_ratio_of_gradients(n, k, s):
    """ERRATA 9: (n − k)/(k − s − 1), not (n − s)/(k − s − 1), for n − s odd."""
    observed = gradient(n, range(k), range(s))
    ratio = abs(observed[s] / observed[n - 1])
    assert ratio == pytest.approx((n - k) / (k - s - 1), rel=1e-12)
    assert ratio != pytest.approx((n - s) / (k - s - 1), rel=1e-3)


@pytest.mark.parametrize(("n", "k", "s"), [(8, 4, 2), (10, 4, 2), (10, 6, 4)])
def test_pareto_theorem_21_ratio_of_gradients_with_ties(n, k, s):
    """For n − s even Maj has the coefficients of one coordinate more, so the ratio is that of n + 1."""
    observed = gradient(n, range(k), range(s))
    assert abs(observed[s] / observed[n - 1]) == pytest.approx((n + 1 - k) / (k - s - 1), rel=1e-12)


def test_pareto_theorem_21_ratio_is_not_always_above_one():
    observed = gradient(9, range(6), range(2))
    assert abs(observed[2] / observed[8]) == pytest.approx(1.0, rel=1e-12)
    assert (9 - 2) / (6 - 2 - 1) > 1  # as printed


def test_sparse_activations_claim_2_1_needs_rho_at_least_zero():
    """The bound 2 NS_ρ/(1 − ρᵈ) on the tail: at ρ = −1 the parity of two inputs has NS = 0 but tail 1 above d = 1."""
    points = cube(2)
    parity = fourier.spectrum(points.prod(axis=1))
    assert parity.noise_sensitivity(-1.0) == 0.0
    assert parity.tail(1) == 1.0 > 2 * parity.noise_sensitivity(-1.0) / (1 - (-1.0) ** 1)


def test_sparse_activations_lemma_6_sensitivity_of_a_halfspace():
    """AS(g) is half, not a quarter, of |E[g Σ ±x_i]|, and g = 1[⟨w, x⟩ ≤ b] falls in x where w > 0."""
    points = cube(7).astype(float)
    weights = np.array([3.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.25])
    g = (points @ weights <= -1.1).astype(float)
    correlation = (g * points.sum(axis=1)).mean()
    sensitivity = fourier.spectrum(g).average_sensitivity()
    assert correlation < 0
    assert sensitivity == pytest.approx(-correlation / 2, rel=1e-12)
    assert sensitivity != pytest.approx(-correlation / 4, rel=1e-3)


def test_sparse_activations_lemma_9_sensitivity_of_a_linear_function():
    """Term (U): flipping x_i moves ⟨w, x⟩ by 2 w_i, so AS = ‖w‖², not ‖w‖²/4."""
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    sensitivity = fourier.spectrum(lambda X: X @ weights - 0.7, 4).average_sensitivity()
    assert sensitivity == pytest.approx(weights @ weights, rel=1e-12)


def test_sparse_activations_lemma_9_flips_of_an_indicator():
    """For 0/1 values Σ_i P[g(x) ≠ g(x^⊕i)] is 4 AS(g), not AS(g)."""
    points = cube(6)
    g = (points.sum(axis=1) > 1).astype(float)
    index = np.arange(64)
    flips = sum((g != g[index ^ (1 << i)]).mean() for i in range(6))
    assert flips == pytest.approx(4 * fourier.spectrum(g).average_sensitivity(), rel=1e-12)
