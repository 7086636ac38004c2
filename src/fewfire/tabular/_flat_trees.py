"""Fitted trees in four arrays, and the walk of rows from root to leaf (csrc/kernels/trees.hpp).

Extra trees and boosting predict and are stored in this form: a fork takes 16 bytes and a leaf 4 per value, where
scikit-learn's nodes take 64. Rows and thresholds are float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire import _extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import Float64Array, FloatArray

LARGEST = 2.0**99  # trees take float32, whose sums over a table are to stay finite


def narrowed(table: Float64Array) -> FloatArray:
    """A table as trees take it: float32, NaN where values are missing."""
    return np.ascontiguousarray(np.clip(table, -LARGEST, LARGEST), dtype=np.float32)


@dataclass(frozen=True)
class FlatTrees:
    """Trees one after another.

    Parameters
    ----------
    forks : int32 array (forks, 4)
        Twice the column, and 1 more where missing values go left; the bits of a float32, at most which a value goes
        left; the children left and right: forks, or ~ of the number of a leaf. Children come after their fork.
    roots : int32 array (trees,)
        Where each tree begins.
    first : int32 array (trees,)
        The output that the first value of its leaves belongs to.
    values : float32 array (leaves, width)
    """

    forks: NDArray[np.int32]
    roots: NDArray[np.int32]
    first: NDArray[np.int32]
    values: FloatArray

    def sums(self, table: FloatArray, outputs: int) -> Float64Array:
        """The sum over trees (rows, outputs) at a narrowed table (rows, columns)."""
        out = np.zeros((len(table), outputs))
        core = _extension.core()
        if core is not None:
            core.walk_trees(self.forks, self.roots, self.first, self.values, table, out)
        else:
            self._walk(table, out)
        return out

    def _walk(self, table: FloatArray, out: Float64Array) -> None:
        """The twin of the kernel."""
        column, threshold, children = self.forks[:, 0], self.forks[:, 1].view(np.float32), self.forks[:, 2:]
        rows, width = np.arange(len(table)), self.values.shape[1]
        for root, first in zip(self.roots, self.first, strict=True):
            at = np.full(len(table), root)
            while len(walking := rows[at >= 0]):
                fork = at[walking]
                value = table[walking, column[fork] >> 1]
                left = (value <= threshold[fork]) | (np.isnan(value) & (column[fork] & 1 == 1))
                at[walking] = children[fork, np.where(left, 0, 1)]
            out[:, first : first + width] += self.values[~at]


def joined(pieces: Sequence[FlatTrees]) -> FlatTrees:
    """The trees of all pieces, one after another."""
    forks, roots, fork_count, leaf_count = [], [], 0, 0
    for piece in pieces:
        moved = piece.forks.copy()
        moved[:, 2:] += np.where(moved[:, 2:] < 0, -leaf_count, fork_count)
        forks.append(moved)
        roots.append(piece.roots + np.where(piece.roots < 0, -leaf_count, fork_count))
        fork_count, leaf_count = fork_count + len(piece.forks), leaf_count + len(piece.values)
    first, values = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("first", "values"))
    return FlatTrees(np.concatenate(forks), np.concatenate(roots).astype(np.int32), first, values)


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that depend on all bits of others (csrc/core/mixed.hpp): what trees draw by."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
