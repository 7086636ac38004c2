"""Grids of runs on a parity (pareto, C.1): one sweep, one plain row per cell. What Figures 1, 2 and 4 share.

Settings of C.1: learning rate 0.1, weight decay 0.01, batches of 32. The paper does not name the loss of its
experiments; the hinge, of its theorems, is our choice, and `pareto/offline-parity` tries others. A run has converged
when its error on test examples is at most 10%; it stops there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.engines import Phase, Schedule
from fewfire.networks import init
from fewfire.papers._claims._recipe import grouped, rows_of
from fewfire.problems import Parity
from fewfire.report._frontier import Group, SuccessFrontier, even_odds
from fewfire.sweeps import Data, MemoryStore, Sweep, succeeded
from fewfire.sweeps.store._protocol import wilson_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._dense.losses import LossName
    from fewfire._types import IdArray
    from fewfire.engines import History
    from fewfire.papers._claims import Info, Row, Rows

NAMES = {"dense": "dense", "sparse": "2-sparse"}
STARTS = {"dense": init.dense(), "sparse": init.sparse(2)}
CONVERGED = 0.1
TESTS = 2000


@dataclass(frozen=True)
class ParityGrid:
    """Every combination of starts, widths and samples (None is online), each `trials` times."""

    n: int
    k: int
    widths: tuple[int, ...]
    samples: tuple[int | None, ...]
    trials: int
    steps: int
    evaluate: int
    starts: tuple[str, ...] = ("dense", "sparse")
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    loss: LossName = "hinge"

    def sweep(self) -> Sweep:
        """The sweep of this grid."""
        phase = Phase(self.steps, self.learning_rate, weight_decay=self.weight_decay)
        return Sweep(
            problems=(Parity(self.n, self.k),),
            networks=tuple((STARTS[start], width) for start in self.starts for width in self.widths),
            data=tuple(Data(m, TESTS) for m in self.samples),
            schedules=(Schedule((phase,), loss=self.loss, evaluate=self.evaluate, stop_error=CONVERGED),),
            trials=self.trials,
            success_error=CONVERGED,
        )

    def parameters(self) -> Row:
        """For the result of a recipe."""
        keys = ("n", "k", "trials", "steps", "evaluate", "learning_rate", "weight_decay", "loss")
        return {key: getattr(self, key) for key in keys}


def run_grid(grid: ParityGrid) -> tuple[list[Row], MemoryStore]:
    """One row per cell, with None for steps where an error never was small, and the store with the histories."""
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
    rows.sort(key=lambda row: (row["start"], row["width"], _size(row["samples"])))
    return rows, store


def _size(samples: int | None) -> float:
    return np.inf if samples is None else samples


def cell(rows: list[Row], start: str, width: int, samples: int | None) -> Row:
    """The row of one cell."""
    return next(row for row in rows if (row["start"], row["width"], row["samples"]) == (start, width, samples))


def times(row: Row, key: str = "steps") -> list[float]:
    """Steps to convergence, infinite where a run did not converge."""
    return [np.inf if step is None else float(step) for step in row[key]]


def spaced_in_log(history: History, count: int) -> IdArray:
    """Indices of at most so many entries of a history, the first and others about evenly spaced in the log."""
    last = len(history.step) - 1
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, max(1, last), count).astype(np.int64)]))
    return chosen[chosen <= last]


def group_of(info: Info) -> Group:
    """The rows of a grid as the report's drawings take them."""
    rows, parameters = rows_of(info, "rows", "parameters")
    widths = tuple(sorted({row["width"] for row in rows}))
    samples = tuple(sorted({row["samples"] for row in rows}, key=_size))
    frontiers = tuple(_frontier(NAMES[start], mine, widths, samples) for start, mine in grouped(rows, "start").items())
    spec = {"problem": {"name": "parity", "n": parameters["n"], "k": parameters["k"]}}
    return Group(problem_of(info), "", problem_of(info), widths, samples, frontiers, spec)


def _frontier(start: str, rows: Rows, widths: Sequence[int], samples: tuple[int | None, ...]) -> SuccessFrontier:
    shape = len(widths), len(samples)
    runs, successes, nothing = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    steps = np.full((3, *shape), np.nan)
    for row in rows:
        index = widths.index(row["width"]), samples.index(row["samples"])
        runs[index], successes[index] = row["trials"], row["successes"]
        # Runs that did not converge count as the longest: a quartile that falls among them is not drawn.
        quartiles = np.quantile(np.array(times(row)), [0.25, 0.5, 0.75], method="nearest")
        steps[(slice(None), *index)] = np.where(np.isfinite(quartiles), quartiles, np.nan)
    low, high = wilson_interval(successes, runs)
    half, interval = even_odds(runs, successes, samples)
    return SuccessFrontier(start, nothing, runs, successes, nothing, nothing, low, high, steps, half, interval)


def problem_of(info: Info) -> str:
    """How figures name the problem."""
    return f"({info['parameters']['n']}, {info['parameters']['k']})-parity"
