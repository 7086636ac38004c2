"""The frontier and the convergence times of pareto: verdicts follow the data, and the grids count what they say."""

import json
from dataclasses import replace
from math import inf

import pytest

from fewfire.experiments import MemoryStore
from fewfire.experiments.recipes.pareto import convergence_time, frontier
from fewfire.experiments.recipes.pareto._grid import ParityGrid, cell, run_grid, times

WIDTHS, SAMPLES, TRIALS = (10, 100, 1000), (300, 400, 500, 700), 10
PASSED = dict.fromkeys(("width", "no step", "data", "sparse"), True)


def success(start, width, samples):
    """More for width, samples and the sparse start, between 0 and 10."""
    return min(10, max(0, WIDTHS.index(width) * 3 + SAMPLES.index(samples) * 2 + (start == "sparse") * 3 - 3))


def made_up(rule):
    return [
        {"start": start, "width": width, "samples": m, "trials": TRIALS, "successes": rule(start, width, m)}
        for start in ("dense", "sparse")
        for width in WIDTHS
        for m in SAMPLES
    ]


def verdicts(rule):
    entries = frontier.judge(made_up(rule))
    return dict(zip(PASSED, (entry.passed for entry in entries), strict=True))


def test_the_claims_of_the_frontier_follow_the_data():
    assert verdicts(success) == PASSED
    swapped = {10: 1000, 100: 100, 1000: 10}
    against_width = verdicts(lambda start, width, m: success(start, swapped[width], m))
    assert not against_width["width"] and against_width["data"]
    against_data = verdicts(lambda start, width, m: success(start, width, SAMPLES[-1 - SAMPLES.index(m)]))
    assert not against_data["data"] and against_data["width"]
    against_sparse = verdicts(lambda start, width, m: success("dense" if start == "sparse" else "sparse", width, m))
    assert against_sparse == {**PASSED, "sparse": False}


def test_one_width_that_hurts_is_seen():
    found = verdicts(
        lambda start, width, m: 0 if (start, width, m) == ("sparse", 1000, 700) else success(start, width, m)
    )
    assert not found["no step"]


def test_nothing_learned_confirms_nothing():
    assert verdicts(lambda *_: 0) == {"width": False, "no step": True, "data": False, "sparse": False}


TINY = ParityGrid(8, 2, ("dense", "sparse"), (4, 40), (20, 400), 3, 600, 50)


def test_a_grid_is_one_sweep_and_counts_its_runs():
    rows, store = run_grid(TINY)
    assert isinstance(store, MemoryStore) and len(store.finished()) == len(TINY.sweep()) == 24
    assert [(row["start"], row["width"], row["samples"]) for row in rows] == [
        (start, width, m) for start in ("dense", "sparse") for width in (4, 40) for m in (20, 400)
    ]
    for row in rows:
        assert row["trials"] == len(row["steps"]) == len(row["train_steps"]) == 3
        assert row["successes"] == sum(step is not None for step in row["steps"])
        assert all(step is None or (step % 50 == 0 and step <= 600) for step in row["steps"])
    assert cell(rows, "sparse", 40, 400)["successes"] == 3
    assert times({"steps": [50, None]}) == [50.0, inf]
    assert run_grid(TINY)[0] == rows


def test_the_frontier_runs_on_any_grid():
    found = frontier.RECIPE.run(settings=replace(TINY, widths=(4, 20, 100), samples=(20, 100, 400))).to_dict()
    assert json.loads(json.dumps(found)) == found and len(found["judgement"]) == 4
    assert found["measured"][0].startswith("dense start: ") and "at width 100" in found["measured"][1]


SETTINGS = convergence_time.ConvergenceSettings(
    ParityGrid(75, 3, ("dense",), (30, 300), (2000, 10_000, None), 8, 30_000, 150), 30, 300, 2000, 10_000
)
STEPS = {
    (30, 2000): 20_000,
    (30, 10_000): 4000,
    (30, None): 9000,
    (300, 2000): 13_000,
    (300, 10_000): 2000,
    (300, None): 4000,
}


def timed(steps=STEPS, train=700):
    return [
        {
            "start": "dense",
            "width": width,
            "samples": m,
            "steps": [None if middle is None else middle + 10 * place for place in range(8)],
            "train_steps": [train] * 8,
        }
        for (width, m), middle in steps.items()
    ]


CLAIMS = ("data", "double descent", "width", "grokking")


@pytest.mark.parametrize(
    ("rows", "failing"),
    [
        (timed(), set()),
        (timed(STEPS | {(300, 2000): 2000}), {"data"}),
        (timed(STEPS | {(300, 2000): None}), {"grokking"}),  # nothing converges there: no lag was seen
        (timed(STEPS | {(30, None): 4000}), {"double descent"}),
        (timed(STEPS | {(30, None): None}), set()),
        (timed(STEPS | {(300, 10_000): 4000}), {"width"}),
        (timed(train=9000), {"grokking"}),
    ],
)
def test_the_claims_on_time_follow_the_data(rows, failing):
    entries = convergence_time.judge(rows, SETTINGS)
    assert all(entry.claim.startswith(claim) for claim, entry in zip(CLAIMS, entries, strict=True))
    assert {claim for claim, entry in zip(CLAIMS, entries, strict=True) if not entry.passed} == failing


def test_convergence_times_run_on_any_grid():
    grid = replace(TINY, starts=("dense",), samples=(20, 400, None))
    settings = convergence_time.ConvergenceSettings(grid, 4, 40, 20, 400)
    found = convergence_time.RECIPE.run(settings=settings).to_dict()
    assert json.loads(json.dumps(found)) == found and len(found["rows"]) == 6
    assert len(found["curves"]) == 3
    for curve in found["curves"]:
        assert curve["step"] == sorted(set(curve["step"])) and curve["step"][0] == 0
        assert len(curve["step"]) == len(curve["train_error"]) == len(curve["test_error"])
    assert "at online" in found["measured"][0]
