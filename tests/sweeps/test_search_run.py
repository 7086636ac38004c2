"""A search trains the same runs by every executor, in however many calls; failed ones delay their frontier only."""

import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from small_search import search_table, small_search

from fewfire._errors import InvalidArgument
from fewfire.engines import CpuEngine, ReferenceEngine
from fewfire.report import frontier_info, plot_even_odds
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep, found_frontiers, make_plan
from fewfire.sweeps.executors import InlineExecutor
from fewfire.testing._sweeps import cut_batches, outcomes, tiny


@pytest.fixture(scope="module")
def whole():
    store = MemoryStore()
    state = small_search().run(store, executor="inline")
    return store, state


def test_it_finds_what_a_grid_finds(whole):
    """Both intervals hold the line of a grid around them, or the grid's interval meets theirs."""
    sweep, (store, state) = small_search(), whole
    found = found_frontiers(sweep, store)
    assert [one.spec.width for one in found] == [8, 40] and all(one.over and one.settled for one in found)
    assert sum(one.estimate.runs for one in found) == state.ran == len(store.finished()) < 60
    grid = Sweep.from_dict(
        {key: value for key, value in search_table().items() if key != "search"}
        | {"data": {"samples": [20, 40, 80, 160, 320], "test_samples": 200}, "trials": 12}
    )
    kept = MemoryStore()
    grid.run(kept, executor="inline")
    low, high = frontier_info(kept)[0].frontiers[0].interval
    for row, one in enumerate(found):
        assert one.estimate.factor <= 1.5**2
        assert low[row] <= one.estimate.high and one.estimate.low <= high[row]


def test_every_run_is_one_of_the_grid(whole):
    sweep, (store, _) = small_search(), whole
    assert store.finished() <= {run.hash for run in sweep.runs()}
    columns = store.columns()
    for cell in np.unique(columns["setting"]):  # trials are taken in order
        trials = columns["trial"][columns["setting"] == cell]
        assert sorted(trials) == list(range(len(trials)))


@pytest.mark.parametrize("runs", [1, 3])
def test_the_runs_do_not_depend_on_batches_or_workers(whole, runs, monkeypatch):
    cut_batches(monkeypatch, runs)
    store = MemoryStore()
    small_search().run(store, executor="processes", workers=runs)
    assert outcomes(store) == outcomes(whole[0])


def test_a_search_that_was_stopped_goes_on_with_the_same_runs(whole):
    class StoppedError(Exception):
        pass

    store, sweep = MemoryStore(), small_search()
    for _ in range(50):
        seen = []

        def stop(state, seen=seen):
            seen.append(state)
            if state.ran >= 3:
                raise StoppedError

        try:
            sweep.run(store, executor=OneByOne(), progress=stop)
        except StoppedError:
            continue
        break
    assert outcomes(store) == outcomes(whole[0])
    again = sweep.run(store)
    assert again.ran == 0 and again.already == again.total == len(store.finished()) and again.share == 1.0


class OneByOne(InlineExecutor):
    """Every run a batch of its own, so that a stop comes in the middle of a round."""

    def run(self, batches, engine):
        return super().run(([spec] for batch in batches for spec in batch), engine)


def test_a_search_that_is_killed_goes_on_with_the_same_runs(whole, tmp_path):
    script = (
        "import json, sys, time\n"
        "from fewfire.engines import CpuEngine, ReferenceEngine\n"
        "from fewfire.sweeps import Sweep\n"
        "for engine in (CpuEngine, ReferenceEngine):\n"
        "    engine.batch_cost, engine.batch_runs = 1e18, 1\n"
        "Sweep.from_dict(json.loads(sys.argv[1])).run(sys.argv[2], executor='inline', "
        "progress=lambda state: (print(state.ran, flush=True), time.sleep(0.05)))\n"
    )
    import json

    path, killed = tmp_path / "s.sqlite", 0
    while True:
        command = [sys.executable, "-c", script, json.dumps(search_table()), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if int(line) == 9 and killed < 3:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
        if process.returncode == 0:
            break
    assert killed == 3
    with SqliteStore(path) as store:
        assert outcomes(store) == outcomes(whole[0])
        assert store.sweeps()[0].spec["search"]["axis"] == "data.samples"
        assert Sweep.from_dict(store.sweeps()[0].spec) == small_search()
    with sqlite3.connect(path) as connection:  # the same columns as ever
        names = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    assert {"hash", "setting", "trial", "status", "best_test_error", "engine"} <= set(names)


def test_runs_that_are_there_are_not_trained_again(whole):
    sweep, store = small_search(), MemoryStore()
    rows = list(whole[0].rows())
    store.add(rows[: len(rows) // 2])
    state = sweep.run(store, executor="inline")
    assert state.ran == len(rows) - len(rows) // 2 and outcomes(store) == outcomes(whole[0])
    assert state.total == len(rows)


def test_a_failed_run_holds_up_its_own_frontier_until_it_is_trained(whole, monkeypatch):
    engine = CpuEngine if whole[1].engine == "cpu" else ReferenceEngine
    train, failing = engine.train, []

    def fail_once(self, runs, **options):
        if any(run.network.width == 40 for run in runs):
            failing.append(1)
            raise MemoryError("no room")
        return train(self, runs, **options)

    cut_batches(monkeypatch, 1)
    monkeypatch.setattr(engine, "train", fail_once)
    store, sweep = MemoryStore(), small_search()
    state = sweep.run(store, executor="inline")
    narrow, wide = found_frontiers(sweep, store)
    assert state.failed == sweep.search.batch == len(failing)  # one batch, and no second one on half of its outcomes
    assert narrow.settled and not wide.over and wide.estimate.runs == 0
    monkeypatch.setattr(engine, "train", train)
    assert sweep.run(store, executor="inline").failed == 0
    assert outcomes(store) == outcomes(whole[0])


def test_the_plan_guesses_what_is_left(whole):
    sweep = small_search()
    fresh = make_plan(sweep)
    assert fresh.finished == 0 and fresh.total == len(fresh.pending) == len(set(fresh.pending.tolist()))
    assert 2 * sweep.search.batch <= fresh.total <= 2 * sweep.search.budget
    assert (fresh.costs > 0).all() and make_plan(sweep).pending.tolist() == fresh.pending.tolist()
    done = make_plan(sweep, whole[0])
    assert (done.finished, len(done.pending), done.cost) == (whole[1].ran, 0, 0.0)
    assert done.successes == whole[1].successes
    half = MemoryStore()
    half.add(list(whole[0].rows())[:5])
    assert make_plan(sweep, half).finished <= 5


def test_progress_counts_up_to_what_was_needed():
    states = []
    end = small_search().run(MemoryStore(), executor="inline", progress=states.append)
    assert all(state.done <= state.total for state in states)
    assert [state.ran for state in states] == sorted(state.ran for state in states)
    assert states[-1] == end and end.total == end.done and end.share == 1.0


def test_an_unattainable_target_is_reported_as_such():
    sweep = small_search(training={"steps": 1, "learning_rate": 0.1})
    store = MemoryStore()
    sweep.run(store, executor="inline")
    for one in found_frontiers(sweep, store):
        assert one.settled and one.estimate.side == "above"
        assert str(one.estimate).startswith("not below 1,000: 0 of ")


def test_the_report_draws_the_location_with_its_interval(whole):
    (group,) = frontier_info(whole[0])
    (frontier,) = group.frontiers
    low, high = frontier.interval
    assert (low < frontier.half).all() and (frontier.half < high).all() and (high / low < 1.5**2 * 1.3).all()
    pytest.importorskip("matplotlib")
    (axis,) = plot_even_odds(group).axes
    assert axis.get_xscale() == axis.get_yscale() == "log"
    np.testing.assert_allclose(axis.lines[0].get_xydata(), [[8, frontier.half[0]], [40, frontier.half[1]]])


def test_a_sweep_without_a_search_has_no_frontiers():
    with pytest.raises(
        InvalidArgument, match=r"sweep must have a search; got 'sweep'\. Remedy: add a table \[search\]"
    ):
        found_frontiers(tiny(), MemoryStore())
