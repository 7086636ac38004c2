"""What docs/architecture.md describes of adding a problem: one class outside the package, and specs can name it."""

import numpy as np
import pytest
from toy_problem import ToyMajority

from fewfire.problems import Problem, register_problem, unregister_problem
from fewfire.sweeps import MemoryStore, RunSpec, Sweep

SPEC = {
    "problem": {"name": "toy_majority", "n": 9, "k": [3, 5]},
    "network": {"start": "dense", "width": 20},
    "data": {"samples": 200, "test_samples": 100},
    "training": {"steps": 300, "learning_rate": 0.1},
}


@pytest.fixture
def registered():
    register_problem(ToyMajority)
    yield
    unregister_problem(ToyMajority)


def test_it_is_a_problem():
    problem = ToyMajority(9, 3)
    X, y = problem.sample(50, seed=1)
    assert isinstance(problem, Problem) and np.array_equal(y, np.sign(X[:, :3].sum(axis=1)))
    assert problem.describe() == {"name": "toy_majority", "n": 9, "k": 3, "noise": 0.0}


def test_a_sweep_names_it(registered):
    store, sweep = MemoryStore(), Sweep.from_dict(SPEC)
    sweep.run(store)
    assert store.counts()["done"] == 2 and store.columns()["test_error"].max() < 0.3
    spec = next(sweep.runs())
    assert RunSpec.from_json(spec.canonical) == spec and spec.problem == ToyMajority(9, 3)
