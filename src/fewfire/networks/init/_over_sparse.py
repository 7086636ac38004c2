"""The over-sparse start of pareto, section B.2.2 (Theorems 4 and 16): s ones a row, s > 4k, in mirrored pairs.

Biases are β_i = (−k + 2i + offset)/(2k). Printed with i = 1 … k/2 − 1 the features after one step are
k − 1 for the k + 1 values of Σ_{j∈S} x_j, and parity is not in their span; i starts at 0 here. The printed
offset 1/16 then needs output weights of norm 1.2·10⁴ (k = 4) to 2.3·10⁷ (k = 8); 1/2, the default, needs
231 to 5059 and still keeps the neurons silent that miss the support.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer, check_number
from fewfire.networks.init._base import Initialiser, check_condition, half_of, mirrored
from fewfire.networks.init._rows import sparse_rows

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.networks._two_layer import TwoLayer


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
        half = half_of(width)
        choices = over_sparse_biases(self.k, self.offset)
        bias = choices[stream.child("bias").integers(len(choices), half)]
        output = stream.child("output").signs(half).astype(np.float64)
        return mirrored(sparse_rows(stream.child("hidden"), half, inputs, self.s, 1.0, 0.0), bias, output, "relu")


def over_sparse_biases(k: int, offset: float = 0.5) -> Float64Array:
    """The biases β_i = (−k + 2i + offset)/(2k), i = 0 … ⌈k/2⌉ − 1, ascending."""
    return (2 * np.arange((k + 1) // 2) - k + offset) / (2 * k)


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
    """
    k, s = check_integer("k", k, 1), check_integer("s", s, 1)
    check_condition(strict, k % 2 == 0, "k", "must be even", k, "pareto, Lemma 8")
    check_condition(strict, s % 2 == 1 and s > 4 * k, "s", f"must be odd and above 4k = {4 * k}", s, "pareto, Lemma 8")
    offset = check_number("offset", offset, 0.0, 1.0, open_low=True, open_high=True)
    return _OverSparse(k, s, offset, bool(strict))
