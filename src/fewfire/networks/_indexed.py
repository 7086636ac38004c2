"""A two-layer network with its hidden neurons in a half-space index (sublinear, section 6.1).

A neuron fires when ⟨w_j, x⟩ + b_j > τ, which is a half-space report with the w_j as points, the b_j as offsets and x as
the query. The index returns the firing neurons with their scores, and only their rows of the output weights are read:
f(x) = Σ_{j fires} u_j σ(score_j) + c. Scores are those of `fewfire.halfspace.scores`, one float32 sum in one order on
every machine, where a `TwoLayer` sums as its matrix product does. The two differ by rounding: a neuron whose
preactivation is within rounding of τ may fire in one and not in the other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from fewfire._compressed_rows import CompressedRows, ScoredRows
from fewfire._errors import invalid
from fewfire._types import AnyArray, FloatArray
from fewfire._validate import check_inputs
from fewfire.halfspace import Index
from fewfire.halfspace._methods import MethodName
from fewfire.networks._evaluate import Activity, row_blocks
from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, eq=False, init=False, repr=False)
class IndexedTwoLayer(TwoLayer):
    """A `TwoLayer` that finds its firing neurons by an index; `TwoLayer.indexed` makes it.

    Calls, `active` and `activity` cost what the index reads and what fires; `preactivations` and `features` are dense
    as before. It is saved, and compares by `equals`, as the plain network, and pickles with its method;
    `with_parameters` and `astype` give plain networks.

    Parameters
    ----------
    network : TwoLayer
        In float32, as indexes are.
    method : "auto", "scan", "tree", "screen" or a name given to `halfspace.register_method`
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.ntk(activity=0.02)(16, width=2000, seed=0)
    >>> indexed = network.indexed(method="screen")
    >>> X, _ = ff.problems.Parity(16, 2).sample(3, seed=0)
    >>> x = X / 4.0  # inputs of norm 1
    >>> bool(abs(indexed(x) - network(x)).max() < 1e-5)
    True
    >>> indexed.active(x).counts.tolist() == network.active(x).counts.tolist()
    True
    """

    index: Index

    def __init__(self, network: TwoLayer, method: MethodName | str = "auto", threads: int | None = None) -> None:
        if network.dtype != np.float32:
            raise invalid("network", "must be float32 for an index", str(network.dtype), "call astype('float32') first")
        for field in fields(TwoLayer):  # arrays that never change may be shared
            object.__setattr__(self, field.name, getattr(network, field.name))
        object.__setattr__(self, "index", Index(network.hidden, network.bias, method, threads))

    @property
    def plain(self) -> TwoLayer:
        """The network without its index."""
        return self.with_parameters()

    def __call__(self, X: AnyArray) -> FloatArray:
        """f(x) for each row of X, as `TwoLayer` gives it: a sum over the neurons that fire."""
        if len(table := check_inputs("X", X, self.inputs, self.dtype)) == 1:
            indices, scores = self.index.query(table[0], self.activation.threshold, scores=True)
            total: FloatArray = np.asarray(self.activation.value(scores) @ self.output.take(indices, axis=0))[None]
        else:
            threshold = self.activation.threshold
            reports = (self.index.query_batch(rows, threshold, scores=True) for rows in row_blocks(self, table))
            total = np.concatenate([self._sums(report) for report in reports])
        total += np.asarray(self.offset, dtype=self.dtype)
        return total

    def active(self, X: AnyArray) -> CompressedRows:
        counts, indices = [np.zeros(1, dtype=np.int64)], []
        for rows in row_blocks(self, X):
            report = self.index.query_batch(rows, self.activation.threshold)
            counts.append(report.counts)
            indices.append(report.indices)
        return CompressedRows(np.concatenate(counts).cumsum(dtype=np.int64), np.concatenate(indices))

    def activity(self, X: AnyArray) -> Activity:
        sets = self.active(X)
        return Activity(sets.counts, np.bincount(sets.indices, minlength=self.width))

    def _sums(self, report: ScoredRows) -> FloatArray:
        """Σ_{j fires} u_j σ(score_j) for each row of a report."""
        from scipy.sparse import csr_array

        features = self.activation.value(report.scores)
        firing = csr_array((features, report.indices, report.indptr), shape=(report.rows, self.width))
        return np.asarray(firing @ self.output)

    def __repr__(self) -> str:
        return f"Indexed{super().__repr__()[:-1]}, method={self.index.requested!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return IndexedTwoLayer, (self.plain, self.index.requested, self.index.threads)
