"""Sparse starts of pareto: s first-layer weights of each neuron large, uniform over all subsets of size s.

- `sparse` and `perturbed_sparse`, of the experiments: everything else as in `dense`. pareto found s = 2 best for wide
  networks (section C.1). The perturbed form keeps a small dense part, without which the population gradient of an
  under-sparse neuron is 0 (section 3.2.1).
- `over_sparse`, of section B.2.2 (Theorems 4 and 16): s ones per row, s > 4k, in mirrored pairs. Biases are
  β_i = (−k + 2i + offset)/(2k). Printed with i = 1 … k/2 − 1 the features after one step are k − 1 for the k + 1 values
  of Σ_{j∈S} x_j, and parity is not in their span; i starts at 0 here. The printed offset 1/16 then needs output weights
  of norm 1.2·10⁴ (k = 4) to 2.3·10⁷ (k = 8); 1/2, the default, needs 231 to 5059 and still keeps the neurons silent
  that miss the support.
- `under_sparse`, of section B.3 (Theorems 5 and 21): s < k ones per row, the rest ε, in mirrored pairs. Lemmas 18 to 20
  need n − s odd besides s and k even: the small weights then never tie, and the biases, at most ε/2 in size, do not
  change which neurons fire at the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.networks.init._base import Initialiser, check_condition, half_of, mirrored, named, with_dense_rest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.networks._two_layer import TwoLayer


def sparse_rows(stream: Stream, rows: int, inputs: int, s: int, value: float, rest: float) -> NDArray[np.float32]:
    """Rows with exactly s entries equal to `value` and the others to `rest`: shape (rows, inputs)."""
    if s > inputs:
        raise invalid("s", f"must be at most the number of inputs, {inputs}", s, "choose fewer non-zero weights")
    table = np.full((rows, inputs), rest, dtype=np.float32)
    np.put_along_axis(table, stream.subsets(rows, inputs, s), np.float32(value), axis=1)
    return table


def small_weight(inputs: int, s: int, eps: float | None) -> float:
    """The weight ε of the other entries: below 1/(n − s), so that they never outvote an entry of 1."""
    if s >= inputs:
        raise invalid("s", f"must be below the number of inputs, {inputs}", s, "leave some weights small")
    limit = 1.0 / (inputs - s)
    if eps is None:
        return limit / 2
    if eps >= limit:
        raise invalid("eps", f"must be below 1/(inputs − s) = {limit:g}", eps, "pass eps=None for half of that")
    return eps


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


@named
def sparse(s: int, value: float = 1.0) -> Initialiser:
    """Rows with exactly s weights equal to `value` and the rest 0; bias, output and offset as `dense` (pareto, C.1).

    Parameters
    ----------
    s : int
        Inputs that each neuron starts with, uniform over all subsets of that size.
    value : float
        Their weight, not 0.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.sparse(2)(20, width=100, seed=0)
    >>> set((network.hidden != 0).sum(axis=1).tolist())
    {2}
    """
    if check_number("value", value) == 0:
        raise invalid("value", "must not be 0", value, "a row of zeros has no s non-zero weights")
    return _Sparse(check_integer("s", s, 1), float(value))


@named
def perturbed_sparse(s: int, eps: float | None = None) -> Initialiser:
    """Rows with s weights equal to 1 and the rest ε; bias, output and offset as `dense`.

    Parameters
    ----------
    s : int
        Inputs that each neuron starts with, below the number of inputs.
    eps : float, optional
        Above 0 and below 1/(inputs − s); half of that bound by default.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.perturbed_sparse(2)(20, width=100, seed=0)
    >>> int((network.hidden != 0).sum(axis=1).min())
    20
    """
    if eps is not None:
        eps = check_number("eps", eps, 0.0, open_low=True)
    return _PerturbedSparse(check_integer("s", s, 1), eps)


def _pairs(stream: Stream, inputs: int, width: int, s: int, rest: float, biases: Float64Array) -> TwoLayer:
    """Mirrored pairs of rows of s ones, each with one of the biases and an output weight of ±1."""
    half = half_of(width)
    bias = biases[stream.child("bias").integers(len(biases), half)]
    output = stream.child("output").signs(half).astype(np.float64)
    return mirrored(sparse_rows(stream.child("hidden"), half, inputs, s, 1.0, rest), bias, output, "relu")


@dataclass(frozen=True, repr=False)
class _OverSparse(Initialiser):
    name = "over_sparse"
    k: int
    s: int
    offset: float
    strict: bool

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        rule = f"must be below the number of inputs, {inputs}"
        check_condition(self.strict, self.s < inputs, "s", rule, self.s, "pareto, B.2.2")
        return _pairs(stream, inputs, width, self.s, 0.0, over_sparse_biases(self.k, self.offset))


def over_sparse_biases(k: int, offset: float = 0.5) -> Float64Array:
    """The biases β_i = (−k + 2i + offset)/(2k), i = 0 … ⌈k/2⌉ − 1, ascending."""
    return (2 * np.arange((k + 1) // 2) - k + offset) / (2 * k)


@named
def over_sparse(k: int, s: int, offset: float = 0.5, strict: bool = True) -> Initialiser:
    """Rows of s ones, biases (−k + 2i + offset)/(2k), outputs ±1, in mirrored pairs (pareto, B.2.2).

    Parameters
    ----------
    k : int
        Bits of the parity to be learned; even in the theorem.
    s : int
        Ones per row; odd, above 4k (Lemma 8) and below the number of inputs in the theorem.
    offset : float in (0, 1)
        Shift of the biases; 1/16 is the printed one.
    strict : bool
        Whether to refuse what the theorem excludes.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.over_sparse(k=2, s=9)(30, width=100, seed=0)
    >>> set((network.hidden != 0).sum(axis=1).tolist())
    {9}
    """
    k, s = check_integer("k", k, 1), check_integer("s", s, 1)
    check_condition(strict, k % 2 == 0, "k", "must be even", k, "pareto, Lemma 8")
    check_condition(strict, s % 2 == 1 and s > 4 * k, "s", f"must be odd and above 4k = {4 * k}", s, "pareto, Lemma 8")
    offset = check_number("offset", offset, 0.0, 1.0, open_low=True, open_high=True)
    return _OverSparse(k, s, offset, bool(strict))


@dataclass(frozen=True, repr=False)
class _UnderSparse(Initialiser):
    name = "under_sparse"
    k: int
    s: int
    eps: float | None
    strict: bool

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        check_integer("k", self.k, 1, inputs, "a parity has at most as many bits as there are inputs")
        rest = small_weight(inputs, self.s, self.eps)
        odd, rule = (inputs - self.s) % 2 == 1, f"must leave inputs − s odd for s = {self.s}"
        check_condition(self.strict, odd, "inputs", rule, inputs, "pareto, Lemmas 18 to 20")
        return _pairs(stream, inputs, width, self.s, rest, under_sparse_biases(self.k, rest))


def under_sparse_biases(k: int, eps: float) -> Float64Array:
    """The k biases ε(2j − 1 − k)/(2k), j = 1 … k, ascending: from −ε(k − 1)/(2k) to ε(k − 1)/(2k)."""
    return eps * (2 * np.arange(1, k + 1) - 1 - k) / (2 * k)


@named
def under_sparse(k: int, s: int, eps: float | None = None, strict: bool = True) -> Initialiser:
    """Rows of s ones and ε elsewhere, biases ε(2j − 1 − k)/(2k), outputs ±1, in mirrored pairs (pareto, B.3).

    Parameters
    ----------
    k : int
        Bits of the parity to be learned; even in the theorem.
    s : int
        Ones per row; even and below k in the theorem, with an odd number of inputs left over.
    eps : float, optional
        Above 0 and below 1/(inputs − s); half of that bound by default.
    strict : bool
        Whether to refuse what the theorem excludes.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.init.under_sparse(k=6, s=2)(31, width=100, seed=0)
    TwoLayer(inputs=31, width=100, activation=relu, dtype=float32)
    """
    k, s = check_integer("k", k, 1), check_integer("s", s, 1)
    check_condition(strict, k % 2 == 0, "k", "must be even", k, "pareto, Lemma 18")
    check_condition(strict, s % 2 == 0 and s < k, "s", f"must be even and below k = {k}", s, "pareto, Lemma 18")
    if eps is not None:
        eps = check_number("eps", eps, 0.0, open_low=True)
    return _UnderSparse(k, s, eps, bool(strict))
