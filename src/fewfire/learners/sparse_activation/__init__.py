"""Learning inside H(n, s, k): two-layer networks of which at most k neurons fire on an input, fitted as such."""

from fewfire.learners.sparse_activation._estimators import SparseActivationClassifier, SparseActivationRegressor

__all__ = ["SparseActivationClassifier", "SparseActivationRegressor"]
