"""pareto, C.1, at the sizes it is about: minutes on two cores (pytest -m slow)."""

import itertools

import numpy as np
import pytest

from fewfire.engines import CpuEngine, Phase, Run, Schedule
from fewfire.networks import init
from fewfire.problems import Parity

pytestmark = pytest.mark.slow

PROBLEM = Parity(50, 3)
SCHEDULE = Schedule(Phase(20_000, 0.1, weight_decay=0.01), evaluate=2000, stop_error=0.1)


def success(start, width, samples, trials):
    """Share of runs whose error on 10,000 fresh examples falls to 10% within 20,000 steps (pareto, C.1)."""
    test = PROBLEM.sample(10_000, seed=10**6)
    runs = [
        Run(start(50, width, seed=t), SCHEDULE, *PROBLEM.sample(samples, seed=t), *test, seed=t) for t in range(trials)
    ]
    return float(np.mean([result.test_error <= 0.1 for result in CpuEngine().train(runs)]))


def test_wide_sparse_networks_learn_from_a_thousand_examples():
    assert success(init.sparse(2), 1000, 1000, 48) >= 0.95


def test_narrow_networks_fail_on_three_hundred():
    assert success(init.sparse(2), 100, 300, 48) == 0
    assert success(init.dense(), 100, 300, 48) == 0


def test_width_buys_luck_and_sparse_beats_dense():
    """m = 600, 48 runs a cell: the standard error of a share is at most 7 points."""
    sparse = [success(init.sparse(2), width, 600, 48) for width in (30, 100, 300, 1000, 3000)]
    dense = [success(init.dense(), width, 600, 48) for width in (300, 1000, 3000)]
    assert all(later >= earlier - 0.05 for earlier, later in itertools.pairwise(sparse)), sparse
    assert sparse[-1] - sparse[0] >= 0.3, sparse
    assert all(s > d or s == d == 1 for s, d in zip(sparse[2:], dense, strict=True)), (sparse, dense)
