"""sparse-activations, Claim 2.1, Lemmas 6, 9 and 10, on small networks whose k, W and B are measured.

The lemmas leave their constants open. These suffice here, and the first two in general:

Lemma 6   AS(g) ≤ c · p √(n ln(1/p)), c = 1/√2 for p ≤ 1/2: AS(g) = ½ Σ_i |ĝ({i})| for a halfspace, and the level-1
          inequality gives Σ_i ĝ({i})² ≤ 2 p² ln(1/p).
Lemma 9   AS(h) ≤ 4 k² W², so c = 4/(√n ln(ns)) in the printed form. relu is 1-Lipschitz, so a flip of x_i moves h by at
          most Σ_j 2 |u_j w_ji| over the at most 2k neurons active before or after; Cauchy–Schwarz does the rest.
Lemma 10  NS_ρ(h) ≤ ½ (1 − ρ) AS(h) ≤ 2 (1 − ρ) k² W² for 0 ≤ ρ ≤ 1, as 1 − ρᵈ ≤ d (1 − ρ).
"""

import math

import numpy as np
import pytest

from fewfire import fourier
from fewfire._cube import cube
from fewfire._random import Stream


class Net:
    """h(x) = Σ_j u_j relu(⟨w_j, x⟩ − b_j), with its class parameters read off."""

    def __init__(self, hidden, bias, output):
        self.hidden, self.bias, self.output = (np.asarray(part, dtype=float) for part in (hidden, bias, output))
        self.inputs = self.hidden.shape[1]

    def __call__(self, X):
        return np.maximum(X @ self.hidden.T - self.bias, 0.0) @ self.output

    def parameters(self):
        active = (cube(self.inputs) @ self.hidden.T - self.bias > 1e-12).sum(axis=1).max()
        largest = np.abs(self.output).max()
        W = largest * np.linalg.norm(self.hidden, axis=1).max()
        return self.inputs, len(self.bias), int(active), W, largest * np.abs(self.bias).max()


def junta(n, p, seed):
    """Theorem 13: one neuron for each of the 2^p patterns of the first p inputs."""
    hidden = np.zeros((2**p, n))
    hidden[:, :p] = cube(p)
    return Net(hidden, np.full(2**p, p - 1.0), Stream(seed, "table").signs(2**p))


def parity(n, p):
    net = junta(n, p, 0)
    net.output = cube(p).prod(axis=1).astype(float)
    return net


def indexing(b):
    n = b + 2**b
    hidden = np.zeros((2**b, n))
    hidden[:, :b] = cube(b)
    hidden[np.arange(2**b), b + np.arange(2**b)] = 0.5
    return Net(hidden, np.full(2**b, b - 0.5), np.ones(2**b))


def dense_weights(b, q, seed):
    """Appendix A with ‖w_α‖ = 1 and Γ = √q."""
    directions = Stream(seed, "directions").normal((2**b, q))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    hidden = np.hstack([math.sqrt(q) * cube(b), directions])
    return Net(hidden, np.full(2**b, math.sqrt(q) * b), np.ones(2**b))


def random_net(n, s, bias, seed):
    stream = Stream(seed, "net")
    return Net(stream.child("w").normal((s, n)), np.full(s, bias), stream.child("u").normal(s))


NETS = {
    "junta 3 of 8": junta(8, 3, 1),
    "junta 5 of 7": junta(7, 5, 2),
    "parity 4 of 6": parity(6, 4),
    "indexing 2": indexing(2),
    "indexing 3": indexing(3),
    "appendix A, b=2 q=6": dense_weights(2, 6, 3),
    "appendix A, b=3 q=5": dense_weights(3, 5, 4),
    "random, sparse": random_net(9, 20, 6.0, 5),
    "random, dense": random_net(8, 6, 0.0, 6),
    "random, biased": random_net(10, 40, 5.0, 7),
}
EXACT = {name: fourier.spectrum(net) for name, net in NETS.items()}
each_net = pytest.mark.parametrize("name", NETS)
RHOS = (0.0, 0.2, 0.5, 0.9, 0.99)


@pytest.mark.parametrize("name", [name for name in NETS if "random" not in name])
def test_the_constructed_networks_are_one_sparse(name):
    assert NETS[name].parameters()[2] == 1


def test_the_dense_network_selects_a_halfspace_by_its_first_inputs():
    net = NETS["appendix A, b=2 q=6"]
    points = cube(8)
    selected = (points[:, :2] < 0) @ np.array([1, 2])
    expected = np.maximum((points[:, 2:] * net.hidden[selected, 2:]).sum(axis=1), 0.0)
    assert np.allclose(net(points), expected, atol=1e-12)


@each_net
def test_claim_2_1(name):
    picture = EXACT[name]
    norm = (NETS[name](cube(picture.n)) ** 2).mean()
    assert math.isclose(picture.norm_squared, norm, rel_tol=1e-12)
    for rho in RHOS:
        sensitivity = picture.noise_sensitivity(rho)
        for d in range(1, picture.n):
            as_printed = 2 * sensitivity / (1 - rho**d)
            sharper = 2 * sensitivity / (1 - rho ** (d + 1))
            assert picture.tail(d) <= sharper * (1 + 1e-12) <= as_printed * (1 + 1e-11)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_lemma_6(n):
    points = cube(n).astype(float)
    tried = [np.ones(n), 2.0 ** np.arange(n), *Stream(n, "halfspaces").normal((20, n))]
    worst = 0.0
    for weights in tried:
        for threshold in np.quantile(points @ weights, [0.0, 0.02, 0.1, 0.3, 0.5]):
            g = (points @ weights <= threshold).astype(float)
            p = g.mean()
            if p > 0.5:
                continue
            picture = fourier.spectrum(g)
            degree_one = sum(abs(picture.coefficient([i])) for i in range(n))
            assert math.isclose(picture.average_sensitivity(), degree_one / 2, rel_tol=1e-12)
            worst = max(worst, picture.average_sensitivity() / (p * math.sqrt(n * math.log(1 / p))))
    assert 0.4 < worst <= 1 / math.sqrt(2)


@each_net
def test_lemma_9(name):
    n, s, k, W, B = NETS[name].parameters()
    sensitivity = EXACT[name].average_sensitivity()
    assert sensitivity <= 4 * k**2 * W**2
    printed = k**4 * W**2 * math.sqrt(n) * math.log(n * s) + k**3 * B**2 * math.sqrt(math.log(s))
    assert sensitivity <= 4 / (math.sqrt(n) * math.log(n * s)) * printed


def test_lemma_9_is_tight_in_w_up_to_its_constant():
    """The parity of p inputs as a 1-sparse network has AS = p = W²."""
    assert EXACT["parity 4 of 6"].average_sensitivity() == pytest.approx(4.0)
    assert NETS["parity 4 of 6"].parameters()[3] == pytest.approx(2.0)


@each_net
def test_lemma_10(name):
    n, s, k, W, B = NETS[name].parameters()
    picture = EXACT[name]
    for rho in RHOS:
        sensitivity = picture.noise_sensitivity(rho)
        assert sensitivity <= 0.5 * (1 - rho) * picture.average_sensitivity() * (1 + 1e-12)
        assert sensitivity <= 2 * (1 - rho) * k**2 * W**2
        printed = k**4 * W**2 * math.log(n * s / (1 - rho)) ** 2 + k**3 * B**2 * math.sqrt(math.log(s))
        assert sensitivity <= math.sqrt(1 - rho) * printed  # constant 1


@each_net
def test_the_tail_falls_like_one_over_the_degree(name):
    _, _, k, W, _ = NETS[name].parameters()
    picture = EXACT[name]
    for d in range(picture.n):
        assert picture.tail(d) <= picture.average_sensitivity() / (d + 1) * (1 + 1e-12) <= 4 * k**2 * W**2 / (d + 1)
