"""What every store must do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.sweeps import Store, cells
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.sweeps.store._row import COLUMNS, CURVES
from fewfire.testing._sweeps import made_up_measurement, made_up_row, outcomes, tiny


class StoreConformance:
    """Subclass it in a test module, with a fixture `store`: an empty store that may be written."""

    def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    def test_an_empty_store(self, store: Store) -> None:
        assert store.finished() == set() and store.settings() == [] and list(store.rows()) == []
        assert store.counts() == {"done": 0, "diverged": 0, "failed": 0}
        assert store.sweeps() == [] and cells(store, 0.1) == []
        columns = store.columns()
        assert list(columns) == list(COLUMNS) and all(len(column) == 0 for column in columns.values())

    def test_rows_come_back_bit_for_bit(self, store: Store) -> None:
        rows = [made_up_row(trial, error=0.1 * trial) for trial in range(5)]
        store.add(rows[:2])
        store.add(rows[2:])
        assert outcomes(store) == sorted(row.outcome() for row in rows)
        again = {row.hash: row for row in store.rows()}
        for row in rows:
            assert again[row.hash].setting == row.setting and again[row.hash].environment == row.environment
            assert math.isnan(again[row.hash].train_loss)
            assert again[row.hash].history.step.dtype == np.int64
            for name in CURVES:
                stored = getattr(again[row.hash].history, name)
                assert stored.dtype == np.float32 and np.array_equal(stored, getattr(row.history, name))
            assert np.array_equal(store.history(row.hash).test_error, row.history.test_error)

    def test_columns_agree_with_rows(self, store: Store) -> None:
        store.add([made_up_row(trial, width=5 + trial % 2, error=0.1 * trial) for trial in range(6)])
        columns, rows, texts = store.columns(), list(store.rows()), {s.id: s.text for s in store.settings()}
        assert columns["hash"].tolist() == sorted(columns["hash"].tolist()) == [row.hash for row in rows]
        for name, kind in COLUMNS.items():
            assert columns[name].dtype.type is kind
            if name == "setting":
                assert [texts[number] for number in columns[name].tolist()] == [row.setting for row in rows]
            else:
                expected = np.array([getattr(row, name) for row in rows])
                assert np.array_equal(columns[name], expected, equal_nan=kind is np.float64)

    def test_settings_are_kept_once(self, store: Store) -> None:
        store.add([made_up_row(trial, width=5 + trial % 2) for trial in range(6)])
        settings = store.settings()
        assert [setting.id for setting in settings] == [1, 2]
        assert [setting.width for setting in settings] == [5, 6]
        first = settings[0]
        assert first.samples == 30 and first.start == {"name": "dense"} and first.problem["k"] == 2
        assert first.training["phases"][0]["steps"] == 40
        assert len(list(store.rows(setting=2))) == 3 and list(store.rows(setting=3)) == []

    def test_the_first_final_row_stays(self, store: Store) -> None:
        store.add([made_up_row(0, error=0.25)])
        store.add([made_up_row(0, error=0.5), made_up_row(0, error=0.75)])
        assert [row.test_error for row in store.rows()] == [0.25]

    def test_failed_runs_are_not_finished_and_are_replaced(self, store: Store) -> None:
        store.add(
            [made_up_row(0, "failed", message="MemoryError: no room"), made_up_row(1, "diverged", message="at 3")]
        )
        assert store.counts() == {"done": 0, "diverged": 1, "failed": 1}
        assert store.finished() == {made_up_row(1).hash}
        store.add([made_up_row(0, "failed", message="again"), made_up_row(1, "done")])
        assert sorted(row.message for row in store.rows()) == ["again", "at 3"]
        store.add([made_up_row(0, "done")])
        assert store.counts() == {"done": 1, "diverged": 1, "failed": 0}
        assert len(list(store.rows())) == 2 and len(store.history(made_up_row(0).hash).step) == 3

    def test_adding_nothing_changes_nothing(self, store: Store) -> None:
        store.add([])
        assert store.counts()["done"] == 0

    def test_cells_count_successes(self, store: Store) -> None:
        errors = [0.0, 0.1, 0.2, 0.4]  # the best error of a made-up row is half of that
        store.add([made_up_row(trial, error=error) for trial, error in enumerate(errors)])
        store.add([made_up_row(4, "diverged", error=0.0), made_up_row(5, "failed"), made_up_row(0, width=9)])
        first, second = cells(store, success_error=0.1)
        assert (first.runs, first.successes, first.diverged, first.failed) == (5, 3, 1, 1)
        assert first.success == 0.6 and first.setting.width == 5
        assert (second.runs, second.successes, second.setting.width) == (1, 0, 9)

    def test_unknown_runs_are_refused(self, store: Store) -> None:
        with pytest.raises(InvalidArgument, match="hash must be that of a run in this store; got 'abc'"):
            store.history("abc")

    def test_sweeps_are_noted_once(self, store: Store) -> None:
        sweep, other = tiny(name="one"), tiny(trials=3)
        for one, name, error in ((sweep, "one", 0.1), (other, "more", 0.1), (sweep, "two", 0.2)):
            store.record_sweep(SweepRecord(name, error, {**one.to_dict(), "name": name, "success_error": error}))
        first, second = store.sweeps()
        assert (first.name, first.success_error, second.name) == ("two", 0.2, "more")
        assert type(sweep).from_dict(first.spec) == tiny(name="two", success_error=0.2)
        assert (first.note, first.tags) == ("", ())
        for noted in (replace(first, note="why\n\nand how", tags=("a", "b")), replace(first, tags=("b",))):
            store.record_sweep(noted)
            assert store.sweeps() == [noted, second]

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        with store as same:
            assert same is store
        store.close()

    def test_measurements_come_back_and_only_failed_ones_are_replaced(self, store: Store) -> None:
        assert list(store.measurements()) == []
        rows = [made_up_measurement(trial, error=0.1 * trial) for trial in range(3)]
        store.add_measurements(rows)
        store.add_measurements([made_up_measurement(1, error=0.9), made_up_measurement(3, "failed")])
        found = {row.table["trial"]: row for row in store.measurements()}
        assert [row.hash for row in store.measurements()] == sorted(row.hash for row in found.values())
        assert [found[trial] for trial in range(3)] == rows
        assert found[3].status == "failed" and math.isnan(found[3].error) and found[3].message == "why"
        store.add_measurements([made_up_measurement(3, error=0.5)])
        assert len(list(store.measurements())) == 4
        assert {row.table["trial"]: row.error for row in store.measurements()}[3] == 0.5
        assert store.counts() == {"done": 0, "diverged": 0, "failed": 0}  # measurements are no runs
