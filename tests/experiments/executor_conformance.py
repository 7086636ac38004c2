"""What every executor must do. Subclass it with a fixture `executor`."""

import pytest
from tiny_sweeps import cut_batches, outcomes, tiny

from fewfire.engines import get_engine
from fewfire.experiments import MemoryStore, SqliteStore
from fewfire.experiments.executors import Executor
from fewfire.experiments.run import batches


@pytest.fixture
def expected():
    store = MemoryStore()
    tiny(training={"steps": 60, "learning_rate": [0.1, 1e6], "loss": "square"}).run(store, executor="inline")
    return outcomes(store)


class ExecutorConformance:
    sweep = tiny(training={"steps": 60, "learning_rate": [0.1, 1e6], "loss": "square"})

    @pytest.fixture(autouse=True)
    def small_batches(self, monkeypatch):
        cut_batches(monkeypatch, 3)

    def test_it_is_an_executor(self, executor):
        assert isinstance(executor, Executor) and executor.name

    def test_the_same_rows_bit_for_bit(self, executor, expected, tmp_path):
        with SqliteStore(tmp_path / "runs.sqlite", write=True) as store:
            state = self.sweep.run(store, executor=executor)
            assert outcomes(store) == expected
            assert (
                state.executor == executor.name and state.ran == 32 and state.diverged == store.counts()["diverged"] > 0
            )

    def test_every_batch_comes_back_once(self, executor):
        engine, specs = get_engine(), list(self.sweep.runs())
        name = engine.name
        found = [row.hash for rows in executor.run(batches(iter(specs), engine), name) for row in rows]
        assert sorted(found) == sorted(spec.hash for spec in specs)
        assert list(executor.run(iter([]), name)) == []

    def test_a_sweep_that_is_closed_takes_no_more_batches(self, executor):
        taken = []

        def endless():
            for batch in batches(self.sweep.runs(), get_engine()):
                taken.append(batch)
                yield batch

        results = executor.run(endless(), get_engine().name)
        next(results)
        results.close()
        count = len(taken)
        assert count >= 1 and next(results, None) is None and len(taken) == count
