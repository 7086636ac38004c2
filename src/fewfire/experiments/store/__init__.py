"""Stores: what is kept of finished runs, where it is kept, and how it is counted and exported.

`Row` is what is kept of one run, `Store` the protocol; `MemoryStore` is the obvious one, `SqliteStore` the file.
"""

from fewfire.experiments.store._export import export
from fewfire.experiments.store._follow import StoreFollower
from fewfire.experiments.store._memory import MemoryStore
from fewfire.experiments.store._merge import Merged, merge
from fewfire.experiments.store._protocol import Measurement, Setting, Store, SweepRecord
from fewfire.experiments.store._row import COLUMNS, CURVES, STATUSES, Row, environment_text, failed_row, final, row_of
from fewfire.experiments.store._sqlite_store import SqliteStore
from fewfire.experiments.store._success import Cell, cells, succeeded

__all__ = [
    "COLUMNS",
    "CURVES",
    "STATUSES",
    "Cell",
    "Measurement",
    "MemoryStore",
    "Merged",
    "Row",
    "Setting",
    "SqliteStore",
    "Store",
    "StoreFollower",
    "SweepRecord",
    "cells",
    "environment_text",
    "export",
    "failed_row",
    "final",
    "merge",
    "row_of",
    "succeeded",
]
