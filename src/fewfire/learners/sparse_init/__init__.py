"""Wide, sparsely initialised networks for small tables, as scikit-learn estimators (pareto, sections 4.2 and C.3)."""

from fewfire.learners.sparse_init._classifier import SparseInitClassifier
from fewfire.learners.sparse_init._optimisers import SGD, AdamW
from fewfire.learners.sparse_init._regressor import SparseInitRegressor

__all__ = ["SGD", "AdamW", "SparseInitClassifier", "SparseInitRegressor"]
