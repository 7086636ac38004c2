"""A SQLite file that is opened for reading, or by one writer at a time; errors come in words.

While it is written, the file has a log beside it (WAL), so that readers and the writer never wait for each other. A
writer that closes folds the log in: a store at rest is one file, which can be copied and read from a read-only disk.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._errors import StoreError
from fewfire.experiments._sqlite_schema import SCHEMA, UPGRADE, check_schema, in_words, is_old
from fewfire.experiments._writer_lock import WriterLock

if TYPE_CHECKING:
    from collections.abc import Iterator


class SqliteFile:
    """An open file; see `SqliteStore` for the parameters."""

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        if not write and not self.path.is_file():
            raise StoreError(f"there is no store {self.path}. Remedy: run a sweep into it first.")
        self._lock = WriterLock(self.path) if write else None
        try:
            self._connection = self._open(write)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file; closing twice is harmless."""
        if self._connection is not None:
            if self._lock is not None:
                with suppress(sqlite3.Error):  # a reader is looking on: the log stays until the next time
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _open(self, write: bool) -> sqlite3.Connection:
        connection = _connect(self.path, write)
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
                connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
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
            yield from self._connection.execute(query, parameters)
        except sqlite3.Error as error:
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
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._undone()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise in_words(error, self.path, kept) from None
            raise


def _connect(path: Path, write: bool) -> sqlite3.Connection:
    """A connection in autocommit mode; read-only disks are opened as they are."""
    place = path.resolve().as_uri()
    modes = ("mode=rwc",) if write else ("mode=ro", "mode=ro&immutable=1")
    for mode in modes:
        connection = sqlite3.connect(f"{place}?{mode}", uri=True, timeout=10, isolation_level=None)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return connection
        except sqlite3.Error as error:
            connection.close()
            # Without a log beside it the file is complete, though SQLite cannot make helper files on a read-only disk.
            if mode == modes[-1] or Path(f"{path}-wal").exists():
                raise in_words(error, path, "Nothing was changed.") from None
    raise AssertionError("unreachable")
