"""One thread for small matrix products: sharing them costs more than it saves, tenfold on a busy machine."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from threadpoolctl import ThreadpoolController

SMALL: Final = 1 << 27
"""Multiply-adds of a product that one core does in a few hundredths of a second."""


class OneBlasThread:
    """Keeps the BLAS of this process at one thread while anyone is in: the first in sets it, the last out restores it.

    The limit is the process's: were each fit to restore what it met, one that began during another and ended after it
    would leave BLAS at one thread for good. Looking for the libraries takes some milliseconds: it is done again only
    after something was imported.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._imported = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                if self._imported != len(sys.modules):
                    self._libraries, self._imported = ThreadpoolController(), len(sys.modules)
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *details: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


ONE_BLAS_THREAD: Final = OneBlasThread()


def calm_products(multiply_adds: int) -> AbstractContextManager[object]:
    """Hold the linear algebra library to one thread while products of this size are made, if they are small."""
    return ONE_BLAS_THREAD if multiply_adds < SMALL else nullcontext()
