"""The 16 tabular classification sets of pareto, Table 1, and its protocol of random splits (appendix C.3)."""

from fewfire.problems.tabular._dataset import CAP, FRACTIONS, Dataset, Split, split, training_rows
from fewfire.problems.tabular._load import DATASETS, DatasetInfo, load

__all__ = ["CAP", "DATASETS", "FRACTIONS", "Dataset", "DatasetInfo", "Split", "load", "split", "training_rows"]
