"""Trade-offs of pareto's Theorems 4 and 5: what a sparse start needs in width and in examples, run by run.

Every run gives the width, or the number of examples, from which it succeeds; their median is where half of the runs
succeed. `fit_exponents` fits powers of n and s to the runs.
"""

from fewfire.experiments.trade_offs._exponents import FittedPower, fit_exponents
from fewfire.experiments.trade_offs._needed import (
    NeededRun,
    over_sparse_samples,
    over_sparse_width,
    under_sparse_samples,
    under_sparse_width,
)

__all__ = [
    "FittedPower",
    "NeededRun",
    "fit_exponents",
    "over_sparse_samples",
    "over_sparse_width",
    "under_sparse_samples",
    "under_sparse_width",
]
