"""Experiments: sweeps (grids of runs from one spec, kept in a store), laws, measurements beside bounds, recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.experiments import sparse_activations
    from fewfire.experiments.frontiers import FrontierEstimate, estimate_frontier
    from fewfire.experiments.laws import (
        Advice,
        FrontierLaw,
        LawPrediction,
        ParityCell,
        diagnose,
        fit_law,
        parity_cells,
        shipped_law,
    )
    from fewfire.experiments.run import (
        FoundFrontier,
        Plan,
        Progress,
        TimeEstimate,
        estimate_time,
        found_frontiers,
        make_plan,
    )
    from fewfire.experiments.spec import Data, FrontierSearch, RunSpec, Sweep
    from fewfire.experiments.store import (
        COLUMNS,
        CURVES,
        STATUSES,
        Cell,
        Measurement,
        MemoryStore,
        Merged,
        Row,
        Setting,
        SqliteStore,
        Store,
        SweepRecord,
        cells,
        environment_text,
        export,
        failed_row,
        merge,
        row_of,
        succeeded,
    )

__all__ = [
    "COLUMNS",
    "CURVES",
    "STATUSES",
    "Advice",
    "Cell",
    "Data",
    "FoundFrontier",
    "FrontierEstimate",
    "FrontierLaw",
    "FrontierSearch",
    "LawPrediction",
    "Measurement",
    "MemoryStore",
    "Merged",
    "ParityCell",
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
    "diagnose",
    "environment_text",
    "estimate_frontier",
    "estimate_time",
    "export",
    "failed_row",
    "fit_law",
    "found_frontiers",
    "make_plan",
    "merge",
    "parity_cells",
    "row_of",
    "shipped_law",
    "sparse_activations",
    "succeeded",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            SUBPACKAGES: "executors frontiers laws run sparse_activations spec store",
            "frontiers": "FrontierEstimate estimate_frontier",
            "laws": "Advice FrontierLaw LawPrediction ParityCell diagnose fit_law parity_cells shipped_law",
            "run": "FoundFrontier Plan Progress TimeEstimate estimate_time found_frontiers make_plan",
            "spec": "Data FrontierSearch RunSpec Sweep",
            "store": (
                "COLUMNS CURVES STATUSES Cell Measurement MemoryStore Merged Row Setting SqliteStore Store SweepRecord "
                "cells environment_text export failed_row merge row_of succeeded"
            ),
        },
    )
