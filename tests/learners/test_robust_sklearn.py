"""scikit-learn's own checks of the robust estimators; none is left out."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire.learners import RobustClassifier, RobustRegressor

ESTIMATORS = [
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", iterations=60, random_state=0),
    RobustClassifier(60, 0.2, 0.05, adversary="fgm", domain="projected", iterations=60, random_state=0),
    RobustRegressor(60, 0.2, 0.05, adversary="fgm", iterations=100, random_state=0),
]


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
