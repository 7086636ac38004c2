"""The recipe of offline parities: verdicts follow the counts, and a group of settings fails with any of its members."""

import json
from dataclasses import replace

import pytest

from fewfire.papers import recipes
from fewfire.papers.pareto.recipes import offline_parity
from fewfire.papers.pareto.recipes._grid import ParityGrid

GRID = ParityGrid(10, 2, (5, 20, 100), (400,), 3, 600, 100)
TRIALS = 24


def rows(sparse, dense=(0, 2, 4), widths=(30, 300, 1000), **more):
    sides = {"sparse": sparse, "dense": dense}
    return [
        {**more, "start": start, "width": width, "samples": 350, "trials": TRIALS, "successes": won}
        for start, counts in sides.items()
        for width, won in zip(widths, counts, strict=True)
    ]


def varied(**counts):
    """Narrow and wide sparse networks, and wide dense ones, by the name of a variation."""
    return [
        row
        for kind in offline_parity.VARIATIONS
        for low, high, dense in [counts.get(kind.name.replace(" ", "_").replace(".", "_"), (2, 20, 4))]
        for row in rows((low, high), (0, dense), (30, 1000), group=kind.group, variation=kind.name)
    ]


def failing(sparse=(2, 15, 20), dense=(0, 2, 4), ends=(), **counts):
    entries = offline_parity.judge(rows(sparse, dense), list(ends), varied(**counts))
    assert all(entry.refuted_by and entry.effect and entry.power.probability >= 0.8 for entry in entries)
    return {entry.claim for entry in entries if not entry.passed}


def test_the_claims_follow_the_counts():
    assert failing() == set()
    assert failing(sparse=(18, 19, 20)) == {"width buys luck"}
    assert failing(dense=(0, 15, 20)) == {"sparse beats dense"}


def test_one_setting_that_differs_is_seen_in_its_group():
    assert failing(rate_0_2=(20, 20, 4)) == {"width buys luck, rate 0.05 and rate 0.2"}
    assert failing(decay_0=(0, 0, 0)) == {"width buys luck, decay 0", "sparse beats dense, decay 0"}
    assert failing(logistic=(2, 20, 19)) == {"sparse beats dense, logistic"}


@pytest.mark.parametrize(
    ("easy", "hard", "claims"),
    [
        (47, 0, set()),
        (44, 0, {"1000 neurons learn from 1000 examples"}),
        (48, 1, {"100 neurons fail on 300 examples"}),
    ],
)
def test_the_ends(easy, hard, claims):
    ends = [{"trials": 48, "successes": won} for won in (easy, 0, hard)]
    assert failing(ends=ends) == claims


def test_it_runs_on_any_grid_and_counts_its_runs():
    settings = offline_parity.OfflineParitySettings(GRID, offline_parity.VARIATIONS[:2])
    found = offline_parity.RECIPE.run(settings=settings).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert len(found["rows"]) == 6 and len(found["variations"]) == 8
    assert {row["variation"] for row in found["variations"]} == {"rate 0.05", "rate 0.2"}
    assert found["measured"][0].startswith("sparse start, successes of 3 by width: ")
    again = offline_parity.RECIPE.run(settings=replace(settings, variations=())).to_dict()
    assert again["rows"] == found["rows"]


def test_scale_is_checked():
    with pytest.raises(ValueError, match="scale must be one of 'quick', 'paper'; got 'full'"):
        recipes.run("pareto/over-sparse", "full")
