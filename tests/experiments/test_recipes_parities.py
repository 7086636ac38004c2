"""Recipes of pareto and parities at quick scale: plain data, and the papers' claims hold."""

import json

import pytest

from fewfire.experiments import recipes

NAMES = [
    "pareto/lottery-tickets",
    "pareto/over-sparse",
    "pareto/under-sparse",
    "parities/theorem-2",
    "pareto/offline-parity",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_claims_hold_at_quick_scale(name):
    outcome = recipes.run(name)
    json.dumps(outcome)
    assert outcome["passed"], outcome["judgement"]


def test_offline_parity_counts_successes():
    from fewfire.experiments.recipes.pareto import offline_parity
    from fewfire.problems import Parity

    assert offline_parity.successes(Parity(10, 2), "sparse", 100, 400, 3, 3000) == 3
    assert offline_parity.successes(Parity(20, 4), "dense", 2, 50, 3, 20) == 0


def test_scale_is_checked():
    with pytest.raises(ValueError, match="scale must be one of 'quick', 'paper'; got 'full'"):
        recipes.run("pareto/over-sparse", "full")
