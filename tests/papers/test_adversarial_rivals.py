"""The perceptrons that robust training is compared with: their gradients, their moves, and that they are no straw men."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from fewfire.papers.sublinear.rivals import AdversarialPerceptron, into_ball, steepest
from fewfire.robustness import attack, certify

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
THREE = np.argmax(X, axis=1)


@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("linf", np.inf)])
def test_moved_points_stay_in_ball_and_box(norm, order):
    centres, gradients = np.clip(X, -1, 1).astype(np.float32), rng.normal(size=X.shape).astype(np.float32)
    moved = into_ball(centres + 3 * steepest(gradients, norm), centres, 0.5, norm, (-1, 1))
    assert np.linalg.norm(moved - centres, ord=order, axis=1).max() <= 0.5 + 1e-6 and np.abs(moved).max() <= 1
    free = into_ball(centres + 3 * steepest(gradients, norm), centres, 0.5, norm, None)
    assert np.allclose(np.linalg.norm(free - centres, ord=order, axis=1), 0.5, atol=1e-6)


@pytest.mark.parametrize("trades", [0.0, 6.0])
def test_gradients_are_finite_differences(trades):
    """At rows that are not moved; TRADES' second term is then 0 with slope 0, so that its rows are moved by noise."""
    model = AdversarialPerceptron(0.5, 8, steps=0, trades=trades, epochs=1).fit(X, THREE)
    rows, truth = X.astype(np.float32), np.eye(3, dtype=np.float32)[THREE]
    gradient = model._gradient(rows, truth, np.random.default_rng(1))
    noise = np.float32(0.001) * np.random.default_rng(1).normal(size=X.shape)

    def loss():
        clean = probabilities(model, X)
        value = -np.log((clean * truth).sum(axis=1))
        if trades:
            value += trades * (clean * np.log(clean / probabilities(model, X + noise))).sum(axis=1)
        return value.mean()

    for part, slope in zip(model.parts, gradient, strict=True):
        for place in np.ndindex(part.shape):
            before, numeric = part[place], 0.0
            for sign in (1, -1):
                part[place] = before + sign * 1e-3
                numeric += sign * loss() / 2e-3
            part[place] = before
            assert slope[place] == pytest.approx(numeric, abs=2e-3)


def probabilities(model, points):
    first, bias, second, offset = (part.astype(np.float64) for part in model.parts)
    scores = np.maximum(points @ first + bias, 0) @ second + offset
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_training_against_the_adversary_pays_for_rivals_too():
    table, labels = load_breast_cancer(return_X_y=True)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    stand = {}
    for name, options in {"plain": {"steps": 0}, "PGD": {}, "TRADES": {"trades": 6.0}}.items():
        model = AdversarialPerceptron(1.0, 50, epochs=40, **options).fit(table[:400], labels[:400])
        found = attack(model, table[400:], labels[400:], 1.0, method="frank_wolfe")
        proof = certify(model, table[400:440], labels[400:440], 1.0)
        assert (proof.margin <= found.margin[:40] + 1e-9).all()
        stand[name] = np.mean(found.prediction == labels[400:])
    assert min(stand["PGD"], stand["TRADES"]) >= stand["plain"] + 0.03


def test_a_budget_of_seconds_ends_training():
    quick = AdversarialPerceptron(0.5, 8, epochs=10**6, seconds=0.01).fit(X, THREE)
    assert quick.predict(X).shape == (60,)
