"""sublinear: how f, g and their gradients move, measured against brute force and against the bounds (5.9, 5.14, 5.19)."""

import math

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.papers import sublinear as sl


def moved(width, radius, threshold=0.0, inputs=3, seed=0):
    """A start of Definition 3.1 and weights that every neuron has moved by `radius` in its own direction."""
    start = init.ntk(threshold=threshold)(inputs, width, seed)
    away = Stream(seed, "away").normal((width, inputs))
    first = start.hidden.astype(np.float64)
    hidden = first + radius * away / np.linalg.norm(away, axis=1, keepdims=True)
    return start.with_parameters(hidden=hidden), start


def pair():
    """A network and its start's weights."""
    net, start = moved(5, 0.1)
    return net, start.hidden


def circle(angles):
    """The slice in three dimensions, by angle."""
    angles = np.asarray(angles, dtype=np.float64)
    return np.column_stack([np.cos(angles), np.sin(angles), np.full(len(angles), 1 / math.sqrt(3))]) * math.sqrt(0.75)


# ── Lemma 5.9 ──


@pytest.mark.parametrize(("threshold", "reach"), [(0.0, 0.02), (0.05, 0.02), (0.05, 0.2)])
def test_no_move_of_the_input_does_worse_than_the_perturbation(threshold, reach):
    """d = 3: the slice is a circle, and 2001 angles within the reach are all moves there are."""
    net, start = moved(300, 0.05, threshold)
    for angle in (0.3, 2.0, 4.4):
        x = circle([angle])
        half = 2 * math.asin(reach / 2 / math.sqrt(0.75))
        around = circle(angle + np.linspace(-half, half, 2001))
        assert np.linalg.norm(around - x, axis=1).max() <= reach + 1e-12
        measured = sl.perturbation(net, start.hidden, x, reach)
        worst_f = np.abs(net(around) - net(x)).max()
        g = sl.pseudo_network(net, start.hidden, around)
        worst_g = np.abs(g - sl.pseudo_network(net, start.hidden, x)).max()
        assert worst_f <= measured.network and worst_g <= measured.pseudo
        assert worst_f > 0 and worst_g > 0
        z, z_x = (net.preactivations(rows) > threshold for rows in (around, x))
        assert (z != z_x).any(axis=0).sum() <= measured.open_neurons
        start_z, start_x = (rows @ start.hidden.T + net.bias > threshold for rows in (around, x))
        assert (start_z != start_x).any(axis=0).sum() <= measured.open_at_start


def test_where_no_neuron_is_open_the_perturbation_is_attained():
    hidden = np.array([[3.0, 0.0], [0.0, -1.0], [0.0, 2.0]])
    start = np.array([[2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    arguments = (TwoLayer(hidden, np.zeros(3), [1.0, 5.0, -1.0], 0.0, shifted_relu(0.1)), start, [[1.0, 1.0]])
    measured = sl.perturbation(*arguments, 0.1)
    # f = 3x₁ − 2x₂ near (1, 1), g = x₁ − x₂.
    assert measured.network == pytest.approx(0.1 * math.sqrt(13)) and measured.pseudo == pytest.approx(
        0.1 * math.sqrt(2)
    )
    assert (measured.open_neurons, measured.open_at_start) == (0, 0)
    wide = sl.perturbation(*arguments, 0.5)  # ‖w‖·reach is 1.5, 0.5, 1 about z − τ = 2.9, −1.1, 1.9; start 1, ., 0.5 …
    assert (wide.open_neurons, wide.open_at_start) == (0, 0)
    assert sl.perturbation(*arguments, 1.0).open_neurons == 2


@pytest.mark.parametrize("threshold", [None, 0.02])
def test_the_bound_of_lemma_5_9_holds_over_starts(threshold):
    """40 starts, failure of 10%: at most 4 + 4·√3.6 may be above."""
    width, failures = 2000, 0
    tau, radius = 1 / width if threshold is None else threshold, 2 * width**-0.8
    bound = sl.perturbation_bound(width, 5, radius, tau, failure=0.1)
    x = np.array([[0.5, 0.5, 0.5, 0.0, 0.5]])
    for seed in range(40):
        net, start = moved(width, radius, tau, 5, seed)
        measured = sl.perturbation(net, start.hidden, x, 1 / width)
        failures += measured.network > bound.network or measured.pseudo > bound.pseudo
    assert failures <= 4 + 4 * math.sqrt(3.6)


def test_lemma_5_9_is_far_below_what_is_printed():
    """f as m^(−1/2) at most where m^(−1/5) is printed, g as 1/m where m^(−1/2) is: exponents between 10⁴ and 10⁹."""
    small, large = (sl.perturbation_bound(m, 10, 2 * m**-0.8, 1 / m) for m in (10**4, 10**9))
    assert math.log10(large.network / small.network) / 5 <= -0.48
    assert math.log10(large.pseudo / small.pseudo) / 5 <= -0.9
    for m, bound in ((10**4, small), (10**9, large)):
        assert bound.network < m**-0.2 and bound.pseudo < 2 * m**-0.5


# ── Lemma 5.14 ──


def test_gradients_by_differences_of_the_outputs():
    """∂f/∂W and ∂g/∂W by central differences, then the sum of the norms."""
    net, start = moved(12, 0.4, 0.1)
    X, slopes = circle([0.1, 1.7, 3.0, 5.0]), np.array([1.0, -0.5, 0.25, -1.0])

    def network(weights):
        return net.with_parameters(hidden=weights)(X)

    def pseudo(weights):
        return sl.pseudo_network(net.with_parameters(hidden=weights), start.hidden, X)

    gap = np.zeros((12, 3))
    for r in range(12):
        for j in range(3):
            step = np.zeros((12, 3))
            step[r, j] = 1e-6
            f, g = ((run(net.hidden + step) - run(net.hidden - step)) / 2e-6 for run in (network, pseudo))
            gap[r, j] = slopes @ (f - g) / 4
    measured = sl.gradient_coupling(net, start.hidden, X, slopes)
    assert measured.distance == pytest.approx(np.linalg.norm(gap, axis=1).sum(), abs=1e-6)
    assert measured.neurons == np.count_nonzero(np.linalg.norm(gap, axis=1) > 1e-7) > 0
    assert 0 < measured.distance <= measured.bound


def test_the_bound_of_lemma_5_14_holds_over_starts_and_needs_no_n():
    """Neurons moved towards the threshold of an example each, as far as Claim 5.16 allows; 40 starts."""
    width, n, failures = 4000, 8, 0
    radius = sl.claim_radius(width)
    X = circle(np.arange(n) * 2 * math.pi / n)
    bound = sl.coupling_bound(n, width, radius, failure=0.1)
    largest = 0.0
    for seed in range(40):
        start = init.ntk(threshold=0.0)(3, width, seed)
        first = start.hidden.astype(np.float64)
        z = first @ X.T + start.bias[:, None]
        nearest = np.abs(z).argmin(axis=1)
        signs = np.sign(z[np.arange(width), nearest])
        hidden = first - radius * signs[:, None] * X[nearest]
        measured = sl.gradient_coupling(start.with_parameters(hidden=hidden), first, X, np.ones(n))
        assert measured.distance <= measured.bound * (1 + 1e-6)
        failures += measured.distance > bound
        largest = max(largest, measured.distance)
    assert failures <= 4 + 4 * math.sqrt(3.6)
    assert bound / 8 < largest  # the neurons of one example only count 1/n each
    assert sl.coupling_bound(1000, 10**6, sl.claim_radius(10**6)) < 1.05 * 10 ** (6 * 27 / 40) / math.sqrt(math.pi)


# ── Claim 5.19 ──


def test_the_bounds_of_claim_5_19_hold_for_the_sum_and_the_mean():
    """S₁ over 40 starts of k neurons and all moves within the reach, on the circle; S₂ by quadrature."""
    k, reach, failures = 4000, 0.003, 0
    h = sl.feature_function([0.1, -0.5, 1.0, 0.4], 0.1).clipped(0.01)
    bound = sl.claim_5_19(k, h.limit, 3, 0.1, reach, failure=0.1)
    centre, x = circle([0.0]), circle([0.8])
    angles = 0.8 + 2 * math.asin(reach / 2 / math.sqrt(0.75)) * np.linspace(-1, 1, 101)
    around = circle(angles)
    for seed in range(40):
        draw = Stream(seed, "standard")
        w, b = draw.child("w").normal((k, 3)), draw.child("b").normal(k)
        values = h(w @ centre[0], b) / k
        sums = (around @ w.T + b > 0.1) @ values
        failures += np.abs(sums - ((x @ w.T + b > 0.1) @ values)).max() > bound.sum
    assert failures <= 4 + 4 * math.sqrt(3.6)
    here, there = (h.mean(float(centre[0] @ point)) for point in (x[0], around[-1]))
    assert 0 < abs(here - there) <= bound.mean
    # k^(−1/2) is printed for moves of 1/k^c; at c = 1 both are of order 1/k, up to logarithms.
    first, second = (sl.claim_5_19(count, 1.0, 10) for count in (10**4, 10**8))
    assert second.sum < 3e-4 * first.sum and second.mean < 3e-4 * first.mean
    assert second.sum < (10**8) ** -0.5


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: sl.gradient_coupling(*pair(), circle([0.0, 1.0]), [1.0]),
            "slopes must be a vector of 2 numbers, one per row of X; got shape (1,)",
        ),
        (
            lambda: sl.gradient_coupling(*pair(), circle([0.0]), [math.nan]),
            "slopes must hold finite numbers",
        ),
        (lambda: sl.perturbation(*pair(), circle([0.0]), -1.0), "reach must be a finite number in [0, inf)"),
        (lambda: sl.perturbation_bound(10, 3, 0.1, failure=1.0), "failure must be a finite number in (0, 1); got 1.0"),
        (lambda: sl.coupling_bound(0, 10, 0.1), "n must be an integer of at least 1; got 0"),
        (lambda: sl.claim_5_19(10, -1.0, 3), "limit must be a finite number in [0, inf); got -1.0"),
    ],
)
def test_bad_arguments_are_refused(call, text, refused):
    refused(text, call)
