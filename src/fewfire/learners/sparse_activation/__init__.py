"""Learning inside H(n, s, k): two-layer networks of which at most k neurons fire on an input, fitted as such."""

from fewfire.learners.sparse_activation import _adapter  # noqa: F401  registers how the estimators are attacked
from fewfire.learners.sparse_activation._estimators import SparseActivationClassifier, SparseActivationRegressor

__all__ = ["SparseActivationClassifier", "SparseActivationRegressor"]
