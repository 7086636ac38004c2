"""Grids of runs on a parity (pareto, C.1): one sweep, one plain row per cell. What Figures 1, 2 and 4 share.

Settings of C.1: hinge loss, learning rate 0.1, weight decay 0.01, batches of 32. A run has converged when its error on
held-out examples is at most 10%; it stops there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewfire.engines import Phase, Schedule
from fewfire.experiments.spec import Sweep
from fewfire.experiments.store import MemoryStore, succeeded
from fewfire.networks import init
from fewfire.problems import Parity

STARTS = {"dense": init.dense(), "sparse": init.sparse(2)}
CONVERGED = 0.1
TESTS = 2000


@dataclass(frozen=True)
class ParityGrid:
    """Every combination of starts, widths and samples (None is online), each `trials` times."""

    n: int
    k: int
    starts: tuple[str, ...]
    widths: tuple[int, ...]
    samples: tuple[int | None, ...]
    trials: int
    steps: int
    evaluate: int

    def sweep(self) -> Sweep:
        """The sweep of this grid."""
        phase = Phase(self.steps, 0.1, weight_decay=0.01)
        return Sweep(
            problems=(Parity(self.n, self.k),),
            networks=tuple((STARTS[start], width) for start in self.starts for width in self.widths),
            data=tuple((m, TESTS) for m in self.samples),
            schedules=(Schedule((phase,), evaluate=self.evaluate, stop_error=CONVERGED),),
            trials=self.trials,
            success_error=CONVERGED,
        )

    def parameters(self) -> dict[str, Any]:
        """For the result of a recipe."""
        return {"n": self.n, "k": self.k, "trials": self.trials, "steps": self.steps, "evaluate": self.evaluate}


def run_grid(grid: ParityGrid) -> tuple[list[dict[str, Any]], MemoryStore]:
    """One row per cell, and the store with the histories.

    A row has "start", "width", "samples" (None: online), "trials", "successes", and two lists with an entry per run,
    None where it never came: "steps", until the held-out error was small, and "train_steps", until the training
    error was.
    """
    store = MemoryStore()
    grid.sweep().run(store, keep_going=False)
    rows = []
    for setting in store.settings():
        runs = list(store.rows(setting.id))
        rows.append(
            {
                "start": setting.start["name"],
                "width": setting.width,
                "samples": setting.samples,
                "trials": len(runs),
                "successes": sum(succeeded(run.status, run.best_test_error, CONVERGED) for run in runs),
                "steps": [run.history.first_step(CONVERGED) for run in runs],
                "train_steps": [run.history.first_step(CONVERGED, "train_error") for run in runs],
            }
        )
    order = {None: np.inf}
    rows.sort(key=lambda row: (row["start"], row["width"], order.get(row["samples"], row["samples"])))
    return rows, store


def cell(rows: list[dict[str, Any]], start: str, width: int, samples: int | None) -> dict[str, Any]:
    """The row of one cell."""
    return next(row for row in rows if (row["start"], row["width"], row["samples"]) == (start, width, samples))


def times(row: dict[str, Any], key: str = "steps") -> list[float]:
    """Steps to convergence, infinite where a run did not converge."""
    return [np.inf if step is None else float(step) for step in row[key]]
