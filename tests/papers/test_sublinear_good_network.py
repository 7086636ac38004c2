"""sublinear: h of Lemma 3.17, and W* of Lemmas 5.18 and 4.7 built and measured."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._random import Stream
from fewfire._sphere import on_slice
from fewfire.networks import TwoLayer, init
from fewfire.papers import sublinear as sl
from fewfire.problems import SphereSlice

QUARTIC = [0.3, -1.0, 0.5, 2.0, -0.7]


@given(
    coefficients=st.lists(st.floats(-2, 2), min_size=1, max_size=6),
    threshold=st.floats(0, 2.5),
    t=st.floats(-0.95, 0.95),
)
@settings(max_examples=30)
def test_the_mean_of_the_features_is_the_polynomial(coefficients, threshold, t):
    h = sl.feature_function(coefficients, threshold)
    assert h.mean(t) == pytest.approx(np.polyval(coefficients[::-1], t), abs=1e-7)


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_the_mean_over_drawn_neurons(threshold):
    """A million standard neurons in 3 dimensions: within 4 standard errors of the polynomial, at any pair of points."""
    draw = Stream(3, "neurons")
    u, beta = draw.child("u").normal((10**6, 3)), draw.child("b").normal(10**6)
    h = sl.feature_function(QUARTIC, threshold)
    ends = draw.child("x").normal((6, 3))
    ends /= np.linalg.norm(ends, axis=1, keepdims=True)
    for centre, x in zip(ends[:3], ends[3:], strict=True):
        terms = h(u @ centre, beta) * (u @ x + beta > threshold)
        wanted = np.polyval(QUARTIC[::-1], centre @ x)
        assert abs(terms.mean() - wanted) <= 4 * terms.std() / 1000
    sizes = h(u @ ends[0], beta)
    assert np.mean(sizes**2) == pytest.approx(h.square, rel=0.03)


def test_no_other_function_of_the_same_mean_is_smaller():
    """Features that leave β out reach odd powers only, at a larger mean square: He₃(α)/κ with κ = E[He₃(s)…]."""
    h = sl.feature_function([0, 0, 0, 1.0])
    plain = 6 / ((2 * math.sqrt(2)) ** -1 * -1 / math.sqrt(2 * math.pi)) ** 2  # 2^(−3/2)·He₂(0)·φ(0)
    assert h.square < plain
    # By parts: E[He₀…] of the constant: any h with E[h(β)Φ(β)] = 1 has E h² ≥ 1/E Φ² = 3.
    assert sl.feature_function([1.0]).square == pytest.approx(3.0)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_clipping_keeps_the_mean_within_the_error(threshold):
    h = sl.feature_function(QUARTIC, threshold)
    small = h.clipped(0.05)
    assert h.excess(small.limit) <= 0.05 < h.excess(0.99 * small.limit)
    assert all(abs(small.mean(t) - np.polyval(QUARTIC[::-1], t)) <= 0.05 for t in np.linspace(-0.95, 0.95, 11))
    z = np.linspace(-6, 6, 101)
    assert np.abs(small(z[:, None], z[None, :])).max() == pytest.approx(small.limit)
    assert small.limit < np.abs(h(z[:, None], z[None, :])).max() / 2
    # Lemma 3.17 bounds h by 𝓒(φ, ε₂), whose c is open: c = 4 is enough here.
    assert small.limit <= sl.complexity_at(QUARTIC, 0.05, constant=4.0)


def case(width, *, activity=None, seed=0):
    """Four points of the slice in 4 dimensions, moved points around them, and a start."""
    X, y = SphereSlice(4, 4, 0.9).sample(seed=1)
    X = X.astype(np.float64)
    rho = 0.1
    start = (init.ntk(threshold="1/m") if activity is None else init.ntk(activity=activity))(4, width, seed)
    tau = float(start.activation.threshold)
    low = float((X @ X.T - 2 * np.eye(4)).max()) + rho  # ⟨x_i, x̃_j⟩ ≤ ⟨x_i, x_j⟩ + ρ
    step = sl.small_step_polynomial(low, 1 - rho**2 / 2, 0.1, threshold=tau * math.sqrt(width))
    moves = Stream(5, "moves").normal((200, 3))
    moves *= 0.9 * rho / np.linalg.norm(moves, axis=1, keepdims=True)
    around = on_slice(np.tile(X[:, :-1], (50, 1)) + moves)
    assert np.linalg.norm(around - np.tile(X, (50, 1)), axis=1).max() <= rho
    return X, y.astype(np.float64), start, tau, step, around, np.tile(y, 50).astype(np.float64)


def test_the_step_serves_both_bands():
    X, y, _, _, step, around, labels = case(100)
    values = np.polynomial.polynomial.polyval(np.clip(around @ X.T, -0.5, 1), step) @ y
    assert np.abs(values - labels).max() <= 4 * 0.1 + 1e-6


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("activity", [None, 0.1])
def test_the_pseudo_network_of_the_good_weights_nears_the_target(activity, blocks):
    """|g − f*| within 4.5 standard errors at every one of 200 points, and so falling as 1/√m."""
    for width in (2**12, 2**16):
        X, y, start, tau, step, around, _ = case(width, activity=activity)
        h = sl.feature_function(step, tau * math.sqrt(width))
        good = sl.good_network(start, X, y, h, blocks=blocks)
        g = sl.pseudo_network(good.network, start.hidden, around)
        target = np.polynomial.polynomial.polyval(around @ X.T, step) @ y
        # Each of m terms is at most Σ|h_i| with blocks n·h_i of one i: E ≤ n·Σ E h² in both.
        error = math.sqrt(4 * 4 * h.square / width)
        assert np.abs(g - target).max() <= 4.5 * error
        assert np.abs(g - target).max() > error / 100
        np.testing.assert_array_equal(good.network.hidden[:, :-1], start.hidden[:, :-1])


def test_the_good_network_withstands_the_adversary():
    """Theorem 4.8 at widths that exist: the network itself, not g, has robust loss below 0.6, and less the wider."""
    losses = []
    for width in (2**14, 2**18):
        X, y, start, tau, step, around, labels = case(width)
        h = sl.feature_function(step, tau * math.sqrt(width)).clipped(0.02)
        good = sl.good_network(start, X, y, h)
        assert good.radius <= good.radius_bound == pytest.approx(2 * 4 * h.limit * width**-0.8, rel=1e-5)
        before = np.abs(start(around) - labels).max()
        losses.append(float(np.abs(good.network(around) - labels).max()))
        assert losses[-1] < before and np.array_equal(np.sign(good.network(around)), labels)
        distance = sl.pseudo_distance(good.network, start.hidden, around)
        g = sl.pseudo_network(good.network, start.hidden, around)
        assert losses[-1] <= np.abs(g - labels).max() + distance.distance + 1e-9
    assert losses[1] < losses[0] and losses[1] < 0.6


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: sl.feature_function([]), "coefficients must be a vector of 1 to 61 coefficients; got shape (0,)"),
        (lambda: sl.feature_function([1.0], -1.0), "threshold must be a finite number in [0, inf); got -1.0"),
        (lambda: sl.feature_function([1.0]).mean(1.0), "t must be a finite number in (-1, 1); got 1.0"),
        (lambda: sl.feature_function([1.0]).clipped(0.0), "error must be a finite number in (0, inf); got 0.0"),
        (lambda: sl.small_step_polynomial(0.9, 0.5, 0.1), "low must be a finite number in (-0.5, 0.5); got 0.9"),
        (
            lambda: sl.small_step_polynomial(0.98, 0.99, 0.01, max_degree=2),
            "error must leave room for a polynomial of degree 2 between low = 0.98 and high = 0.99; got 0.01. Remedy: "
            "take a larger error, points further apart or a larger max_degree",
        ),
        (
            lambda: good(points=[[1.0, 0.0]]),
            "points must have norm 1 and last coordinate 1/2 (to 1e-5); got a point off by 0.5",
        ),
        (lambda: good(output=[1.0, 0.0]), "start must have no output weight of 0; got a 0"),
        (
            lambda: good(points=[[math.sqrt(0.75), 0.5]] * 3, labels=[1.0] * 3, blocks=True),
            "blocks can be True from a width of 3 on, one neuron per example; got 2",
        ),
    ],
)
def test_bad_arguments_are_refused(call, text, refused):
    refused(text, call)


def good(output=(1.0, 1.0), points=((0.75**0.5, 0.5),), labels=(1.0,), blocks=False):
    start = TwoLayer(np.ones((2, 2)), np.zeros(2), output)
    return sl.good_network(start, points, labels, sl.feature_function([1.0]), blocks=blocks)
