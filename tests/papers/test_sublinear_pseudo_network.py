"""sublinear: the pseudo-network, its distance from the network, and the regret of training it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.papers import sublinear as sl


def moved_network(width=60, inputs=4, threshold=0.05, size=0.1, seed=0):
    """A network of Definition 3.1 after a random move, its start, and inputs of norm 1."""
    start = init.ntk(threshold=threshold)(inputs, width, seed)
    stream = Stream(seed, "moved")
    net = start.with_parameters(hidden=start.hidden + size * stream.child("w").normal((width, inputs)))
    X = stream.child("x").normal((9, inputs))
    return net, start, X / np.linalg.norm(X, axis=1, keepdims=True)


def test_values_by_hand():
    start, now = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.5, 0.0], [0.0, 0.1], [1.0, 3.0]]
    net = TwoLayer(np.array(now), [0.0, 0.0, -0.5], [2.0, -1.0, 4.0], 0.0, shifted_relu(0.4))
    X = [[1.0, 1.0], [0.5, 0.0]]
    # Row 0: z₀ = 1, 1, 1.5, all above 0.4; moves 0.5, −0.9, 2. Row 1: z₀ = 0.5, 0, 0; moves 0.25, 0, 0.
    np.testing.assert_allclose(sl.pseudo_network(net, start, X), [2 * 0.5 + 0.9 + 4 * 2, 2 * 0.25])
    measured = sl.pseudo_distance(net, start, X)
    # The second neuron goes from 1 to 0.1 on row 0: f = 3 + 0 + 14 = 17, g = 9.9, A − g = −0.9, B = 7, C = 1.
    assert measured.distance == pytest.approx(7.1)
    assert (measured.gradient_term, measured.start_term, measured.flip_term) == pytest.approx((0.9, 7.0, 1.0))
    assert (measured.flips, measured.radius) == (1, 2.0)


@given(seed=st.integers(0, 50), size=st.floats(0, 0.5), threshold=st.floats(0, 0.3))
def test_distance_and_terms_against_the_network_itself(seed, size, threshold):
    net, start, X = moved_network(size=size, threshold=threshold, seed=seed)
    g = sl.pseudo_network(net, start.hidden, X)
    measured = sl.pseudo_distance(net, start.hidden, X)
    assert measured.distance == pytest.approx(np.abs(net(X) - g).max(), abs=1e-9)
    assert measured.distance <= measured.gradient_term + measured.start_term + measured.flip_term + 1e-9
    assert measured.start_term == pytest.approx(np.abs(start(X)).max(), abs=1e-6)


def test_the_pseudo_network_is_linear_and_tangent():
    """g is linear in the weights, and f(W) − f(W_0) = g(W) while no neuron changes side."""
    net, start, X = moved_network(size=1e-7)
    g = sl.pseudo_network(net, start.hidden, X)
    further = net.with_parameters(hidden=start.hidden + 2 * (net.hidden - start.hidden))
    twice = sl.pseudo_network(further, start.hidden, X)
    np.testing.assert_allclose(twice, 2 * g, atol=1e-18)
    measured = sl.pseudo_distance(net, start.hidden, X)
    assert measured.flips == 0
    assert measured.gradient_term == measured.flip_term == 0.0
    assert measured.distance == pytest.approx(measured.start_term, abs=1e-12)


@pytest.mark.parametrize("threshold", [0.0, 0.03])
@pytest.mark.parametrize("exponent", [0.6, 0.8])
def test_the_explicit_bound_holds_for_the_worst_network(worst_network, exponent, threshold):
    """Over 40 starts a bound of failure 10% may fail on 4 + 4·√3.6; it fails on none of its terms more often."""
    width, failures = 2000, 0
    radius = 2 * width**-exponent
    bound = sl.distance_bound(width, radius, threshold, failure=0.1)
    for seed in range(40):
        measured = sl.pseudo_distance(*worst_network(width, radius, threshold, seed))
        assert measured.radius == pytest.approx(radius)
        failures += (
            measured.distance > bound.total
            or measured.flips > bound.flips
            or measured.gradient_term > bound.gradient_term
            or measured.start_term > bound.start_term
            or measured.flip_term > bound.flip_term
        )
    assert failures <= 4 + 4 * math.sqrt(3.6)


def test_the_distance_falls_with_the_width_for_the_corrected_radius(worst_network):
    """K/m^(4/5): the terms of changed neurons fall as m^(−3/10), so by 10^(−0.3) = 0.50 a decade."""
    terms = []
    for width in (10**4, 10**5, 10**6):
        measured = sl.pseudo_distance(*worst_network(width, 3 * width**-0.8))
        terms.append(measured.gradient_term + measured.flip_term)
        assert measured.distance <= sl.theorem_5_1(width, 3.0)
    ratios = np.divide(terms[1:], terms[:-1])
    assert ratios == pytest.approx([10**-0.3] * 2, rel=0.1)


def test_shapes_of_theorem_5_1():
    assert sl.theorem_5_1(10**10, 2.0) == pytest.approx(4 * 10**-3 + 10**-1)
    assert sl.theorem_5_1(10**300, 1.0) < sl.theorem_5_1(10**30, 1.0) < sl.theorem_5_1(10**3, 1.0)


def test_the_explicit_bound_has_the_shape_of_the_theorem():
    """From m = 10⁵ to 10⁹ the changed neurons' terms fall by 10^(−1.2) and the start's by 10^(−0.8)."""
    small, large = (sl.distance_bound(m, 3 * m**-0.8) for m in (10**5, 10**9))
    assert large.gradient_term / small.gradient_term == pytest.approx(10**-1.2, rel=0.05)
    assert large.start_term / small.start_term == pytest.approx(10**-0.8, rel=0.02)


# ── regret ──


def test_regret_of_subgradient_descent_on_the_pseudo_network():
    """Average loss ≤ that of W* + the regret bound, for the absolute loss and the best step size for the bound."""
    width, inputs, n, rounds, threshold = 400, 5, 12, 60, 0.08
    start = init.ntk(threshold=threshold)(inputs, width, 5)
    stream = Stream(8, "regret")
    X = stream.child("x").normal((n, inputs))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = stream.child("y").signs(n).astype(float)
    first = start.hidden.astype(np.float64)
    fires = X @ first.T + start.bias > threshold
    active = int(fires.sum(axis=1).max())

    def pseudo(hidden):
        return sl.pseudo_network(start.with_parameters(hidden=hidden), first, X)

    def loss(hidden):
        return float(np.abs(pseudo(hidden) - y).mean())

    best = first + 0.02 * np.sign(start.output[:, None]) * ((fires * y[:, None]).T @ X)
    radius = float(np.linalg.norm(best - first, axis=1).max())
    gradient_norm, distance = math.sqrt(active) * width**-0.2, math.sqrt(width) * radius
    step = distance / (gradient_norm * math.sqrt(rounds))
    hidden, losses, largest = first.copy(), [], 0.0
    for _ in range(rounds):
        values = pseudo(hidden)
        losses.append(np.abs(values - y).mean())
        slopes = np.sign(values - y)[:, None] * fires * start.output / n
        gradient = slopes.T @ X
        largest = max(largest, float(np.linalg.norm(gradient)))
        hidden -= step * gradient
    assert largest <= gradient_norm
    assert np.linalg.norm(hidden - first, axis=1).max() <= step * rounds * width**-0.2
    assert np.mean(losses) - loss(best) <= sl.regret(step, rounds, gradient_norm, distance)
    assert np.mean(losses) < losses[0]


@given(gradient=st.floats(0.1, 10), rounds=st.integers(1, 10**6), distance=st.floats(1e-6, 10))
def test_the_best_step_size_for_the_regret(gradient, rounds, distance):
    step = distance / (gradient * math.sqrt(rounds))
    least = sl.regret(step, rounds, gradient, distance)
    assert least == pytest.approx(gradient * distance / math.sqrt(rounds))
    for factor in (0.9, 1.1):
        assert sl.regret(factor * step, rounds, gradient, distance) > least


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"start_hidden": np.zeros((3, 2))}, "start_hidden must have the network's shape (2, 2); got shape (3, 2)"),
        ({"start_hidden": np.zeros((2, 3))}, "start_hidden must be a table of shape (rows, 2); got shape (2, 3)"),
        ({"X": np.zeros((0, 2))}, "X must not be empty"),
    ],
)
def test_bad_networks_are_refused(change, match, refused):
    arguments = {"start_hidden": np.zeros((2, 2)), "X": np.ones((1, 2)), **change}
    for function in (sl.pseudo_network, sl.pseudo_distance):
        refused(match, function, TwoLayer(np.zeros((2, 2)), np.zeros(2), np.ones(2)), **arguments)


def test_bad_numbers_are_refused():
    with pytest.raises(InvalidArgument, match=r"failure must be a finite number in \(0, 1\); got 0"):
        sl.distance_bound(10, 0.1, failure=0.0)
    with pytest.raises(InvalidArgument, match=r"step_size must be a finite number in \(0, inf\); got 0"):
        sl.regret(0.0, 1, 1.0, 1.0)
