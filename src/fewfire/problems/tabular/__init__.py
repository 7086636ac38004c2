"""The 16 tabular classification sets of pareto, Table 1, and its protocol of random splits (appendix C.3)."""

from fewfire.problems.tabular._catalogue import DATASETS, DatasetInfo
from fewfire.problems.tabular._dataset import Dataset
from fewfire.problems.tabular._load import load
from fewfire.problems.tabular._split import CAP, FRACTIONS, Split, split, training_rows

__all__ = ["CAP", "DATASETS", "FRACTIONS", "Dataset", "DatasetInfo", "Split", "load", "split", "training_rows"]
