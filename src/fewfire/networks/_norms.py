"""The two scales W and B of sparse-activations, Definition 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fewfire.networks._two_layer import TwoLayer


class Norms(NamedTuple):
    """W = ‖u‖_∞ · max_j ‖w_j‖₂ and B = ‖u‖_∞ · max_j |b_j|; scaling u by c and (w, b) by 1/c changes neither."""

    W: float
    B: float


def norms(net: TwoLayer) -> Norms:
    """The scales of a network; the offset of the output does not enter them."""
    largest = float(np.abs(net.output).max())
    rows = np.sqrt(np.einsum("ji,ji->j", net.hidden, net.hidden, dtype=np.float64))
    return Norms(largest * float(rows.max()), largest * float(np.abs(net.bias).max()))
