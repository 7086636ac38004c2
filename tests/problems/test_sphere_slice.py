"""Separated points of the slice: on it to float32 rounding, apart, uniform, labelled as asked, refused when crowded."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire.problems import SphereSlice, _sphere_slice, gamma, separation


@settings(max_examples=30)
@given(n=st.integers(1, 40), d=st.integers(4, 20), distance=st.floats(0.0, 0.35), seed=st.integers(0, 2**32))
def test_points_are_on_the_slice_and_apart(n, d, distance, seed):
    X, y = SphereSlice(n, d, distance).sample(seed=seed)
    assert X.shape == (n, d) and X.dtype == np.float32 and y.shape == (n,)
    assert (X[:, -1] == 0.5).all()
    # Each coordinate is off by at most 2⁻²⁴ of itself, so the norm is off by little more.
    assert np.abs(np.linalg.norm(X.astype(np.float64), axis=1) - 1).max() < 2**-23
    assert separation(X) >= distance


def test_the_first_points_are_the_same_for_any_set_size():
    small, _ = SphereSlice(10, 5, 0.4).sample(seed=3)
    large, _ = SphereSlice(60, 5, 0.4).sample(seed=3)
    np.testing.assert_array_equal(small, large[:10])


def test_sequential_rejection_by_hand(monkeypatch):
    problem = SphereSlice(25, 3, 0.15)
    candidates, _ = SphereSlice(2000, 3, 0.0).sample(seed=4)
    kept, tries = [], []
    for number, candidate in enumerate(candidates.astype(np.float64)):
        if all(np.linalg.norm(candidate - other) >= 0.15 for other in kept):
            kept.append(candidate)
            tries.append(number)
        if len(kept) == 25:
            break
    np.testing.assert_array_equal(problem.sample(seed=4)[0], np.array(kept, dtype=np.float32))
    # Tries are counted between two points, not in all.
    longest = int(np.diff([-1, *tries]).max()) - 1
    assert 0 < longest < tries[-1] - 24
    monkeypatch.setattr(_sphere_slice, "MAX_TRIES", longest + 1)
    np.testing.assert_array_equal(problem.sample(seed=4)[0], np.array(kept, dtype=np.float32))
    monkeypatch.setattr(_sphere_slice, "MAX_TRIES", longest)
    with pytest.raises(InvalidArgument, match=f"then {longest} random tries in a row"):
        problem.sample(seed=4)


def test_uniform_without_separation():
    rows, d = 20_000, 6
    X, y = SphereSlice(rows, d, 0.0).sample(seed=9)
    flat = X[:, :-1].astype(np.float64)
    variance = 0.75 / (d - 1)
    assert np.abs(flat.mean(axis=0)).max() < 5 * np.sqrt(variance / rows)
    moments = flat.T @ flat / rows
    # Var(x_i²) = r⁴(3/(D(D+2)) − 1/D²) and Var(x_i x_j) = r⁴/(D(D+2)) on a sphere in D dimensions
    spread = 0.75 * np.sqrt(3 / (5 * 7) / rows)
    assert np.abs(moments - variance * np.eye(d - 1)).max() < 5 * spread
    assert abs(y.mean()) < 5 / np.sqrt(rows)


def test_labels():
    X, y = SphereSlice(50, 4, 0.1).sample(seed=1)
    assert y.dtype == np.int8 and y.tolist() == [1 if x >= 0 else -1 for x in X[:, 0].tolist()]
    _, xor = SphereSlice(50, 4, 0.1, labels="xor").sample(seed=1)
    assert xor.tolist() == [1 if x * z >= 0 else -1 for x, z in X[:, :2].tolist()]
    problem = SphereSlice(50, 4, 0.1, labels=lambda points: points[:, 1] * 0.5)
    same, real = problem.sample(seed=1)
    np.testing.assert_array_equal(same, X)
    assert real.dtype == np.float64 and real.tolist() == (X[:, 1] * 0.5).tolist()


def test_zero_counts_as_positive():
    X = np.array([[0.0, math.sqrt(0.75), 0.5], [0.0, -math.sqrt(0.75), 0.5]])
    assert SphereSlice(2, 3, 0.0).target(X).tolist() == [1, 1]
    assert SphereSlice(2, 3, 0.0, "xor").target(X).tolist() == [1, 1]


def test_two_dimensions_have_two_points():
    X, y = SphereSlice(2, 2, 1.0).sample(seed=0)
    np.testing.assert_allclose(np.sort(X[:, 0]), [-math.sqrt(0.75), math.sqrt(0.75)], rtol=1e-7)
    assert sorted(y.tolist()) == [-1, 1]


def test_a_set_is_separable_as_promised():
    X, _ = SphereSlice(200, 24, 0.8).sample(seed=2)
    rho = 0.2
    assert gamma(X, rho) >= 0.8 * (0.8 - 2 * rho)


@pytest.mark.slow
def test_twenty_thousand_points():
    X, _ = SphereSlice(20_000, 30, 0.6).sample(seed=5)
    assert separation(X) >= 0.6


def test_provably_crowded_sets_are_refused_at_once():
    message = (
        r"^n must be at most 10, the packing limit of the slice for d = 3, separation = 0\.5; got 11\. "
        r"Remedy: lower n or the separation, or raise d\.$"
    )
    # 2π / (2 arcsin(0.5/√3)) = 10.7
    with pytest.raises(InvalidArgument, match=message):
        SphereSlice(11, 3, 0.5)
    with pytest.raises(InvalidArgument, match=r"^n must be at most 2, the packing limit"):
        SphereSlice(3, 2, 0.1)


def test_crowded_draws_give_up_with_the_reason(monkeypatch):
    monkeypatch.setattr(_sphere_slice, "MAX_TRIES", 300)
    message = (
        r"^separation must leave room for the points asked: (\d+) were placed, then 300 random tries in a row were too "
        r"close \(d = 3; packing limit: no more than 10 can ever fit, .*\); got 0\.5\. Remedy: lower the separation"
    )
    problem = SphereSlice(10, 3, 0.5)
    with pytest.raises(InvalidArgument, match=message) as caught:
        problem.sample(seed=1)
    placed = int(str(caught.value).split("asked: ")[1].split()[0])
    assert 5 <= placed < 10
    X, _ = problem.sample(placed, seed=1)
    assert separation(X) >= 0.5


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_small_moves_on_the_slice_keep_the_target_valid(seed):
    problem = SphereSlice(3, 5, 0.2)
    X, _ = problem.sample(seed=seed)
    moved = X.astype(np.float64) + 1e-6
    assume(np.abs(moved[:, 0]).min() > 1e-3)
    np.testing.assert_array_equal(problem.target(moved), np.sign(moved[:, 0]))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[1.0, 0.0, 0.0]],
            r"^X must have rows with ‖x‖ = 1 and x_d = 1/2 \(to 1e-05\); got a row 0 with norm 1 and last",
        ),
        ([[0.5, 0.0, 0.5]], r"^X must have rows with .*; got a row 0 with norm 0\.707107 and last coordinate 0\.5"),
        ([[0.8660254, 0.0, 0.5], [0, 0, 0]], "^X must have rows with .*; got a row 1 with norm 0 and last"),
        ([[0.5, 0.5]], r"^X must be a table of shape \(rows, 3\); got shape \(1, 2\)"),
        (np.zeros((0, 3)), r"^X must not be empty; got shape \(0, 3\)"),
        ([[np.nan, 0, 0.5]], r"^X must hold finite numbers; got a nan at index \(0, 0\)"),
        ([["a", "b", "c"]], "^X must hold numbers; got dtype <U1"),
    ],
)
def test_bad_points(X, message):
    with pytest.raises(InvalidArgument, match=message):
        SphereSlice(5, 3, 0.1).target(X)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda X: X[:, 0] * 3, r"^labels must give numbers in \[−1, 1\]; got -?[12]\.\d+\. Remedy: scale them"),
        (lambda X: X, r"^labels must give 5 numbers for 5 rows; got shape \(5, 3\), dtype float32"),
        (lambda X: X[:, 0] * np.inf, r"^labels\(X\) must hold finite numbers"),
    ],
)
def test_bad_label_functions(labels, message):
    with pytest.raises(InvalidArgument, match=message):
        SphereSlice(5, 3, 0.1, labels).sample()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3, 0.1), "^n must be an integer of at least 1; got 0"),
        ((5, 1, 0.1), "^d must be an integer of at least 2; got 1"),
        ((5, 2, 0.1, "xor"), "^d must be an integer of at least 3; got 2"),
        ((5, 3, -0.1), r"^separation must be a finite number in \[0, 1\.73205\]; got -0\.1"),
        (
            (5, 3, 1.8),
            r"^separation must be a finite number in \[0, 1\.73205\]; got 1\.8\. Remedy: the slice has diameter",
        ),
        ((5, 3, float("nan")), "^separation must be a finite number"),
        ((5, 3, 0.1, "and"), "^labels must be one of 'linear', 'xor'; got 'and'"),
        ((5, 3, 0.1, None), "^labels must be one of 'linear', 'xor'; got None"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        SphereSlice(*arguments)


@pytest.mark.parametrize(
    ("m", "start", "message"),
    [
        (
            6,
            0,
            r"^m must be an integer of at least 1 and at most 5; got 6\. Remedy: the set has n = 5 points and 5 from",
        ),
        (3, 3, "^m must be an integer of at least 1 and at most 2; got 3.* 2 from start = 3 on"),
        (0, 0, "^m must be an integer of at least 1 and at most 5; got 0"),
        (None, 5, "^start must be an integer of at least 0 and at most 4; got 5.*n = 5 points"),
    ],
)
def test_windows_stay_inside_the_set(m, start, message):
    with pytest.raises(InvalidArgument, match=message):
        SphereSlice(5, 3, 0.1).sample(m, 0, start)


def test_default_window_is_the_rest_of_the_set():
    problem = SphereSlice(5, 3, 0.1)
    assert problem.sample()[0].shape == (5, 3) and problem.sample(start=3)[0].shape == (2, 3)
