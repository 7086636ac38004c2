"""Experiments: sweeps (grids of runs from one spec file, kept in a store), measurements beside bounds, recipes."""

from fewfire.experiments._member import Comparison, compare_member, scaled_member
from fewfire.experiments._plan import Plan, estimate_seconds, make_plan
from fewfire.experiments._progress import Progress
from fewfire.experiments._rademacher import RademacherTable, rademacher_table
from fewfire.experiments._run_spec import RunSpec
from fewfire.experiments._sweep import Sweep
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
    "Comparison",
    "Measurement",
    "MemoryStore",
    "Plan",
    "Progress",
    "RademacherTable",
    "Row",
    "RunSpec",
    "Setting",
    "SqliteStore",
    "Store",
    "Sweep",
    "SweepRecord",
    "cells",
    "compare_member",
    "environment_text",
    "estimate_seconds",
    "export",
    "failed_row",
    "make_plan",
    "rademacher_table",
    "row_of",
    "scaled_member",
    "succeeded",
]
