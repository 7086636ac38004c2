"""Frontiers against stores whose every run is known."""

import numpy as np
import pytest
from made_up_store import STEPS, cell, frontier_store, row, spec, store_of

from fewfire.networks import init
from fewfire.problems import Junta, Parity
from fewfire.report import frontier_info
from fewfire.report._results import read_results
from fewfire.sweeps.store._protocol import wilson_interval


def test_counts_successes_and_axes():
    (group,) = frontier_info(frontier_store())
    assert (group.problem, group.label) == ("parity(n=8, k=2)", "parity(n=8, k=2)")
    assert group.training == "40 steps, batch 32, learning rate 0.1, weight decay 0, hinge loss"
    assert (group.widths, group.samples) == ((5, 20), (100, 200, 400))
    dense, sparse = group.frontiers
    assert (dense.start, sparse.start) == ("dense", "sparse(s=2)")
    assert dense.runs.tolist() == [[2, 2, 2]] * 2
    assert dense.successes.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert sparse.success.tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    assert np.array_equal(np.stack([dense.low, dense.high]), wilson_interval(dense.successes, dense.runs))


def test_half_is_interpolated_between_columns_and_open_at_the_ends():
    rows = cell([None, None], samples=100) + cell([10, 10], samples=400)
    rows += cell([10, 10], samples=100, width=6) + cell([None], samples=400, width=7)
    (group,) = frontier_info(store_of(*rows))
    # From 0 at 100 to 1 at 400: one half in the middle of the logarithms. Enough at once, and never enough.
    assert group.frontiers[0].half == pytest.approx([200.0, 0.0, np.inf])


def test_diverged_runs_count_and_failed_ones_do_not():
    rows = [
        row(spec(trial=0), 20),
        row(spec(trial=1), status="diverged", message="too fast"),
        row(spec(trial=2), status="failed", message="no memory"),
    ]
    (group,) = frontier_info(store_of(*rows))
    f = group.frontiers[0]
    assert [int(part[0, 0]) for part in (f.runs, f.successes, f.diverged, f.failed)] == [2, 1, 1, 1]


def test_a_diverged_run_never_succeeds():
    (group,) = frontier_info(store_of(row(spec(), 20, status="diverged")))
    assert group.frontiers[0].successes.item() == 0


def test_quartiles_of_the_time_to_convergence():
    (group,) = frontier_info(store_of(*cell([10, 20, 30, 40, None])))
    assert group.frontiers[0].steps[:, 0, 0].tolist() == [17.5, 25.0, 32.5]


@pytest.mark.parametrize("stop_error", [None, 0.01, 0.1])
def test_convergence_is_the_same_with_and_without_an_early_stop(stop_error):
    # With stop_error 0.1, that of success, the counter decides; otherwise the history does.
    results = read_results(store_of(*cell([10, 30, None], stop_error=stop_error)), 0.1)
    assert sorted(results.convergence[results.success].tolist()) == [10.0, 30.0]
    assert np.isnan(results.convergence[~results.success]).all()


def test_success_error_comes_from_the_newest_sweep_or_the_argument():
    store = store_of(*cell([10]), name="first", success_error=0.04)
    assert read_results(store).success_error == 0.04
    assert not read_results(store).success.any()
    assert read_results(store, 0.06).success.all()
    assert read_results(store_of(*cell([10]))).success_error == 0.1


def test_missing_cells_and_online_data():
    rows = cell([10], samples=None) + cell([10], samples=100, width=6)
    (group,) = frontier_info(store_of(*rows))
    assert group.samples == (100, None)
    f = group.frontiers[0]
    assert (f.setting > 0).tolist() == [[False, True], [True, False]]
    assert f.runs.tolist() == [[0, 1], [1, 0]]
    assert np.isnan(f.success[0, 0]) and (f.low[0, 0], f.high[0, 0]) == (0.0, 1.0)
    assert np.isnan(f.half[0])  # only online: there is no number of samples to name


def test_groups_are_named_by_what_differs():
    rows = cell([10]) + cell([10], learning_rate=0.3) + cell([10], problem=Parity(8, 3))
    labels = [group.label for group in frontier_info(store_of(*rows))]
    assert labels == [
        "parity(n=8, k=2), learning_rate=0.1",
        "parity(n=8, k=2), learning_rate=0.3",
        "parity(n=8, k=3), learning_rate=0.1",
    ]


def test_vectors_are_named_only_where_they_must_be():
    rows = cell([10], problem=Parity(8, 2, support=[0, 1])) + cell([10], problem=Parity(8, 2, support=[3, 4]))
    labels = [group.label for group in frontier_info(store_of(*rows))]
    assert labels == ["parity(n=8, k=2, support=[0, 1])", "parity(n=8, k=2, support=[3, 4])"]
    (group,) = frontier_info(store_of(*cell([10], problem=Junta(4, [0, 1], [1, -1, -1, 1]))))
    assert group.problem == "junta(n=4)"


def test_starts_show_the_parameters_that_are_not_defaults():
    starts = [init.sparse(2), init.sparse(3), init.sparse(2, value=0.5), init.dense()]
    rows = [run for start in starts for run in cell([10], start=start)]
    (group,) = frontier_info(store_of(*rows))
    assert [f.start for f in group.frontiers] == ["sparse(s=2)", "sparse(s=3)", "sparse(s=2, value=0.5)", "dense"]


def test_only_some_settings():
    store = frontier_store()
    wanted = {spec(width=20, samples=m).setting for m in (100, 400)}
    (group,) = frontier_info(read_results(store, only=wanted))
    assert (group.widths, group.samples, len(group.frontiers)) == ((20,), (100, 400), 1)


def test_an_empty_store_has_no_frontier():
    assert frontier_info(store_of()) == []


def test_results_are_read_once():
    results = read_results(frontier_store())
    assert read_results(results) is results
    assert len(STEPS) == 5 and frontier_info(results)[0].frontiers[0].runs.sum() == 12
