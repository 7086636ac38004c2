"""Every recipe says what it shows; the fast ones run here, the others are marked slow."""

import json

import pytest

from fewfire.experiments import recipes
from fewfire.experiments.recipes.sparse_activations import bounds, learning_scaling
from fewfire.fourier import spectrum
from fewfire.networks import check_sparsity

FAST = ("pareto/proposition-3", "sparse-activations/bounds", "sparse-activations/rademacher")


def test_the_registry_lists_what_the_modules_say():
    for name in recipes.RECIPES:
        recipe = recipes.find(name)
        assert recipe.name == name and recipe.title and recipe.expectation
        assert 1 <= recipe.seconds <= 60
    with pytest.raises(ValueError, match="recipe must be one of pareto/convergence-time, .*; got 'nothing'."):
        recipes.find("nothing")
    with pytest.raises(ValueError, match="scale must be one of 'quick', 'paper'; got 'huge'."):
        recipes.run("sparse-activations/bounds", "huge")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in recipes.RECIPES]
)
def test_recipes_pass_and_return_plain_data(name):
    result = recipes.run(name)
    assert json.loads(json.dumps(result)) == result
    assert result["recipe"] == name and result["scale"] == "quick"
    assert result["judgement"] or result["skipped"]  # data that is not at hand leaves nothing to judge
    for entry in result["judgement"]:
        assert entry["passed"], entry
        fits = (
            entry["value"] <= entry["threshold"] if entry["rule"] == "at most" else entry["value"] >= entry["threshold"]
        )
        assert fits
    assert result["passed"]


def test_a_failed_claim_fails_the_recipe():
    from fewfire.experiments.recipes._base import judgement, result

    bad = judgement("claim", "statistic", 2.0, 1.0)
    good = judgement("claim", "statistic", 2.0, 1.0, at_most=False)
    assert not bad["passed"] and good["passed"]
    assert not result(bounds.RECIPE, "quick", {}, [good, bad])["passed"]


def test_the_extremal_network():
    net = bounds.extremal_network(5, 3, 2)
    assert check_sparsity(net).max_active == 2
    assert spectrum(net).largest(1) == [((0, 1, 2), 4.0)]


def test_pieces_of_the_scaling_recipe():
    row = learning_scaling._samples_needed(8, range(2))
    assert row["monomials"] == 93 and row["samples"] % (93 // 4) < 4 and 46 <= row["samples"] <= 186
    degree = learning_scaling._degree_needed(8, "junta", range(2))
    assert 1 <= degree["degree"] <= 3 < degree["bound"]
