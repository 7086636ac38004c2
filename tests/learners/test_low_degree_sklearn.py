"""scikit-learn's own checks.

They feed continuous columns, which the default refuses on purpose: a threshold that was not asked for would hide what is
learned. So the checks run with the binarisation a user would ask for. With it the regressor declares `poor_score`:
a continuous column cut in two explains at most 2/π of a label that is linear in it, less than the checks demand
after noise.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn_checks import DENSE, SPARSE, check_weights_count, checks_that_hold

from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor

ESTIMATORS = [
    estimator(**parameters, binarize="median")
    for estimator in (LowDegreeRegressor, LowDegreeClassifier)
    for parameters in (
        {},
        {"degree": 2, "method": "regression"},
        {"degree": 2, "method": "regression", "alpha": 1.0, "solver": "cg"},
        {"degree": 1, "method": "estimation"},
        {"method": "sparse", "max_degree": 2},
    )
]


def is_given(estimator):
    """Whether degree and penalty are given, so that no fold decides about the polynomial."""
    return estimator.method == "estimation" or estimator.alpha == 1.0


def left_out(estimator):
    """Folds are drawn by row: they choose degree, penalty and terms, and the slope of a classifier's probabilities."""
    if is_given(estimator) and isinstance(estimator, LowDegreeRegressor):
        return {}
    return dict.fromkeys((DENSE, SPARSE), "folds are drawn by row")


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold(ESTIMATORS, left_out)
def test_estimator_checks(estimator, check):
    check(estimator)


class Decisions(LowDegreeClassifier):
    """Without probabilities, whose slope comes from folds."""

    predict_proba = property()


@pytest.mark.parametrize("check", [DENSE, SPARSE])
@pytest.mark.parametrize("model", [model for model in ESTIMATORS if is_given(model) and left_out(model)], ids=str)
def test_a_row_of_weight_two_is_two_rows_for_the_polynomial_of_a_classifier(monkeypatch, model, check):
    # scikit-learn 1.6 makes labels binary by the first row, which shuffling changes; later ones by the smallest label.
    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_y", lambda estimator, y: np.minimum(y, 1))
    getattr(estimator_checks, check)("Decisions", Decisions(**model.get_params()))


@pytest.mark.parametrize("model", [model for model in ESTIMATORS if left_out(model)], ids=str)
def test_weights_count_where_folds_are_drawn_by_row(model):
    model = clone(model).set_params(binarize=None)
    if model.method == "auto":
        model.set_params(max_degree=2)
    # A given penalty stands against the sum of losses, so it grows with the weights.
    fourfold = clone(model).set_params(alpha=4.0) if model.alpha == 1.0 else None
    check_weights_count(model, fourfold, rows=240)


def test_only_binarised_regressors_declare_a_poor_score():
    assert LowDegreeRegressor(binarize="median").__sklearn_tags__().regressor_tags.poor_score
    assert not LowDegreeRegressor().__sklearn_tags__().regressor_tags.poor_score
    assert not LowDegreeClassifier().__sklearn_tags__().classifier_tags.multi_class


def test_two_over_pi_is_what_a_median_cut_keeps():
    """Correlation of a Gaussian with its own sign, squared: 2/π; standard error about 0.7/√m for the sample value."""
    z = np.random.default_rng(0).normal(size=40_000)
    score = LowDegreeRegressor(1, binarize="median").fit(z[:, None], z).score(z[:, None], z)
    assert score == pytest.approx(2 / np.pi, abs=4 * 0.7 / 200)
