"""Certificates are sound (no attack and no brute force goes below), exact where the network is linear, and not idle."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neural_network import MLPClassifier

from fewfire._random import Stream
from fewfire._sphere import on_slice
from fewfire.learners import RobustClassifier, RobustRegressor
from fewfire.networks import TwoLayer
from fewfire.robustness import Layers, attack, certify, robust_score
from fewfire.robustness._bounds import BOUNDS, lower_bounds
from fewfire.robustness._threats import L2Ball, LinfBall, SliceCap

SLACK = 1e-9


def random_network(rng, inputs, width, tau):
    activation = "relu" if tau == 0 else f"shifted_relu({tau})"
    bias, output = rng.normal(size=width) * 0.5, rng.normal(size=width)
    return TwoLayer(rng.normal(size=(width, inputs)), bias, output, rng.normal(), activation)


def lipschitz_bound(net, points, threat):
    """f − Σ_r |a_r|(max(u_r − z_r, z_r − l_r) + τ), which does not use the active pattern."""
    low, high = threat.span(net.hidden, points)
    return net.scores(points)[:, 0] - (np.maximum(high, -low) + net.threshold) @ np.abs(net.output)


def threat_and_points(kind, rng, d, rho):
    if kind == "slice":
        return SliceCap(rho), on_slice(rng.normal(size=(6, d - 1)))
    points = rng.uniform(-1, 1, size=(6, d))
    if kind == "linf box":
        return LinfBall(rho, -1.0, 1.0), points
    if kind == "l2 box":
        return L2Ball(rho, -1.0, 1.0), points
    return (L2Ball if kind == "l2" else LinfBall)(rho), points


@given(
    kind=st.sampled_from(["l2", "linf", "l2 box", "linf box", "slice"]),
    seed=st.integers(0, 10**6),
    d=st.integers(2, 4),
    rho=st.sampled_from([1e-3, 0.05, 0.3, 1.0]),
    tau=st.sampled_from([0.0, 0.1, 0.8]),
    width=st.sampled_from([1, 3, 20]),
)
def test_every_bound_holds_and_none_is_below_the_plain_one(kind, seed, d, rho, tau, width):
    rng = np.random.default_rng(seed)
    net = Layers.of(random_network(rng, d, width, tau))
    threat, points = threat_and_points(kind, rng, d, rho)
    bounds, undecided = lower_bounds(net, points, threat)
    least = net.scores(points)[:, 0]
    for trial in range(40):
        inside = threat.draw(points, Stream(seed, str(trial)))
        rim = threat.project(points + 10 * (inside - points), points)
        least = np.minimum(least, np.minimum(net.scores(inside), net.scores(rim))[:, 0])
    assert (bounds <= least + SLACK).all(), BOUNDS
    assert (bounds[0] >= lipschitz_bound(net, points, threat) - SLACK).all()
    assert undecided.max() <= width


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_brute_force_on_a_grid(tau):
    """One and two dimensions, every point of a fine grid: the jump at τ is inside the bound."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-1, 1, 101)
    for trial in range(20):
        for d in (1, 2):
            net = Layers.of(random_network(rng, d, 5, tau))
            center = rng.uniform(-1, 1, size=(1, d))
            moves = np.stack(np.meshgrid(*[grid] * d), axis=-1).reshape(-1, d)
            for rho in (0.05, 0.5):
                for threat, allowed in (
                    (LinfBall(rho), moves),
                    (L2Ball(rho), moves[np.linalg.norm(moves, axis=1) <= 1]),
                ):
                    bound = lower_bounds(net, center, threat)[0].max()
                    assert bound <= net.scores(center + rho * allowed).min() + SLACK, (trial, d, rho)


def test_the_jump_is_seen():
    """One neuron just below its threshold: a step of 1e-6 makes the output fall by 2τ, which no slope foretells."""
    net = TwoLayer(np.array([[1.0]]), np.zeros(1), np.array([-2.0]), 1.0, "shifted_relu(0.5)")
    point = np.array([[0.5 - 1e-7]])
    assert net(point) == 1.0
    assert certify(net, point, [1], 1e-6).margin == pytest.approx([1.0 - 2 * 0.5], abs=1e-5)
    assert certify(net, point, [1], 1e-8).margin == pytest.approx([1.0])
    falling = TwoLayer(np.array([[1.0]]), np.zeros(1), np.array([2.0]), 0.0, "shifted_relu(0.5)")
    assert certify(falling, np.array([[0.5 + 1e-7]]), [1], 1e-6).margin == pytest.approx([0.0])


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_exact_where_the_pattern_cannot_change(norm):
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=(30, 5))
    net = TwoLayer(hidden, np.full(30, 50.0), rng.normal(size=30), 0.7, "shifted_relu(0.2)")
    points = rng.normal(size=(8, 5))
    y = np.where(net(points) > 0, 1, -1)
    weight, rho = net.output @ hidden, 0.3
    dual = np.linalg.norm(weight, ord=1 if norm == "linf" else 2)
    certificate = certify(net, points, y, rho, norm)
    assert certificate.margin == pytest.approx(np.abs(net(points)) - rho * dual, rel=1e-9)
    assert attack(net, points, y, rho, norm).margin == pytest.approx(certificate.margin, rel=1e-9)
    assert (certificate.open_neurons == 0).all() and set(certificate.bound) <= {"pattern", "relaxed", "floor"}
    assert (lipschitz_bound(Layers.of(net), points, L2Ball(rho)) < certificate.margin.max()).all()


def test_tighter_than_the_plain_bound_on_trained_networks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    model = RobustClassifier(300, 0.1, 0.1, iterations=50, random_state=0).fit(X, y)
    heads = model._heads()
    signed = [heads.combination(np.array([float(label)])) for label in y]
    plain = np.array([lipschitz_bound(f, X[i : i + 1], L2Ball(0.1))[0] for i, f in enumerate(signed)])
    certificate, found = certify(model, X, y), attack(model, X, y)
    assert (certificate.margin <= found.margin + SLACK).all()
    # The plain bound counts all 300 neurons and a jump for each; the best bound only those that can fire.
    gap, plain_gap = found.margin - certificate.margin, found.margin - plain
    assert np.median(gap) < 0.2 * np.median(plain_gap)
    assert certificate.accuracy <= robust_score(model, X, y)


@pytest.mark.parametrize("domain", ["ball", "slice", "projected"])
def test_certificates_never_exceed_attacks_on_many_classes(domain):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(45, 3))
    X = on_slice(X) if domain == "slice" else X
    y = X[:, :3].argmax(axis=1)
    model = RobustClassifier(60, 0.2, 0.05, domain=domain, iterations=20, random_state=0).fit(X, y)
    certificate, found = certify(model, X, y), attack(model, X, y, restarts=8)
    assert (certificate.margin <= found.margin + SLACK).all()
    assert certificate.robust.any() and (found.margin <= found.clean_margin).all()


def test_regressors_have_a_proved_error():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = 100 + 30 * X[:, 0]
    model = RobustRegressor(200, 0.2, 0.05, iterations=60, random_state=0).fit(X, y)
    certificate, found = certify(model, X, y), attack(model, X, y)
    assert (certificate.margin <= found.margin + 1e-7).all()
    assert (found.margin <= -np.abs(model.predict(X) - y) + 1e-9).all()
    assert (certificate.margin >= 4 * found.margin - 30).all()  # in units of y, whose deviation is 30


def test_perceptrons_of_one_relu_layer_are_certified():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model = MLPClassifier((16,), max_iter=60, random_state=0).fit(X, y)
    certificate, found = certify(model, X, y, 0.02), attack(model, X, y, 0.02)
    assert (certificate.margin <= found.margin + SLACK).all()
    assert np.median(found.margin - certificate.margin) < 0.01
    with pytest.warns(UserWarning, match="Maximum iterations"):
        deep = MLPClassifier((4, 4), activation="tanh", max_iter=2).fit(X, y)
    message = (
        "model must be linear or have hidden layers of relu neurons to be certified; "
        "got a perceptron of 2 hidden layers of tanh."
    )
    with pytest.raises(ValueError) as caught:
        certify(deep, X, y, 0.1)
    assert str(caught.value) == message
    with pytest.raises(ValueError, match=r"model must have a relu or shifted relu to be certified; got 'relu6'."):
        certify(TwoLayer(np.eye(4), np.zeros(4), np.ones(4), activation="relu6"), X, np.ones(60), 0.1)


def test_difference_and_negative():
    rng = np.random.default_rng(0)
    first, second = random_network(rng, 3, 4, 0.2), random_network(rng, 3, 5, 0.2)
    X = rng.normal(size=(7, 3))
    one = Layers.of(first)
    both = Layers.of(first, second)
    assert np.allclose(one.scores(X)[:, 0], first(X))
    assert np.allclose(both.scores(X), np.column_stack([first(X), second(X)]))
    assert np.allclose(both.combination(np.array([1.0, -1.0])).scores(X)[:, 0], first(X) - second(X))
    assert np.allclose(one.combination(np.array([-1.0])).scores(X)[:, 0], -first(X))


def test_a_jump_is_not_missed_far_from_the_origin():
    """At 1e8 preactivations round by 1e-8: a neuron that really fires by less than that is not taken for silent."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        weights, point = draw.uniform(-2, 2, size=3), 1e8 + draw.uniform(size=3)
        product = sum(Fraction(w) * Fraction(x) for w, x in zip(weights.tolist(), point.tolist(), strict=True))
        bias = np.nextafter(float(Fraction(1, 2) - product), np.inf)
        assert product + Fraction(float(bias)) > Fraction(1, 2)
        net = Layers.of(TwoLayer(weights[None], np.array([bias]), np.array([-1.0]), 0.0, "shifted_relu(0.5)"))
        table, _ = lower_bounds(net, point[None], L2Ball(0.0))
        assert table.max() <= -0.5


def test_ranges_over_caps_along_the_axis():
    """Where w is nearly parallel to x₀ their angle is known to 1e-8 only; the range holds every point of the cap."""
    draw = np.random.default_rng(1)
    for off in [0.0, 1e-9, 1e-8] * 50:
        point = on_slice(draw.normal(size=(1, 5)))
        weights = np.append(point[0, :-1] * draw.uniform(0.5, 3) + off * draw.normal(size=5), 0.0)
        cap = SliceCap(1.2)
        many = np.repeat(point, 200, axis=0)
        values = (cap.project(many + 5 * draw.normal(size=many.shape), many) - point) @ weights
        low, high = cap.span(weights[None], point)
        assert low[0, 0] <= values.min() + 1e-14
        assert values.max() - 1e-14 <= high[0, 0]
