"""Integers as ±1 coordinates: least significant digit first, −1 for the digit 0 and +1 for the digit 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import IdArray, SignArray


def digits(integers: IdArray, bits: int) -> SignArray:
    """The binary digits of non-negative integers: shape (rows, m) becomes (rows, m·bits)."""
    signs = 2 * ((integers[:, :, None] >> np.arange(bits)) & 1) - 1
    return signs.reshape(len(integers), -1).astype(np.int8)


def bits_for(q: int) -> int:
    """How many binary digits an integer below q needs."""
    return (q - 1).bit_length()


def encode_integers(Y: ArrayLike, q: int) -> SignArray:
    """The ±1 representation z(y) of vectors of integers modulo q (sparse-activations, section 4).

    Parameters
    ----------
    Y : integer array of shape (rows, m)
        Entries in {0, …, q − 1}.
    q : int
        At least 2; each integer takes ⌈log₂ q⌉ coordinates, least significant first, −1 for the digit 0.

    Returns
    -------
    int8 array of shape (rows, m·⌈log₂ q⌉)
    """
    q = check_integer("q", q, 2)
    table = np.asarray(Y)
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iu":
        rule = "must be a non-empty table of integers of shape (rows, m)"
        raise invalid("Y", rule, f"shape {table.shape}, dtype {table.dtype}", "use numpy.asarray(Y, dtype='int64')")
    wrong = table[(table < 0) | (table >= q)]
    if wrong.size:
        raise invalid("Y", f"must hold integers from 0 to q − 1 = {q - 1}", int(wrong[0]), "reduce it modulo q")
    return digits(table.astype(np.int64), bits_for(q))
