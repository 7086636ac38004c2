"""The usual dense start: every layer uniform within one over the square root of its fan-in (PyTorch's default)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.init._base import Initialiser

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import FloatArray


def with_dense_rest(hidden: FloatArray, stream: Stream) -> TwoLayer:
    """A network with the given first-layer weights; bias, output and offset as `dense` draws them."""
    width, inputs = hidden.shape
    inner, outer = 1 / math.sqrt(inputs), 1 / math.sqrt(width)
    return TwoLayer(
        hidden.astype("float32", copy=False),
        stream.child("bias").uniform(width, -inner, inner),
        stream.child("output").uniform(width, -outer, outer),
        float(stream.child("offset").uniform(1, -outer, outer)[0]),
    )


@dataclass(frozen=True, repr=False)
class _Dense(Initialiser):
    name = "dense"

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        bound = 1 / math.sqrt(inputs)
        return with_dense_rest(stream.child("hidden").uniform((width, inputs), -bound, bound), stream)


def dense() -> Initialiser:
    """Dense weights: hidden and bias U(±1/√inputs), output and offset U(±1/√width), ReLU (pareto, C.1).

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.init.dense()(20, width=100, seed=0)
    TwoLayer(inputs=20, width=100, activation=relu, dtype=float32)
    """
    return _Dense()
