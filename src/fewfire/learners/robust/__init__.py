"""Networks trained against an adversary (sublinear, Algorithm 1) as scikit-learn estimators."""

from fewfire.learners.robust._estimators import RobustClassifier, RobustRegressor
from fewfire.learners.robust._training import RobustHistory

__all__ = ["RobustClassifier", "RobustHistory", "RobustRegressor"]
