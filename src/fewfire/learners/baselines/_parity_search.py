"""The strongest parity among all sets of one size: csrc/kernels/parity_search.cpp, and its NumPy twin.

The strength of a set S is |Σ_i y_i χ_S(x_i)|: 2·agreement − m for the better of the parity and its negation.
Of equally strong sets the smaller, then the lexicographically first, wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fewfire._bits import pack_columns
from fewfire._extension import core

if TYPE_CHECKING:
    from fewfire._types import FloatArray, SignArray

MAX_SIZE = 5
"""The largest sets searched."""


@dataclass(frozen=True)
class Hit:
    """A set and its correlation Σ_i y_i χ_S(x_i) with the labels."""

    support: tuple[int, ...]
    correlation: int


@dataclass(frozen=True)
class Search:
    """The strongest set, the next one (None when there is no other), and the work done.

    `words` counts the 64-example words met by an XOR and a popcount, unused lanes included; 0 in the twin.
    """

    best: Hit
    runner_up: Hit | None
    sets: int
    words: int

    def joined(self, other: Search) -> Search:
        """This search and one of larger sets together."""
        hits = [hit for hit in (self.best, self.runner_up, other.best, other.runner_up) if hit is not None]
        ranked = sorted(hits, key=lambda hit: -abs(hit.correlation))  # stable: the smaller sets come first
        return Search(ranked[0], ranked[1], self.sets + other.sets, self.words + other.words)


def search(X: SignArray, y: SignArray, size: int, threads: int) -> Search:
    """Search all sets of `size` coordinates, 0 to 5 of them.

    Parameters
    ----------
    X : int8 array of ±1 of shape (m, n), n ≥ size
    y : int8 array of ±1 of shape (m,)
    threads : int
        Used by the C++ part only; Ctrl-C ends the search.
    """
    extension = core()
    if size == 0:
        return Search(Hit((), int(y.sum(dtype=np.int64))), None, 1, 0)
    if extension is None:
        return search_reference(X, y, size)
    members, correlations = np.empty((2, size), dtype=np.int64), np.empty(2, dtype=np.int64)
    columns, labels = pack_columns(X), pack_columns(y[:, None])[0]
    sets, words = extension.parity_search(columns, labels, len(X), size, threads, members, correlations)
    hits = [Hit(tuple(row.tolist()), int(value)) for row, value in zip(members, correlations, strict=True)]
    return Search(hits[0], hits[1] if sets > 1 else None, sets, words)


def search_reference(X: SignArray, y: SignArray, size: int) -> Search:
    """The same search by matrix products: for each prefix, the correlations of all pairs that complete it."""
    m, n = X.shape
    # Sums of m signs are exact in float32 up to 2²⁴.
    table: FloatArray = X.astype(np.float32) if m < 2**24 else X.astype(np.float64)
    top: list[Hit] = []
    sets = 0
    for prefix in combinations(range(n), max(0, size - 2)):
        weighted: FloatArray = np.multiply.reduce(table[:, prefix], axis=1) * y
        first = prefix[-1] + 1 if prefix else 0
        found, count = _completions(table, weighted, first, 1 if size == 1 else 2)
        sets += count
        hits = [Hit((*prefix, *rest), value) for rest, value in found]
        # Prefixes ascend, so a stable sort keeps the lexicographically first of equally strong sets.
        top = sorted(top + hits, key=lambda hit: -abs(hit.correlation))[:2]
    return Search(top[0], top[1] if len(top) > 1 else None, sets, 0)


def _completions(
    table: FloatArray, weighted: FloatArray, first: int, size: int
) -> tuple[list[tuple[tuple[int, ...], int]], int]:
    """The two strongest completions of a prefix by one or two columns from `first` on, and how many there are."""
    later = table[:, first:]
    if size == 1:
        members = np.arange(later.shape[1])[None]
        values = weighted @ later
    else:
        members = np.stack(np.triu_indices(later.shape[1], 1))
        values = ((later * weighted[:, None]).T @ later)[tuple(members)]
    found, strengths = [], np.abs(values)
    for _ in range(min(2, len(values))):
        at = int(np.argmax(strengths))
        found.append((tuple((members[:, at] + first).tolist()), int(values[at])))
        strengths[at] = -1
    return found, len(values)
