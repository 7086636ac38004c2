"""Rows with s chosen entries: the sparse first layers of pareto, uniform over all subsets of size s."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream


def sparse_rows(stream: Stream, rows: int, inputs: int, s: int, value: float, rest: float) -> NDArray[np.float32]:
    """Rows with exactly s entries equal to `value` and the others to `rest`: shape (rows, inputs)."""
    if s > inputs:
        raise invalid("s", f"must be at most the number of inputs, {inputs}", s, "choose fewer non-zero weights")
    table = np.full((rows, inputs), rest, dtype=np.float32)
    np.put_along_axis(table, stream.subsets(rows, inputs, s), np.float32(value), axis=1)
    return table


def small_weight(inputs: int, s: int, eps: float | None) -> float:
    """The weight ε of the other entries: below 1/(n − s), so that they never outvote an entry of 1."""
    if s >= inputs:
        raise invalid("s", f"must be below the number of inputs, {inputs}", s, "leave some weights small")
    limit = 1.0 / (inputs - s)
    if eps is None:
        return limit / 2
    if eps >= limit:
        raise invalid("eps", f"must be below 1/(inputs − s) = {limit:g}", eps, "pass eps=None for half of that")
    return eps
