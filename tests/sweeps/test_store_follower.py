"""Following a store that is being written: what is known is what is there, and only what is new is read."""

import sqlite3

import numpy as np
import pytest

from fewfire import FileFormatError, StoreError
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.store._follow import StoreFollower
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.sweeps.store._row import COLUMNS
from fewfire.testing._sweeps import made_up_row


def known(follower):
    """As `Store.columns` gives it."""
    order = np.argsort(follower.column("hash"))
    return {name: follower.column(name)[order].tolist() for name in COLUMNS}


def assert_knows_all(follower):
    with SqliteStore(follower.path) as store:
        columns, settings, sweeps = store.columns(), store.settings(), store.sweeps()
    for name, values in known(follower).items():
        np.testing.assert_array_equal(values, columns[name].tolist())
    assert (follower.settings, follower.sweeps) == (settings, sweeps) and len(follower) == len(columns["hash"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.sqlite"


def test_reads_on_from_where_it_was(path, monkeypatch):
    with SqliteStore(path, write=True) as store:
        follower = StoreFollower(path)
        assert not follower.look() and len(follower) == 0
        store.record_sweep(SweepRecord("One", 0.1, {"name": "One"}))
        store.add([made_up_row(trial) for trial in range(3)])
        assert follower.look() and not follower.look()
        assert_knows_all(follower)
        asked = []
        inner = SqliteStore._columns
        monkeypatch.setattr(SqliteStore, "_columns", lambda self, rows: asked.append(r := list(rows)) or inner(self, r))
        store.add([made_up_row(trial, width=7) for trial in range(2)])
        assert follower.look() and [len(rows) for rows in asked] == [2]
        monkeypatch.undo()
        assert_knows_all(follower)
        assert (follower.column("finished") > 1.7e9).all()


@pytest.mark.parametrize("last", [True, False])
def test_a_failed_run_gives_way_to_its_next_try(path, last):
    """SQLite gives the id of the newest row away again when that row is deleted."""
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(0, "failed", message="no memory")])
        store.add([] if last else [made_up_row(1)])
        follower = StoreFollower(path)
        follower.look()
        for next_try in (made_up_row(0, "failed", message="no disk"), made_up_row(0)):
            store.add([next_try])
            assert follower.look()
            assert_knows_all(follower)
        assert follower.column("status").tolist() == ["done"] * (1 if last else 2)


def test_another_file_under_the_same_name_is_read_whole(path):
    for width in (5, 6):
        other = path.with_name("other.sqlite")
        with SqliteStore(other, write=True) as store:
            store.add([made_up_row(trial, width=width) for trial in range(2)])
        other.rename(path)
        if width == 5:
            follower = StoreFollower(path)
        assert follower.look()
        assert_knows_all(follower)


def test_a_writer_can_close_its_log_between_two_looks(path):
    store = SqliteStore(path, write=True)
    store.add([made_up_row(0)])
    follower = StoreFollower(path)
    follower.look()
    store.add([made_up_row(1)])
    store.close()
    assert [file.name for file in path.parent.iterdir() if "wal" in file.name or "shm" in file.name] == []
    assert follower.look()
    assert_knows_all(follower)


def test_what_cannot_be_read_is_reported(path):
    with pytest.raises(StoreError, match="there is no store"):
        StoreFollower(path).look()
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(0)])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET finished = 'soon'")
    connection.close()
    with pytest.raises(FileFormatError, match="the time at which a run finished is no time"):
        StoreFollower(path).look()
