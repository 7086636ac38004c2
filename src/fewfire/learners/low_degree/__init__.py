"""Polynomials of low degree in binary columns: two estimators, and the search for penalty, degree and sparsity."""

from fewfire.learners.low_degree._estimators import LowDegreeClassifier, LowDegreeRegressor

__all__ = ["LowDegreeClassifier", "LowDegreeRegressor"]
