"""Sign arrays as bits: −1 is a set bit, so a product of signs is an XOR of words.

Coordinate j of a row is bit j mod 64 of word j div 64; bits past the end are clear.
"""

from __future__ import annotations

import numpy as np

from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._types import SignArray, WordArray


def words_for(bits: int) -> int:
    """How many 64-bit words hold `bits` bits."""
    return (bits + 63) // 64


def pack(signs: SignArray) -> WordArray:
    """Each row of ±1, int8 (rows, columns), as bits: shape (rows, ceil(columns / 64))."""
    signs = _check(signs)
    extension = core()
    if extension is None:
        return _pack_reference(signs)
    words = np.empty((len(signs), words_for(signs.shape[1])), dtype=np.uint64)
    if not extension.pack_rows(signs, words):
        raise _not_signs(signs)
    return words


def pack_columns(signs: SignArray) -> WordArray:
    """`pack(signs.T)` without the transposed copy: a bit vector per coordinate, shape (columns, ceil(rows / 64))."""
    signs = _check(signs)
    extension = core()
    if extension is None:
        return _pack_reference(signs.T)
    words = np.empty((signs.shape[1], words_for(len(signs))), dtype=np.uint64)
    if not extension.pack_columns(signs, words):
        raise _not_signs(signs)
    return words


def unpack(words: WordArray, columns: int) -> SignArray:
    """The ±1 rows that `pack` packed: int8 of shape (rows, columns)."""
    words = np.ascontiguousarray(words)
    if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != words_for(columns):
        rule = f"must be uint64 of shape (rows, {words_for(columns)}) for {columns} columns"
        raise invalid("words", rule, f"dtype {words.dtype}, shape {words.shape}", "pass what pack returned")
    extension = core()
    if extension is None:
        return _unpack_reference(words, columns)
    signs = np.empty((len(words), columns), dtype=np.int8)
    extension.unpack_rows(words, signs)
    return signs


def _check(signs: SignArray) -> SignArray:
    if not isinstance(signs, np.ndarray) or signs.dtype != np.int8 or signs.ndim != 2:
        got = f"a {type(signs).__name__}" if not isinstance(signs, np.ndarray) else f"dtype {signs.dtype}"
        raise invalid("signs", "must be a two-dimensional int8 array of ±1", got, "use numpy.asarray(X, dtype='int8')")
    return np.ascontiguousarray(signs)


def _not_signs(signs: SignArray) -> Exception:
    wrong = signs[np.abs(signs) != 1][0]
    return invalid("signs", "may hold only +1 and −1", int(wrong), "map 0 to +1 and 1 to −1, or subtract a threshold")


def _pack_reference(signs: SignArray) -> WordArray:
    if np.any(np.abs(signs) != 1):
        raise _not_signs(signs)
    rows, columns = signs.shape
    padded = np.zeros((rows, words_for(columns) * 64), dtype=np.uint8)
    padded[:, :columns] = signs < 0
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _unpack_reference(words: WordArray, columns: int) -> SignArray:
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little", count=columns)
    return np.asarray(1 - 2 * bits.astype(np.int8))
