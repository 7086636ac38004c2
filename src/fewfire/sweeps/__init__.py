"""Sweeps: grids of runs from one spec, run by executors, kept in a store; frontiers and laws fitted to them."""

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.sweeps.frontiers import estimate_frontier
    from fewfire.sweeps.run._estimate import estimate_time
    from fewfire.sweeps.run._plan import make_plan
    from fewfire.sweeps.run._search import found_frontiers
    from fewfire.sweeps.spec._run_spec import Data, RunSpec
    from fewfire.sweeps.spec._search import FrontierSearch
    from fewfire.sweeps.spec._sweep import Sweep
    from fewfire.sweeps.store._export import export
    from fewfire.sweeps.store._memory import MemoryStore
    from fewfire.sweeps.store._merge import merge
    from fewfire.sweeps.store._protocol import Store, cells
    from fewfire.sweeps.store._row import succeeded
    from fewfire.sweeps.store._sqlite import SqliteStore

__all__ = [
    "Data",
    "FrontierSearch",
    "MemoryStore",
    "RunSpec",
    "SqliteStore",
    "Store",
    "Sweep",
    "cells",
    "estimate_frontier",
    "estimate_time",
    "export",
    "found_frontiers",
    "make_plan",
    "merge",
    "succeeded",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            SUBPACKAGES: "executors laws",
            "frontiers": "estimate_frontier",
            "run._estimate": "estimate_time",
            "run._plan": "make_plan",
            "run._search": "found_frontiers",
            "spec._run_spec": "Data RunSpec",
            "spec._search": "FrontierSearch",
            "spec._sweep": "Sweep",
            "store._export": "export",
            "store._memory": "MemoryStore",
            "store._merge": "merge",
            "store._protocol": "Store cells",
            "store._row": "succeeded",
            "store._sqlite": "SqliteStore",
        },
    )
