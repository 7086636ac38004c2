"""The trainer with a half-space index: Algorithm 1 of sublinear as it is printed.

The weight vectors are the points of `fewfire.halfspace.Index`, their biases the offsets. An evaluation asks for the
neurons above the threshold at every moved example, one half-space query each; a step changes those neurons and
updates them in the index. Unlike drift lists it needs no ball around the examples, so it follows examples anywhere,
and pays for that with a search in each evaluation. No method of the index has a worst-case bound: the paper's
1 − Θ(1/d) is that of partition trees (Corollary 6.2), and what a ball tree leaves out depends on the points.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from fewfire._types import AnyArray, Float64Array, FloatArray
from fewfire.engines.robust._trainer import ActiveTrainer, FloatTable, TrainerCounters
from fewfire.halfspace import Index
from fewfire.halfspace._methods import MethodName
from fewfire.halfspace._plan import CHILDREN
from fewfire.networks import TwoLayer


class IndexTrainer(ActiveTrainer):
    """Finds active neurons by half-space reporting.

    Parameters
    ----------
    network, X, reach, threads : as in `ActiveTrainer`
    index_method : as `method` of `fewfire.halfspace.Index`
    """

    name = "index"

    def __init__(
        self,
        network: TwoLayer,
        X: AnyArray,
        reach: float,
        *,
        threads: int | None = None,
        index_method: MethodName | str = "auto",
    ) -> None:
        super().__init__(network, X, reach)
        self._hidden = network.hidden.copy()
        self._index = Index(self._hidden, network.bias, index_method, threads)
        self._last: tuple[FloatTable, csr_array[np.float32]] | None = None  # examples asked about, and the answer
        self._products = self._pairs = self._active = self._updated = self._bytes = 0

    def evaluate(self, X_moved: AnyArray) -> tuple[Float64Array, FloatArray]:
        moved = self._placed(X_moved)
        active = self._report(moved)
        self._products += 2
        self._pairs += active.nnz
        gradients: FloatArray = np.asarray(active @ self._hidden, dtype=np.float32)
        return self._sum(moved, active), gradients

    def values(self, X_moved: AnyArray) -> Float64Array:
        moved = self._placed(X_moved)
        self._products += 1
        return self._sum(moved, self._report(moved))

    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        """W ← W − rate·Σ_i slopes_i ∂f(x̃_i)/∂W, on the neurons that some example reports."""
        moved = self._placed(X_moved)
        weights, number, self._length_bound = self._check_step(slopes, rate)
        active = self._report(moved)
        neurons = np.unique(active.indices).astype(np.int64)
        self._products += 2
        self._pairs += active.nnz
        self._updated += len(neurons)
        if len(neurons) == 0:
            return
        columns = np.searchsorted(neurons, active.indices)
        narrow = csr_array((active.data, columns, active.indptr), shape=(self.examples, len(neurons)))
        change = np.asarray(narrow.T @ (weights[:, None] * moved), dtype=np.float32)
        self._last = None
        self._hidden[neurons] -= np.float32(number) * change
        self._index.update(neurons, self._hidden[neurons], self._net.bias[neurons])
        self._bytes += 2 * len(neurons) * self._hidden.strides[0]

    @property
    def index(self) -> Index:
        """The index of the weight vectors; `index.plan` is how it answers."""
        return self._index

    @property
    def counters(self) -> TrainerCounters:
        """Touched are the pairs the index read, those it read while measuring its methods included,
        and active the pairs it reported: examples that stayed are not asked about twice. Neurons touched are
        these pairs per example, since an index answers example by example. Bounds of the nodes of a tree are
        multiply-adds too; building and updating it is not counted."""
        network, searched = self._net, self._index.counters
        read = searched.points + CHILDREN * searched.nodes
        return TrainerCounters(
            active_last=int(self._active_counts.sum()),
            active=self._active,
            touched=searched.points,
            neurons_touched=searched.points // self.examples,
            neurons_updated=self._updated,
            multiply_adds=(read + self._pairs + self._active) * network.inputs,
            dense_multiply_adds=self._products * network.width * self.examples * network.inputs,
            bytes=searched.bytes + self._bytes,
        )

    def _report(self, moved: FloatTable) -> csr_array[np.float32]:
        """∂f/∂z of every active pair, as a sparse (examples, width) table; asked once while nothing has moved."""
        if self._last is not None and np.array_equal(self._last[0], moved):
            return self._last[1]
        threshold = np.float32(self._net.activation.threshold)
        indptr, neurons = self._index.query_batch(moved, threshold)
        self._active_counts = np.diff(indptr)
        self._active += len(neurons)
        active: csr_array[np.float32] = csr_array(
            (self._net.output[neurons], neurons, indptr), shape=(self.examples, self._net.width)
        )
        self._last = moved.copy(), active
        return active

    def _sum(self, moved: FloatTable, active: csr_array[np.float32]) -> Float64Array:
        rows = np.repeat(np.arange(self.examples), self._active_counts)
        z = np.einsum("ij,ij->i", self._hidden[active.indices], moved[rows]) + self._net.bias[active.indices]
        sums = np.bincount(rows, weights=active.data * z, minlength=self.examples)
        return np.asarray(sums + self._net.offset, dtype=np.float64)
