"""The store in a file: SQLite, opened for reading or by one writer at a time (`WriterLock`); errors name the remedy.

One transaction adds a batch of rows: a process that is killed, or a machine that loses power, loses the rows that had
not been added yet, and nothing else.

A store is a SQLite database with `application_id` "fewf" and the schema's number in `user_version`. What the runs of a
cell share is kept once, in `settings`; histories have a table of their own, so that reading all results reads no
histories. The view `results` joins runs and settings for use from SQL. Measurements that are no training run of
a sweep have the table `measurements` (since version 2; a writer adds it to an older file). Notes and tags of sweeps
have the table `notes`, which comes with the first of them: older versions open such a file and do not see it.

While it is written, the file has a log (WAL), so that readers and the writer never block each other. A
writer that closes folds the log in: a store at rest is one file, which can be copied and read from a read-only disk.
"""

from __future__ import annotations

import math
import re
import sqlite3
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import FewfireError, FileFormatError, StoreError
from fewfire.sweeps.spec._run_spec import canonical
from fewfire.sweeps.store._access import WriterLock, resolve_store
from fewfire.sweeps.store._protocol import (
    Measurement,
    Setting,
    StoreBase,
    SweepRecord,
    are,
    run_hash,
    table_of,
    unknown_run,
)
from fewfire.sweeps.store._row import COLUMNS, FINAL, STATUSES, Row, decode_history, encode_history

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fewfire._types import AnyArray
    from fewfire.engines import History

APPLICATION_ID = int.from_bytes(b"fewf", "big")
SCHEMA_VERSION = 2

TABLES = ("settings", "environments", "sweeps", "runs", "histories", "measurements")
"""The last one is missing from files of the first version."""

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged or unusable file raises; the second where SQLite's own message quotes bytes that are no text."""

_TYPES = {np.str_: "TEXT NOT NULL", np.int64: "INTEGER NOT NULL", np.float64: "REAL"}
_RULES = {
    "hash": "UNIQUE",
    "setting": "REFERENCES settings (id)",
    "status": f"CHECK (status IN {STATUSES})",
}
_RUN_COLUMNS = [f"{name} {_TYPES[kind]} {_RULES.get(name, '')}".rstrip() for name, kind in COLUMNS.items()]

_MEASUREMENTS = """
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, spec TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('done', 'failed')), error REAL, seconds REAL NOT NULL, message TEXT NOT NULL,
  environment INTEGER NOT NULL REFERENCES environments (id),
  finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')));
"""

NOTES = """
CREATE TABLE IF NOT EXISTS notes (
  sweep INTEGER PRIMARY KEY REFERENCES sweeps (id), note TEXT NOT NULL, tags TEXT NOT NULL);
"""

SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE settings (
  id INTEGER PRIMARY KEY, spec TEXT NOT NULL UNIQUE, problem TEXT NOT NULL, start TEXT NOT NULL,
  width INTEGER NOT NULL, samples INTEGER, test_samples INTEGER NOT NULL, training TEXT NOT NULL);
CREATE TABLE environments (id INTEGER PRIMARY KEY, environment TEXT NOT NULL UNIQUE);
CREATE TABLE sweeps (
  id INTEGER PRIMARY KEY, spec TEXT NOT NULL UNIQUE, name TEXT NOT NULL, success_error REAL NOT NULL,
  started TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')));
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, {", ".join(_RUN_COLUMNS)},
  environment INTEGER NOT NULL REFERENCES environments (id),
  finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')));
CREATE INDEX runs_of_setting ON runs (setting);
CREATE TABLE histories (
  run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, steps BLOB NOT NULL, curves BLOB NOT NULL);
CREATE VIEW results AS
  SELECT runs.*, problem, start, width, samples, test_samples, training
  FROM runs JOIN settings ON settings.id = setting;
{_MEASUREMENTS}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

UPGRADE = f"""
BEGIN IMMEDIATE;
{_MEASUREMENTS}
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
"""From version 1."""

_REALS = tuple(name for name, kind in COLUMNS.items() if kind is np.float64)


class SqliteStore(StoreBase):
    """A store file.

    Parameters
    ----------
    path : path of the file
    write : bool
        Whether rows may be added; the file is made when it does not exist. Otherwise it must exist, and nothing is
        changed, except that what a stopped writer left half done is undone: there may be any number of readers while a
        sweep runs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fewfire.sweeps import SqliteStore
    >>> with TemporaryDirectory() as folder, SqliteStore(Path(folder) / "grid.sqlite", write=True) as store:
    ...     print(store.counts())
    {'done': 0, 'diverged': 0, 'failed': 0}
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self._setting_ids: dict[str, int] = {}
        self._environment_ids: dict[str, int] = {}
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._resolved = resolve_store(self.path, write=write)
        self._lock = WriterLock(self.path) if write else None
        try:
            self._connection = self._open(write)
        except BaseException:
            self.close()
            raise

    def add(self, rows: Sequence[Row]) -> None:
        with self._writing(f"The {len(rows)} newest runs were not kept; all others are.") as connection:
            for row in rows:
                connection.execute(f"DELETE FROM runs WHERE hash = ? AND status NOT IN {FINAL}", (row.hash,))
                values = {name: getattr(row, name) for name in COLUMNS}
                values["setting"] = self._setting_id(connection, row.setting)
                values["environment"] = self._environment_id(connection, row.environment)
                done = _insert(connection, "runs", values)
                if done.rowcount:
                    blobs = encode_history(row.history)
                    connection.execute("INSERT INTO histories VALUES (?, ?, ?)", (done.lastrowid, *blobs))

    def finished(self) -> set[str]:
        found = {hash for (hash,) in self._read(f"SELECT hash FROM runs WHERE status IN {FINAL}")}
        self._check(are(found, np.str_), "a hash is no text")
        return found

    def counts(self) -> dict[str, int]:
        found = dict(self._read("SELECT status, count(*) FROM runs GROUP BY status"))
        self._check(found.keys() <= set(STATUSES), "a run has an unknown status")
        return {status: int(found.get(status, 0)) for status in STATUSES}

    def settings(self, after: int = 0) -> list[Setting]:
        """Every cell, in order of arrival; those after a number where one is given."""
        first = "FROM runs WHERE setting = settings.id ORDER BY id LIMIT 1"
        query = f"SELECT id, spec, (SELECT hash {first}), (SELECT trial {first}) FROM settings WHERE id > ? ORDER BY id"
        found = list(self._read(query, (after,)))
        numbers = list(range(after + 1, after + len(found) + 1))
        self._check([id for id, *_ in found] == numbers, "the settings are not 1, 2, 3, …")
        for _, spec, hash, trial in found:  # the hash of one run verifies the text of its setting
            right = isinstance(spec, str) and (hash is None or run_hash(spec, trial) == hash)
            self._check(right, "the spec of a setting has changed")
        return [Setting(id, spec) for id, spec, *_ in found]

    def columns(self) -> dict[str, AnyArray]:
        return self._columns(self._read(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY hash"))

    def _columns(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, AnyArray]:
        """Rows of the table, checked, as one array per column."""
        columns = dict(zip(COLUMNS, list(zip(*rows, strict=True)) or [()] * len(COLUMNS), strict=True))
        for name, kind in COLUMNS.items():
            self._check(are(columns[name], kind), f"a value of {name} has the wrong type")
        self._check(set(columns["status"]) <= set(STATUSES), "a run has an unknown status")
        known = {id for (id,) in self._read("SELECT id FROM settings")}
        self._check(set(columns["setting"]) <= known, "a run has no setting")
        # NULL is SQLite's NaN; numpy turns None into NaN where the type is a float.
        return {name: np.array(columns[name], dtype=kind) for name, kind in COLUMNS.items()}

    def rows(self, setting: int | None = None) -> Iterator[Row]:
        names = [name for name in COLUMNS if name != "setting"]
        query = (
            "SELECT settings.spec, environments.environment, histories.steps, curves, "
            + ", ".join(f"runs.{name}" for name in names)
            + " FROM runs LEFT JOIN settings ON settings.id = setting"
            " LEFT JOIN environments ON environments.id = runs.environment"
            " LEFT JOIN histories ON run = runs.id"
        )
        # Two queries, not one with "?1 IS NULL OR …", which would look at every row for one cell.
        query, wanted = (query, ()) if setting is None else (f"{query} WHERE setting = ?", (setting,))
        for spec, environment, steps, curves, *values in self._read(f"{query} ORDER BY hash", wanted):
            fields: dict[str, Any] = dict(zip(names, values, strict=True))
            for name, value in fields.items():
                self._check(are((value,), COLUMNS[name]), f"a value of {name} has the wrong type")
            self._check(are((spec, environment), np.str_), "a run has no setting or environment")
            _check_environment(environment)
            self._check(fields["status"] in STATUSES, "a run has an unknown status")
            self._check(run_hash(spec, fields["trial"]) == fields["hash"], "the hash of a run is not that of its spec")
            fields |= {name: math.nan for name in _REALS if fields[name] is None}
            yield Row(setting=spec, environment=environment, history=decode_history(steps, curves), **fields)

    def history(self, hash: str) -> History:
        query = "SELECT histories.steps, curves FROM histories JOIN runs ON run = runs.id WHERE hash = ?"
        found = next(self._read(query, (hash,)), None)
        if found is None:
            raise unknown_run(hash)
        return decode_history(*found)

    def record_sweep(self, record: SweepRecord) -> None:
        with self._writing("All runs are kept.") as connection:
            connection.execute(
                "INSERT INTO sweeps (spec, name, success_error) VALUES (?, ?, ?) ON CONFLICT (spec) "
                "DO UPDATE SET name = excluded.name, success_error = excluded.success_error",
                (record.key, record.name, record.success_error),
            )
            if record.note or record.tags or self._has("notes"):
                connection.execute(NOTES)
                connection.execute(
                    "INSERT INTO notes SELECT id, ?, ? FROM sweeps WHERE spec = ? "
                    "ON CONFLICT (sweep) DO UPDATE SET note = excluded.note, tags = excluded.tags",
                    (record.note, " ".join(record.tags), record.key),
                )

    def sweeps(self) -> list[SweepRecord]:
        found = []
        query = "SELECT name, success_error, spec, '', '' FROM sweeps ORDER BY id"
        if self._has("notes"):
            query = "SELECT name, success_error, spec, ifnull(note, ''), ifnull(tags, '') FROM sweeps "
            query += "LEFT JOIN notes ON sweep = sweeps.id ORDER BY sweeps.id"
        for name, error, spec, note, tags in self._read(query):
            texts = are((name, note, tags), np.str_)
            self._check(texts and isinstance(error, float), "a sweep has no name or success error")
            self._check(0 <= error < math.inf, "the success error of a sweep is negative or infinite")
            table = table_of(spec, f"a sweep in {self.path}") | {"name": name, "success_error": error}
            found.append(SweepRecord(name, error, table, note, tuple(tags.split())))
        return found

    def _has(self, table: str) -> bool:
        query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
        return bool(next(self._read(query, (table,)))[0])

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        with self._writing(f"The {len(measurements)} newest measurements were not kept; all others are.") as connection:
            for new in measurements:
                connection.execute("DELETE FROM measurements WHERE hash = ? AND status = 'failed'", (new.hash,))
                values = {"hash": new.hash} | {field.name: getattr(new, field.name) for field in fields(new)}
                values["environment"] = self._environment_id(connection, new.environment)
                _insert(connection, "measurements", values)

    def measurements(self) -> Iterator[Measurement]:
        """All measurements, sorted by hash; a file of the first version has none."""
        if self._has("measurements"):
            for hash, spec, status, error, seconds, message, environment in self._read(
                "SELECT hash, spec, status, error, seconds, message, environments.environment FROM measurements "
                "LEFT JOIN environments ON environments.id = measurements.environment ORDER BY hash"
            ):
                right = are((spec, message, environment), np.str_) and are((error,), np.float64)
                right = right and isinstance(seconds, float) and status in ("done", "failed")
                self._check(right, "a value of a measurement has the wrong type")
                found = Measurement(spec, status, math.nan if error is None else error, seconds, message, environment)
                self._check(found.hash == hash, "the hash of a measurement is not that of its spec")
                yield found

    def close(self) -> None:
        connection, self._connection = self._connection, None
        lock, self._lock = self._lock, None
        try:
            if connection is not None:
                with suppress(sqlite3.Error):  # there is a reader: the log stays until the next time
                    if lock is not None:
                        connection.execute("PRAGMA journal_mode = DELETE")
                connection.close()
        finally:
            if lock is not None:
                lock.release()

    def _open(self, write: bool) -> sqlite3.Connection:
        connection = _connect(self.path, self._resolved, write)
        try:
            filled = check_schema(connection, self.path)
            if not filled and not write:
                raise StoreError(f"{self.path} is empty. Remedy: run a sweep into it first.")
            if write:
                connection.execute("PRAGMA journal_mode = WAL")
                if not filled:
                    connection.executescript(SCHEMA)
                elif _pragma(connection, "user_version") < SCHEMA_VERSION:
                    connection.executescript(UPGRADE)
                connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
        except SQLITE_ERRORS as error:
            connection.close()
            raise in_words(error, self.path, "Nothing was changed.") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _read(self, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The answer to a query, row by row."""
        if self._connection is None:
            raise StoreError(f"{self.path} is closed. Remedy: open it again.")
        try:
            # Not "yield from": a reader that ends early would close the cursor, perhaps after its connection.
            for row in self._connection.execute(query, parameters):  # noqa: UP028
                yield row
        except SQLITE_ERRORS as error:
            raise in_words(error, self.path, "Nothing was changed.") from None

    @contextmanager
    def _writing(self, kept: str) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, undone by any error."""
        if self._connection is None:
            raise StoreError(f"{self.path} is closed. Remedy: open it again.")
        if self._lock is None:
            raise StoreError(f"{self.path} was opened for reading. Remedy: open it with write=True.")
        try:
            if self._connection.in_transaction:  # one before this could not be undone
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._setting_ids.clear()  # what was kept of the transaction that is undone
            self._environment_ids.clear()
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):  # the error before it is the one to report
                    self._connection.execute("ROLLBACK")
            if isinstance(error, SQLITE_ERRORS):
                raise in_words(error, self.path, kept) from None
            raise

    def _check(self, right: bool, what: str) -> None:
        if not right:
            raise damaged(self.path, what)

    def _setting_id(self, connection: sqlite3.Connection, text: str) -> int:
        if text not in self._setting_ids:
            setting = Setting(0, text)  # its number is not known yet
            values: dict[str, Any] = {"spec": text, "width": setting.width, "samples": setting.samples}
            values["test_samples"] = setting.spec["data"]["test_samples"]
            values |= {name: canonical(getattr(setting, name)) for name in ("problem", "start", "training")}
            _insert(connection, "settings", values)
            found = connection.execute("SELECT id FROM settings WHERE spec = ?", (text,))
            self._setting_ids[text] = found.fetchone()[0]
        return self._setting_ids[text]

    def _environment_id(self, connection: sqlite3.Connection, text: str) -> int:
        if text not in self._environment_ids:
            _insert(connection, "environments", {"environment": text})
            found = connection.execute("SELECT id FROM environments WHERE environment = ?", (text,))
            self._environment_ids[text] = found.fetchone()[0]
        return self._environment_ids[text]


def _insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> sqlite3.Cursor:
    """Add a row, unless the table has one with the same text or hash."""
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"
    return connection.execute(statement, tuple(values.values()))


def _connect(path: Path, resolved: Path, write: bool) -> sqlite3.Connection:
    """A connection in autocommit mode to a store at its resolved path; read-only disks are opened as they are."""
    failed: Exception | None = None
    for mode in _modes(resolved, write):
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(f"{resolved.as_uri()}?mode={mode}", uri=True, timeout=10, isolation_level=None)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute(f"PRAGMA query_only = {not write}")
            return connection
        except SQLITE_ERRORS as error:
            failed = error
            if connection is not None:
                connection.close()
    assert failed is not None
    raise in_words(failed, path, "Nothing was changed.") from None


def _modes(resolved: Path, write: bool) -> Iterator[str]:
    """Ways to open a store, one after the other until one of them works."""
    yield "rwc" if write else "ro"
    if write:
        return
    if Path(f"{resolved}-journal").exists():
        yield "rw"  # a writer was stopped while it closed: its last step has to be undone before anything is read
    elif not Path(f"{resolved}-wal").exists():
        # Without a log the file is complete, though SQLite cannot make helper files on a read-only disk.
        yield "ro&immutable=1"


def check_schema(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds a store this version can use; False when it is empty, an error when it is another's."""
    number = _pragma(connection, "application_id")
    if number == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return False
    if number != APPLICATION_ID:
        raise FileFormatError(f"{path} is a database, but not a store of fewfire. Remedy: choose another file.")
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer fewfire (store version {version}, this one knows {SCHEMA_VERSION}); "
            "it was left as it is. Remedy: upgrade fewfire, or choose another file."
        )
    kinds = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    for name in (*(TABLES if version >= SCHEMA_VERSION else TABLES[:-1]), *{"notes"}.intersection(kinds)):
        # What is selected from a view or a virtual table need not end.
        if not re.match(r"CREATE TABLE\b", str(kinds.get(name)), re.IGNORECASE):
            raise damaged(path, f"{name} is no table")
    if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0]:
        raise damaged(path, "it has triggers, which change what is kept")
    return True


@lru_cache(maxsize=256)  # runs of one machine share theirs
def _check_environment(text: str) -> None:
    table_of(text, "an environment")


def in_words(error: Exception, path: Path, kept: str) -> FewfireError:
    """What went wrong with a store, and what to do; `kept` names what is safe."""
    name = getattr(error, "sqlite_errorname", "")
    text = "".join(letter if letter.isprintable() else "?" for letter in str(error))  # it quotes what it could not read
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "a text in it is no text")
    if name.startswith("SQLITE_NOTADB"):
        return FileFormatError(f"{path} is not a store of fewfire: it is no SQLite database. {kept}")
    if name.startswith("SQLITE_CORRUPT"):
        return damaged(path, text)
    if name.startswith("SQLITE_FULL"):
        return StoreError(f"the disk of {path} is full. {kept} Remedy: free some space and repeat the command.")
    if name.startswith("SQLITE_READONLY"):
        remedy = "Remedy: copy it to a folder you may write to."
        return StoreError(f"{path} cannot be written: it or its disk is read-only. {kept} {remedy}")
    if name.startswith("SQLITE_BUSY"):
        return StoreError(f"{path} is being written by another program. {kept} Remedy: wait for it, or stop it.")
    if name.startswith("SQLITE_CANTOPEN"):
        return StoreError(f"{path} cannot be opened: the folder does not exist or may not be written to. {kept}")
    return StoreError(f"{path} cannot be used: {text}. {kept}")


def damaged(path: Path, what: str) -> FileFormatError:
    """The error of a store that does not hold what a store holds."""
    return FileFormatError(f"{path} is damaged ({what}). Remedy: restore a copy or use a new file.")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
