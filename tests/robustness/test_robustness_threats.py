"""The adversary's sets: projections are the nearest feasible points, ranges of linear functions are exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from fewfire._random import Stream
from fewfire._sphere import RADIUS, on_slice, opening
from fewfire.learners import RobustClassifier
from fewfire.networks import init
from fewfire.robustness import PGD, Layers, ball, certify
from fewfire.robustness._gradient import find_worst
from fewfire.robustness._problem import negative_margin
from fewfire.robustness._threats import L1Ball, L2Ball, LinfBall, SliceCap, check_within, linear_minimum

ROUNDING = 1e-6  # feasibility to float32 rounding, as training needs it


def make(kind, seed, rows, d, rho):
    """A threat, feasible centres and points to project, all random."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, d)) * rng.choice([0.01, 0.3, 3.0], size=(rows, 1))
    if kind == "slice":
        return SliceCap(rho), on_slice(rng.normal(size=(rows, d - 1))), points
    boxed = kind.endswith("box")
    low, high = (rng.uniform(-1, 0, d), rng.uniform(0, 1, d)) if boxed else (-np.inf, np.inf)
    centres = np.clip(rng.normal(size=(rows, d)), low, high)
    balls = {"l1": L1Ball, "l2": L2Ball, "linf": LinfBall}
    return balls[kind.split()[0]](rho, low, high), centres, points


def distance(threat, points, centres):
    order = {LinfBall: np.inf, L1Ball: 1}.get(type(threat), 2)
    return np.linalg.norm(points - centres, ord=order, axis=1)


def feasible(threat, points, centres):
    inside = (distance(threat, points, centres) <= threat.rho + ROUNDING).all()
    if isinstance(threat, SliceCap):
        return inside and np.allclose(np.linalg.norm(points, axis=1), 1, atol=ROUNDING) and (points[:, -1] == 0.5).all()
    return inside and (points >= threat.low).all() and (points <= threat.high).all()


KINDS = ["l1", "l1 box", "l2", "l2 box", "linf", "linf box", "slice"]
cases = given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    d=st.integers(2, 7),
    rho=st.sampled_from([0.0, 1e-3, 0.2, 1.0, 1.9]),
)


@cases
def test_projections_are_feasible_idempotent_and_nearest(kind, seed, d, rho):
    threat, centres, points = make(kind, seed, 20, d, rho)
    nearest = threat.project(points, centres)
    assert feasible(threat, nearest, centres)
    assert np.allclose(threat.project(nearest, centres), nearest, atol=1e-9)
    for trial in range(5):
        other = threat.draw(centres, Stream(seed, str(trial)))
        assert feasible(threat, other, centres)
        assert (np.linalg.norm(points - nearest, axis=1) <= np.linalg.norm(points - other, axis=1) + 1e-9).all()
        # Projections onto convex sets satisfy ⟨x − p, q − p⟩ ≤ 0; the slice is not convex.
        if not isinstance(threat, SliceCap):
            assert (np.einsum("ij,ij->i", points - nearest, other - nearest) <= 1e-9).all()


@cases
def test_ranges_of_linear_functions_hold_and_are_reached(kind, seed, d, rho):
    threat, centres, weights = make(kind, seed, 20, d, rho)
    low, high = threat.span(weights, centres)
    assert low.shape == high.shape == (20, 20)
    own_low, own_high = threat.row_span(weights, centres)
    if kind in ("l1 box", "l2 box"):  # exact for a row's own weights, bounded for all together
        assert (np.diag(low) <= own_low + 1e-12).all() and (np.diag(high) >= own_high - 1e-12).all()
    else:
        assert np.allclose(np.diag(low), own_low) and np.allclose(np.diag(high), own_high)
    for trial in range(5):
        moved = threat.draw(centres, Stream(seed, str(trial))) - centres
        values = moved @ weights.T
        assert (values >= low - 1e-9).all() and (values <= high + 1e-9).all()
    if (kind, d) != ("slice", 2):  # a slice of two points has no arc between them
        far = threat.extreme(weights, centres)
        assert np.allclose(np.einsum("ij,ij->i", far - centres, weights), own_high, atol=1e-9)


@cases
def test_extremes_are_allowed_and_nothing_lies_further(kind, seed, d, rho):
    threat, centres, weights = make(kind, seed, 20, d, rho)
    far = threat.extreme(weights, centres)
    assert feasible(threat, far, centres)
    reached = np.einsum("ij,ij->i", far, weights)
    for trial in range(20):
        other = threat.draw(centres, Stream(seed, str(trial)))
        for point in (other, threat.project(other + 10.0 * weights, centres)):
            if (kind, d) != ("slice", 2):
                assert (np.einsum("ij,ij->i", point, weights) <= reached + 1e-9).all()


@settings(max_examples=30)
@cases
def test_settled_points_are_members_in_rational_arithmetic(kind, seed, d, rho):
    """Also where ρ is small compared with the centre, and from points of float32."""
    threat, centres, points = make(kind, seed, 8, d, rho)
    if kind == "slice":
        return
    for shift in (0.0, 1e7):
        moved = replace(threat, low=threat.low + shift, high=threat.high + shift)
        around = np.clip(centres + shift, moved.low, moved.high)
        for start in (points, points.astype(np.float32)):
            settled = moved.settle(moved.project(start + shift, around), around)
            assert settled.dtype == np.float64
            assert (settled >= moved.low).all() and (settled <= moved.high).all()
            for point, centre in zip(settled.tolist(), around.tolist(), strict=True):
                sizes = [abs(Fraction(x) - Fraction(x0)) for x, x0 in zip(point, centre, strict=True)]
                order = {L1Ball: 1, L2Ball: 2}.get(type(threat))
                length = max(sizes) if order is None else sum(size**order for size in sizes)
                assert length <= Fraction(rho) ** (order or 1)


@settings(max_examples=30)
@cases
def test_a_radius_per_row_is_that_row_with_its_radius(kind, seed, d, rho):
    threat, centres, points = make(kind, seed, 6, d, rho)
    if kind == "slice":
        return
    radii = np.array([0.0, 0.1, 0.5, 1.0, 2.0, rho])
    many = replace(threat, rho=radii[:, None])
    for row, radius in enumerate(radii):
        one, part = replace(threat, rho=radius), slice(row, row + 1)
        assert np.allclose(many.project(points, centres)[part], one.project(points[part], centres[part]))
        assert np.allclose(many.extreme(points, centres)[part], one.extreme(points[part], centres[part]))
        assert np.allclose(
            many.take([row]).settle(points[part], centres[part]), one.settle(points[part], centres[part])
        )
        for both, alone in zip(many.row_span(points, centres), one.row_span(points[part], centres[part]), strict=True):
            assert np.allclose(both[part], alone)


@cases
def test_steps_go_up_and_points_can_reach_what_they_may(kind, seed, d, rho):
    threat, centres, gradients = make(kind, seed, 20, d, rho)
    moved = threat.project(threat.ascend(centres, gradients, rho), centres)
    assert feasible(threat, moved, centres)
    small = threat.project(
        threat.ascend(centres, gradients, 1e-5), centres
    )  # a long step on a curved set may overshoot
    assert (np.einsum("ij,ij->i", small - centres, gradients) >= -1e-9).all()
    assert (np.linalg.norm(moved - centres, axis=1) <= threat.reach(d) + 1e-9).all()


@cases
def test_whatever_the_search_finds_is_feasible_and_no_better_than_the_start(kind, seed, d, rho):
    threat, centres, _ = make(kind, seed, 12, d, rho)
    heads = Layers.of(init.dense()(d, 9, seed=seed))
    labels = np.where(np.arange(12) % 2, 1.0, -1.0)
    criterion = negative_margin(labels, 1)
    for search in (PGD(steps=1), PGD(steps=4, restarts=2), PGD(steps=3, step_size=5.0)):
        found = find_worst(heads, criterion, threat, centres, search, Stream(seed, "attack"))
        assert feasible(threat, found.points, centres)
        assert (found.value >= -labels * heads.scores(centres)[:, 0]).all()
        assert np.allclose(found.scores, heads.scores(found.points)) and np.allclose(
            found.value, -labels * found.scores[:, 0]
        )
    # In float32, as training sees them, they are feasible to rounding too.
    assert feasible(threat, found.points.astype(np.float32).astype(np.float64), centres) or kind.endswith("box")


def test_the_exact_projection_onto_ball_and_box():
    """Clipping first and shrinking then gives (0.5, 1.0)·…; the nearest point uses the room that is left."""
    threat = L2Ball(1.0, -0.5, 0.5)
    nearest = threat.project(np.array([[3.0, 4.0, 0.0]]), np.zeros((1, 3)))
    assert np.allclose(nearest, [[0.5, 0.5, 0.0]])
    threat = L2Ball(1.0, -np.inf, np.array([0.6, np.inf]))
    assert np.allclose(threat.project(np.array([[3.0, 3.0]]), np.zeros((1, 2))), [[0.6, 0.8]])
    flat = np.array([[0.0, 0.0], [1.0, 0.0], [-2.0, 1e-9]])  # no slope stays, one slope goes to the box or the ball
    assert np.allclose(threat.extreme(flat, np.zeros((3, 2))), [[0, 0], [0.6, 0], [-1, 0]])


def test_a_cap_of_a_circle():
    """d = 3: the slice is a circle, the cap an arc of θ_max on either side."""
    start, rho = np.array([[RADIUS, 0.0, 0.5]]), 0.5
    angle = 2 * np.arcsin(rho / (2 * RADIUS))
    assert opening(rho) == pytest.approx(angle)
    rim = np.array([[RADIUS * np.cos(angle), RADIUS * np.sin(angle), 0.5]])
    assert np.linalg.norm(rim - start) == pytest.approx(rho)
    cap = SliceCap(rho)
    assert np.allclose(cap.project(np.array([[-5.0, 1.0, 7.0]]), start), rim)
    assert np.linalg.norm(cap.project(-start, start) - start) == pytest.approx(rho)  # opposite: any side
    assert np.allclose(cap.project(np.zeros((1, 3)), start), start)
    assert np.allclose(cap.project(np.array([[9.0, 0.0, 3.0]]), start), start)
    assert np.allclose(SliceCap(2.0).project(-start, start)[:, :2], -start[:, :2])  # the whole slice is allowed


def test_a_slice_of_two_points():
    here, there = np.array([[RADIUS, 0.5]]), np.array([[-RADIUS, 0.5]])
    assert np.allclose(SliceCap(1.0).project(there, here), here)
    assert np.allclose(SliceCap(1.8).project(there, here), there)


def test_bounds_are_checked():
    assert ball("linf", 0.1, (0, [1, 2]), 2).high.tolist() == [1, 2]
    rule = r"bounds must be a pair \(low, high\) of numbers or arrays of shape \(2,\) with low <= high; got "
    for bad in ((1, 0), (0,), 3, (0, [1, 2, 3]), ("a", "b"), (0, np.nan)):
        with pytest.raises(ValueError, match=rule):
            ball("l2", 0.1, bad, 2)
    with pytest.raises(
        ValueError,
        match=r"X must lie within bounds; got a 2 at index \(0, 1\). Remedy: widen bounds or clip the table.",
    ):
        check_within(np.array([[0.5, 2.0]]), ball("l2", 0.1, (0, 1), 2))
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2', 'linf'; got 'l3'."):
        ball("l3", 0.1, None, 2)


@pytest.mark.parametrize(("number", "name"), [(1, "l1"), (2, "l2"), (2.0, "l2"), (np.inf, "linf")])
def test_norms_may_be_given_as_numbers(number, name):
    assert type(ball(number, 0.1, None, 2)) is type(ball(name, 0.1, None, 2))
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    assert certify(model, X, y, 0.2, number).robust.tolist() == certify(model, X, y, 0.2, name).robust.tolist()
    if name != "l1":
        one, other = (
            RobustClassifier(width=8, norm=norm, epochs=2, random_state=0).fit(X, y) for norm in (number, name)
        )
        assert np.array_equal(one.decision_function(X), other.decision_function(X))


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
        least, _ = linear_minimum(norm, w, down, up, rho)
        single = [linear_minimum(norm, w[i : i + 1], down[i : i + 1], up[i : i + 1], rho[i])[0] for i in range(50)]
        assert np.array_equal(least, np.concatenate(single)) and (least <= 0).all()


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
