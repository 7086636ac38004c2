"""The under-sparse start of pareto, section B.3 (Theorems 5 and 21): s < k ones a row, the rest ε, mirrored pairs.

Lemmas 18 to 20 need n − s odd besides s and k even: the small weights then never tie, and the biases,
at most ε/2 in size, do not change which neurons fire at the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer, check_number
from fewfire.networks.init._base import Initialiser, check_condition, half_of, mirrored
from fewfire.networks.init._rows import small_weight, sparse_rows

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.networks._two_layer import TwoLayer


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
        half = half_of(width)
        choices = under_sparse_biases(self.k, rest)
        bias = choices[stream.child("bias").integers(len(choices), half)]
        output = stream.child("output").signs(half).astype(np.float64)
        return mirrored(sparse_rows(stream.child("hidden"), half, inputs, self.s, 1.0, rest), bias, output, "relu")


def under_sparse_biases(k: int, eps: float) -> Float64Array:
    """The k biases ε(2j − 1 − k)/(2k), j = 1 … k, ascending: from −ε(k − 1)/(2k) to ε(k − 1)/(2k)."""
    return eps * (2 * np.arange(1, k + 1) - 1 - k) / (2 * k)


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
    """
    k, s = check_integer("k", k, 1), check_integer("s", s, 1)
    check_condition(strict, k % 2 == 0, "k", "must be even", k, "pareto, Lemma 18")
    check_condition(strict, s % 2 == 0 and s < k, "s", f"must be even and below k = {k}", s, "pareto, Lemma 18")
    if eps is not None:
        eps = check_number("eps", eps, 0.0, open_low=True)
    return _UnderSparse(k, s, eps, bool(strict))
