"""A multilayer ReLU network in one flat vector of parameters, and its gradient in preallocated buffers.

Output of a row x: skip·x + V·h_L + offset, with h_l = relu(W_l h_(l−1) + b_l) and h_0 = x. All matrices come first in
the vector, then all biases, so that weight decay is one slice. W_l is (neurons, inputs): a row is a neuron, as in
pareto.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire.learners.sparse_init import _passes as reference
from fewfire.learners.sparse_init._passes import passes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


class Parameters(NamedTuple):
    """Views into one flat vector: hidden matrices, output (outputs, width), skip (outputs, inputs), biases, offset."""

    hidden: list[Floats]
    output: Floats
    skip: Floats | None
    biases: list[Floats]
    offset: Floats


@dataclass(frozen=True)
class Layout:
    """Sizes of a network: inputs, hidden widths, outputs, and whether inputs reach the outputs directly."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    skip: bool

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes of the matrices, in the order of the vector."""
        sizes = [self.inputs, *self.hidden, self.outputs]
        shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
        return [*shapes, (self.outputs, self.inputs)] if self.skip else shapes

    @property
    def decayed(self) -> int:
        """Length of the leading part that holds matrices."""
        return sum(math.prod(shape) for shape in self.matrices)

    @property
    def size(self) -> int:
        """Length of the whole vector."""
        return self.decayed + sum(self.hidden) + self.outputs

    def views(self, flat: Floats) -> Parameters:
        """The parts of a vector of length `size`, sharing its memory."""
        parts, start = [], 0
        for shape in [*self.matrices, *((width,) for width in self.hidden), (self.outputs,)]:
            parts.append(flat[start : start + math.prod(shape)].reshape(shape))
            start += math.prod(shape)
        depth, skips = len(self.hidden), int(self.skip)
        return Parameters(
            parts[:depth], parts[depth], parts[depth + 1] if skips else None, parts[depth + 1 + skips : -1], parts[-1]
        )


class Backprop:
    """Values and gradients of one network on up to `rows` rows at a time, without allocating.

    Parameters
    ----------
    layout : Layout
    flat : array (layout.size,)
        The parameters; read at every call.
    rows : int
        Most rows of a call.
    gradient : bool
        Whether `differentiate` will be called.
    """

    def __init__(self, layout: Layout, flat: Floats, rows: int, *, gradient: bool = True) -> None:
        self.layout, self.parameters, self.rows = layout, layout.views(flat), rows
        self._hidden = [np.empty((rows, width), flat.dtype) for width in layout.hidden]
        if gradient:
            self.gradient = np.zeros_like(flat)
            self._parts = layout.views(self.gradient)
            self._back = [np.empty((rows, width), flat.dtype) for width in layout.hidden]
        self._values = np.empty((rows, layout.outputs), flat.dtype)
        self._skipped = np.empty_like(self._values)
        self._passes = passes() if flat.dtype == np.float32 else reference

    def values(self, X: Floats) -> Floats:
        """Outputs (rows, outputs) at X (rows, inputs); overwritten by the next call."""
        below, parameters = X, self.parameters
        for weights, bias, buffer in zip(parameters.hidden, parameters.biases, self._hidden, strict=True):
            hidden = buffer[: len(X)]
            np.matmul(below, weights.T, out=hidden)
            self._passes.bias_relu(hidden, bias)
            below = hidden
        values = self._values[: len(X)]
        np.matmul(below, parameters.output.T, out=values)
        values += parameters.offset
        if parameters.skip is not None:
            values += np.matmul(X, parameters.skip.T, out=self._skipped[: len(X)])
        return values

    def differentiate(self, X: Floats, errors: Floats) -> Floats:
        """Gradient (size,) of a loss whose derivative by the outputs is `errors`, right after `values(X)`."""
        rows, parts, parameters = len(X), self._parts, self.parameters
        hidden = [buffer[:rows] for buffer in self._hidden]
        back = [buffer[:rows] for buffer in self._back]
        np.sum(errors, axis=0, out=parts.offset)
        if parts.skip is not None:
            np.matmul(errors.T, X, out=parts.skip)
        np.matmul(errors.T, hidden[-1], out=parts.output)
        if self.layout.outputs == 1:
            self._passes.outer_relu_backward(
                errors[:, 0], parameters.output[0], hidden[-1], back[-1], parts.biases[-1]
            )  # fmt: skip
        else:
            np.matmul(errors, parameters.output, out=back[-1])
            self._passes.relu_backward(back[-1], hidden[-1], parts.biases[-1])
        for layer in range(len(hidden) - 1, 0, -1):
            np.matmul(back[layer].T, hidden[layer - 1], out=parts.hidden[layer])
            np.matmul(back[layer], parameters.hidden[layer], out=back[layer - 1])
            self._passes.relu_backward(back[layer - 1], hidden[layer - 1], parts.biases[layer - 1])
        np.matmul(back[0].T, X, out=parts.hidden[0])
        return self.gradient
