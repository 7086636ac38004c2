"""Several hidden layers: no proof is above what brute force finds, and branch and bound meets enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.neural_network import MLPClassifier, MLPRegressor

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.robustness import Layers, ModelAdapter, attack, certify, minimal_radius, register_adapter
from fewfire.robustness._deep import DeepBlock
from fewfire.robustness._threats import L1Ball, L2Ball, LinfBall, restrict


class Deep:
    """Layers as they are, classified by their sign or their largest score."""

    def __init__(self, layers):
        self.layers = layers


@register_adapter(Deep, described=None)
def deep(model, X, y):
    heads = len(model.layers.biases[-1])
    return ModelAdapter(model.layers, np.array([-1, 1]) if heads == 1 else np.arange(heads))


def random_layers(rng, *widths):
    weights = tuple(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in itertools.pairwise(widths))
    return Layers(weights, tuple(0.3 * rng.normal(size=width) for width in widths[1:]), "relu")


def threats(rho, d):
    box = (-0.9, 0.8)
    scales = np.linspace(0.5, 1.5, d) * rho
    yield from (kind(rho, *ends) for kind in (L1Ball, L2Ball, LinfBall) for ends in ((), box))
    yield restrict(L2Ball(rho), scales, d)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    widths=st.sampled_from([(2, 3, 3), (2, 8, 5, 4), (3, 12, 12), (3, 6, 6, 6, 6), (1, 5, 5)]),
    rho=st.sampled_from([1e-3, 0.1, 0.5, 2.0]),
    kind=st.integers(0, 6),
    far=st.sampled_from([0.0, 1e6]),
)
def test_ranges_and_bounds_hold(seed, widths, rho, kind, far):
    rng = np.random.default_rng(seed)
    layers, points = random_layers(rng, *widths, 1), rng.uniform(-0.8, 0.7, size=(4, widths[0]))
    if far:  # the same network around a far point: what is added up is large and cancels
        layers = layers.after(np.ones(widths[0]), np.full(widths[0], -far))
        points, kind = points + far, 2 * (kind // 2) % 6
    threat = list(threats(rho, widths[0]))[kind]
    block = DeepBlock(layers, (layers,), points, threat)
    table, _ = block.lower_bounds(0, np.arange(4))
    cells = block.cells(np.arange(4), np.zeros(4, dtype=int), 0.0)
    found = [block.improve(cells, 10, np.full(4, np.inf))[1]]
    found.append(block.curved(cells, (15, 0.2), np.full(4, np.inf))[0])
    block.tighten(np.arange(4))
    again = block.cells(np.arange(4), np.zeros(4, dtype=int), 0.0)
    found.append(block.improve(again, 5, np.full(4, np.inf))[1])
    for trial in range(20):
        inside = threat.draw(points, Stream(seed, str(trial)))
        rim = threat.project(points + 10 * (inside - points), points)
        for moved in (inside, rim):
            moved = threat.settle(moved, points)
            values, z = moved, []
            for matrix, bias in zip(layers.weights, layers.biases, strict=True):
                z.append(values @ matrix + bias)
                values = np.maximum(z[-1], 0.0)
            size = 1e-15 * (1 + far) * sum(map(sum, widths and [widths])) * 10
            every = np.hstack(z[:-1])
            assert (every >= block.low - size).all() and (every <= block.high + size).all()
            for bound in (*table, *found):
                assert (bound <= z[-1][:, 0] + size).all()


def enumerated(layers, point, rho, box, norm):
    """min f by a linear program per pattern of all neurons, in the maximum norm or the 1-norm, within a box."""
    d, widths = len(point), [len(bias) for bias in layers.biases[:-1]]
    best = np.inf
    for pattern in itertools.product((False, True), repeat=sum(widths)):
        on, matrix, z = np.array(pattern), layers.weights[0], layers.biases[0]
        rows, limits, start = [], [], 0
        for width, weights, bias in zip(widths, layers.weights[1:], layers.biases[1:], strict=True):
            fires = on[start : start + width]
            sign = np.where(fires, -1.0, 1.0)
            rows.append((matrix * sign).T)
            limits.append(-z * sign)
            matrix, z, start = (matrix * fires) @ weights, (z * fires) @ weights + bias, start + width
        # Moves are up − down, which is what the 1-norm adds up.
        table = np.vstack(rows)
        table, cost = np.hstack([table, -table]), np.concatenate([matrix[:, 0], -matrix[:, 0]])
        limit = np.concatenate(limits) - np.vstack(rows) @ point
        ends = [(0.0, min(rho, box[1] - x)) for x in point] + [(0.0, min(rho, x - box[0])) for x in point]
        if norm == "l1":
            table, limit = np.vstack([table, np.ones(2 * d)]), np.append(limit, rho)
        found = linprog(cost, A_ub=table, b_ub=limit, bounds=ends)
        if found.status == 0:
            best = min(best, found.fun + float(matrix[:, 0] @ point + z[0]))
    return best


@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("widths", [(2, 3, 3), (3, 3, 2, 2)])
def test_branch_and_bound_meets_the_least_of_all_patterns(norm, widths):
    rng = np.random.default_rng(len(widths))
    for _ in range(2):
        layers, point = random_layers(rng, *widths, 1), rng.uniform(-0.5, 0.5, size=widths[0])
        sign = 1 if layers.scores(point[None])[0, 0] > 0 else -1
        least = enumerated(layers.combination(np.array([float(sign)])), point, 1.0, (-1.0, 1.0), norm)
        options = {"bounds": (-1, 1), "norm": norm, "tight": True, "nodes": 2000}
        proof = certify(Deep(layers), point[None], [sign], 1.0, method="branch", **options)
        assert least - 2e-3 <= proof.margin[0] <= least + 1e-9
        assert proof.margin[0] <= proof.upper[0] and least <= proof.upper[0] + 1e-9
        for method in ("linear", "alpha", "sdp"):
            assert certify(Deep(layers), point[None], [sign], 1.0, method=method, **options).margin[0] <= least + 1e-9


def test_branch_and_bound_meets_a_dense_grid_in_the_2_norm():
    rng = np.random.default_rng(5)
    axis = np.linspace(-1, 1, 601)
    disc = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    disc = disc[np.linalg.norm(disc, axis=1) <= 1.0]
    for _ in range(4):
        layers, point = random_layers(rng, 2, 6, 5, 1), rng.uniform(-0.5, 0.5, size=2)
        sign = 1 if layers.scores(point[None])[0, 0] > 0 else -1
        least = (sign * layers.scores(point + 0.7 * disc)[:, 0]).min()
        proof = certify(Deep(layers), point[None], [sign], 0.7, method="branch", tight=True, nodes=2000)
        assert least - 1e-2 <= proof.margin[0] <= least + 1e-9


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (np.abs(X[:, 0]) + X[:, 1] > 0.7).astype(int) + (X[:, 2] > 0.8)
    return MLPClassifier((16, 12), max_iter=3000, random_state=0).fit(X, y), X[:60], y[:60]


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_later_methods_prove_no_less_and_no_attack_breaks_a_proof(classifier, norm):
    model, X, y = classifier
    before, rho = None, {"l1": 0.4, "l2": 0.3, "linf": 0.15}[norm]
    found = attack(model, X, y, rho, norm)
    for method in ("linear", "alpha", "sdp", "branch"):
        proof = certify(model, X, y, rho, norm, method=method, nodes=100)
        assert (proof.margin <= found.margin + 1e-9).all() and (proof.margin <= proof.upper).all()
        assert not (proof.robust & found.success).any()
        assert before is None or (proof.robust >= before).all()
        before = proof.robust
    assert proof.decided.mean() > 0.95


def test_regressors_radii_and_regions_without_open_neurons(classifier):
    model, X, y = classifier
    radius = minimal_radius(model, X[:6], y[:6], rho=1.0, rounds=4)
    assert (radius.lower <= radius.upper).all() and radius.lower.max() > 0
    near = certify(model, X, y, rho=1e-7)
    assert (near.open_neurons == 0).any() and (near.gap[near.open_neurons == 0] < 1e-4).all()
    target = X[:, 0] ** 2
    regressor = MLPRegressor(hidden_layer_sizes=(12, 8), max_iter=3000, random_state=0).fit(X, target)
    proof = certify(regressor, X[:10], target[:10], rho=0.1)
    found = attack(regressor, X[:10], target[:10], rho=0.1)
    assert (proof.margin <= found.margin + 1e-9).all() and (proof.gap[proof.open_neurons > 0] < 0.05).all()


def test_other_activations_are_refused_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = MLPClassifier((4, 4), activation="tanh", max_iter=10, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(X, y)
    with pytest.raises(InvalidArgument, match="tanh"):
        certify(model, X, y, rho=0.1)
