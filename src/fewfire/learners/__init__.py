"""scikit-learn estimators for functions of few active parts."""

from fewfire.learners._low_degree import LowDegreeClassifier, LowDegreeRegressor

__all__ = ["LowDegreeClassifier", "LowDegreeRegressor"]
