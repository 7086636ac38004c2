"""parities, after the first step: Theorem 11, Lemmas 9, 10, 13 and 14 as functions, and their errata."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.networks import init
from fewfire.papers import parities
from fewfire.papers.parities.algorithms import population_step
from fewfire.problems import CorrelatedParity


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


def test_erratum_of_the_proof_of_theorem_11_the_induction():
    """Σ_{t<T} ⟨θ_{t+1} − θ₁, ∇_t⟩ ≤ Σ_{t<T} ⟨θ_{T+1} − θ₁, ∇_t⟩ is printed: ‖θ_{T+1} − θ₁‖²/(2η) is missing on the right.

    Equal gradients exceed it, and the bound of R_{T−1}, which the induction has, is what is printed plus that term.
    """
    rate = 0.3

    def sides(gradients):
        moves = -rate * np.cumsum(gradients, axis=0)  # θ_{t+1} − θ₁
        left, right = np.sum(moves[:-1] * gradients[:-1]), np.sum(moves[-1] * gradients[:-1])
        return left, right, right + moves[-1] @ moves[-1] / (2 * rate)

    left, printed, corrected = sides(np.ones((2, 3)))
    assert printed < left <= corrected
    for seed in range(50):
        left, _, corrected = sides(Stream(seed, "gradients").normal((6, 4)))
        assert left <= corrected + 1e-12


def test_erratum_of_the_proof_of_theorem_2_its_two_constants():
    """2q slopes of at most 6: ‖∂/∂u‖ ≤ 6√(2q), so 12·qk/√n + 72·ηq, where 6√2 and 36 are printed.

    One example attains it. On the whole of D_A half of the labels are −1, so that a slope is at most 3: 6 and 18 hold.
    """
    n, k, q, eta = 11, 3, 20, 0.1
    slopes = np.full(2 * q, 6.0)  # one example of y = −1 at which every neuron is at 6 and the hinge is active
    first = np.full(2 * q, k / sqrt(n))  # Lemma 12
    start, steps = np.linalg.norm(first) * np.linalg.norm(slopes), eta * slopes @ slopes
    assert (start, steps) == pytest.approx((12 * q * k / sqrt(n), 72 * eta * q))
    assert start > 6 * sqrt(2) * q * k / sqrt(n) and steps > 36 * eta * q
    X = cube(n)
    y, mass = X[:, :k].prod(axis=1), CorrelatedParity(n, k).density(X) / len(X)
    assert mass.sum() == pytest.approx(1) and y @ mass == pytest.approx(0)
    for seed in range(20):
        stream = Stream(seed, "slopes")
        scores = X @ stream.child("w").normal((n, 2 * q)) * 3 + stream.child("b").normal(2 * q)
        active = stream.child("margin").normal(len(X)) < 0.5  # where the hinge has its slope −y
        assert np.abs((mass * y * active) @ np.clip(scores, 0, 6)).max() <= 3
    assert (mass * y * (y > 0)) @ np.full(len(X), 6.0) == pytest.approx(3)  # attained by 6·1[y = 1]


def test_erratum_of_section_2_the_biases_are_trained():
    """Section 2 updates w and u alone. Lemmas 7, 9 and 13 bound the moves of b, which the first step begins."""
    n, k = 11, 3
    start = init.symmetric(k)(n, 40, seed=0).astype(np.float64)
    X = cube(n)
    y, mass = X[:, :k].prod(axis=1), CorrelatedParity(n, k).density(X) / len(X)
    z = start.preactivations(X)
    slope = -start.output * ((mass * y) @ ((z > 0) & (z < 6)))  # ∂L/∂b at g = 0
    after = population_step(start, range(k))
    assert np.abs(slope).max() > 0.01  # so b⁽¹⁾ = b⁽⁰⁾, as printed, is not gradient descent on b
    np.testing.assert_allclose(after.bias, start.bias - slope, atol=1e-6)


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


@pytest.mark.parametrize("k", [7, 9])
def test_erratum_of_the_proof_of_lemma_10_the_neurons_of_the_separator(k):
    """√(q(k + 1)/(2240k²)) is printed for √‖u*‖₀: it is k^3.5, as in ‖u*‖₀ = O(q/k^2.5), and ‖u*‖ is O(k^4.25/√q)."""
    q = 10**9
    neurons = (k + 1) * parities.lemma_9(k, 1 / (10 * k)) * q / 2
    assert neurons == pytest.approx(q * (k + 1) / (2240 * k**3.5))
    assert q * (k + 1) / (2240 * k**2) == pytest.approx(k**1.5 * neurons)  # as printed
    largest = 64 * k**2 / (parities.lemma_9(k, 1 / (10 * k)) * q)  # |u*_i|
    assert parities.separator_norm(k, q) == pytest.approx(sqrt(neurons) * largest)
    growth = parities.separator_norm(4 * k + 3, q) / parities.separator_norm(k, q)
    assert growth == pytest.approx(sqrt((4 * k + 4) / (k + 1)) * ((4 * k + 3) / k) ** 3.75)


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
