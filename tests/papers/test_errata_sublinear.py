"""sublinear: statements and steps that fail as printed, and the corrected forms that hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from fewfire._random import Stream
from fewfire.halfspace import Index
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.papers import sublinear as sl

X_ONE = np.array([[math.sqrt(0.75), 0.5]])


def test_theorem_5_1_the_distance_grows_at_the_printed_radius(worst_network):
    """m^(−1/5)·K·m^(−3/5) is K/m^(4/5), not K/m: within K/m^(3/5) |f − g| grows, within K/m^(4/5) it vanishes."""
    widths, K = (10**4, 10**5, 10**6), 3.0
    printed = [sl.pseudo_distance(*worst_network(m, K * m**-0.6)) for m in widths]
    ratios = [measured.distance / (K**2 * m**-0.1) for m, measured in zip(widths, printed, strict=True)]
    assert ratios[0] < ratios[1] < ratios[2] and ratios[2] > 2  # no constant serves; about m^(1/5)
    assert printed[0].distance < printed[1].distance < printed[2].distance
    terms = [measured.gradient_term for measured in printed]  # Claim 5.5
    assert np.divide(terms[1:], terms[:-1]) == pytest.approx([10**0.1] * 2, rel=0.05)
    assert all(sl.pseudo_distance(*worst_network(m, K * m**-0.8)).distance <= sl.theorem_5_1(m, K) for m in widths)


def test_lemma_5_9_the_sum_of_moves():
    """Σ ‖Δw_r‖ ≤ K·m^(1/5) is printed next to ‖Δw_r‖ ≤ K/m^(3/5), which allows K·m^(2/5); 4/5 gives what is printed."""
    m, K = 10**5, 2.0
    assert m * K * m**-0.6 > 9 * K * m**0.2
    assert m * K * m**-0.8 == pytest.approx(K * m**0.2)


def test_claim_5_7_a_neuron_that_changes_is_near_the_threshold_not_near_zero(worst_network):
    """Eq. (10) reads |z − τ| ≤ R as |z| ≤ R; where few neurons fire τ is far above R, and |C| with it."""
    width = 10**5
    radius, threshold = width**-0.8, init.activity_threshold(width, 0.03 * width)
    z = init.ntk(threshold=threshold)(2, width, 0).preactivations(X_ONE)[0]
    near = np.abs(z - threshold) <= radius
    assert near.sum() > 200
    assert np.abs(z[near]).min() > 50 * radius  # no one of them has |z| ≤ R
    assert np.abs(z[near]).max() <= radius + threshold
    measured = sl.pseudo_distance(*worst_network(width, radius, threshold))
    assert measured.flip_term > 10 * width**-0.2 * radius * measured.flips
    assert measured.flip_term <= width**-0.2 * (radius + threshold) * measured.flips


@pytest.mark.parametrize("width", [10**3, 10**5])
def test_theorem_5_12_the_norm_of_the_gradient(width):
    """‖∇‖_F² ≤ m^(1/5) is printed; m neurons of norm m^(−1/5) give m^(3/5), and the start has half of it."""
    start = init.ntk(threshold="1/m")(2, width, 0)
    fires = start.preactivations(X_ONE)[0] > 1 / width
    gradient = (start.output * fires)[:, None] * X_ONE  # of f(x), as of a loss of slope 1 there
    square = float((gradient**2).sum())
    assert np.linalg.norm(gradient, axis=1).max() == pytest.approx(width**-0.2)
    assert square > 3 * width**0.2
    assert square == pytest.approx(width**0.6 / 2, rel=0.1)
    assert square <= width**0.6


def test_theorem_5_12_the_weights_travel_too_far():
    """η = ε·m^(−1/5), T = K²/ε²: the weights may go (K²/ε)·m^(−2/5), above m^(−15/24) for every m; η = ε·m^(−3/5) not."""
    n, epsilon = 100, 0.1
    for K in (1.0, 10.0, 1e6):
        asked = (n ** (300 / 31), (K * n / epsilon) ** (24 / 15), (K**2 / epsilon) ** (300 / 29))  # of m, as printed
        width = math.log10(max(asked))
        travel = math.log10(K**2 / epsilon) - 0.4 * width  # ηT·m^(−1/5)
        assert travel + 15 / 24 * width > 0.2 * width
        assert sl.theorem_parameters(n, 50, 0.3, epsilon, K).consistent


def test_lemma_5_14_the_exponent():
    """m^(−1/5)·m^(7/8) = m^(27/40); m^(27/50) is printed."""
    assert pytest.approx(27 / 40) == 7 / 8 - 1 / 5
    width = 10**6
    radius = sl.claim_radius(width)
    coupling = width**0.8 * sl.flip_probability(width, radius)  # one example: every neuron that can change does
    assert coupling > 3 * width ** (27 / 50)
    assert coupling <= width ** (27 / 40) / math.sqrt(math.pi)


def test_lemma_5_14_the_gradients_differ_before_any_neuron_changes():
    """Definition 5.11 takes the slope of the loss at g, so ∇̂ ≠ ∇ on every active neuron at the start; at f it agrees."""
    start = init.ntk(threshold=0.01)(5, 300, 0)
    X = Stream(2, "x").normal((4, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    fires = start.preactivations(X) > 0.01
    f, g = start(X), np.zeros(4)  # at the start nothing has moved: g = 0 and f = B

    def gradient(values):
        slope = (values - y) / np.sqrt(1 + (values - y) ** 2)  # ℓ = √(1 + (v − y)²) − 1: convex, 1-Lipschitz
        return (fires * slope[:, None] * start.output).T @ X / 4

    differ = np.linalg.norm(gradient(f) - gradient(g), axis=1) > 1e-12
    np.testing.assert_array_equal(differ, fires.any(axis=0))
    assert differ.sum() > 100  # while no neuron is on another side, so the count should be 0


def test_theorem_5_12_with_the_slope_at_the_network():
    """ℓ(f) − ℓ(g*) ≤ ⟨∇̂, W − W*⟩ + |f − g| with ∇̂ the gradient of g under the slope at f: the proof goes through."""
    stream = Stream(4, "convex")
    start = init.ntk(threshold=0.05)(4, 200, 1)
    first = start.hidden.astype(np.float64)
    for trial in range(200):
        draw = stream.child(str(trial))
        x = draw.child("x").normal((1, 4))
        x /= np.linalg.norm(x)
        now, best = (first + 0.1 * draw.child(name).normal(first.shape) for name in ("now", "best"))
        y = float(draw.child("y").normal(1)[0])
        g, goal = (sl.pseudo_network(start.with_parameters(hidden=w), first, x)[0] for w in (now, best))
        z = (now @ x[0]) + start.bias
        f = float(start.output @ np.where(z > 0.05, z, 0.0))
        slope = np.sign(f - y)  # ℓ = |v − y|
        fires = first @ x[0] + start.bias > 0.05
        inner = float(slope * (start.output * fires) @ ((now - best) @ x[0]))
        assert abs(f - y) - abs(goal - y) <= inner + abs(f - g) + 1e-9


def test_lemma_5_15_is_empty_under_theorem_5_12():
    """Q₀ = O(m^c) needs K to grow like m^(1/10)·√log m; the width of Theorem 5.12 keeps K² below ε·m^(29/300)."""
    for m in (10**3, 10**6, 10**12, 10**100):
        K = math.sqrt(0.999 * m ** (29 / 300))
        assert sl.activity_bound(m, K) > 1.55 * m  # more than there are
        needed = sl.activity_scale(m, m**0.75)
        assert sl.activity_bound(m, needed) == pytest.approx(m**0.75)
        assert needed > K
    assert sl.activity_bound(10**6, 1.0) / 10**6 < sl.activity_bound(10**9, 1.0) / 10**9  # for a fixed K it tends to 2


def test_claim_5_16_bounds_a_probability_not_an_indicator():
    """The second line bounds a 0/1 number by O(n·m^(−1/8)) for every neuron: it is 1 for those that change."""
    width, radius = 10**6, 1e-7  # a radius at which the bound is 6·10⁻⁵ and some 56 neurons still change
    z = init.ntk(threshold=0.0)(2, width, 0).preactivations(X_ONE)[0]
    can = np.abs(z) <= radius
    bound = sl.claim_5_16(1, width, radius).per_neuron
    assert can.any() and bound < 1e-3  # so the indicator is above the bound
    assert can.mean() <= bound + 4 * math.sqrt(bound / len(z))  # its mean is not


def test_lemma_6_3_every_example_has_its_own_active_neurons():
    """Σ_i k_i ≤ Q₀ + n·m^(7/8) is printed; it is n·Q₀ + n·m^(7/8), and the ratio grows without bound."""
    n, m = 1000, 10.0**60
    active = m**0.95
    assert n * active / (active + n * m ** (7 / 8)) > 900
    width, threshold = 4000, 0.01
    X = Stream(0, "x").normal((50, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    counted = init.ntk(threshold=threshold)(5, width, 0).active(X).indptr[-1]
    each = sl.expected_active(width, threshold)
    assert counted == pytest.approx(50 * each, rel=0.1)
    assert counted > each + 50 * width * sl.flip_probability(width, width**-0.8, threshold)


def test_corollary_6_2_updates_cost_what_building_costs():
    """Part 2 prints n⌊d/2⌋ − 1 an update: n of them are quadratic whatever d, the structure is n^(⌊d/2⌋ + ε)."""
    n = 10**6
    for d in (2, 3):  # building costs n^1.1; the printed update alone n − 1
        printed = n * (d // 2) - 1
        assert n * printed > 10**4 * sl.reporting_fast(n, d, 0).build
    for d in (6, 9):  # the printed updates would build it in less than its own size
        printed = n * (d // 2) - 1
        assert n * printed < sl.reporting_fast(n, d, 0).build / 10**4
    for d in range(2, 10):
        time = sl.reporting_fast(n, d, 0)
        assert n * time.update == pytest.approx(time.build)


def test_lemma_3_11_only_up_to_one_deviation():
    for ratio in (0.01, 0.5, 1.0):
        assert 2 / 3 * ratio < 2 * norm.cdf(ratio) - 1 < 4 / 5 * ratio
    assert 2 * norm.cdf(2.0) - 1 < 2 / 3 * 2.0


def test_lemma_3_13_laurent_massart():
    """2|a|²√t + 2|a|_∞ is printed; 2|a|√t + 2|a|_∞·t it is. One square: a = 1."""
    t = 9.0
    assert chi2.sf(1 + 2 * math.sqrt(t) + 2, 1) > math.exp(-t)
    for s in (0.1, 1.0, 9.0):
        assert chi2.sf(1 + 2 * math.sqrt(s) + 2 * s, 1) <= math.exp(-s)
    # With small weights the square loses: n squares of weight a = 0.01.
    n, a = 400, 0.01
    assert chi2.sf(n + (2 * n * a**2 * math.sqrt(t) + 2 * a) / a, n) > math.exp(-t)
    assert chi2.sf(n + (2 * math.sqrt(n) * a * math.sqrt(t) + 2 * a * t) / a, n) <= math.exp(-t)


def test_lemma_3_15_chernoff_only_up_to_twice_the_mean():
    n, p, epsilon = 1000, 0.001, 10.0
    mean = n * p
    assert binom.sf(mean * (1 + epsilon) - 1, n, p) > math.exp(-(epsilon**2) * mean / 3)
    for small in (0.5, 1.0):
        assert binom.sf(math.ceil(100 * (1 + small)) - 1, 1000, 0.1) <= math.exp(-(small**2) * 100 / 3)
    assert binom.sf(mean * (1 + epsilon) - 1, n, p) <= math.exp(-(epsilon**2) * mean / (2 + epsilon))


def test_claim_3_18_the_density():
    """The density of N(0, 2) is exp(−z²/4)/(2√π); the printed one has mass √2. The bound is η/√π."""
    z = np.linspace(-30, 30, 200_001)
    step = z[1] - z[0]
    assert np.sum(np.exp(-(z**2) / 4) / math.sqrt(2 * math.pi)) * step == pytest.approx(math.sqrt(2))
    assert np.sum(np.exp(-(z**2) / 4) / (2 * math.sqrt(math.pi))) * step == pytest.approx(1.0)
    assert sl.flip_probability_bound(1, 0.1) == pytest.approx(0.1 / math.sqrt(math.pi))


def test_lemma_3_19_the_interval():
    """[−1, η] is printed, which holds 0, where p_k = 0; [−1, −η] it is."""
    k = sl.sign_powers(0.1, 0.05)
    x = np.linspace(-1, 0.1, 1001)
    assert np.abs(sl.power_sign_polynomial(x, k) - np.sign(x)).max() > 0.9
    x = np.linspace(-1, -0.1, 1001)
    assert np.abs(sl.power_sign_polynomial(x, k) - np.sign(x)).max() <= 0.025


def test_lemma_5_18_only_the_strip_is_small():
    """Pr[⟨w, x⟩ + b < τ] = O(τ) is printed, and it is above one half; Pr[0 ≤ ⟨w, x⟩ + b < τ] is small."""
    for tau in (1e-1, 1e-3):
        assert norm.cdf(tau / math.sqrt(2)) > 0.5
        assert norm.cdf(tau / math.sqrt(2)) - 0.5 <= tau / (2 * math.sqrt(math.pi))


def test_lemma_5_9_and_claim_5_19_the_tail_of_a_norm():
    """Pr[‖w‖² ≥ O(k)] ≤ exp(−Ω(k²/d)) is printed (m²/d in Lemma 5.9); for k above d it is exp(−Ω(k)), no smaller."""
    d = 10
    ratios = [chi2.logsf(4 * k, d) / (-(k**2) / d) for k in (50, 100, 200)]  # O(k) = 4k; −log Pr over k²/d
    assert ratios[0] > 1.8 * ratios[1] > 3.4 * ratios[2]  # tends to 0: no Ω serves
    for k in (50, 100, 200):
        assert 1 < chi2.logsf(4 * k, d) / -k < 2  # of order k
        for failure in (0.1, 1e-6):  # Lemma 3.14, one norm of k
            assert chi2.sf(sl.largest_norm(d, k, failure) ** 2, d) <= failure / k


def test_lemma_5_14_eq_22_both_gradients_are_at_the_moved_example():
    """Eq. (22) has 1[⟨w_t, x̃⟩ …] − 1[⟨w_0, x⟩ …]: 0 here, while the gradients differ; with x̃ in both it is 1."""
    start, now = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    x, moved, tau = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]), 0.5
    after, before, elsewhere = (float(w[0] @ at[0]) >= tau for w, at in ((now, moved), (start, moved), (start, x)))
    printed, corrected = abs(after - elsewhere), abs(after - before)
    net = TwoLayer(now, [0.0], [1.0], 0.0, shifted_relu(tau))
    measured = sl.gradient_coupling(net, start, moved, [1.0])
    assert printed == 0 < measured.distance <= corrected == 1


def test_claim_5_19_outputs_and_the_band_about_the_threshold():
    """|α| = 1/k^(1/5) is printed where a = m^(−1/5); in S₂ the band |⟨w, x⟩ + b| ≤ k^(−1/2) is not about τ."""
    k, n = 1000, 50  # k = m/n neurons of a block
    m = n * k
    move = 2 * m**0.2 / k  # ‖Δw‖ for C = 1; half of it is ⟨Δw, x⟩
    assert k**-0.2 * move / 2 == pytest.approx(n**0.2 / k) and n**0.2 > 2  # above the C/k of the next line
    assert m**-0.2 * move / 2 == pytest.approx(1 / k)
    draw = Stream(1, "band")
    w, b, tau = draw.child("w").normal((10**6, 2)), draw.child("b").normal(10**6), 3 * k**-0.5  # τ = O(k^(−1/2))
    x = X_ONE[0]
    mu = np.array([k**-1.0, 0.0])
    crossed = (w @ (x + mu) + b >= tau) != (w @ x + b >= tau)
    assert crossed.sum() > 10
    assert not (crossed & (np.abs(w @ x + b) <= k**-0.5)).any()
    assert (np.abs(w @ x + b - tau)[crossed] <= k**-0.5).all()


def test_nets_have_many_points():
    """|𝒳₁| ≤ (1/m)^O(d) is printed, below one point; in d = 3 the slice is a circle that needs about m."""
    m = 1000
    spacing = 4 * math.asin(1 / m / math.sqrt(3))  # the angle that one point covers, distance 1/m on either side
    needed = 2 * math.pi / spacing
    assert needed > m > (1 / m) ** 3
    assert needed < m**3


def test_lemma_6_3_leaves_out_the_adversary():
    """Four terms are added up, of queries, both passes and updates; line 10 of Algorithm 1 costs more than they.

    Counted: multiply-adds of the two passes of an adversary of 50 gradient steps on the active neurons alone.
    """
    n, d, width, steps, threshold = 20, 5, 4000, 50, 0.03
    network = init.ntk(threshold=threshold)(d, width, 0)
    X = Stream(3, "adversary").normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    moved, counted = X.copy(), 0
    for _ in range(steps):
        fires = network.preactivations(moved) > threshold
        counted += int(fires.sum()) * (2 * d + 1)
        moved = moved + 0.01 * (fires * network.output) @ network.hidden  # ∂f/∂x
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    active = network.active(X).indptr[-1] / n
    without = sl.iteration_cost(width, n, d, active)
    printed = without.query + without.forward + without.backward + without.update
    assert without.attack == 0 and printed == without.total
    corrected = sl.iteration_cost(width, n, d, active, steps)
    passes = steps * (corrected.forward + corrected.backward)
    assert counted == pytest.approx(passes, rel=0.2)
    assert counted > 2 * printed and corrected.total > 4 * printed
    assert corrected.total - printed == pytest.approx(steps * (without.query + without.forward + without.backward))


def test_algorithm_1_the_structure_needs_the_biases():
    """Lines 5, 18 and 19 store w_r, and neurons fire by ⟨w_r, x⟩ + b_r > τ: no threshold on ⟨w_r, x⟩ reports them.

    With (w_r, b_r) as points and (x, 1) as query it does; as x_d = 1/2, so do w_r + 2 b_r e_d in d dimensions.
    """
    network = init.ntk(threshold=0.02)(2, 3000, 0).astype(np.float64)
    x = X_ONE[0]
    fires = network.preactivations(X_ONE)[0] > 0.02
    printed = network.hidden @ x
    assert printed[fires].min() < printed[~fires].max()  # so every threshold adds or leaves out a neuron
    assert not np.array_equal(printed > 0.02, fires)
    lifted = np.column_stack([network.hidden, network.bias])
    np.testing.assert_array_equal(lifted @ np.append(x, 1.0) > 0.02, fires)
    folded = network.hidden + 2 * network.bias[:, None] * np.array([0.0, 1.0])
    np.testing.assert_array_equal(folded @ x > 0.02, fires)
    found = Index(network.hidden, network.bias, "tree").query(x, threshold=0.02)
    np.testing.assert_array_equal(np.sort(found), np.flatnonzero(fires))
