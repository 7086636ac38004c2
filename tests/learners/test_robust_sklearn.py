"""scikit-learn's own checks of the robust estimators, in both kinds of training.

One is set aside: that a row of weight 2 equals two rows to seven digits. Training sums in float32, and where minibatches
are drawn the two rows may fall into different ones; test_robust_minibatches.py holds one minibatch of all rows to what
float32 allows.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire.learners import RobustClassifier, RobustRegressor

ESTIMATORS = [
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", iterations=60, random_state=0),
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", domain="projected", iterations=60, random_state=0),
    RobustRegressor(60, 0.2, 0.05, adversary="fgm", iterations=100, random_state=0),
    RobustClassifier(100, rho=0.05, random_state=0),
    RobustClassifier(100, rho=0.05, early_stopping=True, proof_weight=0.3, random_state=0),
    RobustRegressor(100, rho=0.05, random_state=0),
]


def set_aside(estimator):
    return {"check_sample_weight_equivalence_on_dense_data": "sums in float32, minibatches drawn by row"}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=set_aside)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@parametrize_with_checks([RobustClassifier(), RobustRegressor()], expected_failed_checks=set_aside)
def test_estimator_checks_of_the_defaults(estimator, check):
    check(estimator)
