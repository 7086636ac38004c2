"""The papers' claims at the sizes they are about: minutes on two cores (pytest -m slow)."""

import itertools

import numpy as np
import pytest

from fewfire.engines import CpuEngine, Phase, Run, Schedule
from fewfire.learners.parity_net import ParityNetClassifier, lottery_tickets
from fewfire.networks import init
from fewfire.problems import CorrelatedParity, Parity

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


def fitted_error(problem, samples, **options):
    X, y = problem.sample(samples, seed=0)
    model = ParityNetClassifier(random_state=0, **options).fit(X, y)
    assert model.support_ == problem.support
    return 1 - model.score(*problem.sample(10_000, seed=1))


def test_over_sparse():
    assert fitted_error(Parity(50, 2), 20_000, schedule="over_sparse", k=2, sparsity=9, width=400) <= 0.01
    assert fitted_error(Parity(30, 4), 500_000, schedule="over_sparse", k=4, sparsity=17, width=800) <= 0.1


def test_under_sparse_finds_a_subnetwork():
    """Theorem 21 promises correlation ½ − ε: error at most 25%. The fitted second layer does far better."""
    assert fitted_error(Parity(41, 4), 50_000, schedule="under_sparse", k=4, sparsity=2, width=3000) <= 0.01


@pytest.mark.parametrize(("n", "k"), [(301, 5), (501, 7)])
def test_correlated(n, k):
    assert fitted_error(CorrelatedParity(n, k), 100_000, schedule="correlated", k=k, width=500) <= 0.05


def test_lottery_tickets_win():
    """pareto, C.2, at k = 4: over 24 wide networks rewound neurons beat redrawn ones (sign test, p < 0.01)."""
    from scipy.stats import binomtest

    found = lottery_tickets(Parity(50, 4), 50, networks=24, steps=30_000, retrain_steps=60_000, stop_error=0.1)
    assert all(history.test_error.min() <= 0.1 for history in found.wide)
    won, drawn = found.success()
    better, worse = int((won > drawn).sum()), int((won < drawn).sum())
    assert binomtest(better, better + worse, alternative="greater").pvalue < 0.01
