"""One thread in the matrix products of a fit whose products are small: more threads would only wake and wait."""

from __future__ import annotations

import threading

from threadpoolctl import threadpool_limits


class OneBlasThread:
    """Keeps the BLAS of this process at one thread while anyone is in: the first in sets it, the last out restores it.

    The limit is the process's: were each fit to restore what it met, one that began during another and ended after it
    would leave BLAS at one thread for good.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = threadpool_limits(1, "blas")
            self._inside += 1

    def __exit__(self, *details: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


ONE_BLAS_THREAD = OneBlasThread()
