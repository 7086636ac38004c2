"""The mean output of a group of networks. What is said of a row must not depend on the rows around it.

The products in C++ sum in one order whatever the rows; those of BLAS do not, so NumPy predicts in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._fused import FusedOutputs, packing
from fewfire.tabular._network import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array, FloatArray
    from fewfire.tabular._network import Layout


def mean_outputs(layout: Layout, flats: FloatArray) -> Callable[[FloatArray, FloatArray], Float64Array]:
    """Of networks (networks, layout.size): a function of X (rows, inputs), float32, and gains (inputs,).

    It gives (rows, outputs): by C++ in one pass over the rows, or by NumPy, network by network.
    """
    packed = packing(layout)
    return FusedOutputs(packed, flats, layout.outputs) if packed is not None else NumpyOutputs(layout, flats)


class NumpyOutputs:
    """The twin of `FusedOutputs`; the weights are converted once.

    Parameters
    ----------
    layout : Layout
    flats : array (networks, layout.size)
    """

    def __init__(self, layout: Layout, flats: FloatArray) -> None:
        self._layout, self._flats = layout, flats.astype(np.float64)

    def __call__(self, X: FloatArray, gains: FloatArray) -> Float64Array:
        inputs = (X * gains).astype(np.float64)
        total = sum(evaluate(self._layout, flat, inputs) for flat in self._flats)
        return np.asarray(total / len(self._flats))
