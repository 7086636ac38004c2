"""parities/theorem-2: the verdicts hold on a small setting, and fail where gradient descent fails."""

import json

import pytest

from fewfire.experiments import recipes
from fewfire.experiments.recipes.parities import theorem_2
from fewfire.experiments.recipes.parities.theorem_2 import DescentSize, PracticalSize, Theorem2Settings

SMALL = Theorem2Settings((DescentSize(51, 3, 400, 300),), (PracticalSize(51, 3, 200, 1000),), seeds=2, theorem_seeds=1)


def test_a_small_setting_is_learned_by_both_modes():
    result = theorem_2.RECIPE.run(settings=SMALL)
    assert result.passed, result.judgements
    table = result.to_dict()
    assert json.loads(json.dumps(table)) == table
    assert [(row["mode"], row["seed"]) for row in table["rows"]] == [
        ("descent", 0), ("descent", 1), ("theorem", 0), ("practical", 0), ("practical", 1),
    ]  # fmt: skip
    assert all(row["support_found"] for row in table["rows"] if row["mode"] == "practical")
    own = next(row for row in table["rows"] if row["mode"] == "theorem")
    assert own["error"] > 0.1  # beside it, not judged
    assert len(table["curves"][0]["step"]) == len(table["curves"][0]["held_out"])
    (terms,) = table["terms"]
    assert terms["error"] > 1 and terms["violated"][0] == "k ≥ 7; k is 3"
    assert "(51, 3): " in result.measured[0] and "the best half-space has 87.50%" in result.measured[0]


@pytest.mark.parametrize("rate", [0.001, 50.0])
def test_descent_that_stays_at_the_half_space_or_leaves_it_for_good_is_refuted(rate):
    found = theorem_2.RECIPE.run(settings=SMALL, learning_rate=rate)
    assert [entry.passed for entry in found.judgements] == [False, True]


def test_too_few_examples_refute_the_practical_mode():
    few = Theorem2Settings(SMALL.descents, (PracticalSize(51, 3, 200, 30),), seeds=2, theorem_seeds=1)
    found = theorem_2.RECIPE.run(settings=few)
    assert [entry.passed for entry in found.judgements] == [True, False]


@pytest.mark.parametrize(("stuck", "refuted"), [(0, False), (2, False), (3, True)])
def test_the_power_of_ten_seeds(stuck, refuted):
    """Three of ten seeds at the best half-space of k = 3, the better of the two, bring the mean below 97%."""
    size = DescentSize(101, 3, 400, 500)
    common = {"mode": "descent", "n": 101, "k": 3, "width": 400, "steps": 500}
    rows = [{**common, "error": 0.125 if seed < stuck else 0.0} for seed in range(10)]
    assert (theorem_2._mean_accuracy(rows, "descent", size) < 0.97) == refuted


def test_the_recipe_is_registered_with_ten_seeds():
    assert recipes.find("parities/theorem-2") is theorem_2.RECIPE
    quick = theorem_2.RECIPE.scales["quick"]
    assert quick.seeds == 10 and [(size.n, size.k) for size in quick.descents] == [(101, 3), (201, 5), (301, 5)]
    assert [(size.n, size.k, size.examples) for size in quick.practicals] == [(201, 3, 2000), (401, 5, 5000)]
