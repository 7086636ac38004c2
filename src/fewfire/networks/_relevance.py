"""Which inputs a network uses: the weight mass Σ_j |u_j|·|w_ji| that each input i carries.

A learned parity or junta shows its support as the inputs of largest mass. The mass is a reading of
the weights, not of the function: neurons that cancel or never fire count as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, eq=False)
class Relevance:
    """The weight mass of every input.

    Parameters
    ----------
    mass : float64 array of shape (inputs,)
    """

    mass: Float64Array

    def largest(self, k: int) -> tuple[int, ...]:
        """The k inputs of largest mass, heaviest first, the smaller id first among equals."""
        k = check_integer("k", k, 1, len(self.mass), "choose at most as many as there are inputs")
        return tuple(int(i) for i in np.argsort(-self.mass, kind="stable")[:k])


def relevance(net: TwoLayer) -> Relevance:
    """The weight mass Σ_j |output_j|·|hidden_ji| of each input i."""
    return Relevance(np.einsum("j,ji->i", np.abs(net.output), np.abs(net.hidden), dtype=np.float64))
