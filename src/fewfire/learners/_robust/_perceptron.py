"""One hidden layer of ReLUs that all scores share, in float32.

score(x) = V·max(W·z + b, 0) + c at z = (x − centre)/scale, with one scale for all columns, so that balls stay balls.
Dense on purpose: about half of the neurons fires and AdamW moves every weight at every step, so that
lists of neurons that may fire would hold most pairs, and one product serves the scores of all classes (docs/robust.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from fewfire._dense.network import Backprop, Layout
from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray

SPREAD: Final = 0.25
"""Deviation of the scaled columns, on average; see the table of what was tried in docs/robust.md."""


@dataclass(frozen=True, eq=False)
class Standardisation:
    """z = (x − centre)/scale: centre an array of shape (inputs,), scale one number."""

    centre: Float64Array
    scale: float

    @classmethod
    def learn(cls, points: Float64Array, weight: FloatArray) -> Self:
        """The map that brings points (rows, inputs) of some weights (rows,) to mean 0 and the deviation SPREAD."""
        centre = np.average(points, axis=0, weights=weight)
        spread = math.sqrt(float(np.average(np.mean((points - centre) ** 2, axis=1), weights=weight)))
        return cls(centre, spread / SPREAD if spread > 0.0 else 1.0)

    def __call__(self, points: Float64Array) -> FloatArray:
        return np.ascontiguousarray((points - self.centre) / self.scale, dtype=np.float32)

    def points(self, z: FloatArray) -> Float64Array:
        """The points (rows, inputs) of z."""
        return np.asarray(self.centre + self.scale * z.astype(np.float64))


class Perceptron(Backprop):
    """A network in training, in float32; it starts at normal weights of variance 2/inputs and 2/(width + heads)."""

    def __init__(self, inputs: int, width: int, heads: int, stream: Stream) -> None:
        layout = Layout(inputs, (width,), heads, skip=False)
        super().__init__(layout, np.zeros(layout.size, dtype=np.float32), 0)
        (hidden,), output = self.parameters.hidden, self.parameters.output
        hidden[:] = (stream.child("hidden").normal((inputs, width)) * math.sqrt(2 / inputs)).T
        output[:] = (stream.child("output").normal((width, heads)) * math.sqrt(2 / (width + heads))).T

    def set_network(self, network: TwoLayer, standardisation: Standardisation) -> None:
        """Go on from a network of points with these shapes."""
        hidden, bias, output = (
            np.asarray(part, dtype=np.float64) for part in (network.hidden, network.bias, network.output)
        )
        own = self.parameters
        own.hidden[0][:], own.biases[0][:] = hidden * standardisation.scale, bias + hidden @ standardisation.centre
        own.output[:], own.offset[:] = output.reshape(network.width, -1).T, network.offset

    def network(self, standardisation: Standardisation) -> TwoLayer:
        """The network of points in float64, with one output or one per class."""
        own = self.layout.unpack(self.flat.astype(np.float64))
        hidden = own.hidden[0] / standardisation.scale
        bias = own.biases[0] - hidden @ standardisation.centre
        if self.layout.outputs == 1:
            return TwoLayer(hidden, bias, own.output[0], float(own.offset[0]))
        return TwoLayer(hidden, bias, np.ascontiguousarray(own.output.T), own.offset)
