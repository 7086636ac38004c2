"""Models measured on the tabular data sets of pareto: which, on identical splits, and how errors are summarised."""

from fewfire.experiments.tabular._measure import MeasurementPlan, measure
from fewfire.experiments.tabular._models import MODELS, TabularModel, find_models
from fewfire.experiments.tabular._paper_network import PaperNetwork
from fewfire.experiments.tabular._published import TABLE_2, Published, published
from fewfire.experiments.tabular._summaries import ErrorSummary, mean_ranks, median_interval, summarise

__all__ = [
    "MODELS",
    "TABLE_2",
    "ErrorSummary",
    "MeasurementPlan",
    "PaperNetwork",
    "Published",
    "TabularModel",
    "find_models",
    "mean_ranks",
    "measure",
    "median_interval",
    "published",
    "summarise",
]
