"""Label noise: runs are tested on the target unless noisy test labels are asked for, and the two never share a hash."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from fewfire import report
from fewfire._errors import InvalidArgument
from fewfire.engines import Phase, Schedule, get_engine
from fewfire.networks import init
from fewfire.problems import (
    CorrelatedParity,
    Indexing,
    Junta,
    LearningWithRounding,
    Parity,
    register_problem,
    unregister_problem,
)
from fewfire.problems._base import CleanLabels
from fewfire.sweeps import Data, MemoryStore, RunSpec, Sweep, cells, merge, succeeded
from fewfire.testing._sweeps import tiny

NOISY = Parity(20, 2, noise=0.2)
SCHEDULE = Schedule(Phase(1500, learning_rate=0.1, weight_decay=0.01, batch_size=32), evaluate=250)


def sweep(problem=NOISY, success_error=0.1, **test):
    networks = ((init.sparse(2), 50),)
    return Sweep((problem,), networks, (Data(2000, 500, **test),), (SCHEDULE,), 4, success_error=success_error)


@pytest.fixture(scope="module")
def trained():
    """The same runs but for their labels: two stores."""
    stores = {}
    for labels, success_error in (("clean", 0.1), ("noisy", 0.3)):
        stores[labels] = MemoryStore()
        sweep(success_error=success_error, test_labels=labels).run(stores[labels], executor="inline")
    return stores


def test_noisy_runs_that_learn_the_target_succeed(trained):
    columns = trained["clean"].columns()
    assert columns["best_test_error"].max() == 0.0
    assert succeeded(columns["status"], columns["best_test_error"], 0.1).all()
    (group,) = report.frontier_info(trained["clean"])
    assert group.frontiers[0].success.tolist() == [[1.0]]


def test_noisy_test_labels_show_the_noise(trained):
    """The mean of 2000 labels, each wrong with probability 0.2, is within five standard errors of it."""
    errors = trained["noisy"].columns()["best_test_error"]
    assert np.abs(trained["noisy"].columns()["test_error"].mean() - 0.2) < 5 * np.sqrt(0.16 / 2000)
    assert (errors > 0.1).all()


def test_hashes_of_noiseless_runs_stay_and_noisy_ones_differ():
    plain, clean, noisy = (next(sweep(*of, **test).runs()) for of, test in (
        ((Parity(20, 2),), {}), ((), {}), ((NOISY, 0.3), {"test_labels": "noisy"}))
    )  # fmt: skip
    assert json.loads(plain.canonical)["data"] == {"samples": 2000, "test_samples": 500}
    assert json.loads(clean.canonical)["data"] == {"samples": 2000, "test_labels": "clean", "test_samples": 500}
    assert json.loads(noisy.canonical)["data"] == {"samples": 2000, "test_samples": 500}
    assert len({plain.hash, clean.hash, noisy.hash}) == 3


@pytest.mark.parametrize("labels", ["clean", "noisy"])
def test_a_text_of_either_kind_gives_its_own_run_back(labels):
    spec = next(sweep(success_error=0.3, test_labels=labels).runs())
    again = RunSpec.from_json(spec.canonical)
    assert again == spec and again.hash == spec.hash and again.test_labels == labels


def test_the_spec_of_a_noisy_sweep_states_what_it_is_tested_on():
    told = sweep(success_error=0.3, test_labels="noisy")
    assert told.to_dict()["data"] == [{"samples": 2000, "test_samples": 500, "test_labels": "noisy"}]
    assert Sweep.from_dict(told.to_dict()) == told
    assert sweep(Parity(20, 2)).to_dict()["data"] == [{"samples": 2000, "test_samples": 500}]
    assert sweep(Parity(20, 2), test_labels="noisy").run_at(0) == sweep(Parity(20, 2)).run_at(0)


def test_old_and_new_runs_are_cells_of_their_own(trained):
    both = MemoryStore()
    merge(both, list(trained.values()))
    assert sorted(cell.runs for cell in cells(both, 0.3)) == [4, 4]
    assert len(report.frontier_info(both)) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"data": {"samples": 30, "test_labels": "dirty"}}, "data.test_labels must be one of 'clean', 'noisy'"),
        (
            {
                "data": {"samples": 30, "test_labels": "noisy"},
                "problem": {"name": "parity", "n": 8, "k": 2, "noise": 0.2},
            },
            "success_error must be above 0.2",
        ),
        (
            {
                "data": {"samples": 30, "test_labels": ["clean", "noisy"]},
                "problem": {"name": "parity", "n": 8, "k": 2, "noise": [0.0, 0.05]},
            },
            "data.test_labels must be one value where a problem has no label noise",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(change, told):
    with pytest.raises(InvalidArgument, match=told):
        tiny(**change)


@pytest.mark.parametrize(
    "problem",
    [
        Parity(9, 2, noise=0.3),
        Junta(6, [4, 2], [1, 1, 1, -1], noise=0.25),
        CorrelatedParity(7, 3, noise=0.1),
        Indexing(2, noise=0.2),
        LearningWithRounding(3, 2, 4, noise=0.5),
    ],
    ids=lambda problem: problem.name,
)
def test_clean_labels_are_the_targets_on_the_same_inputs(problem):
    X, y = CleanLabels(problem).sample(400, seed=3, start=7)
    noisy, labels = problem.sample(400, seed=3, start=7)
    assert np.array_equal(X, noisy) and np.array_equal(y, problem.target(X)) and (y != labels).any()
    assert CleanLabels(problem).describe() == {**problem.describe(), "noise": 0.0}


@dataclass(frozen=True)
class Smudged:
    """A problem from outside whose noise has another name and which no device supports."""

    name: ClassVar = "smudged"
    n: int = 6
    smudge: float = 0.25

    @property
    def inputs(self):
        return self.n

    @property
    def bayes_error(self):
        return self.smudge

    def describe(self):
        return {"name": self.name, "n": self.n, "smudge": self.smudge}

    def sample(self, m, seed=0, start=0):
        return Parity(self.n, 2, noise=self.smudge).sample(m, seed, start)

    def target(self, X):
        return Parity(self.n, 2).target(X)


def test_a_problem_from_outside_is_tested_on_its_target():
    register_problem(Smudged)
    try:
        run = sweep(Smudged()).run_at(0).describe()
        assert CleanLabels(Smudged()).describe() is None
        drawn = run.drawn(get_engine("reference"))
        assert np.array_equal(drawn.y_test, Smudged().target(drawn.X_test))
        assert (run.sample.draw()[1] != Smudged().target(run.sample.draw()[0])).any()
    finally:
        unregister_problem(Smudged)
