"""The frontier and the convergence times of pareto: verdicts follow the data, and the grids count what they state."""

import json
from dataclasses import replace
from math import inf

import pytest

from fewfire.papers.pareto.recipes import _grid as claims
from fewfire.papers.pareto.recipes import convergence_time, frontier
from fewfire.papers.pareto.recipes._grid import ParityGrid, cell, run_grid, times
from fewfire.sweeps import MemoryStore

WIDTHS, SAMPLES, TRIALS = (10, 100, 1000), (300, 400, 500, 700), 20
PASSED = dict.fromkeys(("width", "no step", "no cell", "data", "sparse", "time"), True)


def success(start, width, samples):
    """More for width, samples and the sparse start, between 0 and 20."""
    return min(20, max(0, WIDTHS.index(width) * 6 + SAMPLES.index(samples) * 4 + (start == "sparse") * 6 - 6))


def duration(start, width):
    """Longer for narrow networks and the dense start."""
    return {10: 4000, 100: 2000, 1000: 1000}[width] * (1.5 if start == "dense" else 1.0)


def made_up(rule, time=duration):
    return [
        {
            "start": start,
            "width": width,
            "samples": m,
            "trials": TRIALS,
            "successes": rule(start, width, m),
            "steps": [time(start, width) + place if place < rule(start, width, m) else None for place in range(TRIALS)],
        }
        for start in ("dense", "sparse")
        for width in WIDTHS
        for m in SAMPLES
    ]


def verdicts(rule, time=duration):
    entries = frontier.judge(made_up(rule, time))
    for entry in entries:
        assert entry.refuted_by and entry.effect is not None and entry.power is not None
    return dict(zip(PASSED, (entry.passed for entry in entries), strict=True))


def test_the_claims_of_the_frontier_follow_the_data():
    assert verdicts(success) == PASSED
    swapped = {10: 1000, 100: 100, 1000: 10}
    against_width = verdicts(lambda start, width, m: success(start, swapped[width], m))
    assert not against_width["width"] and not against_width["no step"] and against_width["data"]
    against_data = verdicts(lambda start, width, m: success(start, width, SAMPLES[-1 - SAMPLES.index(m)]))
    assert not against_data["data"] and against_data["width"]
    against_sparse = verdicts(lambda start, width, m: success("dense" if start == "sparse" else "sparse", width, m))
    assert against_sparse == {**PASSED, "sparse": False}


def test_a_sparse_start_that_is_slower_is_seen():
    def slow(start, width):
        return duration("sparse" if start == "dense" else "dense", width)

    assert verdicts(lambda *_: TRIALS, slow)["time"] is False
    rows = made_up(lambda *_: TRIALS, slow)
    assert not claims.sparse_saves_time(rows, 10, 100).passed
    assert claims.sparse_saves_time(made_up(lambda *_: TRIALS), 10, 100).passed


def test_one_cell_that_a_step_up_in_width_hurts_is_seen():
    """From 18 of 20 to 6: as from 9 in 10 to 3 in 10."""

    def hurt(start, width, m):
        return 6 if (start, width, m) == ("sparse", 1000, 700) else success(start, width, m)

    found = verdicts(hurt)
    assert not found["no cell"] and found["width"]
    entry = claims.no_cell_loses_by_width(made_up(hurt))
    assert entry.effect.value == pytest.approx(0.6) and entry.power.probability >= 0.8


def test_a_small_fall_everywhere_is_seen_where_no_cell_shows_it():
    """15 points in every cell by the last step up: too little for any single cell, too much together."""
    found = verdicts(lambda start, width, m: {10: 5, 100: 12, 1000: 9}[width])
    assert found["no cell"] and not found["no step"]


def test_silence_does_not_show_that_width_is_harmless():
    few = [{**row, "trials": 3, "successes": 2, "steps": [1, 1, None]} for row in made_up(success)]
    assert claims.no_cell_loses_by_width(few).passed and claims.no_cell_loses_by_width(few).power.probability < 0.1
    assert not claims.no_step_costs_success(few).passed


def test_nothing_learned_confirms_nothing():
    found = verdicts(lambda *_: 0)
    assert found == {**dict.fromkeys(PASSED, False), "no step": True, "no cell": True}


TINY = ParityGrid(8, 2, (4, 40), (20, 400), 3, 600, 50)


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
    found = frontier.RECIPE.run(settings=replace(TINY, widths=(4, 20, 1000), samples=(20, 100, 400))).to_dict()
    assert json.loads(json.dumps(found)) == found and len(found["judgement"]) == 6
    assert found["measured"][0].startswith("dense start: ") and "at width 20" in found["measured"][1]
    assert found["measured"][2].startswith("probability that a dense run takes longer than a sparse one: ")
    assert found["parameters"]["loss"] == "hinge"


SETTINGS = convergence_time.ConvergenceSettings(
    ParityGrid(75, 3, (10, 30, 300, 1000), (2000, 10_000, None), 20, 30_000, 150),
    edge=2000,
    middle=10_000,
)
STEPS = {
    (10, 2000): None,
    (10, 10_000): 20_000,
    (10, None): None,
    (30, 2000): 20_000,
    (30, 10_000): 4000,
    (30, None): 9000,
    (300, 2000): 13_000,
    (300, 10_000): 2000,
    (300, None): 4000,
    (1000, 2000): 9000,
    (1000, 10_000): 1500,
    (1000, None): 3000,
}


def timed(steps=STEPS, train=700, sparse=0.5):
    return [
        {
            "start": start,
            "width": width,
            "samples": m,
            "trials": 20,
            "successes": 0 if middle is None else 20,
            "steps": [None if middle is None else factor * middle + 10 * place for place in range(20)],
            "train_steps": [train] * 20,
        }
        for start, factor in (("dense", 1), ("sparse", sparse))
        for (width, m), middle in steps.items()
    ]


CLAIMS = ("data", "double descent", "success falls again", "width", "grokking", "the sparse start")


@pytest.mark.parametrize(
    ("rows", "failing"),
    [
        (timed(), set()),
        (timed(STEPS | {(300, 2000): 2000}), {"data"}),
        (timed(STEPS | {(300, 2000): None}), {"grokking"}),  # nothing converges there: no lag was seen
        (timed(STEPS | {(30, None): 4000}), {"double descent"}),
        (timed(STEPS | {(30, None): None}), set()),
        (timed(STEPS | {(10, None): 25_000}), {"success falls again"}),
        (timed(STEPS | {(300, 10_000): 4000}), {"width"}),
        (timed(train=9000), {"grokking"}),
        (timed(sparse=1.6), {"the sparse start"}),  # as in a check at (50, 3), width 100: 2450 steps against 1500
    ],
)
def test_the_claims_on_time_follow_the_data(rows, failing):
    entries = convergence_time.judge(rows, SETTINGS)
    assert all(entry.claim.startswith(claim) for claim, entry in zip(CLAIMS, entries, strict=True))
    assert {claim for claim, entry in zip(CLAIMS, entries, strict=True) if not entry.passed} == failing
    assert all(entry.refuted_by for entry in entries)
    assert all(entry.power.probability >= 0.8 for entry in entries if entry.effect is not None)


def test_convergence_times_run_on_any_grid():
    grid = replace(TINY, widths=(4, 1000), samples=(20, 400, None))
    settings = convergence_time.ConvergenceSettings(grid, 20, 400, least=4, narrow=4, wide=1000)
    found = convergence_time.RECIPE.run(settings=settings).to_dict()
    assert json.loads(json.dumps(found)) == found and len(found["rows"]) == 12
    assert len(found["curves"]) == 3
    for curve in found["curves"]:
        assert curve["step"] == sorted(set(curve["step"])) and curve["step"][0] == 0
        assert len(curve["step"]) == len(curve["train_error"]) == len(curve["test_error"])
    assert "at online" in found["measured"][0]
