"""The tables of a store file, what makes a file a store, and SQLite's errors in words.

A store is a SQLite database with `application_id` "fewf" and the schema's number in `user_version`. What the runs of a
cell share is kept once, in `settings`; histories have a table of their own, so that reading all results reads no
histories. The view `results` joins runs and settings for people who use SQL. Measurements that are no training run of
a sweep have the table `measurements` (since version 2; a writer adds it to an older file).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._errors import FewfireError, FileFormatError, StoreError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

APPLICATION_ID = int.from_bytes(b"fewf", "big")
SCHEMA_VERSION = 2

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
  id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, setting INTEGER NOT NULL REFERENCES settings (id),
  trial INTEGER NOT NULL, status TEXT NOT NULL CHECK (status IN ('done', 'diverged', 'failed')), stopped TEXT NOT NULL,
  test_error REAL, best_test_error REAL, train_error REAL, train_loss REAL,
  steps INTEGER NOT NULL, examples INTEGER NOT NULL, active_pairs INTEGER NOT NULL, multiply_adds INTEGER NOT NULL,
  message TEXT NOT NULL, engine TEXT NOT NULL, environment INTEGER NOT NULL REFERENCES environments (id),
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
    return True


def in_words(error: sqlite3.Error, path: Path, kept: str) -> FewfireError:
    """What went wrong with a store, and what to do; `kept` says what is safe."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_NOTADB"):
        return FileFormatError(f"{path} is not a store of fewfire: it is no SQLite database. {kept}")
    if name.startswith("SQLITE_CORRUPT"):
        return FileFormatError(f"{path} is damaged ({error}). Remedy: restore a copy or use a new file.")
    if name.startswith("SQLITE_FULL"):
        return StoreError(f"the disk of {path} is full. {kept} Remedy: free some space and repeat the command.")
    if name.startswith("SQLITE_READONLY"):
        return StoreError(f"{path} cannot be written: it or its disk is read-only. {kept} "
                          "Remedy: copy it to a folder you may write to.")  # fmt: skip
    if name.startswith("SQLITE_BUSY"):
        return StoreError(f"{path} is being written by another program. {kept} Remedy: wait for it, or stop it.")
    if name.startswith("SQLITE_CANTOPEN"):
        return StoreError(f"{path} cannot be opened: the folder does not exist or may not be written to. {kept}")
    return StoreError(f"{path} cannot be used: {error}. {kept}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
