"""parities/theorem-2: the verdicts hold on a small setting, and fail where gradient descent fails."""

import json
from dataclasses import asdict

import pytest

from fewfire.papers import recipes
from fewfire.papers.parities.recipes import theorem_2
from fewfire.papers.parities.recipes.theorem_2 import DescentSize, PracticalSize, Theorem2Settings

SMALL = Theorem2Settings((DescentSize(51, 3, 400, 300),), (PracticalSize(51, 3, 200, 1000),), seeds=2, theorem_seeds=1)


def test_a_small_setting_is_learned_by_both_modes():
    result = theorem_2.RECIPE.run(settings=SMALL)
    assert result.passed, result.judgements
    table = result.to_dict()
    assert json.loads(json.dumps(table)) == table
    modes = ["descent", "descent", "theorem", "practical", "practical"]
    assert [row["mode"] for row in table["rows"]] == modes
    assert [row["seed"] for row in table["rows"]] == [0, 1, 0, 0, 1]
    assert all(row["support_found"] for row in table["rows"] if row["mode"] == "practical")
    own = next(row for row in table["rows"] if row["mode"] == "theorem")
    assert own["error"] > 0.1  # the half-space, as the claim states
    assert len(table["curves"][0]["step"]) == len(table["curves"][0]["held_out"])
    (terms,) = table["terms"]
    assert terms["error"] > 1 and terms["violated"][0] == "k ≥ 7; k is 3"
    assert "(51, 3): " in result.measured[0] and "the best half-space has 87.50%" in result.measured[0]


@pytest.mark.parametrize("rate", [0.001, 50.0])
def test_descent_that_stays_at_the_half_space_or_leaves_it_for_good_is_refuted(monkeypatch, rate):
    monkeypatch.setattr(theorem_2, "LEARNING_RATE", rate)
    found = theorem_2.RECIPE.run(settings=SMALL)
    assert [entry.passed for entry in found.judgements] == [False, True, True]


def test_too_few_examples_refute_the_practical_mode():
    few = Theorem2Settings(SMALL.descents, (PracticalSize(51, 3, 200, 30),), seeds=2, theorem_seeds=1)
    found = theorem_2.RECIPE.run(settings=few)
    assert [entry.passed for entry in found.judgements] == [True, False, True]


QUICK = theorem_2.RECIPE.scales["quick"]


def made_up(stuck=None, freed=None):
    """Rows without an error, at the theorem's rate those of the half-space; one of `stuck`'s or `freed`'s otherwise."""
    rows = []
    for mode, sizes, seeds in (
        ("descent", QUICK.descents, QUICK.seeds),
        ("theorem", QUICK.descents, QUICK.theorem_seeds),
        ("practical", QUICK.practicals, QUICK.seeds),
    ):
        half = [{3: 0.125, 5: 0.15625}[size.k] for size in sizes]
        rows += [
            {"mode": mode, **asdict(size), "seed": seed, "error": error if mode == "theorem" else 0.0}
            for size, error in zip(sizes, half, strict=True)
            for seed in range(seeds)
        ]
    for mode, error in ((stuck, 0.125), (freed, 0.05)):
        if mode:
            next(row for row in reversed(rows) if row["mode"] == mode)["error"] = error
    return rows


@pytest.mark.parametrize(
    ("options", "refuted"),
    [({}, []), ({"stuck": "descent"}, [2]), ({"stuck": "practical"}, [4]), ({"freed": "theorem"}, [5])],
    ids=[
        "as claimed",
        "one descent at the half-space",
        "one sample at the half-space",
        "one seed at the theorem's rate",
    ],
)
def test_one_seed_refutes_a_claim(options, refuted):
    judgements = theorem_2.judge(QUICK, made_up(**options))
    assert [place for place, entry in enumerate(judgements) if not entry.passed] == refuted


def test_the_power_is_that_of_one_run_in_five():
    powers = [entry.power.probability for entry in theorem_2.judge(QUICK, made_up())]
    assert powers == pytest.approx([1 - 0.8**10] * 5 + [1 - 0.8**9])


def test_the_recipe_is_registered_with_ten_seeds():
    assert recipes.find("parities/theorem-2") is theorem_2.RECIPE
    assert QUICK.seeds == 10 and [(size.n, size.k) for size in QUICK.descents] == [(101, 3), (201, 5), (301, 5)]
    assert [(size.n, size.k, size.examples) for size in QUICK.practicals] == [(201, 3, 2000), (401, 5, 5000)]
