"""Experiments: sweeps (grids of runs from one spec file, kept in a store), measurements beside bounds, recipes."""

from fewfire.experiments._cells import Cell, cells
from fewfire.experiments._environment import environment_text
from fewfire.experiments._export import export
from fewfire.experiments._measurement import Measurement
from fewfire.experiments._member import Comparison, compare_member, scaled_member
from fewfire.experiments._memory_store import MemoryStore
from fewfire.experiments._progress import Progress
from fewfire.experiments._rademacher import RademacherTable, rademacher_table
from fewfire.experiments._row import CURVES, STATUSES, Row, failed_row, row_of
from fewfire.experiments._sqlite_store import SqliteStore
from fewfire.experiments._store import COLUMNS, Setting, Store, SweepRecord
from fewfire.experiments.run import Plan, estimate_seconds, make_plan
from fewfire.experiments.spec import RunSpec, Sweep

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
]
