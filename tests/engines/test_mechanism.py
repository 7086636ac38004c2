"""The mechanism of feature learning: gradients at the start against the closed forms of the papers."""

from itertools import product
from math import comb

import numpy as np
import pytest

from fewfire.engines import gradients
from fewfire.networks import TwoLayer, init
from fewfire.papers.correlations import fourier_gap, population_correlations, sample_correlations
from fewfire.problems import CorrelatedParity, Parity


def majority_hat(n, size):
    """pareto, Lemma 17, for odd n and odd size."""
    m, j = (n - 1) // 2, (size - 1) // 2
    return (-1) ** j * comb(m, j) / comb(2 * m, 2 * j) * comb(2 * m, m) / 2 ** (2 * m)


def half_hat(n, size):
    if size % 2:
        return 0.0
    m, j = n // 2, size // 2
    return (-1) ** j * comb(m, j) / comb(2 * m, 2 * j) * comb(2 * m, m) / 2 ** (2 * m)


def rows_of(ones, n, rest=0.0):
    hidden = np.full((len(ones), n), rest)
    for row, members in enumerate(ones):
        hidden[row, list(members)] = 1.0
    return TwoLayer(hidden, np.zeros(len(ones)), np.ones(len(ones)))


def test_lemma_8_good_and_bad_neurons():
    """Over-sparse rows: ½Maj_s(k−1) inside S, ½Maj_s(k+1) on the other ones, 0 elsewhere; Lemma 9 for bad neurons."""
    n, k, s = 13, 2, 9
    ones = [range(9), [0, *range(2, 10)], range(4, 13)]  # contains S = {0, 1}; misses one of it; misses both
    found = population_correlations(rows_of(ones, n), Parity(n, k).target).weights
    inside, outside = majority_hat(s, k - 1) / 2, majority_hat(s, k + 1) / 2
    expected = np.zeros((3, n))
    expected[0, :k] = inside
    expected[0, k:s] = outside
    expected[1, 1] = inside  # the missing bit is the only one with a gradient
    assert np.allclose(found, expected, atol=1e-12)
    assert abs(outside / inside) <= 4 * k / s
    gap = fourier_gap(found, range(k))
    assert gap[0] == pytest.approx(inside - abs(outside)) and gap[0] > 0
    assert gap[1] == gap[2] == 0


@pytest.mark.parametrize(("n", "k", "s"), [(9, 4, 2), (11, 4, 2), (11, 6, 4)])
def test_lemmas_18_to_20_under_sparse_neurons(n, k, s):
    """ε-perturbed rows whose ones are any set S': Half_s × Maj_{n−s} products, on and off the support."""
    support, ones = set(range(k)), [range(s), range(1, s + 1), range(k - 1, k - 1 + s), range(n - s, n)]
    found = population_correlations(rows_of(ones, n, 1 / (2 * (n - s))), Parity(n, k).target).weights
    for row, members in enumerate(map(set, ones)):
        both = support & members
        for i in range(n):
            if i in support:
                expected = half_hat(s, len(both - {i})) * majority_hat_any(n - s, len(support - both - {i})) / 2
            else:
                inner = len(both) + (i in members)
                expected = half_hat(s, inner) * majority_hat_any(n - s, len((support | {i}) - members)) / 2
            assert found[row, i] == pytest.approx(expected, abs=1e-12), (row, i)
    good = np.abs(found[0])
    assert good[s] / good[n - 1] == pytest.approx((n - k) / (k - s - 1))


def majority_hat_any(n, size):
    return majority_hat(n, size) if size % 2 else 0.0


def test_biases_do_not_change_the_under_sparse_gradient():
    n, k, s = 11, 4, 2
    net = init.under_sparse(k, s)(n, 40, seed=3).astype(np.float64)
    without = TwoLayer(net.hidden, np.zeros(40), net.output)
    target = Parity(n, k).target
    assert np.allclose(population_correlations(net, target).weights, population_correlations(without, target).weights)


def test_parities_lemma_5_irrelevant_coordinates_vanish_on_the_correlated_half():
    """On D_A^(2), neurons with Σ_{i∈A} w_i = 0 have zero gradient outside A and in the bias."""
    n, k = 9, 3
    hidden = np.array([w for w in product((-1, 0, 1), repeat=k) if sum(w) == 0])
    rest = np.array([[1, -1, 0, 1, 0, -1], [1, 1, 1, 0, 0, 0]])
    rows = np.array([[*w, *r] for w in hidden for r in rest], dtype=float) / 3
    net = TwoLayer(rows, np.full(len(rows), 1 / (8 * k)), np.ones(len(rows)), activation="relu6")
    free = np.array(list(product((-1, 1), repeat=n - k)))
    X = np.concatenate([np.hstack([np.full((len(free), k), sign), free]) for sign in (-1, 1)]).astype(np.int8)
    found = sample_correlations(net, X, Parity(n, k).target(X))
    assert np.abs(found.weights[:, k:]).max() < 1e-12
    assert np.abs(found.bias).max() < 1e-12
    assert np.abs(found.weights[:, :k]).max() > 0.1


def test_parities_lemmas_6_and_7_relevant_coordinates_share_one_gradient():
    """On D_A, E[f_A x_j σ'] for j in A is E[f_A x_j]·φ up to k/√|J|, the same for all j in A."""
    n, k = 101, 3
    problem = CorrelatedParity(n, k)
    X, y = problem.sample(100_000, seed=0)
    net = init.symmetric(k)(n, 400, seed=1)
    half = net.with_parameters(hidden=net.hidden[:200], bias=net.bias[:200], output=net.output[:200])
    balanced = np.flatnonzero(half.hidden[:, :k].sum(axis=1) == 0)
    found = sample_correlations(half, X, y).weights[balanced]
    error = 5 / np.sqrt(len(X))
    # E[f_A x_j] = 1/2 on D_A, and a neuron passes its gradient with probability φ: between 1/4 and 1.
    assert np.all(np.abs(found[:, :k].mean(axis=1)) >= 0.5 * 0.25 - error)
    assert np.abs(found[:, :k] - found[:, :k].mean(axis=1, keepdims=True)).max() < k / np.sqrt(n) / 2
    assert np.abs(found[:, k:]).max() < error
    assert (fourier_gap(found, range(k)) > 0).all()


def test_the_loss_gradient_at_a_zero_start_is_the_correlation():
    net = init.over_sparse(2, 9)(13, 20, seed=0).astype(np.float64)
    X, y = Parity(13, 2).sample(500, seed=0)
    expected = -net.output[:, None] * sample_correlations(net, X, y).weights
    assert np.allclose(gradients(net, X, y).hidden, expected, atol=1e-12)


def test_sample_correlations_come_close_to_the_population():
    net, problem = init.over_sparse(2, 9)(13, 20, seed=0), Parity(13, 2)
    X, y = problem.sample(40_000, seed=0)
    exact, found = population_correlations(net, problem.target), sample_correlations(net, X, y)
    assert np.abs(exact.weights - found.weights).max() < 5 / np.sqrt(40_000)
    assert np.abs(exact.bias - found.bias).max() < 5 / np.sqrt(40_000)


def test_large_cubes_are_refused():
    net = init.dense()(21, 2, seed=0)
    with pytest.raises(ValueError, match="network must have at most 20 inputs to visit the whole cube; got 21. Remedy"):
        population_correlations(net, Parity(21, 2).target)
