"""What the weights alone say of a network: its two scales, and which inputs it uses.

The scales W and B are those of sparse-activations, Definition 2, the largest over the outputs. The weight mass
Σ_j |u_j|·|w_ji| says what each input i carries: a learned parity or junta shows its support as the inputs of largest
mass. The mass is a reading of the weights, not of the function: neurons that cancel or never fire count as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire._validate import check_integer

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.networks._two_layer import TwoLayer


class Norms(NamedTuple):
    """W = ‖u‖_∞ · max_j ‖w_j‖₂ and B = ‖u‖_∞ · max_j |b_j|; scaling u by c and (w, b) by 1/c changes neither."""

    W: float
    B: float


def norms(network: TwoLayer) -> Norms:
    """The scales of a network, the largest over its outputs; the offsets of the outputs do not enter them."""
    largest = float(np.abs(network.output).max())
    rows = np.sqrt(np.einsum("ji,ji->j", network.hidden, network.hidden, dtype=np.float64))
    return Norms(largest * float(rows.max()), largest * float(np.abs(network.bias).max()))


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


def relevance(network: TwoLayer) -> Relevance:
    """The weight mass Σ_j |output_j|·|hidden_ji| of each input i, summed over the outputs where there are several.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.junta(n=10, support=[1, 4, 7], table=[1, 1, 1, -1, 1, -1, -1, -1])
    >>> sorted(ff.networks.relevance(network).largest(3))
    [1, 4, 7]
    """
    size = np.abs(network.output)
    if size.ndim == 2:
        size = size.sum(axis=1, dtype=np.float64)
    return Relevance(np.einsum("j,ji->i", size, np.abs(network.hidden), dtype=np.float64))
