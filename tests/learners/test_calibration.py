"""Probabilities of classifiers with two classes: one logistic slope, fitted where the model has not looked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from fewfire.learners import ParityNetClassifier
from fewfire.learners._fitting import LARGEST_SLOPE, logistic_slope, probabilities
from fewfire.learners.baselines import ExhaustiveParity
from fewfire.problems import Parity


def drawn(rows=500, seed=0):
    draw = np.random.default_rng(seed)
    values = draw.normal(size=rows)
    labels = np.where(draw.random(rows) < 1 / (1 + np.exp(-2.0 * values)), 1.0, -1.0)
    return values, labels, draw.integers(1, 4, rows).astype(float)


def test_the_slope_minimises_the_smoothed_log_loss():
    values, labels, weights = drawn()
    positive, negative = weights[labels > 0].sum(), weights[labels < 0].sum()
    unit = weights.mean()
    target = np.where(labels > 0, (positive + unit) / (positive + 2 * unit), unit / (negative + 2 * unit))

    def loss(slope):
        return weights @ (np.logaddexp(0, slope * values) - target * slope * values)

    best = minimize_scalar(loss, bounds=(0.01, 100), method="bounded", options={"xatol": 1e-10}).x
    assert logistic_slope(values, labels, weights) == pytest.approx(best, rel=1e-5)


def test_rows_never_held_out_do_not_count():
    values, labels, weights = drawn()
    values[::3] = np.nan
    kept = np.isfinite(values)
    assert logistic_slope(values, labels, weights) == logistic_slope(values[kept], labels[kept], weights[kept])
    assert logistic_slope(np.full(3, np.nan), np.ones(3)) == 1.0


def test_certain_values_keep_the_slope_finite():
    assert logistic_slope(np.array([1.0, -1.0]), np.array([1.0, -1.0])) == pytest.approx(np.log(2))
    assert logistic_slope(np.array([1e-6, -1e-6]), np.array([1.0, -1.0])) == pytest.approx(LARGEST_SLOPE)


def test_probabilities_sum_to_one_and_change_sides_at_zero():
    table = probabilities(2.0 * np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(table.sum(axis=1), 1.0)
    assert table[1, 1] == 0.5 and table[2, 1] == pytest.approx(1 / (1 + np.exp(-2)))
    scores = np.array([[0.0, 2.0, -1.0]])
    assert probabilities(scores) == pytest.approx(np.exp(scores) / np.exp(scores).sum())


def test_a_network_on_noisy_labels_is_as_sure_as_it_may_be():
    """One label in ten is flipped, so no model can be surer than 0.9, and the best log loss is the entropy, 0.325."""
    problem = Parity(12, 2, noise=0.1)
    X, y = problem.sample(3000, seed=0)
    model = ParityNetClassifier(width=100, max_steps=3000, validation_fraction=0.3, random_state=0).fit(X, y)
    X_new, y_new = problem.sample(4000, seed=1)
    proba = model.predict_proba(X_new)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X_new))
    assert model.score(X_new, y_new) > 0.88
    # An untouched logistic function of the output, slope 1, is far too timid here; raw certainty would cost more.
    assert log_loss(y_new, proba[:, 1]) < min(
        0.36, log_loss(y_new, probabilities(model.decision_function(X_new))[:, 1])
    )


def test_exhaustive_search_gives_the_share_of_labels_that_agree():
    X, y = Parity(15, 3, [1, 4, 9], noise=0.2).sample(400, seed=0)
    model = ExhaustiveParity(k=3).fit(X, y)
    proba = model.predict_proba(X)
    assert set(np.unique(proba)) == {model.agreement_, 1 - model.agreement_}
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert (proba.sum(axis=1) == 1).all()
