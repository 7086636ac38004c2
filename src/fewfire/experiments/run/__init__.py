"""Carrying out a sweep: what is missing, in batches that suit the engine, kept as each ends."""

from fewfire.experiments.executors._batch import batches, cost, run_batch
from fewfire.experiments.run._estimate import TimeEstimate, estimate_time
from fewfire.experiments.run._execute import execute
from fewfire.experiments.run._plan import Plan, make_plan
from fewfire.experiments.run._progress import Progress
from fewfire.experiments.run._search import FoundFrontier, found_frontiers

__all__ = [
    "FoundFrontier",
    "Plan",
    "Progress",
    "TimeEstimate",
    "batches",
    "cost",
    "estimate_time",
    "execute",
    "found_frontiers",
    "make_plan",
    "run_batch",
]
