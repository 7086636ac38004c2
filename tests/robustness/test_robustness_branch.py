"""Branch and bound is complete on small networks: it meets a dense search (ℓ₂) and scipy's MILP (ℓ∞) from below."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from fewfire.networks import TwoLayer
from fewfire.robustness import Layers, certify
from fewfire.robustness._threats import L2Ball

GAP = 2e-3


def random_network(rng, inputs, width, tau):
    activation = "relu" if tau == 0 else f"shifted_relu({tau})"
    bias, output = rng.normal(size=width) * 0.3, rng.normal(size=width)
    return TwoLayer(rng.normal(size=(width, inputs)), bias, output, rng.normal(), activation)


def dense_minimum(net, point, threat):
    """The least value on a fine grid of the disc, then on finer ones around the best places."""
    best, spread, found = point[None], threat.rho, np.inf
    for level in range(6):
        grid = np.linspace(-1, 1, 161 if level == 0 else 41)
        moves = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2) * spread
        many = (best[:, None] + moves).reshape(-1, 2)
        many = threat.project(many, np.broadcast_to(point, many.shape))
        values = net.scores(many)[:, 0]
        order = np.argsort(values)[:20]
        best, found, spread = many[order], min(found, values[order[0]]), spread / 15
    return found


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]


@pytest.mark.parametrize("tau", [0.0, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_complete_in_the_2_norm_against_a_dense_search(seed, tau):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 2, 16, tau)
    net, points, rho = Layers.of(network), rng.uniform(-1, 1, size=(2, 2)), 0.5
    signs = np.where(net.scores(points)[:, 0] > 0, 1, -1)
    proof = certify(network, points, signs, rho, bounds=(-1, 1), method="branch", tight=True, nodes=3000)
    for i, sign in enumerate(signs):
        least = dense_minimum(net.combination(np.array([float(sign)])), points[i], L2Ball(rho, -1.0, 1.0))
        assert least - GAP <= proof.margin[i] <= least + 1e-9
        assert proof.margin[i] <= proof.upper[i]


def milp_minimum(net, point, rho):
    """min f over the cube as a mixed-integer program: y = z·δ with big-M rows from exact ranges; δ binary."""
    W, b, a, tau = net.hidden, net.bias, net.output, net.threshold
    n, d = W.shape
    reach = rho * np.abs(W).sum(axis=1)
    z = W @ point + b
    low, high = z - reach, z + reach
    # variables: x (d), y (n), δ (n); z = Wx + b
    eye, none = np.eye(n), np.zeros((n, n))
    rows = [
        (np.hstack([W, none, np.diag(tau - high)]), -np.inf, tau - b),  # z ≤ τ when δ = 0
        (np.hstack([W, none, np.diag(low - tau)]), low - b, np.inf),  # z ≥ τ when δ = 1
        (np.hstack([0 * W, eye, np.diag(-high)]), -np.inf, 0.0),  # y ≤ high·δ
        (np.hstack([0 * W, eye, np.diag(-np.minimum(low, 0.0))]), 0.0, np.inf),  # y ≥ 0 when δ = 0
        (np.hstack([-W, eye, np.diag(-low)]), -np.inf, b - low),  # y ≤ z when δ = 1
        (np.hstack([-W, eye, np.diag(-high)]), b - high, np.inf),  # y ≥ z when δ = 1
    ]
    bounds = (
        np.concatenate([point - rho, np.minimum(low, 0.0), np.zeros(n)]),
        np.concatenate([point + rho, np.maximum(high, 0.0), np.ones(n)]),
    )
    found = milp(
        np.concatenate([np.zeros(d), a, np.zeros(n)]),
        constraints=[LinearConstraint(*row) for row in rows],
        integrality=np.concatenate([np.zeros(d + n), np.ones(n)]),
        bounds=bounds,
        options={"mip_rel_gap": 1e-9},
    )
    assert found.status == 0, found.message
    return found.fun + net.offset


@pytest.mark.parametrize("tau", [0.0, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_complete_in_the_maximum_norm_against_mixed_integer_programming(seed, tau):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 4, 16, tau)
    net, points, rho = Layers.of(network), rng.uniform(-1, 1, size=(2, 4)), 0.3
    signs = np.where(net.scores(points)[:, 0] > 0, 1, -1)
    proof = certify(network, points, signs, rho, "linf", method="branch", tight=True, nodes=3000)
    for i, sign in enumerate(signs):
        least = milp_minimum(net.combination(np.array([float(sign)])), points[i], rho)
        assert proof.margin[i] <= least + 1e-6
        assert proof.margin[i] >= least - GAP * (1 + abs(least))


def test_a_budget_of_nodes_gives_a_better_bound_and_a_known_gap():
    """Which bound is the best of a row may depend on rounding; that it is never worse than one without nodes may not."""
    rng = np.random.default_rng(1)
    network = random_network(rng, 6, 60, 0.1)
    points = rng.uniform(-1, 1, size=(3, 6))
    signs = np.where(network(points) > 0, 1, -1)
    moves = rng.normal(size=(2000, 1, 6))
    moves *= 0.6 / np.linalg.norm(moves, axis=2, keepdims=True)
    met = (signs * network((points + moves).reshape(-1, 6)).reshape(-1, 3)).min(axis=0)
    single = certify(network, points, signs, 0.6, tight=True)
    before = single.margin
    for nodes in (1, 8, 40):
        proof = certify(network, points, signs, 0.6, method="branch", tight=True, nodes=nodes)
        assert (proof.nodes <= nodes + 32).all()
        assert (proof.margin >= before - 1e-9).all()
        assert (proof.margin <= met).all() and (proof.margin <= proof.upper).all()
        assert (proof.gap == proof.upper - proof.margin).all() and (proof.gap >= 0).all()
        before = proof.margin
        # The bound named is the one that gave the margin: that of the nodes where it is better, else the single one.
        gain = proof.margin - single.margin
        assert (proof.bound[gain > 1e-9] == "branch").all()
        assert (proof.bound[gain <= 0] == single.bound[gain <= 0]).all()
    assert (gain > 1e-3).sum() >= 2 and gain.sum() > 0.05
