"""Small sweeps that the tests of this folder share."""

import math

import numpy as np

from fewfire.engines import CpuEngine, History, ReferenceEngine
from fewfire.experiments import Measurement, Row, RunSpec, Sweep


def table(**changes):
    spec = {
        "problem": {"name": "parity", "n": 8, "k": 2},
        "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [5, 8]},
        "data": {"samples": [30, "online"], "test_samples": 40},
        "training": {"steps": 40, "learning_rate": 0.1, "weight_decay": 0.01, "batch_size": 8, "evaluate": 20},
        "trials": 2,
    }
    return spec | changes


def tiny(**changes):
    """16 runs of a few milliseconds."""
    return Sweep.from_dict(table(**changes))


def run_spec(trial=0, **changes):
    """One run of the tiny sweep."""
    sweep = tiny(**{"network": {"start": "dense", "width": 5}, "data": {"samples": 30, "test_samples": 40}, **changes})
    spec = next(sweep.runs())
    return RunSpec(spec.problem, spec.start, spec.width, spec.samples, spec.schedule, trial, spec.test_samples)


def made_up_row(trial, status="done", width=5, error=0.25, message=""):
    """A row as an engine would give it, without training."""
    spec = run_spec(trial, network={"start": "dense", "width": width})
    history = History(np.array([0, 20, 40]), *np.arange(21, dtype=np.float32).reshape(7, 3) / 8)
    return Row(spec.hash, spec.setting, trial, status, "steps", error, error / 2, 0.125, math.nan, 40, 320, 7, 8,
               message, "cpu", '{"host": "here"}', history)  # fmt: skip


def made_up_measurement(trial, status="done", error=0.25):
    """A measurement as an experiment would give it."""
    failed = status == "failed"
    spec = f'{{"task":"made up","trial":{trial}}}'
    return Measurement(spec, status, math.nan if failed else error, 0.5, "why" if failed else "", '{"host": "here"}')


def outcomes(store):
    """Everything that must not depend on how the runs were carried out."""
    return [row.outcome() for row in store.rows()]


def cut_batches(monkeypatch, runs):
    """Batches of so many runs, whatever they cost, on every engine."""
    for engine in (CpuEngine, ReferenceEngine):
        monkeypatch.setattr(engine, "batch_cost", 1e18)
        monkeypatch.setattr(engine, "batch_runs", runs)
