"""Engines and problems from outside serve in worker processes too, which look everything up by name."""

import importlib
import os
import sys
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


def test_a_problem_of_a_file_beside_the_script(tmp_path, monkeypatch):
    """Workers were started without the folder of the script, and refused what the import had registered."""
    (tmp_path / "my_own_problem.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from fewfire.problems import SignProblem, register_problem\n\n\n"
        "@register_problem\n@dataclass(frozen=True)\nclass Last(SignProblem):\n"
        '    name: ClassVar = "last_input"\n    n: int\n\n'
        "    def _values(self, X):\n        return X[:, -1]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("my_own_problem").Last
    try:
        spec = {"problem": {"name": "last_input", "n": 6}, "network": {"start": "dense", "width": 5}}
        sweep = Sweep.from_dict({**spec, "data": {"samples": 20}, "training": {"steps": 10}, "trials": 3})
        inline, processes = MemoryStore(), MemoryStore()
        sweep.run(inline, executor="inline", engine="reference")
        assert sweep.run(processes, executor=ProcessExecutor(2), engine="reference").failed == 0
        assert [row.outcome() for row in processes.rows()] == [row.outcome() for row in inline.rows()]
    finally:
        unregister_problem(kind)
        del sys.modules["my_own_problem"]
