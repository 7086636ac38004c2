"""Rows of ids of different lengths, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewfire._types import IdArray


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """A list of ids for every row; unpacks as the pair `indptr, indices`.

    Parameters
    ----------
    indptr : int64 array of shape (rows + 1,)
        Row i owns `indices[indptr[i]:indptr[i + 1]]`.
    indices : int64 array of shape (total,)
        Ids, ascending within a row.

    Examples
    --------
    >>> import fewfire as ff
    >>> import numpy as np
    >>> rows = ff.CompressedRows(np.array([0, 2, 2]), np.array([3, 5]))
    >>> rows.counts.tolist()
    [2, 0]
    """

    indptr: IdArray
    indices: IdArray

    def __iter__(self) -> Iterator[IdArray]:
        return iter((self.indptr, self.indices))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def counts(self) -> IdArray:
        """How many ids each row has: shape (rows,)."""
        return np.diff(self.indptr)

    def row(self, i: int) -> IdArray:
        """The ids of row i."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]


@dataclass(frozen=True, eq=False)
class ScoredRows(CompressedRows):
    """A list of ids and a score of each for every row; unpacks as `indptr, indices` all the same.

    Parameters
    ----------
    indptr : int64 array of shape (rows + 1,)
    indices : int64 array of shape (total,)
    scores : float32 array of shape (total,)
        One per index.
    """

    scores: NDArray[np.float32]

    def row_scores(self, i: int) -> NDArray[np.float32]:
        """The scores of row i, in the order of its ids."""
        return self.scores[self.indptr[i] : self.indptr[i + 1]]
