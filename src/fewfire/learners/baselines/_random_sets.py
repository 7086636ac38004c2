"""The random-subset version of exhaustive search (pareto, section 3): compute against luck.

Of the C(n, k) sets only so many are looked at, drawn uniformly and without repetition: with a share q of the sets the
support is among them with probability q. A network of neurons on random sets of k inputs does the same, with
repetitions: half of the networks hold the support from log 2·C(n, k) neurons on.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from fewfire._bits import pack_columns

if TYPE_CHECKING:
    from fewfire._types import IdArray, SignArray, WordArray

BLOCK_WORDS = 1 << 18
"""Words of examples met at a time."""


def random_sets(n: int, size: int, count: int, rng: np.random.Generator) -> IdArray:
    """Different sets of `size` among n coordinates, uniformly, each ascending: shape (count, size)."""
    return unrank(rng.choice(comb(n, size), count, replace=False), n, size)


def unrank(ranks: IdArray, n: int, size: int) -> IdArray:
    """The sets of these numbers from 0 to C(n, size) − 1: shape (len(ranks), size), members ascending.

    The number of a set {c₁ < c₂ < …} is C(c₁, 1) + C(c₂, 2) + ….
    """
    left = np.array(ranks, dtype=np.int64)
    members = np.empty((len(left), size), dtype=np.int64)
    for place in range(size, 0, -1):
        below = np.array([comb(c, place) for c in range(n)], dtype=np.int64)
        members[:, place - 1] = np.searchsorted(below, left, side="right") - 1
        left -= below[members[:, place - 1]]
    return members


def correlations(X: SignArray, y: SignArray, sets: IdArray) -> IdArray:
    """Σ_i y_i χ_S(x_i) for each set, shape (len(sets),).

    Parameters
    ----------
    X : int8 array of ±1 of shape (m, n)
    y : int8 array of ±1 of shape (m,)
    sets : array of shape (sets, size)
    """
    columns, labels = pack_columns(X), pack_columns(y[:, None])[0]
    block = max(1, BLOCK_WORDS // columns.shape[1])
    found = np.empty(len(sets), dtype=np.int64)
    for first in range(0, len(sets), block):
        part = sets[first : first + block]
        words = np.bitwise_xor.reduce(columns[part], axis=1) ^ labels
        found[first : first + block] = len(X) - 2 * _ones(words)
    return found


def _ones(words: WordArray) -> IdArray:
    """The set bits of each row."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words).sum(axis=1, dtype=np.int64))
    return np.asarray(np.unpackbits(words.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64))
