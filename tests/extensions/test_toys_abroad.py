"""Engines and problems from outside serve in worker processes too, which look everything up by name."""

import os
from pathlib import Path

import pytest
from toy_engine import make_toy_engine
from toy_problem import ToyMajority

from fewfire.engines import register_engine, unregister_engine
from fewfire.problems import register_problem, unregister_problem
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.sweeps.executors import ProcessExecutor

SPEC = {
    "problem": {"name": "toy_majority", "n": 9, "k": 3},
    "network": {"start": "dense", "width": 5},
    "data": {"samples": 30, "test_samples": 40},
    "training": {"steps": 20, "batch_size": 8},
    "trials": 4,
}


@pytest.fixture
def registered(monkeypatch):
    here = str(Path(__file__).parent)  # where workers have to find the toys
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH")))))
    register_problem(ToyMajority)
    register_engine("toy", make_toy_engine)
    yield
    unregister_engine("toy")
    unregister_problem(ToyMajority)


def test_a_sweep_in_processes(registered):
    inline, processes = MemoryStore(), MemoryStore()
    Sweep.from_dict(SPEC).run(inline, engine="toy", executor="inline")
    state = Sweep.from_dict(SPEC).run(processes, engine="toy", executor=ProcessExecutor(2))
    assert (state.ran, state.failed, state.engine) == (4, 0, "toy")
    assert [row.outcome() for row in processes.rows()] == [row.outcome() for row in inline.rows()]
