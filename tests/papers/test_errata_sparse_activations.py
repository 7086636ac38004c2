"""sparse-activations: steps of proofs and statements that fail as printed, and the corrected forms that hold."""

import math
from itertools import product

import numpy as np
import pytest

from fewfire._cube import cube, cube_index
from fewfire.fourier import spectrum
from fewfire.networks import TwoLayer
from fewfire.papers import sparse_activations as sa


def average_sensitivity(values):
    return spectrum(np.asarray(values, float)).average_sensitivity()


@pytest.mark.parametrize("n", [1, 3, 6])
def test_lemma_6_the_sensitivity_is_half_the_correlation_not_a_quarter(n):
    X = cube(n).astype(float)
    g = (X.sum(axis=1) > 0).astype(float)  # non-decreasing in each coordinate, as the proof assumes
    correlation = float(np.mean(g * X.sum(axis=1)))
    assert average_sensitivity(g) == pytest.approx(correlation / 2)
    assert average_sensitivity(g) > correlation / 4
    below = (X.sum(axis=1) <= 0).astype(float)  # the halfspace as printed decreases
    assert np.mean(below * X.sum(axis=1)) == pytest.approx(-correlation)


def test_lemma_9_the_unchanged_part_is_four_times_the_printed():
    net = TwoLayer(np.array([[3.0, 4.0]]), [8.0], [1.0])  # always active: R_x never changes, so AS is the term (U)
    assert (net.preactivations(cube(2)) > 0).all()
    W, k = net.norms().W, 1
    printed, corrected = k**2 * W**2 / 4, k**2 * W**2
    assert average_sensitivity(net(cube(2))) == pytest.approx(corrected)
    assert average_sensitivity(net(cube(2))) > printed


def test_lemma_9_flips_of_a_halfspace_are_four_times_its_sensitivity():
    X = cube(5)
    g = (X @ np.array([3, 2, 2, 1, 1]) > 2).astype(float)
    flips = sum(np.mean(g != g[cube_index(X * np.where(np.arange(5) == i, -1, 1).astype(np.int8))]) for i in range(5))
    assert flips == pytest.approx(4 * average_sensitivity(g))


def test_lemma_9_the_last_step_loses_root_n_and_root_log():
    def first_line(n, s, W, B, k=1, c=1.0):
        share, tail = k * math.sqrt(math.log(s / k)) / math.sqrt(n), (n * s) ** -4.0
        typical = c * k**1.5 * W * math.sqrt(math.log(n * s)) + k * B
        return n * ((share - tail) * typical**2 + tail * (k * W * math.sqrt(n) + k * B) ** 2)

    by_bias = [first_line(n, 16, 0.0, 1.0) / sa.average_sensitivity(n, 16, 1, 0.0, 1.0) for n in (10**2, 10**4, 10**6)]
    assert by_bias == pytest.approx([10, 100, 1000], rel=0.01)  # √n: unbounded
    by_width = [first_line(9, s, 1.0, 0.0) / sa.average_sensitivity(9, s, 1, 1.0, 0.0) for s in (16, 2**64)]
    assert by_width[1] / by_width[0] == pytest.approx(math.sqrt(64 / 4), rel=0.01)  # √log s: unbounded
    for n, s in ((100, 16), (10**6, 16), (9, 2**64)):
        corrected = math.sqrt(n * math.log(s)) * (math.log(n * s) + 1)
        assert first_line(n, s, 1.0, 1.0) <= 2 * corrected + 1


def test_lemma_9_the_union_is_over_subsets_of_the_neurons():
    """2n^k exp(−u²/(2‖w‖²)) is printed; there are s^k sets of neurons: here one of s = 2ⁿ is along every input."""
    n, k = 10, 1
    X = cube(n).astype(float)
    net = TwoLayer(X, np.full(len(X), 1.0 - n), np.ones(len(X)))
    assert ((net.preactivations(X) > 0).sum(axis=1) == k).all()
    u = n - 0.5
    probability = np.mean((np.abs(X @ X.T) > u).any(axis=1))
    tail = math.exp(-(u**2) / (2 * n))
    assert 2 * n**k * tail < 0.25 < probability == 1.0 <= 2 * net.width**k * tail


def test_lemma_9_the_concavity_needs_more_neurons_than_may_fire():
    """Σ p_j √log(1/p_j) ≤ k √log(s/k) for Σ p_j ≤ k: below s = √e·k = 1.65 k the sum is largest at p_j = e^(−1/2)."""
    X = cube(4)
    flips = np.mean([(X[:, 0] > 0) != (X[:, 0] * (-1) ** (i == 0) > 0) for i in range(4)])  # s = k = 1, p = ½
    assert flips == 1 / 4 > math.sqrt(math.log(1 / 1)) / math.sqrt(4) == 0.0
    for ratio in (1.0, 1.3, 1.6, 1.7, 3.0, 100.0):
        p = min(1 / ratio, math.exp(-1 / 2))  # the function is concave: equal p_j are the largest
        largest = ratio * p * math.sqrt(math.log(1 / p))  # of k = 1
        assert (largest > math.sqrt(math.log(ratio)) + 1e-12) == (ratio < math.sqrt(math.e))
        assert largest <= math.sqrt(max(math.log(ratio), 1 / 2)) + 1e-12


def bucket_sensitivity(values, n, r):
    """E over z and buckets of AS(H_z), H_z(v) = h(v_bucket(i) z_i)."""
    total, count = 0.0, 0
    for z in cube(n):
        for buckets in product(range(r), repeat=n):
            X = cube(r)[:, list(buckets)] * z
            total, count = total + average_sensitivity(np.asarray(values)[cube_index(X)]), count + 1
    return total / count


@pytest.mark.parametrize(("rho", "r"), [(0.0, 2), (1 / 3, 3)])
def test_lemma_10_equation_17_holds_with_a_quarter_on_both_sides(rho, r):
    values = np.random.default_rng(1).standard_normal(8)
    picture = spectrum(values)
    reduced = bucket_sensitivity(values, 3, r) / r
    assert picture.noise_sensitivity(rho) == pytest.approx(reduced)
    without_quarter = 4 * picture.noise_sensitivity(rho)  # the printed first line, E (h(x) − h(y))²
    assert without_quarter > 2 * reduced


def test_lemma_10_the_reduction_fails_for_negative_rho_and_is_an_inequality_between():
    even = cube(2).prod(axis=1).astype(float)
    rho = -0.5
    r = math.floor(2 / (1 - rho))
    assert r == 1 and bucket_sensitivity(even, 2, r) == 0.0
    assert spectrum(even).noise_sensitivity(rho) == pytest.approx(0.375)
    values = np.random.default_rng(2).standard_normal(8)
    between = spectrum(values).noise_sensitivity(0.25)  # 2/(1 − ρ) = 2.67: flips of 1/2 instead of 0.375
    assert between < 0.95 * bucket_sensitivity(values, 3, 2) / 2


def test_theorem_8_the_printed_rho_does_not_bring_lemma_10_to_a_third_of_eps():
    def lemma_10(one_minus_rho, ns):
        return math.sqrt(one_minus_rho) * math.log(ns / one_minus_rho) ** 2

    def printed(epsilon, ns, c):
        return c * epsilon**2 * math.log(ns / epsilon) / math.log(ns) ** 4

    ratios = [lemma_10(printed(epsilon, 100, 1e-6), 100) / (epsilon / 3) for epsilon in (1e-2, 1e-8, 1e-32)]
    assert ratios[0] < 1 < ratios[1] < ratios[2] / 10  # no constant c serves all epsilon

    def corrected(epsilon, ns):
        return epsilon**2 / (100 * math.log(ns / epsilon)) ** 4

    for epsilon in (0.5, 1e-2, 1e-8, 1e-32):
        assert lemma_10(corrected(epsilon, 100), 100) <= epsilon / 3


def test_theorem_8_the_tail_needs_degree_log_3_over_one_minus_rho():
    # A character of degree d + 1 scaled to NS_ρ = ε/3 has its whole weight above d.
    epsilon, rho = 1.0, 0.999

    def largest_tail(d):
        return 2 * (epsilon / 3) / (1 - rho ** (d + 1))

    assert largest_tail(math.ceil(1 / (1 - rho))) > 1.05 * epsilon  # printed: d(1 − ρ) ≥ 1 suffices
    assert largest_tail(math.ceil(math.log(3) / (1 - rho))) <= epsilon
    # Printed: ε/(3(1 − ρ^d)) ≤ ε/(d(1 − ρ)), which fails for large d.
    assert 1 / (3 * (1 - rho**10_000)) > 1 / (10_000 * (1 - rho))


@pytest.mark.parametrize("W", [4.0, 16.0, 64.0])
def test_theorem_17_loses_the_output_bound_of_lemma_18(W):
    n, s, k, B, epsilon, delta = 16, 8, 2, 1.0, 0.1, 0.05
    m = int(sa.general_samples(n, s, k, W, B, epsilon, delta))
    output = sa.output_bound(n, k, W, B)
    reached = output * sa.rademacher(n, s, k, W, B, m)
    assert reached > output * epsilon  # Lemma 18 asks for at most epsilon
    corrected = math.ceil(m * output**2 * 4 * math.log(m * output**2))
    assert output * sa.rademacher(n, s, k, W, B, corrected) <= epsilon


def test_theorem_19_depends_on_the_unit_of_inputs_and_the_class_does_not():
    # One input, one sample: h = ±σ(wx), |w| ≤ W; E_ζ max ζh(x) is exactly W|x|, in any unit with WR fixed.
    for unit in (1.0, 0.5, 0.01):
        W, R = 1 / unit, unit
        complexity = np.mean([max(zeta * u * max(w * R, 0.0) for u in (-1, 1) for w in (-W, W)) for zeta in (-1, 1)])
        assert complexity == pytest.approx(1.0)
        assert complexity <= sa.rademacher_explicit(1, 1, 1, W, 0.0, 1, R=R)
    with pytest.raises(ValueError, match="must be above 1"):
        sa.rademacher(1, 1, 1, 1.0, 0.0, 1)  # log(m(R + B)) = 0: the printed bound is 0
    assert sa.rademacher(1, 1, 1, 1.0, 0.0, 1, R=1.001) < 0.05 < 1.0
