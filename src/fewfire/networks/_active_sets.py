"""Which neurons fire on each input, in compressed rows: the sparse counterpart of a (rows, width) table of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._compressed_rows import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class ActiveSets(CompressedRows):
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

    width: int

    def to_scipy(self) -> csr_array[np.bool_]:
        """The same as a boolean `scipy.sparse.csr_array` of shape (rows, width)."""
        from scipy.sparse import csr_array

        fires = np.ones(len(self.indices), dtype=np.bool_)
        return csr_array((fires, self.indices, self.indptr), shape=(self.rows, self.width))
