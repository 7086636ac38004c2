"""Experiments: sweeps (grids of runs from one spec file, kept in a store), measurements beside bounds, recipes."""

from fewfire.experiments import sparse_activations
from fewfire.experiments.run import Plan, Progress, TimeEstimate, estimate_time, make_plan
from fewfire.experiments.spec import RunSpec, Sweep
from fewfire.experiments.store import (
    COLUMNS,
    CURVES,
    STATUSES,
    Cell,
    Measurement,
    MemoryStore,
    Row,
    Setting,
    SqliteStore,
    Store,
    SweepRecord,
    cells,
    environment_text,
    export,
    failed_row,
    row_of,
    succeeded,
)

__all__ = [
    "COLUMNS",
    "CURVES",
    "STATUSES",
    "Cell",
    "Measurement",
    "MemoryStore",
    "Plan",
    "Progress",
    "Row",
    "RunSpec",
    "Setting",
    "SqliteStore",
    "Store",
    "Sweep",
    "SweepRecord",
    "TimeEstimate",
    "cells",
    "environment_text",
    "estimate_time",
    "export",
    "failed_row",
    "make_plan",
    "row_of",
    "sparse_activations",
    "succeeded",
]
