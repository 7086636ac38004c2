"""A Fourier term is a set of coordinates and its coefficient; lists of terms put the largest coefficient first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import FloatArray, IdArray

Term: TypeAlias = tuple[tuple[int, ...], float]
"""A set S, members ascending, and the coefficient of χ_S."""


def strongest(values: FloatArray, count: int) -> IdArray:
    """Indices of the `count` values largest in magnitude, largest first; ties go to the lower index."""
    count = min(count, len(values))
    magnitude = np.abs(values)
    if count < len(values) // 4:
        # Sorting only what can be among the strongest: everything at least as large as the count-th.
        floor = np.partition(magnitude, len(values) - count)[len(values) - count] if count else np.inf
        candidates = np.flatnonzero(magnitude >= floor)
    else:
        candidates = np.arange(len(values))
    order = np.argsort(-magnitude[candidates], kind="stable")
    return np.asarray(candidates[order[:count]], dtype=np.int64)


def above(values: FloatArray, threshold: float) -> IdArray:
    """Indices of the values of magnitude at least `threshold`, largest first; ties go to the lower index."""
    candidates = np.flatnonzero(np.abs(values) >= threshold)
    return np.asarray(candidates[np.argsort(-np.abs(values[candidates]), kind="stable")], dtype=np.int64)


def terms(values: FloatArray, indices: IdArray, members: Callable[[int], tuple[int, ...]]) -> list[Term]:
    """The terms at some indices; `members` names the set of an index."""
    return [(members(int(index)), float(values[index])) for index in indices]
