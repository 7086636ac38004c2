"""Grids of runs on a parity (pareto, C.1): one sweep, one plain row per cell. What Figures 1, 2 and 4 share.

Settings of C.1: learning rate 0.1, weight decay 0.01, batches of 32. The paper does not name the loss of its
experiments; the hinge, of its theorems, is our choice, and `pareto/offline-parity` tries others. A run has converged
when its error on held-out examples is at most 10%; it stops there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.engines import Phase, Schedule
from fewfire.experiments.spec import Data, Sweep
from fewfire.experiments.store import MemoryStore, succeeded
from fewfire.networks import init
from fewfire.problems import Parity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.engines import LossName

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
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    loss: LossName = "hinge"

    def schedule(self) -> Schedule:
        """How its runs are trained."""
        phase = Phase(self.steps, self.learning_rate, weight_decay=self.weight_decay)
        return Schedule((phase,), loss=self.loss, evaluate=self.evaluate, stop_error=CONVERGED)

    def sweep(self) -> Sweep:
        """The sweep of this grid."""
        return Sweep(
            problems=(Parity(self.n, self.k),),
            networks=tuple((STARTS[start], width) for start in self.starts for width in self.widths),
            data=tuple(Data(m, TESTS) for m in self.samples),
            schedules=(self.schedule(),),
            trials=self.trials,
            success_error=CONVERGED,
        )

    def parameters(self) -> dict[str, Any]:
        """For the result of a recipe."""
        keys = ("n", "k", "trials", "steps", "evaluate", "learning_rate", "weight_decay", "loss")
        return {key: getattr(self, key) for key in keys}


def run_grid(grid: ParityGrid) -> tuple[list[dict[str, Any]], MemoryStore]:
    """One row per cell, and the store with the histories.

    A row has "start", "width", "samples" (None: online), "trials", "successes", and two lists with an entry per run,
    None where it never came: "steps", until the held-out error was small, and "train_steps", until the training
    error was.
    """
    (rows,), store = _run(grid.sweep())
    return rows, store


def run_schedules(grid: ParityGrid, schedules: Sequence[Schedule]) -> list[list[dict[str, Any]]]:
    """The rows of a grid under several schedules, all in one sweep."""
    return _run(replace(grid.sweep(), schedules=tuple(schedules)))[0] if schedules else []


def _run(sweep: Sweep) -> tuple[list[list[dict[str, Any]]], MemoryStore]:
    """Rows per schedule, in order."""
    store = MemoryStore()
    sweep.run(store, keep_going=False)
    # Cells are numbered schedule by schedule: which one a setting has, its first run tells.
    places = {sweep.run_at(number).setting: number % len(sweep.schedules) for number in range(sweep.settings)}
    tables: list[list[dict[str, Any]]] = [[] for _ in sweep.schedules]
    for setting in store.settings():
        runs = list(store.rows(setting.id))
        tables[places[setting.text]].append(
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
    for rows in tables:
        rows.sort(key=lambda row: (row["start"], row["width"], order.get(row["samples"], row["samples"])))
    return tables, store


def cell(rows: list[dict[str, Any]], start: str, width: int, samples: int | None) -> dict[str, Any]:
    """The row of one cell."""
    return next(row for row in rows if (row["start"], row["width"], row["samples"]) == (start, width, samples))


def times(row: dict[str, Any], key: str = "steps") -> list[float]:
    """Steps to convergence, infinite where a run did not converge."""
    return [np.inf if step is None else float(step) for step in row[key]]
