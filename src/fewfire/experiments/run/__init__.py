"""Carrying out a sweep: what is missing, in batches that suit the engine, kept as each ends."""

from fewfire.experiments.executors._batch import batches, cost, run_batch
from fewfire.experiments.run._execute import execute
from fewfire.experiments.run._plan import Plan, estimate_seconds, make_plan
from fewfire.experiments.run._progress import Progress

__all__ = ["Plan", "Progress", "batches", "cost", "estimate_seconds", "execute", "make_plan", "run_batch"]
