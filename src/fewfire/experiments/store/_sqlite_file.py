"""A SQLite file that is a store: its tables, opened for reading or by one writer at a time; errors come in words.

A store is a SQLite database with `application_id` "fewf" and the schema's number in `user_version`. What the runs of a
cell share is kept once, in `settings`; histories have a table of their own, so that reading all results reads no
histories. The view `results` joins runs and settings for people who use SQL. Measurements that are no training run of
a sweep have the table `measurements` (since version 2; a writer adds it to an older file).

While it is written, the file has a log beside it (WAL), so that readers and the writer never wait for each other. A
writer that closes folds the log in: a store at rest is one file, which can be copied and read from a read-only disk.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import FewfireError, FileFormatError, StoreError
from fewfire.experiments.store._place import store_place
from fewfire.experiments.store._row import COLUMNS, STATUSES
from fewfire.experiments.store._writer_lock import WriterLock

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class SqliteFile:
    """An open file; see `SqliteStore` for the parameters."""

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._place = store_place(self.path, write=write)
        self._lock = WriterLock(self.path) if write else None
        try:
            self._connection = self._open(write)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file; closing twice is harmless."""
        connection, self._connection = self._connection, None
        lock, self._lock = self._lock, None
        try:
            if connection is not None:
                with suppress(sqlite3.Error):  # a reader is looking on: the log stays until the next time
                    if lock is not None:
                        connection.execute("PRAGMA journal_mode = DELETE")
                connection.close()
        finally:
            if lock is not None:
                lock.release()

    def _open(self, write: bool) -> sqlite3.Connection:
        connection = _connect(self.path, self._place, write)
        try:
            if not check_schema(connection, self.path):
                if not write:
                    raise StoreError(f"{self.path} is empty. Remedy: run a sweep into it first.")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(SCHEMA)
            if write:
                connection.execute("PRAGMA journal_mode = WAL")
                if is_old(connection):
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

    def _undone(self) -> None:
        """A transaction was undone: forget what was learned in it."""

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
            self._undone()
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):  # the error before it is the one to report
                    self._connection.execute("ROLLBACK")
            if isinstance(error, SQLITE_ERRORS):
                raise in_words(error, self.path, kept) from None
            raise


def _connect(path: Path, place: Path, write: bool) -> sqlite3.Connection:
    """A connection in autocommit mode to a store at a resolved place; read-only disks are opened as they are."""
    failed: Exception | None = None
    for mode in _modes(place, write):
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(f"{place.as_uri()}?mode={mode}", uri=True, timeout=10, isolation_level=None)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute(f"PRAGMA query_only = {not write}")
            return connection
        except SQLITE_ERRORS as error:
            failed = error
            if connection is not None:
                connection.close()
    assert failed is not None
    raise in_words(failed, path, "Nothing was changed.") from None


def _modes(place: Path, write: bool) -> Iterator[str]:
    """Ways to open a store, one after the other until one of them works."""
    yield "rwc" if write else "ro"
    if write:
        return
    if Path(f"{place}-journal").exists():
        yield "rw"  # a writer was stopped while it closed: its last step has to be undone before anything is read
    elif not Path(f"{place}-wal").exists():
        # Without a log beside it the file is complete, though SQLite cannot make helper files on a read-only disk.
        yield "ro&immutable=1"


def is_old(connection: sqlite3.Connection) -> bool:
    """Whether a store lacks tables of this version."""
    return _pragma(connection, "user_version") < SCHEMA_VERSION


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
    for name in TABLES if version >= SCHEMA_VERSION else TABLES[:-1]:
        # What is selected from a view or a virtual table need not end.
        if not re.match(r"CREATE TABLE\b", str(kinds.get(name)), re.IGNORECASE):
            raise damaged(path, f"{name} is no table")
    if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0]:
        raise damaged(path, "it has triggers, which change what is kept")
    return True


def in_words(error: Exception, path: Path, kept: str) -> FewfireError:
    """What went wrong with a store, and what to do; `kept` says what is safe."""
    name = getattr(error, "sqlite_errorname", "")
    said = "".join(letter if letter.isprintable() else "?" for letter in str(error))  # it quotes what it could not read
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "a text in it is no text")
    if name.startswith("SQLITE_NOTADB"):
        return FileFormatError(f"{path} is not a store of fewfire: it is no SQLite database. {kept}")
    if name.startswith("SQLITE_CORRUPT"):
        return damaged(path, said)
    if name.startswith("SQLITE_FULL"):
        return StoreError(f"the disk of {path} is full. {kept} Remedy: free some space and repeat the command.")
    if name.startswith("SQLITE_READONLY"):
        remedy = "Remedy: copy it to a folder you may write to."
        return StoreError(f"{path} cannot be written: it or its disk is read-only. {kept} {remedy}")
    if name.startswith("SQLITE_BUSY"):
        return StoreError(f"{path} is being written by another program. {kept} Remedy: wait for it, or stop it.")
    if name.startswith("SQLITE_CANTOPEN"):
        return StoreError(f"{path} cannot be opened: the folder does not exist or may not be written to. {kept}")
    return StoreError(f"{path} cannot be used: {said}. {kept}")


def damaged(path: Path, what: str) -> FileFormatError:
    """The error of a store that does not hold what a store holds."""
    return FileFormatError(f"{path} is damaged ({what}). Remedy: restore a copy or use a new file.")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
