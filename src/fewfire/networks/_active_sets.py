"""Which neurons fire on each input, in compressed rows: the sparse counterpart of a (rows, width) table of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_array

    from fewfire._types import IdArray


@dataclass(frozen=True, eq=False)
class ActiveSets:
    """The active neurons of every input; unpacks as the pair `indptr, indices = net.active(X)`.

    Parameters
    ----------
    indptr : int64 array of shape (rows + 1,)
        Row i owns `indices[indptr[i]:indptr[i + 1]]`.
    indices : int64 array of shape (total,)
        Neuron ids, ascending within a row.
    width : int
        How many neurons there are.
    """

    indptr: IdArray
    indices: IdArray
    width: int

    def __iter__(self) -> Iterator[IdArray]:
        return iter((self.indptr, self.indices))

    @property
    def rows(self) -> int:
        """How many inputs there are."""
        return len(self.indptr) - 1

    @property
    def counts(self) -> IdArray:
        """How many neurons fire on each input: shape (rows,)."""
        return np.diff(self.indptr)

    def row(self, i: int) -> IdArray:
        """The neurons that fire on input i."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def to_scipy(self) -> csr_array[np.bool_]:
        """The same as a boolean `scipy.sparse.csr_array` of shape (rows, width)."""
        from scipy.sparse import csr_array

        fires = np.ones(len(self.indices), dtype=np.bool_)
        return csr_array((fires, self.indices, self.indptr), shape=(self.rows, self.width))
