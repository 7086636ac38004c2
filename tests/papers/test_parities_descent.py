"""parities, after the first step: Theorem 11, Lemmas 9, 10, 13 and 14 as functions, and their errata."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers import parities


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), rate=st.floats(0.001, 1.0), steps=st.integers(1, 60))
def test_theorem_11_on_hinge_losses(seed, rate, steps):
    """Online gradient descent on random hinge losses against any competitor."""
    stream = Stream(seed, "hinge")
    x, theta = stream.child("x").normal((steps, 4)), stream.child("start").normal(4)
    optimum, start = stream.child("optimum").normal(4), np.linalg.norm(theta)
    losses, norms = [], []
    for row in x:
        losses.append(max(1 - row @ theta, 0.0))
        gradient = -row * (row @ theta < 1)
        norms.append(np.linalg.norm(gradient))
        theta = theta - rate * gradient
    best = np.maximum(1 - x @ optimum, 0).mean()
    bound = parities.theorem_11(rate, float(np.linalg.norm(optimum)), float(start), norms)
    assert np.mean(losses) <= best + bound + 1e-9


def test_theorem_11_terms():
    assert parities.theorem_11(0.5, 2.0, 3.0, [1.0, 3.0]) == pytest.approx(4 / 2 + 3 * 2 + 0.5 * 5)


@pytest.mark.parametrize(("rate", "decay", "steps"), [(0.01, 0.005, 50), (1e-4, 0.0, 10), (0.5, 0.5, 3)])
def test_lemma_13_by_its_recursion(rate, decay, steps):
    """The largest moves that the updates allow, step by step."""
    n, k = 1001, 7
    u, w, b = k / sqrt(n), 0.0, 0.0
    for _ in range(steps):
        u, w, b = u + 6 * rate, w + rate * u + 2 * rate * decay * n / k, b + rate * u
    bound = parities.lemma_13(n, k, rate, decay, steps)
    assert u == pytest.approx(bound.output) and w <= bound.hidden and b <= bound.bias


def test_erratum_of_lemma_13_a_plus():
    """‖Δw‖ ≤ 6η²t² + ηt(k/√n)2ηtλ(n/k)t is printed, a product for a sum: without decay small steps exceed it."""
    n, k, rate, decay, steps = 1001, 7, 1e-4, 0.0, 10
    travel = rate * steps
    printed = 6 * travel**2 + travel * k / sqrt(n) * 2 * travel * decay * n / k * steps
    moved = travel * k / sqrt(n)  # a gradient of |u⁽¹⁾| = k/√n in one direction for ten steps
    assert printed < moved <= parities.lemma_13(n, k, rate, decay, steps).hidden


def test_lemma_14_is_the_worst_move_of_the_competitor():
    drift = parities.Drift(1.0, 0.2, 0.1)
    assert parities.lemma_14(2.0, 9, drift) == pytest.approx(2 * 3 * 0.3)
    # n neurons of equal weight, each moving by the bound in one direction, attain it.
    weights = np.full(9, 2 / 3)
    assert weights.sum() * 0.3 == pytest.approx(parities.lemma_14(float(np.linalg.norm(weights)), 9, drift))


@pytest.mark.parametrize("k", [3, 5, 7, 9])
def test_erratum_of_lemma_10_margin(k):
    """Features within 2ε, ε = 1/(10k), leave a margin above ½; some such features leave less than the printed 1."""
    epsilon = 1 / (10 * k)
    margin = parities.separator_margin(k, epsilon)
    assert 0.5 < margin < 1
    z = parities.separator_thresholds(k)
    v = parities.separator_coefficients(k)
    parity = (-1.0) ** ((k - z) / 2)
    moved = parities.separator_features(k, z) - 2 * epsilon * np.outer(parity, np.sign(v))
    assert (parity * (moved @ v)).min() == pytest.approx(margin)
    assert (parity * (moved @ (2 * v))).min() >= 1


def test_the_norm_of_lemma_10_and_the_luck_of_lemma_9():
    for k in (7, 9):
        p, q = parities.lemma_9(k, 1 / (10 * k)), 10**9
        assert p == pytest.approx(1 / (1120 * k**3.5))
        count = p * q / 2
        r, v = parities.separator_thresholds(k), parities.separator_coefficients(k)
        weights = 2 * np.abs(v * r) * 8 * k / count
        assert sqrt(count * np.sum(weights**2)) <= parities.separator_norm(k, q)
        # Printed: of order k⁵/√q.
        assert parities.separator_norm(k, 4 * q) == pytest.approx(parities.separator_norm(k, q) / 2)


def test_lemma_8_with_the_halved_slope():
    """α between 1/8 and 1/2: at least ε/(8k²) of all u make σ(αuz/n + b) the feature φ_r within ε."""
    k, n, epsilon = 7, 1000, 0.5
    b, z = 1 / (8 * k), np.arange(-k, k + 1.0)
    u = np.linspace(-n / k, n / k, 40_001)
    for alpha in (0.125, 0.2, 0.5):
        values = np.maximum(alpha / n * u[:, None] * z + b, 0) / b
        for r in parities.separator_thresholds(k):
            feature = np.maximum(-np.sign(r) * z + abs(r), 0)
            within = (np.abs(abs(r) * values - feature) <= epsilon).all(axis=1).mean()
            assert within >= parities.feature_probability(k, epsilon)


@pytest.mark.parametrize("k", [3, 5, 7, 9, 11])
def test_erratum_3_the_printed_coefficients_fail_and_the_corrected_hold(k):
    z = parities.separator_thresholds(k)
    features = parities.separator_features(k, z)
    parity = (-1.0) ** ((k - z) / 2)
    printed = np.select([np.abs(z) == k, np.abs(z) == 1], [1.0, 2.5], 2.0) * (-1.0) ** ((k - z) / 2)
    assert 4 <= np.abs(features @ printed - parity).max() <= 16
    found = parities.separator_coefficients(k)
    assert np.allclose(features @ found, parity, atol=1e-9)
    assert np.allclose(np.abs(found[1:-1]), 2)
    assert np.allclose(np.abs(found[[0, -1]]), 1.5 if k % 4 == 3 else 0.5)
    assert (np.sign(found[:-1]) == -np.sign(found[1:])).all()
    assert np.allclose(found, -found[::-1])


def test_the_separator_is_the_parity_on_the_cube():
    X = cube(5)
    sums = X.sum(axis=1).astype(float)
    values = parities.separator_features(5, sums) @ parities.separator_coefficients(5)
    assert np.allclose(values, X.prod(axis=1), atol=1e-12)


def test_separators_of_even_parities_are_refused():
    with pytest.raises(ValueError, match=r"k must be odd; got 4\. Remedy: parities treats odd k only\."):
        parities.separator_coefficients(4)
