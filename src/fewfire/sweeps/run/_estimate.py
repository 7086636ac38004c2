"""How long the rest of a sweep will take, from probes: runs that are tried for a moment.

On cores, a few of the missing cells, from the cheapest to the dearest, are trained for a moment, and seconds per
multiply-add are interpolated between them. The speed of a device is measured with every shape of run that there is:
seconds per step and per row of a checkpoint when it is full.

Early stops make a sweep faster than that. What they save is known where a store has runs of the sweep: the share of
steps that the runs of a cell took on average, which stands for the nearest cells that have none, near in the logarithms
of inputs, width and samples, among those with the same start and the same kind of problem.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewfire._threads import usable_cores
from fewfire._types import Float64Array
from fewfire.engines import MEASURED_ROWS, DeviceEngine, Engine, get_engine
from fewfire.sweeps.run._plan import Plan, cost, one_of_each_shape, shape
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.spec._sweep import Sweep
from fewfire.sweeps.spec._tables import parse_training
from fewfire.sweeps.store._protocol import Store
from fewfire.sweeps.store._row import final

PROBES = 5
PROBE_COST = 5e8  # multiply-adds of one probe: a moment on one core
ONLINE_SAMPLES = 1e9  # how many samples a run with fresh examples seems to have where cells are compared


@dataclass(frozen=True)
class TimeEstimate:
    """How long what is to do will take, on all cores or devices together.

    `seconds` are to the last step of every run; `stopping_seconds` with early stops as measured on `measured_runs`
    finished runs, None where they were not. `devices` is how many share the work; 0 where it is cores.
    """

    seconds: float
    stopping_seconds: float | None
    engine: str
    devices: int
    measured_runs: int

    @property
    def device_hours(self) -> float:
        """Hours of one device."""
        return self.seconds * self.devices / 3600


def estimate_time(
    sweep: Sweep, plan: Plan, engine: str = "auto", workers: int | None = None, measured: Sequence[Store] = ()
) -> TimeEstimate:
    """How long the missing runs will take on this machine: some are tried for a moment.

    Parameters
    ----------
    sweep, plan : Sweep, Plan
    engine : str
    workers : int, optional
        Processes of this machine; one per core or device by default.
    measured : stores, optional
        Early stops are measured on their finished runs.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, Sweep, estimate_time, make_plan
    >>> spec = {"problem": {"name": "parity", "n": 10, "k": 2}, "network": {"start": "dense", "width": 10}}
    >>> sweep = Sweep.from_dict(spec | {"data": {"samples": 50}, "training": {"steps": 100}, "trials": 3})
    >>> estimate_time(sweep, make_plan(sweep, MemoryStore()), workers=1).seconds < 60
    True
    """
    trainer = get_engine(engine, threads=1, work=plan.cost, general=sweep.general)
    devices = len(trainer.devices()) if isinstance(trainer, DeviceEngine) else 0
    if not len(plan.pending):
        return TimeEstimate(0.0, 0.0, trainer.name, devices, 0)
    each = _on_a_device(sweep, plan, trainer) if isinstance(trainer, DeviceEngine) else _on_a_core(sweep, plan, trainer)
    parallel = devices or (1 if trainer.side_by_side else usable_cores())
    parallel = min(workers or parallel, devices or len(plan.pending))
    shares, runs = _stops(sweep, plan, measured)
    stopping = None if shares is None else float((each * shares).sum() / parallel)
    return TimeEstimate(float(each.sum() / parallel), stopping, trainer.name, min(parallel, devices), runs)


def _on_a_device(sweep: Sweep, plan: Plan, engine: DeviceEngine) -> Float64Array:
    """Seconds of one device for each run, from its pace with each shape."""
    probes = {shape(spec): spec.describe() for spec in one_of_each_shape(sweep, plan.pending)}
    engine.prepare(list(probes.values()))
    paces = {name: engine.pace(run) for name, run in probes.items()}

    def seconds(spec: RunSpec) -> float:
        pace, evaluated = paces[shape(spec)], min(spec.samples or 0, MEASURED_ROWS) + spec.test_samples
        schedule = spec.resolved
        return schedule.steps * pace.step + len(schedule.checkpoints()) * evaluated * pace.row

    return _by_cell(sweep, plan, seconds)


def _on_a_core(sweep: Sweep, plan: Plan, trainer: Engine) -> Float64Array:
    """Seconds of one core for each run, from a few that are tried."""
    _, indices = np.unique(plan.costs, return_index=True)
    chosen = indices[np.unique(np.linspace(0, len(indices) - 1, PROBES).astype(int))]
    sweep.run_at(int(plan.pending[chosen[0]])).describe().drawn()  # the first call pays for imports
    preparing, paces = [], []
    for i in chosen:
        spec = sweep.run_at(int(plan.pending[i]))
        part = min(1.0, PROBE_COST / cost(spec))  # of its steps
        phases = tuple(replace(phase, steps=max(1, round(phase.steps * part))) for phase in spec.resolved.phases)
        short = replace(spec, schedule=replace(spec.schedule, phases=phases, stop_error=None))
        start = time.perf_counter()
        run = short.describe().drawn()
        middle = time.perf_counter()
        trainer.train([run], keep_networks=False, on_divergence="record")
        preparing.append(middle - start)
        paces.append((time.perf_counter() - middle) / cost(short))
    costs = np.log(np.maximum(plan.costs, 1.0))
    seconds: Float64Array = np.interp(costs, costs[chosen], paces) * plan.costs + np.mean(preparing)
    return seconds


def _stops(sweep: Sweep, plan: Plan, stores: Sequence[Store]) -> tuple[Float64Array | None, int]:
    """For each run that is to do, the share of its steps that it will take; and the number of runs it is from."""
    known: dict[str, list[tuple[Float64Array, float]]] = {}
    runs = sum(_measure_shares(store, known) for store in stores)
    if not runs:
        return None, 0

    def share(spec: RunSpec) -> float:
        """Of the nearest cell; all steps where there is none."""
        kind, point = _kind_and_point(json.loads(spec.setting))
        nearest = min(known.get(kind, []), key=lambda cell: float(np.abs(cell[0] - point).sum()), default=(point, 1.0))
        return nearest[1]

    return _by_cell(sweep, plan, share), runs


def _by_cell(sweep: Sweep, plan: Plan, number: Callable[[RunSpec], float]) -> Float64Array:
    """A number of every run that is to do, which those of a cell share."""
    cells, places = np.unique(plan.pending % sweep.settings, return_inverse=True)
    return np.array([number(sweep.run_at(int(cell))) for cell in cells])[places]


def _measure_shares(store: Store, known: dict[str, list[tuple[Float64Array, float]]]) -> int:
    """Enter the cells of a store by kind, each with the share of its steps that runs took; gives the runs."""
    columns = store.columns()
    finished = final(columns["status"])
    for setting in store.settings():
        taken = columns["steps"][finished & (columns["setting"] == setting.id)]
        if len(taken):
            kind, point = _kind_and_point(setting.spec)
            most = parse_training(setting.training).of_rows(setting.samples).steps
            known.setdefault(kind, []).append((point, float(taken.mean()) / most))
    return int(finished.sum())


def _kind_and_point(setting: dict[str, Any]) -> tuple[str, Float64Array]:
    """What must be equal for two cells to be compared, and the logarithms that measure how near they are."""
    problem = {key: value for key, value in setting["problem"].items() if key not in ("n", "support")}
    network = {key: value for key, value in setting["network"].items() if key != "width"}
    kind = json.dumps([problem, network, setting["training"]], sort_keys=True)
    samples = setting["data"]["samples"]
    seen = ONLINE_SAMPLES if samples == "online" else samples
    return kind, np.log(
        np.array([setting["problem"].get("n", 1), setting["network"].get("width", 1), seen], dtype=np.float64)
    )
