"""One run is a pure function of its spec; errors stay with the run that made them."""

import tracemalloc

import numpy as np
import pytest

from fewfire._errors import EngineUnavailable, ExecutorError, StoreError
from fewfire._random import Stream
from fewfire.engines import CpuEngine, Phase, ReferenceEngine, Run, Sample, Schedule, Start, get_engine
from fewfire.networks import init
from fewfire.problems import Parity, SphereSlice
from fewfire.sweeps import MemoryStore, SqliteStore
from fewfire.sweeps.executors._protocol import run_batch
from fewfire.sweeps.run._plan import batches, cost
from fewfire.testing._sweeps import cut_batches, outcomes, run_spec, tiny

DIVERGING = {"steps": 50, "learning_rate": [0.01, 1e6], "loss": "square", "evaluate": 10}


def test_a_run_is_made_of_its_own_streams():
    spec = run_spec(trial=5)
    described = spec.describe()
    assert described.X is None and described.sample.rows == 30 and described.network.width == 5
    run = described.drawn()
    X, y = Parity(8, 2).sample(30, Stream.of_run(spec.canonical, "data"))
    X_test, y_test = Parity(8, 2).sample(40, Stream.of_run(spec.canonical, "test"))
    assert np.array_equal(run.X, X) and np.array_equal(run.y, y)
    assert np.array_equal(run.X_test, X_test) and np.array_equal(run.y_test, y_test)
    assert run.network.equals(init.dense()(8, 5, Stream.of_run(spec.canonical, "init")))
    assert run.stream == Stream.of_run(spec.canonical, "batches") and run.schedule == spec.schedule
    online = run_spec(data={"samples": "online"}).describe().drawn()
    assert online.X is None and online.source == Parity(8, 2)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_rows_do_not_depend_on_the_batch(engine):
    specs, trainer = list(tiny().runs()), get_engine(engine)
    together = run_batch(specs, trainer)
    alone = [run_batch([spec], trainer)[0] for spec in reversed(specs)]
    assert [row.outcome() for row in together] == [row.outcome() for row in reversed(alone)]
    assert [row.hash for row in together] == [spec.hash for spec in specs]


def test_a_row_records_how_the_run_ended():
    spec = run_spec(training={"steps": 3000, "learning_rate": 0.1, "evaluate": 50, "stop_error": 0.1},
                    network={"start": {"name": "sparse", "s": 2}, "width": 60}, data={"samples": 300})  # fmt: skip
    row = run_batch([spec], get_engine())[0]
    result = get_engine().train([spec.describe()])[0]
    assert row.status == "done" and row.stopped == "test_error" and row.message == ""
    assert row.test_error == result.test_error == row.best_test_error <= 0.1
    assert row.steps == result.counters.steps < 3000 and row.examples == 32 * row.steps
    assert row.train_loss == result.history.train_loss[-1] and row.engine == result.engine
    assert np.array_equal(row.history.step, result.history.step)
    assert np.array_equal(row.history.hidden_norm, result.history.hidden_norm.astype(np.float32))


def test_divergence_is_a_result():
    first, second = run_batch([run_spec(training=DIVERGING | {"learning_rate": rate}) for rate in (1e6, 0.01)],
                              get_engine())  # fmt: skip
    assert (first.status, first.stopped, second.status) == ("diverged", "diverged", "done")
    assert first.message.startswith("training diverged at step ") and second.message == ""


class Picky(ReferenceEngine):
    """Refuses runs of width 8, and counts its calls."""

    calls = 0

    def train(self, runs, **options):
        self.calls += 1
        if any(run.network.width == 8 for run in runs):
            raise MemoryError("no room for 8")
        return super().train(runs, **options)


def test_an_error_stays_with_its_run():
    specs, engine = list(tiny(trials=1).runs()), Picky()
    rows = run_batch(specs, engine)
    assert [row.status for row in rows] == ["failed" if spec.width == 8 else "done" for spec in specs]
    assert {row.message for row in rows if row.status == "failed"} == {"MemoryError: no room for 8"}
    assert engine.calls == 11  # by halves, until those with a fault are alone; at most 2·8 − 1
    expected = run_batch([spec for spec in specs if spec.width != 8], ReferenceEngine())
    assert [row.outcome() for row in rows if row.status == "done"] == [row.outcome() for row in expected]


def test_a_run_that_cannot_be_made_fails_alone(monkeypatch):
    def sample(self, m, *rest):
        raise MemoryError("too many samples") if m == 30 else AssertionError

    specs = list(tiny(trials=1, data={"samples": [30, 31], "test_samples": 40}).runs())
    real = Parity.sample
    monkeypatch.setattr(Parity, "sample", lambda self, m, *rest: sample(self, m) if m == 30 else real(self, m, *rest))
    rows = run_batch(specs, get_engine())
    assert [row.status for row in rows] == ["failed", "done"] * 4
    assert rows[0].message == "MemoryError: too many samples" and len(rows[0].history.step) == 0


def test_a_missing_engine_is_nobodys_fault():
    class Missing(ReferenceEngine):
        def train(self, runs, **options):
            raise EngineUnavailable("engine 'missing' cannot run here")

    with pytest.raises(EngineUnavailable, match="cannot run here"):
        run_batch(list(tiny().runs()), Missing())


def test_failed_runs_are_tried_again(monkeypatch):
    sweep, store = tiny(), MemoryStore()
    monkeypatch.setattr("fewfire.sweeps.executors._protocol.get_engine", lambda name, threads: Picky())
    state = sweep.run(store, engine="reference")
    assert (state.ran, state.failed, state.done) == (16, 8, 16) and store.counts()["failed"] == 8
    monkeypatch.undo()
    state = sweep.run(store, engine="reference")
    assert (state.already, state.ran, state.failed) == (8, 8, 0)
    untouched = MemoryStore()
    sweep.run(untouched, engine="reference")
    assert outcomes(store) == outcomes(untouched)


def test_fail_fast_stops_and_keep_going_records(monkeypatch):
    cut_batches(monkeypatch, 1)
    sweep, store = tiny(training=DIVERGING, data={"samples": 30}), MemoryStore()
    with pytest.raises(
        ExecutorError,
        match=r"run [0-9a-f]{32} diverged: training diverged at step .* Its spec, trial 0: \{.*\}. All finished runs are kept. Remedy: change the spec",
    ):
        sweep.run(store, executor="inline", keep_going=False)
    assert store.counts() == {"done": 1, "diverged": 1, "failed": 0}
    state = sweep.run(store, executor="inline")
    assert (state.total, state.already, state.ran, state.diverged, state.failed) == (16, 2, 14, 8, 0)
    assert store.counts() == {"done": 8, "diverged": 8, "failed": 0}


def test_a_full_disk_stops_the_sweep_and_keeps_the_rest(tmp_path, monkeypatch):
    cut_batches(monkeypatch, 1)
    sweep, path = tiny(training={"steps": 3000, "evaluate": 1}), tmp_path / "runs.sqlite"
    with SqliteStore(path, write=True) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 150}")
        with pytest.raises(StoreError, match="is full. The 1 newest runs were not kept; all others are"):
            sweep.run(store, executor="inline")
        kept = store.counts()["done"]
        assert 0 < kept < 16
        store._connection.execute("PRAGMA max_page_count = 1000000")
        state = sweep.run(store, executor="inline")
        assert (state.already, state.ran) == (kept, 16 - kept)
        whole = MemoryStore()
        sweep.run(whole, executor="inline")
        assert outcomes(store) == outcomes(whole)


def test_progress_counts_and_ends(tmp_path):
    seen, sweep = [], tiny(success_error=0.4)
    first = sweep.run(tmp_path / "runs.sqlite", progress=seen.append)
    assert seen[0].ran == 0 and seen[-1] == first
    assert [state.ran for state in seen] == sorted(state.ran for state in seen)
    assert (first.total, first.already, first.ran, first.done, first.share) == (16, 0, 16, 16, 1.0)
    assert first.remaining_seconds == 0.0 and first.rate == 16 / first.seconds
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        good = (store.columns()["best_test_error"] <= 0.4).sum()
        assert store.sweeps()[0].success_error == 0.4
    assert first.successes == good and first.success == good / 16
    more = tiny(success_error=0.4, trials=3).run(tmp_path / "runs.sqlite", progress=seen.append)
    assert (more.total, more.already, more.ran) == (24, 16, 8) and more.successes >= good
    again = tiny(success_error=0.4, trials=3).run(tmp_path / "runs.sqlite")
    assert (again.ran, again.done, again.successes, again.share) == (0, 24, more.successes, 1.0)


def test_batches_keep_the_order_and_fit_the_engine():
    specs = list(tiny(trials=40).runs())
    cut = list(batches(specs, CpuEngine()))
    assert [spec for batch in cut for spec in batch] == specs and {len(batch) for batch in cut} == {64}

    class Device(ReferenceEngine):
        batch_cost, batch_runs, side_by_side = float("inf"), 4096, True

    wide = list(tiny(network={"start": "dense", "width": 2_000_000}, trials=8, data={"samples": 30}).runs())
    assert [len(batch) for batch in batches(wide, Device())] == [8]  # described: 160 MB of weights weigh nothing yet
    long = list(tiny(training={"steps": 10**5}, network={"start": "dense", "width": 4000}, trials=2).runs())
    assert {len(batch) for batch in batches(long, CpuEngine())} == {1}


def test_the_cost_counts_multiply_adds():
    spec = run_spec()  # 40 steps of 8 examples, records at 0, 20 and 40 on 30 + 40 examples
    assert cost(spec) == 5 * 9 * (2 * 40 * 8 + 3 * 70)
    full = run_spec(training={"steps": 40, "batch_size": "full", "evaluate": 40})
    assert cost(full) == 5 * 9 * (2 * 40 * 30 + 2 * 70)


def test_a_described_run_weighs_a_kilobyte():
    """Whatever data and weights it stands for: 80 MB of weights and 10 MB of examples here."""
    sweep = tiny(
        network={"start": "dense", "width": 10**6}, data={"samples": 10**6, "test_samples": 10**5}, trials=1000
    )
    tracemalloc.start()
    runs = [spec.describe() for spec in sweep.runs()]
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(runs) == 1000 and peak < 1.2 * held < 1.2 * 1000 * 1500
    assert runs[0].array_bytes == 4 * 10**6 * 10 + 8 * (10**6 + 10**5)


def test_described_reals_weigh_what_they_take_once_drawn():
    problem = SphereSlice(200, 3, 0.0)
    X, _ = problem.sample(1, 0)
    run = Run(Start(init.dense(), 3, 10), Schedule((Phase(1),)), sample=Sample(problem, 100), test=Sample(problem, 50))
    assert X.dtype.itemsize > 1 and run.array_bytes == 150 * X.nbytes + 4 * 10 * (3 + 2)
    drawn = run.drawn()
    assert drawn.array_bytes == run.array_bytes
