"""The theorems' algorithms and lottery tickets at the sizes the papers are about: minutes (pytest -m slow)."""

import numpy as np
import pytest
from scipy.stats import binomtest

from fewfire.papers.pareto.algorithms import OverSparseParityClassifier, UnderSparseParityClassifier
from fewfire.papers.pareto.recipes.lottery_tickets import LotterySettings, lottery_tickets
from fewfire.papers.parities.algorithms import CorrelatedParityClassifier
from fewfire.problems import CorrelatedParity, Parity

pytestmark = pytest.mark.slow


def fitted_error(learner, problem, samples, **options):
    X, y = problem.sample(samples, seed=0)
    model = learner(random_state=0, **options).fit(X, y)
    assert model.support_ == problem.support
    return 1 - model.score(*problem.sample(10_000, seed=1))


def test_over_sparse():
    assert fitted_error(OverSparseParityClassifier, Parity(50, 2), 20_000, k=2, width=400) <= 0.01
    assert fitted_error(OverSparseParityClassifier, Parity(30, 4), 500_000, k=4, width=800) <= 0.1


def test_under_sparse_finds_a_subnetwork():
    """Theorem 21 promises correlation ½ − ε: error at most 25%. The fitted second layer does far better."""
    assert fitted_error(UnderSparseParityClassifier, Parity(41, 4), 50_000, k=4, width=3000) <= 0.01


@pytest.mark.parametrize(("n", "k"), [(301, 5), (501, 7)])
def test_correlated(n, k):
    assert fitted_error(CorrelatedParityClassifier, CorrelatedParity(n, k), 100_000, k=k, width=500) <= 0.05


def test_lottery_tickets_win():
    """pareto, C.2, at k = 4: over 24 wide networks rewound neurons beat redrawn ones (sign test, p < 0.01)."""
    found = lottery_tickets(LotterySettings(50, 4, 100, 5, networks=24, steps=30_000, retrain_steps=60_000))
    assert all(history.test_error.min() <= 0.1 for history in found["wide"])
    won, drawn = (np.array([h.test_error.min() <= 0.1 for h in found[name]]) for name in ("rewound", "redrawn"))
    better, worse = int((won & ~drawn).sum()), int((drawn & ~won).sum())
    assert binomtest(better, better + worse, alternative="greater").pvalue < 0.01
