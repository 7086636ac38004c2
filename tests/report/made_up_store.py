"""Stores made by hand: what every run did is written down in the test."""

import math

import numpy as np

from fewfire.engines import History, Phase, Schedule
from fewfire.networks import init
from fewfire.problems import Parity
from fewfire.sweeps import MemoryStore, RunSpec
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.sweeps.store._row import Row

STEPS = (0, 10, 20, 30, 40)


def spec(width=5, samples=100, start=None, trial=0, problem=None, stop_error=0.1, steps=40, learning_rate=0.1):
    schedule = Schedule((Phase(steps, learning_rate=learning_rate),), evaluate=10, stop_error=stop_error)
    return RunSpec(problem or Parity(8, 2), start or init.dense(), width, samples, schedule, trial, 40)


def row(run, converged=None, status="done", message="", engine="cpu", steps=STEPS):
    """A run whose test error falls from 0.5 to 0.05 at the step `converged`, or stays; training error falls at 10."""
    step = np.array(steps, dtype=np.int64)
    if status == "failed":
        return Row(
            run.hash,
            run.setting,
            run.trial,
            status,
            "",
            *[math.nan] * 4,
            0,
            0,
            0,
            0,
            message,
            engine,
            "{}",
            History.of([]),
        )
    stops = converged is not None and run.schedule.stop_error is not None
    if stops:
        step = step[step <= converged]
    test = np.where(step < (math.inf if converged is None else converged), 0.5, 0.05).astype(np.float32)
    train = np.where(step < 10, 0.5, 0.0).astype(np.float32)
    if run.samples is None:
        train[:] = np.nan
    ones = np.ones(len(step), dtype=np.float32)
    stopped = "diverged" if status == "diverged" else "test_error" if stops else "steps"
    return Row(run.hash, run.setting, run.trial, status, stopped, float(test[-1]), float(test.min()), float(train[-1]), 0.25,
               int(step[-1]), int(step[-1]) * 32, 7, 8, message, engine, "{}",
               History(step, train, train, test, ones, ones, ones, ones))  # fmt: skip


def store_of(*rows, name=None, success_error=0.1):
    store = MemoryStore()
    store.add(rows)
    if name is not None:
        store.record_sweep(SweepRecord(name, success_error, {"name": name}))
    return store


def cell(times, **where):
    """The runs of one cell: the step at which each converged, None for those that did not."""
    return [row(spec(trial=trial, **where), time) for trial, time in enumerate(times)]


def frontier_store(name="Made up"):
    """Two starts, widths 5 and 20, samples 100, 200 and 400, two trials: the wider succeed with fewer examples."""
    dense, sparse = init.dense(), init.sparse(2)
    successes = {
        (dense, 5): (0, 0, 1), (dense, 20): (0, 1, 2),
        (sparse, 5): (0, 0, 2), (sparse, 20): (0, 2, 2),
    }  # fmt: skip
    rows = []
    for (start, width), counts in successes.items():
        for samples, won in zip((100, 200, 400), counts, strict=True):
            rows += cell([20 if trial < won else None for trial in range(2)], width=width, samples=samples, start=start)
    return store_of(*rows, name=name)


def noted_store():
    """`frontier_store` with two sweeps that have notes: that of width 20, and one that shares the cells of 400 examples."""
    store = frontier_store()
    wide = [one.spec for one in store.settings() if one.width == 20]
    large = [one.spec for one in store.settings() if one.samples == 400]
    tables = ("problem", "network", "data", "training")
    for name, cells, note, tags in (
        ("Wide", wide, "See <b>the</b>\npaper.", ("wide",)),
        ("Large", large, "", ("big", "final")),
    ):
        store.record_sweep(
            SweepRecord(name, 0.1, {table: [one[table] for one in cells] for table in tables}, note, tags)
        )
    return store
