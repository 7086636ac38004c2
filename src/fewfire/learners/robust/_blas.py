"""One thread for small matrix products: sharing them costs more than it saves, tenfold on a busy machine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import threadpool_limits

SMALL = 1 << 27
"""Multiply-adds of a product that one core does in a few hundredths of a second."""


def calm_products(multiply_adds: int) -> AbstractContextManager[object]:
    """Hold the linear algebra library to one thread while products of this size are made, if they are small."""
    if multiply_adds >= SMALL:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits
