"""One writer per store: a lock that ends with its process, however that ends.

The lock is the system's advisory lock on a small file beside the store, which holds the writer's name. The system
drops it when the process dies, so there is no stale lock to clear. The file stands beside the store itself, links
followed, so all paths to a store share it. Where there are no such locks (Windows), two writers are not kept apart, and
the store's transactions alone see to it that no row is lost or doubled.
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
from fewfire.experiments.store._place import foreign

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITER = "process"
"""What a lock file begins with, if there is anything in it."""

_fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None


class WriterLock:
    """Held from creation to `release`; a second one on the same store raises `StoreError`."""

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
            # Removed while held: whoever has opened it already will see that it is gone and start over. One that cannot
            # be removed is no harm, since the next writer takes it over, and must not hide why a sweep ended.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, _OPEN, 0o644)
            try:
                if not _is_lock(file):
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


def _is_lock(file: int) -> bool:
    """Whether this is a file that a writer made, and no other name of a file that is somebody's."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return False
    return _WRITER.encode().startswith(_content(file)[: len(_WRITER)])


def _content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 1000)
