"""The least value of a linear function over ball and box: feasible, attained, and equal to other solvers' answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fewfire.robustness._linear_range import linear_minimum, linear_span

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def problem(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 8))
    sparse = rng.random((3, 1, d)) < 0.8  # weights and rooms of zero are the awkward cases
    w, down, up = rng.normal(size=(1, d)) * sparse[0], -rng.random((1, d)) * sparse[1], rng.random((1, d)) * sparse[2]
    return w, down, up, float(rng.choice([1e-3, 0.4, 1.5]))


def reference(norm, w, down, up, rho):
    d = w.shape[1]
    if norm == "linf":
        return linprog(w[0], bounds=list(zip(np.maximum(down[0], -rho), np.minimum(up[0], rho), strict=True))).fun
    if norm == "l1":
        ends = [(0, end) for end in (*up[0], *-down[0])]
        return linprog(np.concatenate([w[0], -w[0]]), A_ub=np.ones((1, 2 * d)), b_ub=[rho], bounds=ends).fun
    mu = np.geomspace(1e-9, 1e5, 40_000)[:, None]  # the dual of the ball alone, the box being kept
    move = np.clip(-w / (2 * mu), down, up)
    ball = ((w * move).sum(axis=1) + mu[:, 0] * ((move**2).sum(axis=1) - rho**2)).max()
    return max(ball, np.minimum(w * down, w * up).sum())


@settings(max_examples=60)
@given(norm=st.sampled_from(list(ORDERS)), seed=st.integers(0, 10**6))
def test_least_values_are_feasible_attained_and_those_of_other_solvers(norm, seed):
    w, down, up, rho = problem(seed)
    least, move = linear_minimum(norm, w, down, up, rho)
    assert np.linalg.norm(move[0], ORDERS[norm]) <= rho * (1 + 1e-12)
    assert (down - 1e-15 <= move).all() and (move <= up + 1e-15).all()
    assert (w * move).sum() == pytest.approx(least[0], abs=1e-12)
    assert least[0] == pytest.approx(reference(norm, w, down, up, rho), abs=1e-4 * (rho + abs(least[0])))


def test_many_rows_with_radii_of_their_own():
    rng = np.random.default_rng(0)
    w, down, up, rho = rng.normal(size=(50, 9)), -rng.random((50, 9)), rng.random((50, 9)), rng.random(50) * 2
    for norm in ORDERS:
        low, high = linear_span(norm, w, down, up, rho)
        single = [linear_span(norm, w[i : i + 1], down[i : i + 1], up[i : i + 1], rho[i]) for i in range(50)]
        assert np.array_equal(low, [pair[0][0] for pair in single])
        assert np.array_equal(high, [pair[1][0] for pair in single])
        assert (low <= 0).all() and (high >= 0).all()


def test_a_ball_of_radius_zero_is_a_point():
    w, ones = np.random.default_rng(0).normal(size=(5, 4)), np.ones((5, 4))
    for norm in ORDERS:
        least, move = linear_minimum(norm, w, -ones, ones, 0.0)
        assert not least.any() and not move.any()


def test_without_a_box_it_is_the_dual_norm():
    w = np.random.default_rng(0).normal(size=(5, 4))
    wide = np.full((5, 4), np.inf)
    assert np.allclose(linear_minimum("l2", w, -wide, wide, 0.3)[0], -0.3 * np.linalg.norm(w, axis=1))
    assert np.allclose(linear_minimum("linf", w, -wide, wide, 0.3)[0], -0.3 * np.abs(w).sum(axis=1))
    assert np.allclose(linear_minimum("l1", w, -wide, wide, 0.3)[0], -0.3 * np.abs(w).max(axis=1))
