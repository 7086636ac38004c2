"""Learners: scikit-learn estimators of low-degree polynomials, of networks that learn sparse parities, fire sparsely or
withstand an adversary, and of classical baselines."""

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.learners import baselines
    from fewfire.learners._low_degree._estimators import LowDegreeClassifier, LowDegreeRegressor
    from fewfire.learners._parity_net import ParityNetClassifier
    from fewfire.learners._robust._estimators import RobustClassifier, RobustRegressor
    from fewfire.learners._sparse_activation._estimators import SparseActivationClassifier, SparseActivationRegressor

__all__ = [
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "ParityNetClassifier",
    "RobustClassifier",
    "RobustRegressor",
    "SparseActivationClassifier",
    "SparseActivationRegressor",
    "baselines",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            SUBPACKAGES: "baselines",
            "_low_degree._estimators": "LowDegreeClassifier LowDegreeRegressor",
            "_parity_net": "ParityNetClassifier",
            "_robust._estimators": "RobustClassifier RobustRegressor",
            "_sparse_activation._estimators": "SparseActivationClassifier SparseActivationRegressor",
        },
    )
