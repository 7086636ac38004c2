"""The cube {−1, +1}ⁿ in the order used everywhere: in row i, coordinate j is −1 iff bit j of i is set.

So the Walsh–Hadamard coefficient at index i belongs to the set of the bits of i, and the table of a
junta is read with the bits of its support.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fewfire._types import IdArray, SignArray

MAX_EXACT = 20
"""Largest n for which the whole cube is visited by default."""


def cube(n: int, start: int = 0, stop: int | None = None) -> SignArray:
    """Rows start … stop − 1 of the cube, as int8 of shape (rows, n)."""
    index = np.arange(start, 2**n if stop is None else stop, dtype=np.int64)
    return np.asarray(1 - 2 * ((index[:, None] >> np.arange(n)) & 1), dtype=np.int8)


def cube_blocks(n: int, rows: int = 1 << 14) -> Iterator[SignArray]:
    """The whole cube in blocks of at most `rows` rows."""
    for start in range(0, 2**n, rows):
        yield cube(n, start, min(start + rows, 2**n))


def cube_index(signs: SignArray) -> IdArray:
    """The row number in the cube of each row of a ±1 array of shape (rows, n)."""
    weights = np.int64(1) << np.arange(signs.shape[1], dtype=np.int64)
    return np.asarray((signs < 0) @ weights)
