"""The recipe of offline parities counts what it says; tests/experiments/test_recipes.py runs every recipe."""

import pytest

from fewfire.experiments import recipes


def test_offline_parity_counts_successes():
    from fewfire.experiments.recipes.pareto import offline_parity
    from fewfire.problems import Parity

    assert offline_parity.successes(Parity(10, 2), "sparse", 100, 400, 3, 3000) == 3
    assert offline_parity.successes(Parity(20, 4), "dense", 2, 50, 3, 20) == 0


def test_scale_is_checked():
    with pytest.raises(ValueError, match="scale must be one of 'quick', 'paper'; got 'full'"):
        recipes.run("pareto/over-sparse", "full")
