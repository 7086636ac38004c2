"""pareto: steps of proofs that fail as printed, and the corrected forms that hold."""

from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from fewfire._cube import cube
from fewfire.networks import init
from fewfire.networks.init._sparse import under_sparse_biases
from fewfire.papers import pareto


@pytest.mark.parametrize(("n", "k", "s"), [(11, 2, 9), (13, 2, 11)])
def test_lemma_8_the_second_case_is_the_neurons_ones_off_the_support(n, k, s):
    """The proof treats "i ∈ S∖w", which a good neuron does not have, and gives 0 for all i ∉ S: w∖S and i ∉ w."""
    X = cube(n).astype(np.int64)
    support, ones = set(range(k)), set(range(s))
    assert not support - ones  # nothing is in S∖w
    fires = X[:, :s].sum(axis=1) > 0
    gradient = (fires * X[:, :k].prod(axis=1)) @ X / len(X)
    gap = pareto.over_sparse_gap(k, s)
    assert gradient[sorted(ones - support)] == pytest.approx(gap.irrelevant)
    assert abs(gap.irrelevant) > 0.01  # so the printed 0 for i ∉ S fails there
    assert (gradient[sorted(set(range(n)) - ones)] == 0).all()
    assert gradient[sorted(support)] == pytest.approx(gap.relevant)


@pytest.mark.parametrize(("n", "k", "s"), [(200, 2, 21), (400, 4, 51)])
def test_lemma_15_the_tails_are_below_a_half_and_above_three_halves(n, k, s):
    """Printed: Pr[r′ > E/2] and Pr[r′ < 3E/2] are at most δ/2k. They are nearly 1; it is < E/2 and > 3E/2 that are."""
    delta, probability = 0.05, pareto.good_neuron_probability(n, k, s) / k
    pairs = int(10 * log(2 * k / delta) / probability) + 1  # E[r′] = 10 log(2k/δ), as the width of the lemma has it
    expected = pairs * probability
    above_half, below_three_halves = (
        binom.sf(expected / 2, pairs, probability),
        binom.cdf(1.5 * expected, pairs, probability),
    )
    assert min(above_half, below_three_halves) > 0.99 > delta / (2 * k)
    below_half, above_three_halves = (
        binom.cdf(expected / 2, pairs, probability),
        binom.sf(1.5 * expected, pairs, probability),
    )
    assert max(below_half, above_three_halves) <= exp(-expected / 10) <= delta / (2 * k) * (1 + 1e-9)


@pytest.mark.parametrize("k", [4, 6])
def test_theorem_21_a_bias_has_the_probability_one_in_k(k):
    """B.3 draws from k biases, so one is met with probability 1/k, not 1/(k + 1), and k good neurons are all there are.

    With the constant they span the k + 1 values of the sum, so k suffice.
    """
    network = init.under_sparse(k, 2)(2 * k + 1, 40_000, 0)
    biases, counts = np.unique(network.bias, return_counts=True)
    assert len(biases) == k
    shares, error = counts / counts.sum(), np.sqrt(1 / k / 20_000)  # mirrored pairs: half as many draws as neurons
    assert np.abs(shares - 1 / k).max() < 4 * error < abs(shares - 1 / (k + 1)).min()
    sums = np.arange(-k, k + 1, 2)
    features = np.maximum(sums[:, None] / (2 * k) + under_sparse_biases(k, 1.0), 0)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(k + 1), features])) == k + 1
    probability = pareto.good_neuron_probability(101, k, 2)
    asked = pareto.theorem_21(101, k, 2, delta=0.1).width
    assert k * (1 - probability / k) ** (asked / 2) <= 0.05 < k * (1 - probability / (k + 1)) ** (asked / 2)
