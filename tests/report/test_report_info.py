"""Curves, settings, summary, findings and theory against stores whose every run is known."""

from math import comb

import numpy as np
import pytest
from made_up_store import cell, frontier_store, row, spec, store_of

from fewfire import InvalidArgument
from fewfire.networks import init
from fewfire.problems import Parity
from fewfire.report import _curves, curves_info, findings_info, frontier_info, summary_info
from fewfire.report._findings import stratified_z
from fewfire.report._frontier import theory_info
from fewfire.report._results import read_results
from fewfire.report._settings import settings_info


def test_curves_hold_what_was_recorded():
    (curves,) = curves_info(store_of(*cell([20, None])))
    assert (curves.trials, curves.success) == ((0, 1), (True, False))
    assert curves.step.tolist() == [0, 10, 20, 30, 40]
    np.testing.assert_allclose(curves.test_error, [[0.5, 0.5, 0.05, np.nan, np.nan], [0.5] * 5], rtol=1e-6)
    np.testing.assert_allclose(curves.train_error, [[0.5, 0.0, 0.0, np.nan, np.nan], [0.5, 0, 0, 0, 0]])


def test_the_first_trials_are_drawn_whatever_their_hash():
    (curves,) = curves_info(store_of(*reversed(cell([None] * 6))), curves=3)
    assert curves.trials == (0, 1, 2)


def test_long_histories_are_thinned_evenly_in_logarithm():
    steps = tuple(range(0, 10_001, 10))
    store = store_of(
        row(spec(stop_error=None), None, steps=steps), row(spec(trial=1, stop_error=None), None, steps=steps[:700])
    )
    (curves,) = curves_info(store, points=20)
    assert len(curves.step) <= 20 + 2
    assert set(curves.step) <= set(steps)
    assert {0, 6990, 10_000} <= set(curves.step.tolist())  # both ends of both runs
    assert np.all(np.isfinite(curves.test_error[0]))
    ratios = np.diff(np.log(curves.step[curves.step > 200]))
    assert ratios.max() < 2 * np.log(10_000) / 19


def test_failed_runs_have_no_curves_and_online_runs_no_training_error():
    (curves,) = curves_info(store_of(*cell([10], samples=None), row(spec(), status="failed")))
    assert np.isnan(curves.train_error).all() and np.isfinite(curves.test_error).all()
    assert curves_info(store_of()) == []


@pytest.mark.parametrize(
    ("cells", "curves", "points"), [(1, 10, 60), (800, 10, 60), (2000, 10, 25), (20_000, 1, 25), (10**6, 1, 10)]
)
def test_the_budget_takes_steps_first_then_runs(cells, curves, points):
    assert _curves.fit_budget(cells) == (curves, points)
    assert cells * curves * points * 2 <= _curves.VALUES * 1.2 or (curves, points) == (1, 10)


def test_settings_are_shared_or_named_apart():
    table = settings_info(frontier_store())
    assert table.keys == ("start", "width", "samples", "start.s", "start.value")
    assert table.shared["problem.name"] == "parity" and table.shared["training.learning_rate"] == "0.1"
    assert "training.steps" in table.shared and "version" not in table.shared
    assert table.values[0] == ("dense", "5", "100", "–", "–")
    assert table.values[-1] == ("sparse", "20", "400", "2", "1")
    assert len(table.values) == len(table.ids) == 12
    by_map = [(row[0], int(row[1]), int(row[2])) for row in table.values]
    assert by_map == sorted(by_map)
    assert settings_info(store_of()).values == ()


def test_summary_counts_everything():
    rows = [*cell([10, None], width=5), row(spec(trial=2), status="diverged", message="step 3", engine="reference")]
    rows += [row(spec(width=6, trial=trial), status="failed", message="no memory") for trial in range(2)]
    summary = summary_info(store_of(*rows, name="Mine"))
    assert (summary.names, summary.success_error) == (("Mine",), 0.1)
    assert (summary.cells, summary.runs, summary.successes, summary.diverged, summary.failed) == (2, 3, 1, 1, 2)
    assert summary.trials == (0, 3)
    assert summary.engines == {"cpu": 4, "reference": 1}
    assert summary.reasons == (("failed", "no memory", 2), ("diverged", "step 3", 1))
    assert summary_info(store_of()).runs == 0


def big_cells(dense, sparse, runs=20):
    """Cells at widths 5 and 20 and one number of samples; each number is how many of the runs succeed."""
    rows = []
    for start, counts in ((init.dense(), dense), (init.sparse(2), sparse)):
        for width, won in zip((5, 20), counts, strict=True):
            rows += cell([20 if trial < won else None for trial in range(runs)], width=width, start=start)
    return frontier_info(store_of(*rows))[0]


def test_findings_are_yes_no_or_not_clear():
    found = findings_info(big_cells((2, 10), (18, 19)))
    assert [(finding.topic, finding.start, finding.holds) for finding in found] == [
        ("width", "dense", True), ("width", "sparse(s=2)", None), ("start", "sparse(s=2)", True),
    ]  # fmt: skip
    assert found[0].text == (
        "Width buys data: from a dense start half of the runs succeed with more than 100 examples at width 5 and with at most "
        "100 examples at width 20; over all sizes, 10% of the runs succeed at width 5 and 50% at width 20."
    )
    assert found[1].text.startswith("Whether width buys data is not clear: from a sparse(s=2) start ")
    assert found[2].text == (
        "A sparse start helps: 92% of the runs succeed from sparse(s=2) and 30% from dense, more often in 2 and less often in 0 "
        "of 2 cells."
    )
    worse = findings_info(big_cells((10, 2), (1, 1)))
    assert [finding.holds for finding in worse] == [False, None, False]
    assert worse[0].text.startswith("Width does not buy data: ") and worse[2].text.startswith("A sparse start hurts: ")


def test_findings_need_something_to_compare():
    assert findings_info(frontier_info(store_of(*cell([10])))[0]) == []
    online = frontier_info(store_of(*cell([10] * 9, samples=None), *cell([None] * 9, samples=None, width=6)))[0]
    assert findings_info(online)[0].text == (
        "Width does not buy data: from a dense start 100% of the runs succeed at width 5 and 0% at width 6."
    )


def test_the_stratified_test_is_that_of_cochran_mantel_and_haenszel():
    """Against all ways to shuffle the outcomes within two cells of 4 + 4 runs."""
    won, other = np.array([3, 2]), np.array([1, 0])
    z = stratified_z(won, np.array([4, 4]), other, np.array([4, 4]))
    spread = []
    for successes in (won + other).tolist():
        share = np.array([comb(4, a) * comb(4, successes - a) if a <= successes else 0 for a in range(5)], dtype=float)
        share /= share.sum()
        mean = (share * np.arange(5)).sum()
        spread.append((mean, (share * (np.arange(5) - mean) ** 2).sum()))
    expected = (won.sum() - sum(m for m, _ in spread)) / np.sqrt(sum(v for _, v in spread))
    assert z == pytest.approx(expected)
    assert stratified_z(np.array([4]), np.array([4]), np.array([2]), np.array([2])) == 0.0  # nothing to report
    assert stratified_z(np.array([1]), np.array([4]), np.array([0]), np.array([0])) == 0.0  # nothing to compare with


def test_theory_is_proposition_3():
    (group,) = frontier_info(frontier_store())
    theory = theory_info(group)
    # 8 inputs: width·(8 + 2) + 1 parameters, 40 steps, even odds.
    cost = np.array([51, 201]) * 40 / 0.5
    assert theory.needed == comb(8, 2) / 4
    assert theory.smallest == cost[0] * 100
    # The sparse start crosses one half in the middle of 200–400 and 100–200.
    crossing = np.sqrt([200 * 400, 100 * 200])
    np.testing.assert_allclose(group.frontiers[1].half, crossing)
    np.testing.assert_allclose(theory.equal_cost[1] * cost, np.sqrt(np.prod(crossing * cost)))


def test_theory_speaks_of_parities_with_a_training_set_only():
    from fewfire.problems import CorrelatedParity

    assert theory_info(frontier_info(store_of(*cell([10], problem=CorrelatedParity(8, 3))))[0]) is None
    assert theory_info(frontier_info(store_of(*cell([10], samples=None)))[0]) is None
    never = theory_info(frontier_info(store_of(*cell([None], problem=Parity(8, 3))))[0])
    assert np.isnan(never.equal_cost).all()


def test_several_stores_stand_side_by_side():
    """Maps of the same start next to each other, ids of their own, findings between stores."""
    first = frontier_store()
    better = store_of(
        *(run for width in (5, 20) for m in (100, 200, 400) for run in cell([10, 10], width=width, samples=m))
    )
    results = read_results({"a": first, "b": better})
    (group,) = frontier_info(results)
    assert [f.name for f in group.frontiers] == ["dense · a", "dense · b", "sparse(s=2) · a"]
    assert [f.title for f in group.frontiers][1] == "dense start · b"
    np.testing.assert_array_equal(group.frontiers[1].successes, [[2, 2, 2], [2, 2, 2]])
    np.testing.assert_array_equal(group.frontiers[0].successes, frontier_info(first)[0].frontiers[0].successes)
    ids = [setting.id for setting in results.settings]
    assert ids == list(range(1, 19)) and set(results.sources.values()) == {"a", "b"}
    table = settings_info(results)
    assert table.keys[0] == "store" and {row[0] for row in table.values} == {"a", "b"}
    curves = {curve.setting: curve for curve in curves_info(results)}
    assert curves[group.frontiers[1].setting[0, 0]].test_error.shape[1] == 2  # 0 and 10, where they stopped
    texts = [finding.text for finding in findings_info(group) if finding.topic == "store"]
    assert texts == [
        "More runs succeed in b than in a: from a dense start 100% against 33%, more often in 5 and less often in 0 of 6 cells. "
        "12 runs are in both; they count as pairs."
    ]
    copies = findings_info(frontier_info(read_results({"a": better, "b": better}))[0])
    assert copies[0].holds is None
    assert copies[0].text == "a and b hold the same 12 runs from a dense start, which end alike."
    part = store_of(*cell([10], width=5, samples=100))
    finding = findings_info(frontier_info(read_results({"a": better, "part": part}))[0])[0]
    assert finding.holds is None
    assert finding.text == (
        "a and part hold the same 1 runs from a dense start, which end alike; no cell has others in both, so that 1 more "
        "say nothing about a difference."
    )
    assert summary_info(results).runs == 36
    one = read_results({"a": first})
    assert one.sources == {} and frontier_info(one)[0].frontiers[0].title == "dense start"
    with pytest.raises(InvalidArgument, match="source must name at least one store"):
        read_results({})


def test_a_path_is_not_yet_a_store():
    with pytest.raises(
        InvalidArgument,
        match=r"source must be an open store; got 'grid.sqlite'. Remedy: pass fewfire.sweeps.SqliteStore",
    ):
        frontier_info("grid.sqlite")
