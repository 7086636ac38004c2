"""Laws of data: cells with time, the random-effects fit on made-up frontiers, predictions and what they refuse."""

import json
from math import log

import numpy as np
import pytest
from shipped_cells import cells_from_csv, cells_to_csv, provenance, shipped_cells

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire._random import Stream
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.sweeps.laws import FrontierLaw, fit_law, parity_cells, shipped_law
from fewfire.sweeps.laws._cells import ParityCell, merged_cells, start_label, start_of
from fewfire.sweeps.laws._frontier_law import frontier_points

SAMPLES = (25, 35, 50, 70, 100, 140, 200, 280, 400, 560, 800, 1100, 1600, 2200, 3200, 4500, 6400, 9000)


def true_law(n, k, width, start):
    """In powers, as the theorems have it."""
    return 20.0 * n ** (k - 1.5) * width ** (-0.03 * k) * (1.0 if start == "dense" else 0.8)


def line(n, k, start, width, trials=40, seed=0):
    """Cells whose probabilities turn at the law, within 15%."""
    from scipy.special import ndtr

    luck = Stream(seed, f"{n}/{k}/{start}/{width}").uniform((trials, len(SAMPLES)))
    chances = ndtr((np.log(SAMPLES) - log(true_law(n, k, width, start))) / 0.15)
    won = (luck < chances).sum(axis=0)
    return [ParityCell(n, k, start, width, m, trials, (1000,), (int(w),)) for m, w in zip(SAMPLES, won, strict=True)]


def made_up(ns=(20, 30, 50), ks=(2, 3), widths=(10, 100, 1000), starts=("dense", "sparse(2)")):
    return [cell for n in ns for k in ks for w in widths for s in starts for cell in line(n, k, s, w)]


@pytest.fixture(scope="module")
def law():
    return fit_law(made_up())


def test_the_powers_that_were_put_in_come_out(law):
    assert len(law.points) + law.unlocated == 36
    told = {(n, k): law.predict(n, k, 100).samples for n in (20, 40) for k in (2, 3)}
    assert told[40, 2] / told[20, 2] == pytest.approx(2**0.5, rel=0.15)
    assert told[40, 3] / told[20, 3] == pytest.approx(2**1.5, rel=0.15)
    assert law.spread < 0.1  # nothing was put in besides the law
    for n, k, width, init in [(40, 3, 300, "dense"), (25, 2, 30, "sparse"), (40, 3, 30, "sparse(2)")]:
        found = law.predict(n, k, width, init)
        truth = true_law(n, k, width, "dense" if init == "dense" else "sparse(2)")
        assert found.low <= truth <= found.high and found.high / found.low < 1.6
        assert not found.outside


def test_wider_levels_give_wider_intervals(law):
    narrow, wide = law.predict(30, 3, 100, level=0.6), law.predict(30, 3, 100, level=0.99)
    assert wide.low < narrow.low < narrow.samples == wide.samples < narrow.high < wide.high


@pytest.mark.parametrize("by", ["frontier", "n", "width"])
def test_held_out_frontiers_lie_inside_as_often_as_they_should(law, by):
    held = law.held_out(by)
    assert len(held) > 20
    assert np.mean([one.inside for one in held]) >= 0.8
    if by == "n":
        assert {one.left_out for one in held} == {"n = 20", "n = 30", "n = 50"}
        assert all(one.prediction.outside for one in held if one.point.n in (20, 50))


def test_residuals_are_measured_over_fitted(law):
    first = law.points[0]
    fitted = law.predict(first.n, first.k, first.width, first.start).samples
    assert law.residuals[0] == pytest.approx(first.log_samples - log(fitted))


def test_terms_that_do_not_vary_are_left_out():
    one = fit_law(made_up(ks=(3,), starts=("dense",)))
    assert one.terms == ("1", "log n", "log width", "log n·log width", "log² width")
    assert fit_law(made_up(ns=(20, 30), ks=(3,), starts=("dense",), widths=(10, 30, 100, 300))).terms[:2] == (
        "1",
        "log n",
    )


def test_success_that_falls_again_does_not_move_a_frontier():
    rising = line(30, 3, "dense", 100)
    falling = [
        cell
        if cell.samples < 6000
        else ParityCell(cell.n, cell.k, cell.start, cell.width, cell.samples, cell.runs, cell.steps, (0,))
        for cell in rising
    ]
    (kept,), _ = frontier_points(falling, None)
    (whole,), _ = frontier_points(rising, 1000)
    assert kept.log_samples == pytest.approx(whole.log_samples, abs=0.02)
    assert whole.samples == pytest.approx(true_law(30, 3, 100, "dense"), rel=0.15)


def test_lines_that_do_not_bracket_their_frontier_are_counted_and_left_out():
    never = [ParityCell(30, 3, "dense", 5, m, 10, (1000,), (0,)) for m in SAMPLES]
    points, unlocated = frontier_points([*never, *line(30, 3, "dense", 100)], None)
    assert (len(points), unlocated) == (1, 1)


def test_a_law_survives_json(law):
    copy = FrontierLaw.from_dict(json.loads(json.dumps(law.to_dict())))
    assert copy.predict(40, 3, 50, "sparse") == law.predict(40, 3, 50, "sparse")


@pytest.mark.parametrize("damage", [{"points": 3}, {"terms": ["1"]}, {"coefficients": ["a"]}])
def test_damaged_laws_are_refused(law, damage):
    with pytest.raises(FileFormatError, match="this is no law"):
        FrontierLaw.from_dict(law.to_dict() | damage)


def test_beyond_what_was_fitted_it_is_marked_extrapolated(law):
    with pytest.raises(
        InvalidArgument,
        match=r"n and width must lie inside what was fitted; got 'n = 60 \(fitted: 20 to 50\)'. Remedy: fit a store "
        r"that reaches there, or ask beyond with extrapolate=True.",
    ):
        law.predict(60, 3, 100)
    predicted = law.predict(60, 3, 100, extrapolate=True)
    assert predicted.outside == ("n = 60 (fitted: 20 to 50)",) and repr(predicted) == str(predicted)
    with pytest.raises(InvalidArgument, match=r"law must have been fitted .* got 'k = 4 \(fitted: 2, 3\)'"):
        law.predict(30, 4, 100, extrapolate=True)
    with pytest.raises(InvalidArgument, match=r"start symmetric \(fitted: dense, sparse\(2\)\)"):
        law.predict(30, 3, 100, "symmetric")


def test_too_few_frontiers_are_refused():
    with pytest.raises(InvalidArgument, match="store must have at least 4 frontiers for the 1 terms that vary; got a"):
        fit_law(line(30, 3, "dense", 100))
    never = [ParityCell(30, 3, "dense", width, 100, 10, (1000,), (0,)) for width in (10, 100)]
    with pytest.raises(
        InvalidArgument,
        match="store must have at least 4 frontiers; got a store with 0 frontiers, and 2 outside the samples that were run",
    ):
        fit_law(never)
    with pytest.raises(InvalidArgument, match=r"steps must be a number .* got 77. Remedy: pass one of \[1000\]"):
        fit_law(never, steps=77)
    with pytest.raises(InvalidArgument, match="store must hold runs of noiseless parities"):
        fit_law(MemoryStore())


def tiny_sweep(**training):
    return Sweep.from_dict(
        {
            "problem": {"name": "parity", "n": 6, "k": 2},
            "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": 6},
            "data": {"samples": [10, 200, "online"], "test_samples": 100},
            "training": {"steps": 250, "learning_rate": 0.1, "evaluate": 125, **training},
            "trials": 2,
        }
    )


def test_cells_record_when_their_runs_succeeded():
    store = MemoryStore()
    tiny_sweep(stop_error=0.1).run(store, executor="inline")
    found = parity_cells(store)
    assert [(cell.start, cell.samples) for cell in found] == [
        (start, m) for start in ("dense", "sparse(2)") for m in (10, 200, None)
    ]
    columns = store.columns()
    for cell, setting in zip(found, store.settings(), strict=True):
        assert (cell.steps, cell.runs) == ((125, 250), 2)
        here = columns["setting"] == setting.id
        good = here & (columns["best_test_error"] <= 0.1)
        assert cell.successes == tuple(int((columns["steps"][good] <= t).sum()) for t in cell.steps)


def test_cells_of_runs_that_are_evaluated_on_a_logarithmic_grid():
    """The default, evaluate = "log", looks at 750 and 1000 of the grid's steps and at the end."""
    store = MemoryStore()
    sweep = tiny_sweep(stop_error=0.1, steps=1200, evaluate="log")
    sweep.run(store, executor="inline")
    assert 1000 in sweep.schedules[0].checkpoints() and 500 not in sweep.schedules[0].checkpoints()
    columns = store.columns()
    for cell, setting in zip(parity_cells(store), store.settings(), strict=True):
        assert cell.steps == (750, 1000, 1200)
        good = (columns["setting"] == setting.id) & (columns["best_test_error"] <= 0.1)
        assert cell.successes == tuple(int((columns["steps"][good] <= t).sum()) for t in cell.steps)


def test_runs_that_stop_before_the_success_error_are_refused():
    store = MemoryStore()
    tiny_sweep(stop_error=0.1).run(store, executor="inline")
    with pytest.raises(InvalidArgument, match="success_error must be at least 0.1, at which these runs stop"):
        parity_cells(store, success_error=0.05)
    with pytest.raises(InvalidArgument, match=r"training.stop_error must be at most success_error = 0.1, .* got 0.2"):
        tiny_sweep(stop_error=0.2)


@pytest.mark.parametrize("error", [np.nan, -0.1, 1.0])
def test_success_errors_that_are_no_share_are_refused(error):
    """NaN was called a store whose values bracket no frontier."""
    with pytest.raises(InvalidArgument, match=r"success_error must be a finite number in \[0, 1\)"):
        parity_cells(MemoryStore(), error)


def test_runs_that_do_not_stop_show_only_whether_they_succeeded():
    store = MemoryStore()
    tiny_sweep().run(store, executor="inline")
    assert {cell.steps for cell in parity_cells(store)} == {(250,)}


def test_two_schedules_are_no_law():
    store = MemoryStore()
    for rate in (0.01, 0.02):
        tiny_sweep(weight_decay=rate).run(store, executor="inline")
    with pytest.raises(InvalidArgument, match="store must hold one schedule, steps apart"):
        parity_cells(store)


def test_cells_survive_csv_and_merge():
    one = ParityCell(30, 3, "dense", 10, 300, 4, (1000, 2000), (1, 2))
    two = ParityCell(30, 3, "dense", 10, 300, 50, (2000, 4000), (20, 30))
    online = ParityCell(30, 3, "dense", 10, None, 4, (1000,), (4,))
    assert cells_from_csv(cells_to_csv([one, two, online])) == [one, two, online]
    assert merged_cells([online, two, one]) == [ParityCell(30, 3, "dense", 10, 300, 54, (2000,), (22,)), online]
    with pytest.raises(FileFormatError, match="this is no table of cells"):
        cells_from_csv("n,k\n1")


def test_the_shipped_table_is_what_its_provenance_states():
    tables, told = ("calibration", "random_cells", "spread_cells"), provenance()
    cells = [cell for table in tables for cell in shipped_cells(table)]
    assert len(cells) == told["cells"]
    assert sum(cell.runs for cell in cells) == told["runs"] > 30_000
    assert sum(source["runs"] for source in told["sources"]) == told["runs"]
    assert {cell.k for cell in cells} == {2, 3, 4}


def test_the_shipped_law_is_that_of_the_shipped_table():
    wide = [cell for cell in shipped_cells() if cell.width >= 10 and cell.k == 2]
    points, _ = frontier_points(wide, None)
    recorded = [point for point in shipped_law().points if point.k == 2]
    assert [(p.n, p.start, p.width, p.runs) for p in points] == [(p.n, p.start, p.width, p.runs) for p in recorded]
    np.testing.assert_allclose([p.log_samples for p in points], [p.log_samples for p in recorded], atol=1e-9)


def test_the_shipped_law_predicts_the_demo():
    """24 runs per cell at (30, 3), width 100, from a sweep that was not used: half succeed at 450 to 500 (dense)."""
    found = shipped_law().predict(30, 3, 100, "dense")
    assert found.low < 500 and found.high > 400


def test_a_start_in_a_word():
    assert start_label({"name": "sparse", "s": 2, "value": 1.0}) == start_of("sparse") == "sparse(2)"
    assert start_label({"name": "dense"}) == start_of("dense") == "dense"
    assert start_label({"name": "ntk", "threshold": 0.1}) == "ntk(threshold=0.1)"
