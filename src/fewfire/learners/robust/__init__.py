"""Networks trained against an adversary as scikit-learn estimators: both layers, or sublinear's Algorithm 1."""

from fewfire.learners.robust._algorithm_one import RobustHistory
from fewfire.learners.robust._estimators import RobustClassifier, RobustRegressor
from fewfire.learners.robust._minibatches import EpochHistory

__all__ = ["EpochHistory", "RobustClassifier", "RobustHistory", "RobustRegressor"]
