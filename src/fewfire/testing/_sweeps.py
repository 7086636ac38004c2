"""Small sweeps and made-up rows that the suites of stores and executors share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fewfire.engines import CpuEngine, History, ReferenceEngine
from fewfire.sweeps import RunSpec, Store, Sweep
from fewfire.sweeps.store._protocol import Measurement
from fewfire.sweeps.store._row import Row


def tiny_table(**changes: Any) -> dict[str, Any]:
    """The spec of `tiny`, with some sections replaced."""
    spec: dict[str, Any] = {
        "problem": {"name": "parity", "n": 8, "k": 2},
        "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [5, 8]},
        "data": {"samples": [30, "online"], "test_samples": 40},
        "training": {"steps": 40, "learning_rate": 0.1, "weight_decay": 0.01, "batch_size": 8, "evaluate": 20},
        "trials": 2,
    }
    return spec | changes


def tiny(**changes: Any) -> Sweep:
    """16 runs of a few milliseconds."""
    return Sweep.from_dict(tiny_table(**changes))


def run_spec(trial: int = 0, **changes: Any) -> RunSpec:
    """One run of the tiny sweep."""
    sweep = tiny(**{"network": {"start": "dense", "width": 5}, "data": {"samples": 30, "test_samples": 40}, **changes})
    spec = next(sweep.runs())
    return RunSpec(spec.problem, spec.start, spec.width, spec.samples, spec.schedule, trial, spec.test_samples)


def made_up_row(trial: int, status: str = "done", width: int = 5, error: float = 0.25, message: str = "") -> Row:
    """A row as an engine would give it, without training."""
    spec = run_spec(trial, network={"start": "dense", "width": width})
    history = History(np.array([0, 20, 40]), *np.arange(21, dtype=np.float32).reshape(7, 3) / 8)
    errors, counters = (error, error / 2, 0.125, math.nan), (40, 320, 7, 8)
    made = (message, "cpu", '{"host": "here"}', history)
    return Row(spec.hash, spec.setting, trial, status, "steps", *errors, *counters, *made)


def made_up_measurement(trial: int, status: str = "done", error: float = 0.25) -> Measurement:
    """A measurement as an experiment would give it."""
    failed = status == "failed"
    spec = f'{{"task":"made up","trial":{trial}}}'
    return Measurement(spec, status, math.nan if failed else error, 0.5, "why" if failed else "", '{"host": "here"}')


def outcomes(store: Store) -> list[tuple[object, ...]]:
    """Everything that must not depend on how the runs were carried out."""
    return [row.outcome() for row in store.rows()]


def cut_batches(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """Batches of so many runs, whatever they cost, on the engines that come with fewfire."""
    for engine in (CpuEngine, ReferenceEngine):
        monkeypatch.setattr(engine, "batch_cost", 1e18)
        monkeypatch.setattr(engine, "batch_runs", runs)
