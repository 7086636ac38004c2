"""sublinear: neurons that fire at the start (Lemma 5.15) and neurons that can change side (Claim 5.16)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from fewfire._random import Stream
from fewfire.networks import init
from fewfire.papers import sublinear as sl
from fewfire.papers.sublinear.statements._coupling import binomial_quantile

UNIT = (math.sqrt(0.75), 0.5)
WIDTHS = st.integers(2, 10**7)


def preactivations(width, draws, seed=0, x=UNIT):
    """⟨w, x⟩ + b of Definition 3.1 at one input, of shape (draws, width)."""
    stream = Stream(seed, "start")
    hidden = stream.child("hidden").normal((draws, width, len(x)))
    return (hidden @ np.array(x) + stream.child("bias").normal((draws, width))) / math.sqrt(width)


# ── activity at the start ──


def test_known_values():
    m = 100_000
    assert sl.active_probability(m, 0.0) == 0.5
    assert sl.expected_active(m, 1 / m) == pytest.approx(49_910.79, abs=0.01)
    assert sl.expected_active(m, m**-0.6) == pytest.approx(41_153.16, abs=0.01)
    assert sl.activity_bound(m, 1.0) == pytest.approx(195_061.98, abs=0.01)
    assert sl.lemma_threshold(m, 2.0) == pytest.approx(0.002)
    assert sl.active_probability(100, 4.0) == pytest.approx(
        norm.sf(4 * math.sqrt(50)), rel=1e-12
    )  # all digits of 1e-176


@given(width=WIDTHS, share=st.floats(1e-9, 0.5), norm_of_x=st.floats(0, 20))
def test_the_count_inverts_the_threshold_of_the_start(width, share, norm_of_x):
    threshold = init.activity_threshold(width, share * width, norm_of_x)
    assert sl.expected_active(width, threshold, norm_of_x) == pytest.approx(share * width, rel=1e-8)


@pytest.mark.parametrize(("norm_of_x", "x"), [(1.0, UNIT), (2.0, (1.2, 1.6))])
def test_the_count_is_what_a_random_start_has(norm_of_x, x):
    width, draws, threshold = 500, 400, 0.06
    counts = (preactivations(width, draws, x=x) > threshold).sum(axis=1)
    share = sl.active_probability(width, threshold, norm_of_x)
    error = 4 * math.sqrt(width * share * (1 - share) / draws)  # four standard errors of the mean
    assert counts.mean() == pytest.approx(sl.expected_active(width, threshold, norm_of_x), abs=error)
    low, high = sl.active_interval(width, threshold, 0.9, norm_of_x)
    inside = np.mean((counts >= low) & (counts <= high))
    assert inside >= 0.9 - 4 * math.sqrt(0.09 / draws)


@given(width=st.integers(1, 5000), z=st.floats(0, 3), level=st.floats(0.001, 0.999))
def test_quantiles_are_those_of_the_binomial(width, z, level):
    threshold = z * math.sqrt(2 / width)
    share = sl.active_probability(width, threshold)
    count = binomial_quantile(width, share, level)
    assert binom.cdf(count, width, share) >= level - 1e-12
    assert count == 0 or binom.cdf(count - 1, width, share) < level + 1e-12


def test_intervals_hold_what_they_promise_and_no_more_than_needed():
    low, high = sl.active_interval(100_000, init.activity_threshold(100_000, 3000))
    assert (low, high) == (2895, 3106)
    assert binom.cdf(low - 1, 100_000, 0.03) < 0.025 < binom.cdf(low, 100_000, 0.03)
    assert binom.cdf(high - 1, 100_000, 0.03) < 0.975 <= binom.cdf(high, 100_000, 0.03)


@given(width=WIDTHS, K=st.floats(0, 60), more=st.floats(0.01, 5))
def test_the_bound_is_at_least_four_times_the_count_and_the_ratio_grows(width, K, more):
    first, second = (
        sl.activity_bound(width, scale) / sl.expected_active(width, sl.lemma_threshold(width, scale))
        for scale in (K, K + more)
    )
    assert second >= first >= 4 - 1e-12
    assert sl.activity_bound(width, K + more) <= sl.activity_bound(width, K)
    # The count of |z| ≥ τ, which the lemma speaks of, is twice the count of z ≥ τ, and still below the bound.
    assert 2 * sl.expected_active(width, sl.lemma_threshold(width, K)) <= sl.activity_bound(width, K)


def test_the_failure_probability_holds():
    """A size at which the bound is not trivial and the event is still possible: Q₀ = 17.7, failure at most 0.036."""
    width, K = 200, 6.0
    bound = sl.activity_bound(width, K)
    assert bound == pytest.approx(17.68, abs=0.01)
    share = sl.active_probability(width, sl.lemma_threshold(width, K))
    assert 0 < binom.sf(math.floor(bound), width, 2 * share) <= sl.activity_failure(width, K, 1) < 0.04
    assert sl.activity_failure(width, K, 10) == pytest.approx(10 * sl.activity_failure(width, K, 1))
    assert sl.activity_failure(width, 50.0, 10) == 1.0


@given(width=WIDTHS, c=st.floats(0, 1))
def test_the_scale_inverts_the_bound(width, c):
    K = sl.activity_scale(width, width**c)
    assert sl.activity_bound(width, K) == pytest.approx(width**c, rel=1e-6)


# ── neurons that can change side ──


def test_known_flip_values():
    m = 10_000
    assert sl.claim_radius(m) == pytest.approx(m**-0.625)
    assert sl.flip_probability_bound(m, sl.claim_radius(m)) == pytest.approx(m**-0.125 / math.sqrt(math.pi))
    exact = norm.cdf(1.5) - norm.cdf(0.5)
    spread = math.sqrt(2 / m)
    assert sl.flip_probability(m, 0.5 * spread, spread) == pytest.approx(exact)
    assert sl.reachable_active(m, 0.5 * spread, spread) == pytest.approx(m * norm.sf(0.5))
    assert sl.flip_probability(100, 0.01, 5.0) == pytest.approx(
        norm.sf(4.99 * math.sqrt(50)) - norm.sf(5.01 * math.sqrt(50)), rel=1e-9
    )


@given(width=WIDTHS, radius=st.floats(0, 1), z=st.floats(0, 8), length=st.floats(0.1, 10))
def test_the_bound_is_above_the_exact_probability(width, radius, z, length):
    threshold = z * math.sqrt((length**2 + 1) / width)
    exact = sl.flip_probability(width, radius, threshold, length)
    assert exact <= sl.flip_probability_bound(width, radius, length) + 1e-15
    assert exact <= sl.flip_probability(width, radius, 0.0, length) + 1e-15  # Theorem 3.21
    fires = sl.expected_active(width, threshold, length)
    reached = sl.reachable_active(width, radius, threshold, length)
    assert fires - 1e-9 <= reached <= fires + width * exact + 1e-9


def test_the_bound_is_met_in_the_limit_of_small_moves():
    for radius in (1e-3, 1e-5):
        ratio = sl.flip_probability(100, radius) / sl.flip_probability_bound(100, radius)
        assert ratio == pytest.approx(1.0, abs=radius * 10)


def test_neurons_that_change_are_those_that_can():
    """Moving every neuron by R towards the threshold changes exactly those with |z − τ| < R."""
    width, draws, radius, threshold = 500, 400, 0.02, 0.05
    z = preactivations(width, draws, seed=1)
    towards = np.where(z > threshold, -radius, radius)
    changed = ((z > threshold) != (z + towards > threshold)).sum(axis=1)
    np.testing.assert_array_equal(changed, (np.abs(z - threshold) < radius).sum(axis=1))
    chance = sl.flip_probability(width, radius, threshold)
    error = 4 * math.sqrt(width * chance * (1 - chance) / draws)
    assert changed.mean() == pytest.approx(width * chance, abs=error)
    reached = (z + radius > threshold).sum(axis=1)
    assert reached.mean() == pytest.approx(
        sl.reachable_active(width, radius, threshold), abs=4 * math.sqrt(width / draws) / 2
    )


def test_claim_5_16_holds_on_random_starts():
    """4 inputs at m = 4096 and R = m^(−9/10), where the bound is below the width: every count stays below it."""
    n, width = 4, 4096
    bound = sl.claim_5_16(n, width)
    assert bound.per_neuron == pytest.approx(n * width**-0.125 / math.sqrt(math.pi))
    assert bound.total == width  # 2n·m^(7/8)/√π is past the width here
    small = sl.claim_5_16(n, width, radius=width**-0.9)
    mean = n * width**0.6 / math.sqrt(math.pi)
    assert (small.total, small.failure) == pytest.approx((2 * mean, math.exp(-mean / 3)))
    stream = Stream(3, "inputs")
    X = stream.child("x").normal((n, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for seed in range(20):
        net = init.ntk(activity=0.5)(5, width, seed)
        can = (np.abs(net.preactivations(X)) <= width**-0.9).any(axis=0)
        assert 0 < can.sum() <= small.total
        assert can.mean() <= small.per_neuron + 4 * math.sqrt(small.per_neuron / width)


def test_the_claim_is_empty_unless_the_width_is_past_the_eighth_power():
    n = 10
    edge = (2 * n / math.sqrt(math.pi)) ** 8
    assert sl.claim_5_16(n, int(edge * 0.99)).total == int(edge * 0.99)
    assert sl.claim_5_16(n, int(edge * 1.01)).total < edge * 1.01


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sl.expected_active(0, 0.1), "width must be an integer of at least 1; got 0"),
        (lambda: sl.expected_active(10, -0.1), "threshold must be a finite number in [0, inf); got -0.1"),
        (lambda: sl.active_interval(10, 0.1, 1.0), "confidence must be a finite number in (0, 1); got 1.0"),
        (lambda: sl.activity_bound(10, math.inf), "K must be a finite number in [0, inf); got inf"),
        (
            lambda: sl.activity_scale(10, 21),
            "active must be a finite number in (0, 20]; got 21. Remedy: Q₀ is never above",
        ),
        (lambda: sl.flip_probability(10, -1.0), "radius must be a finite number in [0, inf); got -1.0"),
        (
            lambda: sl.flip_probability(10, 1.0, 0.0, math.nan),
            "input_norm must be a finite number in [0, inf); got nan",
        ),
        (lambda: sl.claim_5_16(0, 10), "n must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments_are_named(call, match, refused):
    refused(match, call)
