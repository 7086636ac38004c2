"""Carrying out a sweep: what is missing, in batches that suit the engine, kept as each ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".executors._batch": "batches cost run_batch",
            "_estimate": "TimeEstimate estimate_time",
            "_execute": "execute",
            "_plan": "Plan make_plan",
            "_progress": "Progress",
            "_search": "FoundFrontier found_frontiers",
        },
    )
