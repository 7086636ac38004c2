"""Who may open a store: its path with all links followed, and a lock that leaves it one writer.

Folders, devices and loops of links are refused. So is writing to a file that has several names (hard links): SQLite
keeps its log next to the name it was given, so that two writers under two names would undo each other's rows. And so
are links where SQLite's helper files belong.

The lock is the system's advisory lock on a small file next to the store, which holds the writer's name. The system
drops it when the process dies, so there is no stale lock to clear. Links are followed, so all paths to a store share
it. Where there are no such locks (Windows), two writers are not kept apart, and the store's transactions alone ensure
that no row is lost or doubled.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from fewfire._errors import StoreError

HELPERS = ("-wal", "-shm", "-journal")


def resolve_store(path: Path, *, write: bool) -> Path:
    """The resolved path of a store, which need not exist if it is to be written."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if not write:
            raise StoreError(f"there is no store {path}. Remedy: run a sweep into it first.") from None
        found = None
    except (OSError, ValueError) as error:  # a loop of links, a name too long or with a zero byte, no permission
        reason = str(getattr(error, "strerror", None) or error)
        wrong = "embedded null byte" if "\0" in str(path) else reason  # which Python 3.13 words differently
        raise StoreError(f"{path} cannot be opened: {wrong}. Nothing was changed.") from None
    if found is not None:
        _check(path, found, write)
    resolved = Path(os.path.realpath(path))
    for helper in (Path(f"{resolved}{name}") for name in HELPERS):
        with suppress(OSError):
            found = helper.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise foreign(path, helper)
    return resolved


def _check(path: Path, found: os.stat_result, write: bool) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{path} is a folder, not a store. Remedy: name a file inside it.")
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is not a regular file, so it is no store. Remedy: name a file on a disk.")
    if write and found.st_nlink > 1:
        raise StoreError(
            f"{path} has {found.st_nlink} names (hard links), and a writer under another of them would not be noticed. "
            "Nothing was changed. Remedy: copy it (cp, not ln) and write to the copy."
        )


def foreign(path: Path, helper: Path) -> StoreError:
    """The error of a store that has something else where one of its helper files belongs."""
    return StoreError(
        f"{path} cannot be opened: {helper} is a link or another's file, and would be written to. "
        "Nothing was changed. Remedy: see what it is, and move it away."
    )


_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITER = "process"  # what a lock file begins with, if there is anything in it

_fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None


class WriterLock:
    """Locked from creation to `release`; a second one on the same store raises `StoreError`."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = Path(f"{os.path.realpath(store)}-writer")
        try:
            self._file: int | None = self._acquire()
        except FileNotFoundError:
            raise StoreError(f"{store} cannot be made: its folder does not exist.") from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR):
                raise foreign(store, self._path) from None
            raise StoreError(f"{store} cannot be written: {error.strerror}. Nothing was changed.") from None

    def release(self) -> None:
        """Give the lock back; twice is harmless."""
        if self._file is not None:
            # Removed while locked: a process that has opened it already finds it gone and starts over. One that cannot
            # be removed does no harm, since the next writer takes it over, and must not hide why a sweep ended.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, _OPEN, 0o644)
            try:
                state, ours = os.fstat(file), _WRITER.encode()
                # Not a file that a writer made, or another name of a foreign one.
                regular = stat.S_ISREG(state.st_mode) and state.st_nlink <= 1
                if not regular or not ours.startswith(_content(file)[: len(ours)]):
                    raise foreign(self._store, self._path)
                if _fcntl is not None:
                    _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
                if self._path.exists() and self._path.stat().st_ino == os.fstat(file).st_ino:
                    os.truncate(file, 0)
                    os.lseek(file, 0, os.SEEK_SET)
                    os.write(file, f"{_WRITER} {os.getpid()} on {socket.gethostname()}".encode())
                    return file
            except BlockingIOError:
                holder = _content(file).decode(errors="replace") or "another process"
                os.close(file)
                raise StoreError(
                    f"{self._store} is being written by {holder}. Nothing was changed. "
                    "Remedy: wait for that sweep to end, or stop it; reading is possible at any time."
                ) from None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # the holder before us removed it in the meantime


def _content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 1000)
