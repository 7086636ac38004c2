"""What the device measured, as results: histories, counters, how a run ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.engines._result import MEASURED_ROWS, Counters, History, Result, divergence
from fewfire.engines._run import Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import Walked
from fewfire.engines.cuda._schedules import ScheduleTables

if TYPE_CHECKING:
    from fewfire._types import AnyArray
    from fewfire.engines._result import Stopped
    from fewfire.engines._run import Run
    from fewfire.engines.cuda._batch import Batch
    from fewfire.networks import TwoLayer


def result_of(batch: Batch, place: int, outcome: AnyArray, engine: str, keep_network: bool) -> Result:
    """What a run ended with; a diverged run gives back its initial network."""
    run, stopped = batch.runs[place], records.STOPPED[int(outcome["stopped"])]
    diverged = stopped == "diverged"
    error = divergence(int(outcome["steps"]), float(outcome["rate"])) if diverged else None
    network: TwoLayer | None = None
    if keep_network and diverged:
        network = run.network.draw() if isinstance(run.network, Start) else run.network
    elif keep_network:
        network = batch.network(place)
    steps = int(outcome["steps"]) - diverged
    kind: Stopped = "diverged" if diverged else "test_error" if stopped == "test_error" else "steps"
    counters = _counters(run, steps, int(outcome["active_pairs"]))
    return Result(network, _history(batch, place, int(outcome["records"])), counters, kind, engine, error)


def _counters(run: Run, steps: int, active_pairs: int) -> Counters:
    examples, left = 0, steps
    for phase in run.schedule.phases:
        size = phase.batch_size or (run.sample.rows if run.sample is not None else len(run.X))  # type: ignore[arg-type]
        examples += min(left, phase.steps) * size
        left -= min(left, phase.steps)
    return Counters(steps, examples, active_pairs, 2 * examples * run.width * (run.inputs + 1))


def _history(batch: Batch, place: int, count: int) -> History:
    run, table = batch.runs[place], batch.checkpoints(place, count)
    loss, error, test_error, hidden, output, mass, inside, fired = table.T
    rows = min(run.sample.rows if run.sample is not None else len(run.X) if run.X is not None else 0, MEASURED_ROWS)
    none = np.full(count, np.nan)
    active = fired / (rows * run.width) if rows and not isinstance(run, Walked) else none
    with np.errstate(invalid="ignore"):
        share = none if run.support is None else np.where(mass > 0, inside / mass, np.nan)
    steps = ScheduleTables.of(run.schedule).checkpoints[:count].astype(np.int64)
    # Copies: views would keep the records of the whole batch in memory.
    measured = (loss.copy(), error.copy(), test_error.copy())
    return History(steps, *measured, np.sqrt(hidden), np.sqrt(output), active, share)
