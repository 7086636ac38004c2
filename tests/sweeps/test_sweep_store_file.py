"""What can go wrong with a store file: each time a clear error, and nothing lost."""

import os
import sqlite3
from pathlib import Path

import pytest
from three_runs import kept, three_runs

from fewfire._errors import FileFormatError, StoreError
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.store import _sqlite as sqlite_file
from fewfire.sweeps.store._protocol import Setting, SweepRecord
from fewfire.sweeps.store._row import failed_row
from fewfire.testing._sweeps import made_up_measurement, made_up_row, outcomes, run_spec


@pytest.fixture
def path(tmp_path):
    """A store with three runs."""
    return three_runs(tmp_path)


def test_a_newer_store_is_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    before = path.read_bytes()
    for write in (False, True):
        with pytest.raises(
            FileFormatError,
            match=r"was written by a newer fewfire \(store version 3, this one knows 2\); it was left as it is. Remedy: upgrade fewfire",
        ):
            SqliteStore(path, write=write)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_store_of_the_first_version_is_read_and_gets_what_it_lacks(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE measurements")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with SqliteStore(path) as store:
        assert list(store.measurements()) == []
    assert kept(path)
    with SqliteStore(path, write=True) as store:
        store.add_measurements([made_up_measurement(0)])
    with SqliteStore(path) as store:
        assert [found.spec for found in store.measurements()] == [made_up_measurement(0).spec]
    assert kept(path)


def test_other_databases_and_other_files_are_left_alone(tmp_path):
    path = tmp_path / "bank.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE accounts (balance)")
    connection.close()
    text = tmp_path / "notes.txt"
    text.write_text("This is no database, but it is long enough to look like a file of some kind." * 20)
    for other, message in ((path, "is a database, but not a store of fewfire. Remedy: choose another file"),
                           (text, "is not a store of fewfire: it is no SQLite database. Nothing was changed")):  # fmt: skip
        before = other.read_bytes()
        for write in (False, True):
            with pytest.raises(FileFormatError, match=message):
                SqliteStore(other, write=write)
        assert other.read_bytes() == before


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(StoreError, match=r"there is no store .*none.sqlite. Remedy: run a sweep into it first"):
        SqliteStore(tmp_path / "none.sqlite")
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(StoreError, match=r"empty.sqlite is empty. Remedy: run a sweep"):
        SqliteStore(tmp_path / "empty.sqlite")
    with SqliteStore(tmp_path / "empty.sqlite", write=True) as store:  # killed before its tables were made
        store.add([made_up_row(0)])
    with pytest.raises(StoreError, match=r"cannot be made: its folder does not exist"):
        SqliteStore(tmp_path / "no" / "folder.sqlite", write=True)


def test_a_truncated_file_is_reported_as_damaged(path):
    path.write_bytes(path.read_bytes()[: 4096 * 3])
    with (
        pytest.raises(FileFormatError, match=r"is damaged \(.*\). Remedy: restore a copy or use a new file"),
        SqliteStore(path) as store,
    ):
        outcomes(store)


@pytest.mark.parametrize(
    ("new", "wrong"),
    [
        (b"'now\n))", r"malformed database schema \(.*\) - unrecognized token: .'now\?"),
        (b"'no\xff\xff))", "a text in it is no text"),
    ],
)
def test_a_damaged_schema_is_reported_in_one_line(path, new, wrong):
    """SQLite quotes what it cannot read, line breaks and bytes that are no text included."""
    path.write_bytes(path.read_bytes().replace(b"'now'))", new, 1))
    for write in (False, True):
        with pytest.raises(FileFormatError, match=rf"runs.sqlite is damaged \({wrong}") as caught:
            SqliteStore(path, write=write)
        assert "\n" not in str(caught.value)


def test_an_error_that_is_no_text_is_kept(path):
    row = failed_row(run_spec(9), OSError("no such file: \udcff"), "cpu")
    with SqliteStore(path, write=True) as store:
        store.add([row])
        assert [found.message for found in store.rows() if found.status == "failed"] == [
            "OSError: no such file: \\udcff"
        ]


def test_a_damaged_history_is_reported(path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE histories SET curves = x'00'")
    connection.close()
    with (
        SqliteStore(path) as store,
        pytest.raises(FileFormatError, match="a history is damaged: 24 bytes of steps, 1 bytes of curves"),
    ):
        outcomes(store)


def test_a_full_disk_keeps_what_was_there(path):
    with SqliteStore(path, write=True) as store:
        connection = store._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            StoreError,
            match=r"the disk of .*runs.sqlite is full. The 500 newest runs were not kept; all others are. Remedy: free some space",
        ):
            store.add([made_up_row(trial, width=7) for trial in range(500)])
        assert store.counts()["done"] == 3 and len(store.settings()) == 1
        connection.execute("PRAGMA max_page_count = 1000000")
        store.add([made_up_row(3, width=7)])  # and goes on when there is room
        assert store.counts()["done"] == 4 and len(store.settings()) == 2


def test_a_read_only_store_can_be_read(path, monkeypatch):
    connect = sqlite_file._connect
    monkeypatch.setattr(sqlite_file, "_connect", lambda path, place, write: connect(path, place, write=False))
    with pytest.raises(
        StoreError,
        match=r"runs.sqlite cannot be written: it or its disk is read-only. Nothing was changed. Remedy: copy it",
    ):
        SqliteStore(path, write=True)
    assert kept(path) and list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(path):
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert kept(path)
        with pytest.raises(StoreError, match="cannot be written: Permission denied. Nothing was changed"):
            SqliteStore(path, write=True)
    finally:
        path.parent.chmod(0o755)


def test_a_writer_stopped_in_the_middle_of_changing_the_file_is_undone_by_the_first_reader(path, tmp_path):
    """As it is when power is lost while a store is closed: changed pages in the file, the old ones in a journal."""
    stopped = tmp_path / "stopped" / "runs.sqlite"
    stopped.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    for name in ("trial", "steps", "examples"):
        connection.execute(f"UPDATE runs SET {name} = {name} + 1")
        connection.execute("UPDATE histories SET steps = zeroblob(9000)")
    for helper in ("", "-journal"):
        Path(f"{stopped}{helper}").write_bytes(Path(f"{path}{helper}").read_bytes())
    connection.execute("ROLLBACK")
    connection.close()
    assert stopped.read_bytes() != path.read_bytes()
    assert kept(stopped) and [found.name for found in stopped.parent.iterdir()] == [path.name]


def test_stores_opened_for_reading_or_closed_refuse_rows(path):
    with (
        SqliteStore(path) as store,
        pytest.raises(StoreError, match="was opened for reading. Remedy: open it with write=True"),
    ):
        store.add([made_up_row(9)])
    with pytest.raises(StoreError, match="is closed. Remedy: open it again"):
        store.counts()
    with pytest.raises(StoreError, match="is closed. Remedy: open it again"):
        store.add([])
    assert kept(path)


def test_a_row_that_cannot_be_kept_undoes_its_batch(path):
    with SqliteStore(path, write=True) as store:
        with pytest.raises(
            StoreError, match=r"cannot be used: CHECK constraint failed.*The 2 newest runs were not kept"
        ):
            store.add([made_up_row(10, width=9), made_up_row(11, "odd")])
        assert store.counts() == {"done": 3, "diverged": 0, "failed": 0} and len(store.settings()) == 1
    assert kept(path)


def test_a_rollback_that_fails_hides_no_error_and_is_made_up_for(path):
    class Stuck:
        def __init__(self, connection):
            self.connection, self.stuck = connection, True

        def execute(self, statement, *values):
            if statement == "ROLLBACK" and self.stuck:
                self.stuck = False
                raise sqlite3.OperationalError("disk I/O error")
            return self.connection.execute(statement, *values)

        def __getattr__(self, name):
            return getattr(self.connection, name)

    with SqliteStore(path, write=True) as store:
        store._connection = Stuck(store._connection)
        with pytest.raises(StoreError, match="CHECK constraint failed"):
            store.add([made_up_row(10), made_up_row(11, "odd")])
        store.add([made_up_row(12)])
        assert store.counts()["done"] == 4


DAMAGE = [
    ("settings", "UPDATE settings SET spec = '{'", "the spec of a setting has changed"),
    ("settings", "UPDATE settings SET spec = replace(spec, 'width', 'widht')", "the spec of a setting has changed"),
    ("settings", "UPDATE settings SET id = 1 << 41", "the settings are not 1, 2, 3, …"),
    ("columns", "UPDATE runs SET setting = 1 << 41", "a run has no setting"),
    ("columns", "UPDATE runs SET steps = x'00'", "a value of steps has the wrong type"),
    ("columns", "UPDATE runs SET status = 'dome'", "a run has an unknown status"),
    ("counts", "UPDATE runs SET status = 'dome'", "a run has an unknown status"),
    ("finished", "UPDATE runs SET hash = zeroblob(id)", "a hash is no text"),
    ("rows", "UPDATE settings SET spec = '{'", "the hash of a run is not that of its spec"),
    ("rows", "UPDATE runs SET status = 'dome'", "a run has an unknown status"),
    ("rows", "UPDATE runs SET environment = 9", "a run has no setting or environment"),
    ("rows", "UPDATE runs SET steps = x'00'", "a value of steps has the wrong type"),
    ("rows", "UPDATE runs SET trial = trial + 10", "the hash of a run is not that of its spec"),
    ("rows", "UPDATE histories SET steps = 'text'", "a history is damaged: its steps or curves are no bytes"),
    ("rows", "DELETE FROM histories", "a history is damaged: its steps or curves are no bytes"),
    ("measurements", "UPDATE measurements SET spec = '{}'", "the hash of a measurement is not that of its spec"),
    ("measurements", "UPDATE measurements SET seconds = 'long'", "a value of a measurement has the wrong type"),
    ("sweeps", "UPDATE sweeps SET spec = '{'", "a sweep in .*runs.sqlite is damaged: it is no JSON"),
    ("sweeps", "UPDATE sweeps SET spec = '[1]'", "a sweep in .*runs.sqlite is damaged: it is no table of JSON"),
    ("sweeps", "UPDATE sweeps SET name = x'00'", "a sweep has no name or success error"),
]


@pytest.mark.parametrize(("reader", "statement", "wrong"), DAMAGE)
def test_contents_that_no_store_has(path, reader, statement, wrong):
    with SqliteStore(path, write=True) as store:
        store.record_sweep(SweepRecord("a sweep", 0.1, {"trials": 1}))
        store.add_measurements([made_up_measurement(0)])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
    connection.close()
    with SqliteStore(path) as store, pytest.raises(FileFormatError, match=wrong) as caught:
        list(getattr(store, reader)())
    assert "\n" not in str(caught.value)


def test_settings_without_their_tables_are_reported_as_damaged():
    for text, wrong in (
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "it is no table of JSON"),
        ("{}", "it lacks data.samples"),
        ('{"data":{"samples":1,"test_samples":1},"network":3}', "it lacks network.start"),
    ):
        with pytest.raises(FileFormatError, match=f"a setting is damaged: {wrong}"):
            _ = Setting(1, text).width
