"""One writer per store: a lock that ends with its process, however that ends.

The lock is the system's advisory lock on a small file beside the store, which holds the writer's name. The system
drops it when the process dies, so there is no stale lock to clear. Where there are no such locks (Windows), two writers
are not kept apart, and the store's transactions alone see to it that no row is lost or doubled.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
from pathlib import Path
from typing import Any

from fewfire._errors import StoreError

_fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None


class WriterLock:
    """Held from creation to `release`; a second one on the same store raises `StoreError`."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = Path(f"{store}-writer")
        try:
            self._file: int | None = self._acquire()
        except FileNotFoundError:
            raise StoreError(f"{store} cannot be made: its folder does not exist.") from None
        except OSError as error:
            raise StoreError(f"{store} cannot be written: {error.strerror}. Nothing was changed.") from None

    def release(self) -> None:
        """Give the lock back; twice is harmless."""
        if self._file is not None:
            # Removed while held: whoever has opened it already will see that it is gone and start over.
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if _fcntl is not None:
                    _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
                if self._path.exists() and self._path.stat().st_ino == os.fstat(file).st_ino:
                    os.truncate(file, 0)
                    os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
                    return file
            except BlockingIOError:
                holder = os.read(file, 1000).decode(errors="replace") or "another process"
                os.close(file)
                raise StoreError(
                    f"{self._store} is being written by {holder}. Nothing was changed. "
                    "Remedy: wait for that sweep to end, or stop it; reading is possible at any time."
                ) from None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # the holder before us removed it in the meantime
