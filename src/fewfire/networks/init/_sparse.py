"""Sparse starts of pareto's experiments: few first-layer weights large, everything else as in `dense`.

pareto found s = 2 best for wide networks (section C.1). The perturbed form keeps a small dense part,
without which the population gradient of an under-sparse neuron is 0 (pareto, section 3.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.networks.init._base import Initialiser
from fewfire.networks.init._dense import with_dense_rest
from fewfire.networks.init._rows import small_weight, sparse_rows

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, repr=False)
class _Sparse(Initialiser):
    name = "sparse"
    s: int
    value: float

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        return with_dense_rest(sparse_rows(stream.child("hidden"), width, inputs, self.s, self.value, 0.0), stream)


@dataclass(frozen=True, repr=False)
class _PerturbedSparse(Initialiser):
    name = "perturbed_sparse"
    s: int
    eps: float | None

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        rest = small_weight(inputs, self.s, self.eps)
        return with_dense_rest(sparse_rows(stream.child("hidden"), width, inputs, self.s, 1.0, rest), stream)


def sparse(s: int, value: float = 1.0) -> Initialiser:
    """Rows with exactly s weights equal to `value` and the rest 0; bias, output and offset as `dense` (pareto, C.1).

    Parameters
    ----------
    s : int
        Inputs that each neuron starts with, uniform over all subsets of that size.
    value : float
        Their weight, not 0.
    """
    if check_number("value", value) == 0:
        raise invalid("value", "must not be 0", value, "a row of zeros has no s non-zero weights")
    return _Sparse(check_integer("s", s, 1), float(value))


def perturbed_sparse(s: int, eps: float | None = None) -> Initialiser:
    """Rows with s weights equal to 1 and the rest ε; bias, output and offset as `dense`.

    Parameters
    ----------
    s : int
        Inputs that each neuron starts with, below the number of inputs.
    eps : float, optional
        Above 0 and below 1/(inputs − s); half of that bound by default.
    """
    if eps is not None:
        eps = check_number("eps", eps, 0.0, open_low=True)
    return _PerturbedSparse(check_integer("s", s, 1), eps)
