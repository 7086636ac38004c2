"""scikit-learn's own checks.

They feed continuous columns, which the default refuses on purpose: a threshold nobody asked for would hide what is
learned. So the checks run with the binarisation a user would ask for. With it the regressor declares `poor_score`:
a continuous column cut in two explains at most 2/π of a label that is linear in it, less than the checks demand
after noise.
"""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

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


FOLDS = "folds are drawn over rows, so a row of weight 2 and two rows are held out differently"


def expected_failures(estimator):
    """Weights are repetition where nothing is held out; `test_weights_count_as_repetition` holds it for classifiers."""
    direct = estimator.method == "estimation" or estimator.alpha == 1.0
    if direct and isinstance(estimator, LowDegreeRegressor):
        return {}
    return {f"check_sample_weight_equivalence_on_{kind}_data": FOLDS for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_only_binarised_regressors_declare_a_poor_score():
    assert LowDegreeRegressor(binarize="median").__sklearn_tags__().regressor_tags.poor_score
    assert not LowDegreeRegressor().__sklearn_tags__().regressor_tags.poor_score
    assert not LowDegreeClassifier().__sklearn_tags__().classifier_tags.multi_class


def test_two_over_pi_is_what_a_median_cut_keeps():
    """Correlation of a Gaussian with its own sign, squared: 2/π; standard error about 0.7/√m for the sample value."""
    z = np.random.default_rng(0).normal(size=40_000)
    score = LowDegreeRegressor(1, binarize="median").fit(z[:, None], z).score(z[:, None], z)
    assert score == pytest.approx(2 / np.pi, abs=4 * 0.7 / 200)
