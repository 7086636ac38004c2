"""One thread for small matrix products: sharing them costs more than it saves, tenfold on a busy machine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from fewfire._one_blas_thread import ONE_BLAS_THREAD

SMALL = 1 << 27
"""Multiply-adds of a product that one core does in a few hundredths of a second."""


def calm_products(multiply_adds: int) -> AbstractContextManager[object]:
    """Hold the linear algebra library to one thread while products of this size are made, if they are small."""
    return ONE_BLAS_THREAD if multiply_adds < SMALL else nullcontext()
