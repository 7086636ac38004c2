"""What every executor must do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fewfire.engines import get_engine
from fewfire.sweeps import MemoryStore, RunSpec, SqliteStore
from fewfire.sweeps.executors import Executor
from fewfire.sweeps.run._plan import batches
from fewfire.testing._sweeps import cut_batches, outcomes, tiny


class ExecutorConformance:
    """Subclass it in a test module, with a fixture `executor`."""

    sweep = tiny(training={"steps": 60, "learning_rate": [0.1, 1e6], "loss": "square"})

    @pytest.fixture(autouse=True)
    def small_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batches of three runs, so that there are several."""
        cut_batches(monkeypatch, 3)

    def test_it_is_an_executor(self, executor: Executor) -> None:
        assert isinstance(executor, Executor) and executor.name

    def test_the_same_rows_bit_for_bit(self, executor: Executor, tmp_path: Path) -> None:
        expected = MemoryStore()
        self.sweep.run(expected, executor="inline")
        with SqliteStore(tmp_path / "runs.sqlite", write=True) as store:
            state = self.sweep.run(store, executor=executor)
            assert outcomes(store) == outcomes(expected)
            assert state.executor == executor.name and state.ran == 32
            assert state.diverged == store.counts()["diverged"] > 0

    def test_every_batch_comes_back_once(self, executor: Executor) -> None:
        engine, specs = get_engine(), list(self.sweep.runs())
        name = engine.name
        found = [row.hash for rows in executor.run(batches(iter(specs), engine), name) for row in rows]
        assert sorted(found) == sorted(spec.hash for spec in specs)
        assert list(executor.run(iter([]), name)) == []

    def test_a_sweep_that_is_closed_takes_no_more_batches(self, executor: Executor) -> None:
        taken: list[list[RunSpec]] = []

        def watched() -> Iterator[list[RunSpec]]:
            for batch in batches(self.sweep.runs(), get_engine()):
                taken.append(batch)
                yield batch

        results = executor.run(watched(), get_engine().name)
        next(results)
        results.close()
        count = len(taken)
        assert count >= 1 and next(results, None) is None and len(taken) == count
