"""Models measured on the tabular data sets of pareto: which, on identical splits, and how errors are summarised."""

from fewfire.papers.pareto.tables._measure import measure
from fewfire.papers.pareto.tables._models import MODELS, PaperNetwork, TabularModel, find_models
from fewfire.papers.pareto.tables._summary import TABLE_2, calibration, mean_ranks, published, summarise

__all__ = [
    "MODELS",
    "TABLE_2",
    "PaperNetwork",
    "TabularModel",
    "calibration",
    "find_models",
    "mean_ranks",
    "measure",
    "published",
    "summarise",
]
