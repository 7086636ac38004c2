"""The 16 tabular classification sets of pareto, Table 1, and its protocol of random splits (appendix C.3)."""

from fewfire.problems.tabular._dataset import Dataset, split, training_rows
from fewfire.problems.tabular._load import DATASETS, load

__all__ = ["DATASETS", "Dataset", "load", "split", "training_rows"]
