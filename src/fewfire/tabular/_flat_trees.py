"""Fitted trees in four arrays, and the walk of rows from root to leaf (csrc/kernels/trees.hpp).

Extra trees and boosting predict and are stored in this form: a fork takes 16 bytes and a leaf 4 per value, where
scikit-learn's nodes take 64. Rows are float32; every threshold is the largest float32 that is not above the fitted one,
so that no row takes another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire import _extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array, FloatArray

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


def below(thresholds: AnyArray) -> FloatArray:
    """The largest float32 numbers that are not above others, or below all that a narrowed table has."""
    near = np.clip(thresholds, -LARGEST, LARGEST).astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


def flattened(trees: Sequence[Any], values: Sequence[AnyArray]) -> FlatTrees:
    """Trees of scikit-learn (`tree_`), with values (nodes, width) of which those of leaves are taken."""
    forks, roots, kept, fork_count, leaf_count = [], [], [], 0, 0
    for tree, value in zip(trees, values, strict=True):
        leaf = tree.children_left < 0
        # Nodes stand in the order they were made, so that forks, and leaves, keep their order.
        number = np.where(leaf, ~(leaf_count + np.cumsum(leaf) - 1), fork_count + np.cumsum(~leaf) - 1)
        inner = ~leaf
        flat = np.empty((int(inner.sum()), 4), np.int32)
        missing_left = np.asarray(tree.missing_go_to_left)[inner] != 0
        flat[:, 0] = 2 * tree.feature[inner] + missing_left
        flat[:, 1] = below(tree.threshold[inner]).view(np.int32)
        flat[:, 2], flat[:, 3] = number[tree.children_left[inner]], number[tree.children_right[inner]]
        forks.append(flat)
        roots.append(number[0])
        kept.append(value[leaf])
        fork_count, leaf_count = fork_count + len(flat), leaf_count + int(leaf.sum())
    first = np.zeros(len(roots), np.int32)
    return FlatTrees(np.concatenate(forks), np.array(roots, np.int32), first, np.concatenate(kept).astype(np.float32))
