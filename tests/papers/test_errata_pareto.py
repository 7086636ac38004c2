"""pareto: steps of proofs that fail as printed, and the corrected forms that hold."""

from math import comb, exp, log, pi, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from fewfire._cube import cube
from fewfire._random import Stream
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


def drift_of_a_good_neuron(n, k, s, rows):
    """η(ŵ − w*) of a neuron with ones at the first s coordinates after one step on so many examples."""
    gap = pareto.over_sparse_gap(k, s)
    mean = np.repeat([gap.relevant, gap.irrelevant, 0.0], [k, s - k, n - s])
    X = Stream(n, "drift").sign_rows(rows, n)
    fires = X[:, :s].sum(axis=1) > 0
    gradient = (fires * X[:, :k].prod(axis=1)).astype(np.float32) @ X.astype(np.float32) / rows
    return (gradient - mean) / (2 * k * abs(gap.relevant))


def test_theorems_4_and_16_the_printed_samples_do_not_meet_the_drift_of_the_proof():
    """sup |φ − ψ| ≤ ε/B_k is to hold; at (s/k)^(k−1)·n²·log n examples it falls as 1/√log n alone, whatever ε is.

    In the mean square over the inputs it falls as 1/√n, which is at most ε where n ≥ 1/ε²: the statement survives.
    """
    k, s, sizes = 2, 9, (21, 41, 81)
    found = [drift_of_a_good_neuron(n, k, s, round((s / k) * n**2 * log(n))) for n in sizes]
    roots = np.sqrt(np.log(sizes))
    largest = [np.abs(drift).sum() for drift in found]  # at the input that has the signs of the drift
    assert largest * roots == pytest.approx([0.5] * 3, rel=0.25)
    typical = [np.linalg.norm(drift) for drift in found]
    assert typical * roots * np.sqrt(sizes) == pytest.approx([0.6] * 3, rel=0.25)
    coarse, fine = pareto.theorem_16(10**4, k, s, 0.4), pareto.theorem_16(10**4, k, s, 0.04)
    assert fine.samples / coarse.samples == pytest.approx(100)  # the printed number does not change with ε
    rare = pareto.theorem_16(10**4, k, s, 0.4, delta=1e-12)
    assert rare.width > coarse.width
    printed = [log(10**4 * need.width / delta) * log(1 / delta) for need, delta in ((rare, 1e-12), (coarse, 0.01))]
    assert rare.samples / coarse.samples > 2 * printed[0] / printed[1]  # one logarithm more
    assert pareto.theorem_4(200, 4, 17, 0.1).samples == pytest.approx((17 / 4) ** 3 * 200**2 * log(200))
    assert pareto.theorem_4(200, 4, 17, 0.01).samples == pytest.approx((17 / 4) ** 3 * 200 * 10**4 * log(200))


@pytest.mark.parametrize(("k", "s"), [(2, 9), (4, 17), (4, 101), (6, 25)])
def test_theorem_16_the_precision_has_kappa_where_one_over_kappa_is_printed(k, s):
    """τ = ε/(40 B n κ √C(s, k−1) log(2k/δ)) is not below ε/(4 B k r′ n η) for the r′ of the proof; κ above the line is."""
    weight = 2 * comb(k - 2, (k - 2) // 2) / (pi * (k - 1) * 2 ** (k - 1))  # ρ(k − 1)
    kappa, binomial = sqrt(weight) / 2, sqrt(comb(s, k - 1))
    size = abs(pareto.over_sparse_gap(k, s).relevant)
    assert size > kappa / binomial  # Lemma 8, so η = 1/(2k|C|) is at most √C(s, k−1)/(2kκ)
    assert 1 / (2 * k * size) <= binomial / (2 * k * kappa)
    logarithm, n, norm, epsilon = log(2 * k / 0.01), 1000, pareto.separator_norm(k), 0.1
    good = 20 * logarithm  # the most that the proof allows for
    allowed = min(epsilon / (4 * norm * k * good), 1 / (16 * k)) * 2 * k * size / n
    common = epsilon / (40 * norm * n * logarithm * binomial)
    assert common / kappa > 8 * allowed  # as printed
    assert common * kappa <= allowed


def test_lemma_9_bounds_by_the_absolute_value():
    """‖E‖₁ ≤ C_{k,s} is printed, and C_{k,s} is below 0 at k = 4; a neuron that misses one of S has exactly |C_{k,s}|."""
    n, k, s = 18, 4, 17
    X = cube(n)
    fires = X[:, 1:].sum(axis=1, dtype=np.int64) > 0  # all but the first coordinate, which is in S
    gradient = (fires * X[:, :k].prod(axis=1)).astype(np.int64) @ X.astype(np.int64) / len(X)
    value = pareto.over_sparse_gap(k, s).relevant
    assert np.abs(gradient).sum() > value < 0
    assert gradient[0] == value and np.abs(gradient).sum() == -value
