"""The score that decides, and the reference implementation of all methods, in NumPy.

score = fl(s_d + b) with s_0 = 0 and s_j = fma(p_j, a_j, s_{j−1}), in float32: coordinates in order, one
rounding per coordinate. A fixed order makes "above the threshold" mean the same in every method and on
every machine, ties included.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewfire._types import AnyArray, IdArray
from fewfire.halfspace._arguments import check_column, check_rows, check_vector


def scores(points: ArrayLike, offsets: ArrayLike, direction: ArrayLike) -> NDArray[np.float32]:
    """The float32 score of each point: ⟨p, a⟩ + b, summed in order with one rounding per coordinate.

    Parameters
    ----------
    points : array of shape (count, d)
    offsets : array of shape (count,), or a number
    direction : array of shape (d,)

    Returns
    -------
    float32 array of shape (count,)

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.halfspace.scores([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.0], [2.0, 3.0]).tolist()
    [3.5, 2.0]
    """
    rows = check_rows("points", points, None)
    return _scores(
        rows, check_column("offsets", offsets, len(rows)), check_vector("direction", direction, rows.shape[1])
    )


def _scores(
    rows: NDArray[np.float32], offsets: NDArray[np.float32], weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    total = np.zeros(len(rows), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # huge sums become infinite, as in C++
        for j in range(rows.shape[1]):
            total = _fused(rows[:, j], weights[j], total)
        return np.asarray(total + offsets, dtype=np.float32)


def _fused(a: AnyArray, b: np.float32, c: AnyArray) -> NDArray[np.float32]:
    """a·b + c in float32 with a single rounding.

    The product is exact in float64. Its sum with c is rounded to odd there (towards the neighbour with an odd
    last bit when inexact), after which rounding to float32 is the same as rounding the exact sum once.
    """
    product, addend = a.astype(np.float64) * np.float64(b), c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)  # exact: total + error is the real sum
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(inexact, odd, total).astype(np.float32)


def scores_of(
    points: tuple[IdArray, NDArray[np.float32], NDArray[np.float32]],
    queries: NDArray[np.float32],
    starts: IdArray,
    ids: IdArray,
) -> NDArray[np.float32]:
    """The scores of what was reported: of ids[starts[q]:starts[q + 1]] and query q, from all ids, rows and offsets."""
    names, rows, offsets = points
    order = np.argsort(names)
    at = order[np.searchsorted(names, ids, sorter=order)]
    parts = [
        _scores(rows[at[first:last]], offsets[at[first:last]], query)
        for first, last, query in zip(starts[:-1], starts[1:], queries, strict=True)
    ]
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


class ReferenceReporter:
    """Points in a table, scored one query after the other; serves every method where the C++ part is missing."""

    def __init__(self, dimension: int) -> None:
        self._ids = np.empty(0, dtype=np.int64)
        self._rows = np.empty((0, dimension), dtype=np.float32)
        self._offsets = np.empty(0, dtype=np.float32)
        self._counts = np.zeros(6, dtype=np.int64)

    def insert(self, ids: IdArray, rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int) -> int:
        known = np.isin(ids, self._ids)
        if known.any():
            return int(known.argmax())
        self._ids = np.concatenate([self._ids, ids])
        self._rows = np.concatenate([self._rows, rows])
        self._offsets = np.concatenate([self._offsets, offsets])
        return -1

    def remove(self, ids: IdArray, threads: int) -> int:
        wrong = self._first_unknown(ids)
        if wrong < 0:
            keep = ~np.isin(self._ids, ids)
            self._ids, self._rows, self._offsets = self._ids[keep], self._rows[keep], self._offsets[keep]
        return wrong

    def update(self, ids: IdArray, rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int) -> int:
        wrong = self._first_unknown(ids)
        if wrong < 0:
            order = np.argsort(self._ids)
            at = order[np.searchsorted(self._ids, ids, sorter=order)]
            self._rows, self._offsets = self._rows.copy(), self._offsets.copy()  # queries under way keep theirs
            self._rows[at], self._offsets[at] = rows, offsets
        return wrong

    def query(
        self, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
    ) -> tuple[IdArray, IdArray]:
        starts, ids, _ = self.query_scores(rows, thresholds, threads)
        return starts, ids

    def query_scores(
        self, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
    ) -> tuple[IdArray, IdArray, NDArray[np.float32]]:
        ids, points, offsets = self._ids, self._rows, self._offsets  # a change meanwhile puts others in their place
        order = np.argsort(ids)
        found, values = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.float32)]
        for row, threshold in zip(rows, thresholds, strict=True):
            score = _scores(points, offsets, row)[order]
            found.append(ids[order][score > threshold])
            values.append(score[score > threshold])
        starts = np.cumsum([len(part) for part in found], dtype=np.int64)
        pairs = len(rows) * len(ids)
        self._counts += [len(rows), starts[-1], pairs, 0, 0, pairs * 4 * (rows.shape[1] + 1)]
        return starts, np.concatenate(found), np.concatenate(values)

    def points(self) -> tuple[IdArray, NDArray[np.float32], NDArray[np.float32]]:
        return self._ids, self._rows, self._offsets

    def _first_unknown(self, ids: IdArray) -> int:
        known = np.isin(ids, self._ids)
        return -1 if known.all() else int(known.argmin())

    @property
    def counters(self) -> Sequence[int]:
        return [int(count) for count in self._counts]

    @property
    def size(self) -> int:
        return len(self._ids)

    @property
    def memory(self) -> int:
        return self._ids.nbytes + self._rows.nbytes + self._offsets.nbytes
