"""Statements of the papers that fail as printed: the printed form fails, the corrected form holds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.networks import TwoLayer, construct, init, shifted_relu
from fewfire.networks.construct._lifted import integer_form
from fewfire.networks.init._sparse import over_sparse_biases
from fewfire.problems import LearningWithRounding


def test_erratum_1_parity_as_a_one_sparse_network():
    """sparse-activations, section 4: the sum over even a is constant, and the printed weights reach outside S."""
    m, S = 6, range(6)
    Y = cube(m)
    even = np.array([list(y).count(-1) % 2 == 0 for y in Y.tolist()])

    def squares(centres):
        total = Y[:, list(S)].sum(axis=1)
        return sum(2 * np.maximum(0, 0.5 - (total - a) ** 2) for a in centres)

    printed = squares(a for a in range(-m, m + 1) if a % 2 == 0)
    corrected = squares(a for a in range(-m, m + 1) if (a - len(S)) % 4 == 0)
    assert np.count_nonzero(printed != even) == 32
    assert np.count_nonzero(corrected != even) == 0
    np.testing.assert_array_equal(construct.lifted_parity(m, S)(construct.lift(Y)), even)

    # Printed lifted weights: −1 at every i ≠ j and 2a on the whole diagonal, whatever S is.
    a, S = 1, [0, 2, 5]
    weights = np.full((m, m), -1.0)
    np.fill_diagonal(weights, 2 * a)
    square = 0.5 - (Y[:, S].sum(axis=1) - a) ** 2
    linear = construct.lift(Y) @ weights.ravel() - (len(S) + a**2 - 0.5)
    assert np.any(linear != square)
    inside = np.zeros((m, m))
    inside[np.ix_(S, S)] = weights[np.ix_(S, S)]
    np.testing.assert_array_equal(construct.lift(Y) @ inside.ravel() - (len(S) + a**2 - 0.5), square)


def test_erratum_2_symmetric_initialisation():
    """parities, section 2: negating w, b and u does not give the zero function; negating u alone does."""
    n, k, q = 101, 7, 200
    corrected = init.symmetric(k, scaled=False)(n, 2 * q, 0)
    w, b, u = corrected.hidden[:q], corrected.bias[:q], corrected.output[:q]
    printed = TwoLayer(np.concatenate([w, -w]), np.concatenate([b, -b]), np.concatenate([u, -u]), 0.0, "relu6")
    X = Stream(0, "data").sign_rows(5000, n) / math.sqrt(n)
    assert 100 < np.abs(printed(X)).max() < 1000  # 271 was seen with another draw
    assert np.abs(corrected(X)).max() < 1e-3  # rounding of sums whose terms add up to about 10³
    doubled = corrected.astype(np.float64)
    assert np.abs(doubled(X)).max() < 1e-11


@pytest.mark.parametrize(
    ("k", "printed_offset_norm", "half_offset_norm"), [(4, 1.195e4, 230.8), (6, 5.569e5, 1204.8), (8, 2.302e7, 5058.8)]
)
def test_erratum_4_over_sparse_biases(k, printed_offset_norm, half_offset_norm):
    """pareto, B.2.2: with i from 1 the k − 1 features do not span parity; with i from 0 they do."""
    sums = np.arange(-k, k + 1, 2)
    parity = (-1.0) ** ((k - sums) // 2)

    def fit(biases):
        features = [np.maximum(0, sign * sums / (2 * k) + bias) for sign in (1, -1) for bias in biases]
        table = np.stack([*features, np.ones(k + 1)], axis=1)
        weights = np.linalg.lstsq(table, parity, rcond=None)[0]
        return np.abs(table @ weights - parity).max(), np.linalg.norm(weights)

    assert fit(over_sparse_biases(k, 1 / 16)[1:])[0] == pytest.approx(1.35, abs=0.005)
    for offset, size in ((1 / 16, printed_offset_norm), (0.5, half_offset_norm)):
        residual, weight_norm = fit(over_sparse_biases(k, offset))
        assert residual < 1e-8
        assert weight_norm == pytest.approx(size, rel=1e-3)
    # Neurons that miss the support reach at most 11/(16k) after the step: the largest bias keeps them silent.
    assert over_sparse_biases(k, 0.5).max() == pytest.approx(-12 / (16 * k))


def test_erratum_5_parity_of_the_sum():
    """pareto, B.2.2: Σ_{j∈S} x_j mod 2 is constant; parity is (−1)^((k − Σ)/2)."""
    for k in (2, 4, 5):
        sums = cube(k).sum(axis=1, dtype=int)
        assert len(set(sums % 2)) == 1
        np.testing.assert_array_equal((-1.0) ** ((k - sums) // 2), cube(k).prod(axis=1))


def test_erratum_6_shifted_relu():
    """sublinear, introduction: with max{z, τ} silent neurons contribute τ, so the active ones do not give f."""
    tau = 0.5
    net = construct.random_member(6, 12, 2, 0).with_parameters(activation=shifted_relu(tau))
    X = cube(6)
    sets, z = net.active(X), net.preactivations(X)
    from_active = np.array([net.output[sets.row(i)] @ z[i, sets.row(i)] for i in range(len(X))])
    np.testing.assert_allclose(net(X), from_active, atol=1e-12)
    printed = np.maximum(z, tau) @ net.output
    assert np.abs(printed - from_active).max() >= tau
    # At the threshold the function jumps from 0 to τ; the printed one is continuous.
    below, above = shifted_relu(tau).value(np.array([tau, np.nextafter(tau, 1)]))
    assert (below, above) == (0.0, np.nextafter(tau, 1))


def test_erratum_7_size_of_the_threshold():
    """sublinear, Theorem 5.1: τ = 1/m or m^(−3/5) leaves a constant share active; the quantile does not."""
    m = 100_000
    x = np.full((1, 4), 0.5)

    def share(initialiser):
        return initialiser(4, m, 0).activity(x).fraction

    error = 4 * math.sqrt(0.25 / m)  # four standard errors of a share
    assert share(init.ntk(threshold="1/m")) == pytest.approx(0.49911, abs=error)
    assert share(init.ntk(threshold=m**-0.6)) == pytest.approx(0.41153, abs=error)
    for c in (0.5, 0.75):
        wanted = m ** (c - 1)
        assert share(init.ntk(exponent=c)) == pytest.approx(wanted, abs=4 * math.sqrt(wanted / m))
    # Q₀ of Lemma 5.15 at K = 1 is more than all neurons, so it bounds nothing.
    assert 2 * m * math.exp(-1 / (4 * m**0.2)) > m
    # τ from the tail bound exp(−τ²m/4) = m^(c − 1) leaves too few: by 7 to 10 times for these c.
    for c, ratio in ((0.4, 9.92), (0.6, 8.31), (0.7, 7.37)):
        tau = 2 * math.sqrt((1 - c) * math.log(m) / m)
        assert m ** (c - 1) / norm.sf(tau / math.sqrt(2 / m)) == pytest.approx(ratio, abs=0.01)
        assert tau > init.activity_threshold(m, m**c)


@pytest.mark.parametrize(("q", "secret"), [(4, (1, 3)), (5, (2, 0)), (2, (1, 1))])
def test_erratum_learning_with_rounding_needs_a_constant(q, secret):
    """sparse-activations, section 4: no v has ⟨v, z(y)⟩ = ⟨w, y⟩ for w ≠ 0; with a constant there is one."""
    Y = np.array(list(product(range(q), repeat=2)))
    Z = LearningWithRounding(2, 2, q).encode(Y).astype(float)
    target = Y @ np.array(secret)
    best = np.linalg.lstsq(Z, target, rcond=None)[0]
    assert np.abs(Z @ best - target).max() > 0.1
    v, constant = integer_form(secret, q)
    np.testing.assert_array_equal(Z @ v + constant, target)


def test_erratum_lifted_rounding_weights_are_not_signs():
    """sparse-activations, section 4: a lifted weight vector in {1, −1}ⁿ does not exist already for m = 1, q = 4."""
    Y = np.arange(4)
    X = construct.lift(LearningWithRounding(1, 2, 4).encode(Y[:, None]))
    for a in range(10):
        square = 0.5 - (Y - a) ** 2
        for signs in cube(4):
            assert np.ptp(X @ signs - square) > 0  # no bias makes the two equal
    net = construct.learning_with_rounding(1, 2, 4, [1])
    np.testing.assert_array_equal(net.preactivations(X)[:, 3], 0.5 - (Y - 3) ** 2)


@pytest.mark.parametrize(("p", "q", "secret"), [(2, 4, (1, 3)), (3, 5, (2, 4))])
def test_erratum_the_square_is_inside_the_activation(p, q, secret):
    """sparse-activations, section 4: λ(v) = Σ_a 2λ(a)σ(½ − (v − a))² is printed, which counts every a above v."""
    values = np.arange(sum(secret) * (q - 1) + 1)
    labels = values % q % p
    distance = values[:, None] - np.arange(q * q * len(secret) + 1)
    weights = 2 * (np.arange(distance.shape[1]) % q % p)
    printed = np.maximum(0.5 - distance, 0) ** 2 @ weights
    assert (printed > labels + 100).all()
    np.testing.assert_array_equal(np.maximum(0.5 - distance**2, 0) @ weights, labels)
