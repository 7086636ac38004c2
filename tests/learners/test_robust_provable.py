"""`proof_weight`: bounds by lines and their gradients, and what training on them does to certificates."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from fewfire._random import Stream
from fewfire.learners import RobustClassifier
from fewfire.learners._robust._adversary import LineBounds, moves_of
from fewfire.learners._robust._minibatches import Perceptron, Standardisation
from fewfire.robustness import certify, robust_score
from fewfire.robustness._threats import L2Ball, LinfBall, SliceCap

rng = np.random.default_rng(0)
X = np.clip(rng.normal(size=(80, 4)), -1.0, 1.0)
SIGNS = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
THREE = np.argmax(X[:, :3], axis=1)
BALLS = [L2Ball(0.3), L2Ball(0.3, -1.0, 1.0), LinfBall(0.2), LinfBall(0.2, -1.0, 1.0)]


def bounded(threat, heads, width=12):
    """A network with random biases, its bounds, and how the margins weigh its scores."""
    rng = np.random.default_rng(heads)
    standard = Standardisation.learn(X, np.ones(len(X)))
    net = Perceptron(4, width, heads, Stream(1, "init"))
    net.flat += 0.1 * rng.normal(size=net.flat.shape).astype(np.float32)
    signs = np.eye(3)[THREE] - np.eye(3)[(THREE + 1) % 3] if heads == 3 else SIGNS[:, None]
    return standard, net, LineBounds(moves_of(threat, standard)), signs.astype(np.float32)


@pytest.mark.parametrize("threat", BALLS)
@pytest.mark.parametrize("heads", [1, 3])
def test_bounds_hold_and_are_not_trivial(threat, heads):
    standard, net, bounds, margins = bounded(threat, heads)
    value, _ = bounds(net.parameters, standard(X), margins)
    network = net.network(standard)
    least = np.full(len(X), np.inf)
    for trial in range(200):
        moved = threat.draw(X, Stream(trial, "draw"))
        if trial % 2:
            moved = threat.project(X + 10 * (moved - X), X)
        least = np.minimum(least, (network(moved).reshape(len(X), -1) * margins).sum(axis=1))
    assert (value <= least + 1e-4).all()
    clean = (network(X).reshape(len(X), -1) * margins).sum(axis=1)
    assert np.mean(clean - value) <= 2.5 * np.mean(clean - least)
    if heads == 1:  # certify has better ranges, and the best of four bounds
        norm = "l2" if isinstance(threat, L2Ball) else "linf"
        box = (threat.low, threat.high) if np.isfinite(threat.low) else None
        linear = certify(network, X, SIGNS, threat.rho, norm, bounds=box, method="linear").margin
        assert (value <= linear + 1e-4).all()


@pytest.mark.parametrize("threat", BALLS)
@pytest.mark.parametrize("heads", [1, 3])
def test_gradients_are_finite_differences(threat, heads):
    standard, net, bounds, margins = bounded(threat, heads)
    z, weights = standard(X), np.random.default_rng(2).normal(size=len(X)).astype(np.float32)
    gradient = bounds(net.parameters, z, margins)[1](weights)
    assert gradient.shape == net.flat.shape and gradient.dtype == np.float32
    # The same formulas in float64, where a step is so small that it hardly ever crosses a kink.
    flat, step = net.flat.astype(np.float64), 1e-6
    numeric = np.zeros(len(flat))
    for k in range(len(flat)):
        for sign in (1, -1):
            moved = flat.copy()
            moved[k] += sign * step
            numeric[k] += sign * float(bounds(net.layout.unpack(moved), z, margins)[0] @ weights) / (2 * step)
    exact = bounds(net.layout.unpack(flat), z, margins)[1](weights)
    assert np.allclose(exact, numeric, rtol=1e-4, atol=1e-4 * np.abs(exact).max())
    assert np.allclose(gradient, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())


def test_proofs_by_lines_are_what_it_buys():
    table, labels = load_breast_cancer(return_X_y=True)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    proved, scores = [], []
    for weight in (0.0, 0.3):
        model = RobustClassifier(rho=1.0, proof_weight=weight, random_state=0).fit(table[:400], labels[:400])
        proved.append(certify(model, table[400:], labels[400:], method="linear").accuracy)
        scores.append(robust_score(model, table[400:], labels[400:], method="frank_wolfe"))
    assert proved[1] >= proved[0] + 0.15 and scores[1] >= scores[0] - 0.03
    assert "a share of 0.3 of the loss at margins that lines prove" in str(model.explain())


def test_a_weight_of_zero_changes_nothing_and_one_is_the_bound_alone():
    plain, zero, whole = (
        RobustClassifier(30, rho=0.2, epochs=10, random_state=0, **more).fit(X, THREE)
        for more in ({}, {"proof_weight": 0}, {"proof_weight": 1.0})
    )
    assert np.array_equal(plain.decision_function(X), zero.decision_function(X))
    assert not np.allclose(plain.decision_function(X), whole.decision_function(X), atol=0.01)
    still = RobustClassifier(30, rho=0.0, epochs=3, random_state=0, proof_weight=1.0).fit(X, THREE)
    assert still.score(X, THREE) >= 0.5  # no adversary, nothing to prove
    model = RobustClassifier(30, rho=0.2, norm="linf", proof_weight=0.5, random_state=0)
    for _ in range(3):
        model.partial_fit(X, THREE, classes=[0, 1, 2])
    assert model.predict(X).shape == (80,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proof_weight": 2.0}, "proof_weight must be a finite number in [0, 1]; got 2.0."),
        *(
            (
                own | {"proof_weight": 0.5},
                "proof_weight must be 0 but in setting='practical' with loss='logistic' and domain='ball'; got 0.5. "
                "Remedy: leave it out.",
            )
            for own in (
                {"iterations": 5},
                {"setting": "theorem"},
                {"loss": "hinge"},
                {"setting": "practical", "domain": "projected"},
            )
        ),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError) as caught:
        RobustClassifier(20, rho=0.1, random_state=0, **options).fit(X, SIGNS)
    assert str(caught.value) == message


def test_other_sets_have_no_lines():
    with pytest.raises(ValueError, match="norm must be 'l2' or 'linf' where proof_weight is above 0"):
        LineBounds(moves_of(SliceCap(0.1), Standardisation(np.zeros(4), 1.0)))
