"""scikit-learn's own checks of the estimators of H(n, s, k)."""

import pytest
from sklearn_checks import DENSE, check_weights_count, checks_that_hold

from fewfire.learners import SparseActivationClassifier, SparseActivationRegressor

ESTIMATORS = [
    estimator(width=16, k=k, weight_decay=decay, batch_size=batch, steps=steps, random_state=0)
    for estimator in (SparseActivationRegressor, SparseActivationClassifier)
    for k, decay, batch, steps in ((4, "auto", 32, 300), (2, 0.03, None, 300), (16, 0.03, None, 300))
]


def left_out(estimator):
    """Minibatches and validation rows are drawn by row. With neither all checks hold: all rows train in float64."""
    drawn = estimator.batch_size is not None
    return {DENSE: "minibatches and validation rows are drawn by row"} if drawn else {}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold(ESTIMATORS, left_out)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [model for model in ESTIMATORS if left_out(model)], ids=str)
def test_weights_count_where_minibatches_are_drawn_by_row(model):
    check_weights_count(model)
