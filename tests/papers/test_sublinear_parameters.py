"""sublinear: the setting of Theorems 4.8 and 5.12, and the cost of an iteration (Corollary 6.2, Lemma 6.3)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire.papers import sublinear as sl

SIZES = {"n": st.integers(1, 10**6), "epsilon": st.floats(0.001, 0.999), "K": st.floats(1, 1e6)}


def test_parameters_for_a_given_scale():
    asked = sl.theorem_parameters(100, 50, 0.3, 0.1, 10.0)
    assert asked.log10_K == 1.0
    assert asked.log10_iterations == pytest.approx(4.0)
    assert asked.log10_width == pytest.approx(8 * math.log10(2 * 100 * 1000 / 0.1))
    assert asked.log10_step_size == pytest.approx(-1 - 0.6 * asked.log10_width)
    assert asked.log10_radius == pytest.approx(1 - 0.8 * asked.log10_width)
    assert asked.degree == pytest.approx(24 / 0.3 * math.log(48_000))


@given(**SIZES)
def test_the_corrected_setting_is_consistent_and_meets_every_term(n, epsilon, K):
    asked = sl.theorem_parameters(n, 10, 0.5, epsilon, K)
    assert asked.consistent
    log = asked.log10_width
    gradient, distance = 0.3 * log, asked.log10_radius + 0.5 * log  # ‖∇‖_F ≤ m^(3/10), ‖W* − W_0‖_F ≤ √m·radius
    first = asked.log10_step_size + 2 * gradient
    second = 2 * distance - asked.log10_step_size - asked.log10_iterations
    assert (first, second) == pytest.approx((math.log10(epsilon),) * 2, abs=1e-6 * log)  # the two halves of the regret
    coupling = math.log10(n) + 27 / 40 * log + max(asked.log10_travel, asked.log10_radius) + math.log10(2)
    assert coupling <= math.log10(epsilon) + 1e-6 * log
    scale = max(K, K**2 / epsilon)
    for term in (2 * math.log10(scale) - 0.3 * log, -0.1 * log):  # Theorem 5.1 with the radius of the travel
        assert term <= math.log10(epsilon) + 1e-6 * log


def test_the_proofs_own_scale():
    asked = sl.theorem_parameters(100, 50, 0.3, 0.1)
    assert asked.log10_K == pytest.approx(math.log10(200) + sl.log10_complexity_at(100, 0.3, 0.1))
    assert asked.log10_widths["Lemma 4.7, n·d·𝓒²/ε₃²"] < asked.log10_width
    assert 29_000 < asked.log10_width < 29_500
    # Polynomial in (n/ε)^(1/γ): halving γ about doubles the exponent.
    half = sl.theorem_parameters(100, 50, 0.15, 0.1)
    assert half.log10_width / asked.log10_width == pytest.approx(2.0, abs=0.05)
    assert math.isfinite(sl.theorem_parameters(10**6, 1000, 0.001, 0.001).log10_width)


@given(g=st.floats(0.05, 3.0), more=st.floats(1.01, 1.3))
def test_easier_problems_ask_for_less(g, more):
    base = sl.theorem_parameters(50, 5, g, 0.1).log10_width
    assert sl.theorem_parameters(50, 5, g * more, 0.1).log10_width < base
    assert sl.theorem_parameters(50, 5, g, 0.1 * more).log10_width < base
    assert sl.theorem_parameters(100, 5, g, 0.1).log10_width > base


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0, 5, 0.3, 0.1), "n must be an integer of at least 1; got 0"),
        ((5, 1, 0.3, 0.1), "d must be an integer of at least 2; got 1"),
        ((5, 5, 0.0, 0.1), "gamma must be a finite number in (0, 4); got 0.0"),
        ((5, 5, 0.3, 1.0), "epsilon must be a finite number in (0, 1); got 1.0"),
        ((5, 5, 0.3, 0.1, 0.0), "K must be a finite number in (0, inf); got 0.0"),
    ],
)
def test_bad_settings_are_refused(arguments, match, refused):
    refused(match, sl.theorem_parameters, *arguments)


# ── cost ──


def test_half_space_reporting():
    small = sl.reporting_small(2**20, 8, 100)
    assert (small.build, small.query, small.update) == (2**20 * 20, 2**15 + 100, 400)
    assert sl.reporting_small(2**20, 2, 7).query == 8  # ⌊d/2⌋ = 1: n^0
    fast = sl.reporting_fast(2**20, 4, 100, 0.5)
    assert (fast.build, fast.query, fast.update) == pytest.approx((2.0**50, 120, 2.0**30))
    assert sl.reporting_fast(10**9, 1000, 1).build == math.inf


@given(points=st.integers(2, 10**9), d=st.integers(2, 40))
def test_queries_grow_with_the_dimension_and_stay_below_a_scan(points, d):
    query = sl.reporting_small(points, d, 0).query
    assert query <= points
    assert query <= sl.reporting_small(points, d + 1, 0).query
    assert sl.reporting_fast(points, d, 0).query <= query + math.log2(points)


def test_iteration_cost_by_hand():
    cost = sl.iteration_cost(2**20, 10, 4, 1000.0)
    assert cost.query == 10 * 4 * (2**10 + 1000)
    assert (cost.forward, cost.backward) == (10 * 1000 * 5, 10 * 1000 * 4)
    assert cost.update == 10_000 * (4 + 2 * 21**2)
    assert cost.dense == 10 * 2**20 * 9 + 2**20 * 4
    assert cost.attack == 0
    assert cost.total == cost.query + cost.forward + cost.backward + cost.update
    assert cost.speedup == cost.dense / cost.total
    attacked = sl.iteration_cost(2**20, 10, 4, 1000.0, attack_steps=3)
    assert attacked.attack == 3 * (cost.query + cost.forward + cost.backward)
    assert attacked.dense == cost.dense + 3 * 10 * 2**20 * 9


def test_no_more_neurons_are_updated_than_there_are():
    assert sl.iteration_cost(100, 50, 2, 100).update == sl.iteration_cost(100, 1, 2, 100).update


@pytest.mark.parametrize(("d", "c"), [(4, 0.6), (20, 0.6), (20, 0.95)])
def test_the_exponent_is_the_growth_of_the_cost(d, c):
    """From m = 10^24 to 10^30, with m^c active neurons and n = 1; logarithms of m count for up to 0.05."""
    small, large = (sl.iteration_cost(10**p, 1, d, 10.0 ** (p * c)) for p in (24, 30))
    terms = [(a.query + a.forward + a.backward, a.total) for a in (small, large)]
    growth = [math.log10(b / a) / 6 for a, b in zip(*terms, strict=True)]
    wanted = sl.cost_exponent(d, c, None)
    assert growth[0] == pytest.approx(wanted, abs=0.005)
    assert growth[1] == pytest.approx(wanted, abs=0.06)
    assert sl.cost_exponent(d, c) == max(wanted, 7 / 8)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sl.reporting_small(10, 1, 0), "d must be an integer of at least 2; got 1"),
        (lambda: sl.reporting_fast(10, 2, -1), "reported must be a finite number in [0, inf); got -1"),
        (lambda: sl.reporting_fast(10, 2, 1, 0.0), "epsilon must be a finite number in (0, inf); got 0.0"),
        (lambda: sl.iteration_cost(10, 1, 2, 11), "active must be a finite number in [0, 10]; got 11"),
        (lambda: sl.iteration_cost(10, 1, 2, 1, -1), "attack_steps must be an integer of at least 0; got -1"),
        (lambda: sl.cost_exponent(2, 1.5), "activity_exponent must be a finite number in [0, 1]; got 1.5"),
    ],
)
def test_bad_costs_are_refused(call, match, refused):
    refused(match, call)
