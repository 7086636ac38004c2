"""One hidden layer of ReLUs that all scores share, in float32, with gradients in the points and in the parameters.

score(x) = V·max(W·z + b, 0) + c at z = (x − centre)/scale, with one scale for all columns, so that balls stay balls.
The parameters lie in one array, which one step of AdamW moves; matrix products are BLAS's, the rest is C++ where it is
installed. Dense on purpose: about half of the neurons fires and AdamW moves every weight at every step, so that lists
of neurons that may fire would hold most pairs, and one product serves the scores of all classes (docs/robust.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from fewfire.networks import TwoLayer
from fewfire.robustness import LayeredScores
from fewfire.tabular._kernels import kernels

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8
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


class Perceptron:
    """A network in training; all arrays are float32.

    Parameters
    ----------
    inputs, width, heads : int
    stream : Stream
        Of the start: normal weights of variance 2/inputs and 2/(width + heads), no biases.
    """

    def __init__(self, inputs: int, width: int, heads: int, stream: Stream) -> None:
        self.shapes = ((inputs, width), (width,), (width, heads), (heads,))
        self.flat = np.zeros(sum(math.prod(shape) for shape in self.shapes), dtype=np.float32)
        self.gradient, self.mean, self.square = (np.zeros_like(self.flat) for _ in range(3))
        self.steps = 0
        self.hidden, self.bias, self.output, self.offset = self._parts(self.flat)
        self._gradients = self._parts(self.gradient)
        self.hidden[:] = stream.child("hidden").normal(self.hidden.shape) * math.sqrt(2 / inputs)
        self.output[:] = stream.child("output").normal(self.output.shape) * math.sqrt(2 / (width + heads))
        self._set_room(0)

    def scores(self, z: FloatArray) -> FloatArray:
        """Scores (rows, heads) at z (rows, inputs); the gradients below are taken there."""
        if len(z) > len(self._values):
            self._set_room(len(z))
        values = np.dot(z, self.hidden, out=self._values[: len(z)])
        kernels().bias_relu(values, self.bias)
        scores = values @ self.output
        scores += self.offset
        return np.asarray(scores)

    def pull(self, slopes: FloatArray) -> FloatArray:
        """Gradients in z (rows, inputs) of the scores weighted by slopes (rows, heads)."""
        return np.asarray(self._back(slopes, self._scratch) @ self.hidden.T)

    def descend(
        self, z: FloatArray, slopes: FloatArray, rate: float, weight_decay: float, more: FloatArray | None = None
    ) -> None:
        """One step of AdamW down the gradient of the scores weighted by slopes, with z as it was given to `scores`.

        Parameters
        ----------
        more : array of the shape of `flat`, optional
            Is added to the gradient.
        """
        hidden, bias, output, offset = self._gradients
        np.dot(self._values[: len(z)].T, slopes, out=output)
        np.sum(slopes, axis=0, out=offset)
        np.dot(z.T, self._back(slopes, bias), out=hidden)
        if more is not None:
            self.gradient += more
        self.steps += 1
        pace = rate * math.sqrt(1 - BETA2**self.steps) / (1 - BETA1**self.steps)
        kernels().adamw_step(
            self.flat, self.gradient, self.mean, self.square, pace, rate * weight_decay, BETA1, BETA2, TINY
        )

    def moments(self) -> tuple[FloatArray, FloatArray, int]:
        """The state of AdamW: running means of gradients and of their squares, and the steps done."""
        return self.mean.copy(), self.square.copy(), self.steps

    def resume(self, mean: FloatArray, square: FloatArray, steps: int) -> None:
        """Go on with moments of AdamW."""
        self.mean[:], self.square[:], self.steps = mean, square, steps

    def set_formula(self, formula: LayeredScores, standardisation: Standardisation) -> None:
        """Take on the scores of points that `formula` gave for another network of these shapes."""
        (hidden, output), (bias, offset) = formula.weights, formula.biases
        self.hidden[:], self.bias[:] = hidden * standardisation.scale, bias + standardisation.centre @ hidden
        self.output[:], self.offset[:] = output, offset

    def formula(self, standardisation: Standardisation) -> LayeredScores:
        """The scores of points, in float64."""
        hidden, bias, output, offset = (part.astype(np.float64) for part in self._parts(self.flat))
        hidden /= standardisation.scale
        return LayeredScores((hidden, output), (bias - standardisation.centre @ hidden, offset), "relu")

    def _back(self, slopes: FloatArray, bias_gradient: FloatArray) -> FloatArray:
        """Gradients in the hidden values before the ReLU (rows, width), their sums in `bias_gradient`."""
        back, values = self._errors[: len(slopes)], self._values[: len(slopes)]
        if slopes.shape[1] == 1:
            kernels().outer_relu_backward(
                np.ascontiguousarray(slopes[:, 0]), np.ascontiguousarray(self.output[:, 0]), values, back, bias_gradient
            )
            return back
        np.dot(slopes, self.output.T, out=back)
        kernels().relu_backward(back, values, bias_gradient)
        return back

    def _parts(self, flat: FloatArray) -> list[FloatArray]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(flat, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def _set_room(self, rows: int) -> None:
        """Buffers for so many rows."""
        width = self.shapes[0][1]
        self._values, self._errors = (np.empty((rows, width), dtype=np.float32) for _ in range(2))
        self._scratch = np.empty(width, dtype=np.float32)


def as_network(formula: LayeredScores) -> TwoLayer:
    """The formula of a perceptron as a network of points, with one output or one per class."""
    (hidden, output), (bias, offset) = formula.weights, formula.biases
    if output.shape[1] == 1:
        return TwoLayer(np.ascontiguousarray(hidden.T), bias, output[:, 0], float(offset[0]))
    return TwoLayer(np.ascontiguousarray(hidden.T), bias, output, offset)


def formula_of(net: TwoLayer) -> LayeredScores:
    """The inverse of `as_network`."""
    net = net.astype(np.float64)
    hidden, bias, output = (np.asarray(part, dtype=np.float64) for part in (net.hidden, net.bias, net.output))
    table = output.reshape(net.width, -1)
    offset = np.broadcast_to(np.asarray(net.offset, dtype=np.float64), table.shape[1])
    return LayeredScores((np.ascontiguousarray(hidden.T), table), (bias, offset), "relu")
