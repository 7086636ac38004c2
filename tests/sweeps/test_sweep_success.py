"""One meaning of success and of its first step, one list of columns: rows, columns, schema and histories agree."""

import sqlite3
from dataclasses import fields

import numpy as np
import pytest

from fewfire.engines import History
from fewfire.sweeps import MemoryStore, SqliteStore, succeeded
from fewfire.sweeps.store._row import COLUMNS, Row, single
from fewfire.testing._sweeps import made_up_row


@pytest.mark.parametrize(
    ("status", "error", "good"),
    [("done", 0.1, True), ("done", 0.1 + 1e-9, False), ("done", float("nan"), False), ("diverged", 0.0, False),
     ("failed", 0.0, False)],
)  # fmt: skip
def test_a_run_succeeded_when_it_is_done_and_good(status, error, good):
    assert succeeded(status, error, 0.1) is good
    column = succeeded(np.array([status, "done"]), np.array([error, 0.0]), 0.1)
    assert column.tolist() == [good, True]


def history(errors):
    return History.of([(10 * place, 0.0, error, error, 1.0, 1.0, 1.0, 1.0) for place, error in enumerate(errors)])


def test_the_first_step_is_the_same_before_and_after_storing():
    """200 wrong of 2000 is 0.1 in double precision and a little more in the single precision of a store."""
    recorded = history([0.5, 0.3, 200 / 2000, 0.2, 0.05])
    stored = single(recorded)
    assert float(stored.test_error[2]) > 0.1
    assert recorded.first_step(0.1) == stored.first_step(0.1) == 20
    assert recorded.first_step(0.1, "train_error") == 20 and recorded.first_step(0.5) == 0
    assert recorded.first_step(0.01) is None and History.of([]).first_step(1.0) is None
    assert history([float("nan"), 0.0]).first_step(0.1) == 10


def test_columns_are_the_fields_of_a_row_and_the_columns_of_the_file(tmp_path):
    assert list(COLUMNS) == [field.name for field in fields(Row)][:-2]
    row = made_up_row(0)
    for name, kind in COLUMNS.items():
        if name != "setting":
            assert isinstance(getattr(row, name), {np.str_: str, np.int64: int, np.float64: float}[kind])
    with SqliteStore(tmp_path / "runs.sqlite", write=True) as store:
        store.add([row])
    with sqlite3.connect(tmp_path / "runs.sqlite") as connection:
        made = {
            name: (kind, bool(needed)) for _, name, kind, needed, *_ in connection.execute("PRAGMA table_info(runs)")
        }
    connection.close()
    kinds = {np.str_: ("TEXT", True), np.int64: ("INTEGER", True), np.float64: ("REAL", False)}
    assert list(made) == ["id", *COLUMNS, "environment", "finished"]
    assert {name: made[name] for name in COLUMNS} == {name: kinds[kind] for name, kind in COLUMNS.items()}
    assert list(MemoryStore().columns()) == list(COLUMNS)
