"""scikit-learn's own checks of the robust estimators, in both kinds of training."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn_checks import DENSE, check_weights_count, checks_that_hold

from fewfire.learners import RobustClassifier, RobustRegressor

ALGORITHM_ONE = [
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", iterations=60, random_state=0),
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", domain="projected", iterations=60, random_state=0),
    RobustRegressor(60, 0.2, 0.05, adversary="fgm", iterations=100, random_state=0),
]
MINIBATCHES = [
    RobustClassifier(100, rho=0.05, random_state=0),
    RobustClassifier(100, rho=0.05, early_stopping=True, proof_weight=0.3, random_state=0),
    RobustRegressor(100, rho=0.05, random_state=0),
]


def left_out(estimator):
    """Minibatches are drawn by row; Algorithm 1 draws nothing, but sums in float32. Both have a test below."""
    return {DENSE: "minibatches are drawn by row, and sums are in float32"}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold(ALGORITHM_ONE + MINIBATCHES, left_out)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold([RobustClassifier(), RobustRegressor()], left_out)
def test_estimator_checks_of_the_defaults(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MINIBATCHES, ids=str)
def test_weights_count_where_minibatches_are_drawn_by_row(model):
    check_weights_count(model)


@pytest.mark.parametrize("model", ALGORITHM_ONE, ids=str)
def test_algorithm_one_takes_a_row_of_weight_two_as_two_rows(model):
    """The centre and scale of the inputs and the learning rate too, not the losses alone.

    A step adds at most 60 gradients, one per row, in float32: with ε = 2⁻²⁴ two orders of them differ by at most
    2·60·ε = 7e-6 of the sum of their sizes. Steps, 100 at most, add up to scores of about 1: 7e-6·√100 if roundings are
    independent, and 1e-4 is taken.
    """
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(30, 8)) + 1.0, rng.integers(0, 5, 30)
    y = rng.integers(0, 3, 30)
    X[weights > 2] *= 3.0  # so that weighted and unweighted centres and scales are far apart

    def scores(X, y, weights=None):
        fitted = clone(model).fit(X, y, sample_weight=weights)
        return fitted.decision_function(X0) if is_classifier(model) else fitted.predict(X0)

    X0 = X
    weighted, copied = scores(X, y, weights), scores(X.repeat(weights, 0), y.repeat(weights))
    np.testing.assert_allclose(weighted, copied, atol=1e-4)
    assert np.abs(weighted - scores(X, y)).max() > 0.1
