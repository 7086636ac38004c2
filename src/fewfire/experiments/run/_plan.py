"""What a sweep has to do: its runs against those a store has, and how long the rest will take.

The estimate comes from a probe: a few of the missing cells, from the cheapest to the dearest, are trained for a moment,
and seconds per multiply-add are interpolated between them. Early stops make a sweep faster than that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cores import usable_cores
from fewfire.engines import get_engine
from fewfire.experiments.executors._batch import cost
from fewfire.experiments.store import succeeded

if TYPE_CHECKING:
    from fewfire._types import Float64Array, IdArray
    from fewfire.experiments.spec import RunSpec, Sweep
    from fewfire.experiments.store import Store

PROBES = 5
PROBE_COST = 5e8
"""Multiply-adds of one probe: a moment on one core."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A sweep against a store.

    Parameters
    ----------
    total, finished : int
        Runs of the sweep, and how many of them are final in the store.
    successes, diverged : int
        Among the finished ones.
    pending : array of shape (runs to do,)
        Their numbers: `sweep.run_at(number)`.
    costs : array of shape (runs to do,)
        Their multiply-adds, as `cost` counts them.
    """

    total: int
    finished: int
    successes: int
    diverged: int
    pending: IdArray
    costs: Float64Array

    @property
    def cost(self) -> float:
        """The multiply-adds of everything that is to do."""
        return float(self.costs.sum())


def make_plan(sweep: Sweep, store: Store | None = None) -> Plan:
    """Which runs are missing; all of them without a store."""
    known: dict[str, tuple[str, float]] = {}
    if store is not None:
        columns = store.columns()
        values = (columns[name].tolist() for name in ("hash", "status", "best_test_error"))
        known = {hash: (status, best) for hash, status, best in zip(*values, strict=True) if status != "failed"}
    cells = np.array([cost(sweep.run_at(cell)) for cell in range(sweep.settings)])  # trials cost the same
    if not known:
        return Plan(len(sweep), 0, 0, 0, np.arange(len(sweep)), np.tile(cells, sweep.trials))
    pending, successes, diverged = [], 0, 0
    for number, spec in enumerate(sweep.runs()):
        found = known.get(spec.hash)
        if found is None:
            pending.append(number)
        else:
            diverged += found[0] == "diverged"
            successes += succeeded(*found, sweep.success_error)
    to_do = np.array(pending, dtype=np.int64)
    return Plan(len(sweep), len(sweep) - len(to_do), successes, diverged, to_do, cells[to_do % sweep.settings])


def estimate_seconds(sweep: Sweep, plan: Plan, engine: str = "auto", workers: int | None = None) -> float:
    """How long the missing runs will take on this machine, at most: a few of them are tried for a moment."""
    if not len(plan.pending):
        return 0.0
    trainer = get_engine(engine, threads=1)
    _, places = np.unique(plan.costs, return_index=True)
    chosen = places[np.unique(np.linspace(0, len(places) - 1, PROBES).astype(int))]
    sweep.run_at(int(plan.pending[chosen[0]])).describe().drawn()  # the first call pays for imports
    preparing, paces = [], []
    for i in chosen:
        short = _shortened(sweep.run_at(int(plan.pending[i])))
        start = time.perf_counter()
        run = short.describe().drawn()
        middle = time.perf_counter()
        trainer.train([run], keep_networks=False, on_divergence="record")
        preparing.append(middle - start)
        paces.append((time.perf_counter() - middle) / cost(short))
    costs = np.log(np.maximum(plan.costs, 1.0))
    seconds = np.interp(costs, costs[chosen], paces) * plan.costs + np.mean(preparing)
    parallel = 1 if trainer.side_by_side else (workers or usable_cores())
    return float(seconds.sum() / min(parallel, len(plan.pending)))


def _shortened(spec: RunSpec) -> RunSpec:
    """The same run, for a small part of its steps."""
    part = min(1.0, PROBE_COST / cost(spec))
    phases = tuple(replace(phase, steps=max(1, round(phase.steps * part))) for phase in spec.schedule.phases)
    return replace(spec, schedule=replace(spec.schedule, phases=phases, stop_error=None))
