"""A multilayer ReLU network in one flat vector of parameters, and its gradient in preallocated buffers.

Output of a row x: skip·h_0 + V·h_L + offset, with h_l = relu(W_l h_(l−1) + b_l), and h_0 = x or, with waves, x and a
sum of learned waves beside each input. All matrices come first in the vector, those of the sums too, then biases,
frequencies and phases: so weight decay is one slice. W_l is (neurons, inputs): a row is a neuron, as in pareto.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire.learners.sparse_init import _passes as reference
from fewfire.learners.sparse_init._passes import passes
from fewfire.learners.sparse_init._waves import WaveInputs, Waves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


class Parameters(NamedTuple):
    """Views into one flat vector: hidden matrices, output (outputs, width), skip (outputs, fed), biases, others."""

    hidden: list[Floats]
    output: Floats
    skip: Floats | None
    biases: list[Floats]
    offset: Floats
    waves: Waves | None


@dataclass(frozen=True)
class Layout:
    """Sizes of a network: inputs, hidden widths, outputs, whether inputs reach the outputs directly, waves an input."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    skip: bool
    waves: int = 0

    @property
    def fed(self) -> int:
        """What the first layer sees: the inputs and, with waves, a sum of them for each."""
        return 2 * self.inputs if self.waves else self.inputs

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes of what decays, in the order of the vector: hidden layers, output, skip, sums of waves."""
        sizes = [self.fed, *self.hidden, self.outputs]
        shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
        shapes += [(self.outputs, self.fed)] if self.skip else []
        return [*shapes, (self.inputs, self.waves)] if self.waves else shapes

    @property
    def others(self) -> list[tuple[int, ...]]:
        """Shapes of the rest: biases of the layers and the output; frequencies, phases and biases of waves."""
        shapes: list[tuple[int, ...]] = [(width,) for width in (*self.hidden, self.outputs)]
        return [*shapes, *[(self.inputs, self.waves)] * 2, (self.inputs,)] if self.waves else shapes

    @property
    def decayed(self) -> int:
        """Length of the leading part that holds matrices."""
        return sum(math.prod(shape) for shape in self.matrices)

    @property
    def size(self) -> int:
        """Length of the whole vector."""
        return self.decayed + sum(math.prod(shape) for shape in self.others)

    def views(self, flat: Floats) -> Parameters:
        """The parts of a vector of length `size`, sharing its memory."""
        parts, start = [], 0
        for shape in [*self.matrices, *self.others]:
            parts.append(flat[start : start + math.prod(shape)].reshape(shape))
            start += math.prod(shape)
        depth, waves = len(self.hidden), None
        matrices, others = parts[: len(self.matrices)], parts[len(self.matrices) :]
        if self.waves:
            waves = Waves(matrices.pop(), *others[depth + 1 :])
        skip = matrices[depth + 1] if self.skip else None
        return Parameters(matrices[:depth], matrices[depth], skip, others[:depth], others[depth], waves)


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
        waves = self.parameters.waves
        self._waves = None if waves is None else WaveInputs(waves, rows, gradient=gradient)

    def values(self, X: Floats) -> Floats:
        """Outputs (rows, outputs) at X (rows, inputs); overwritten by the next call."""
        parameters = self.parameters
        self._fed = X if self._waves is None else self._waves.fed(X)
        below = self._fed
        for weights, bias, buffer in zip(parameters.hidden, parameters.biases, self._hidden, strict=True):
            hidden = buffer[: len(X)]
            np.matmul(below, weights.T, out=hidden)
            self._passes.bias_relu(hidden, bias)
            below = hidden
        values = self._values[: len(X)]
        np.matmul(below, parameters.output.T, out=values)
        values += parameters.offset
        if parameters.skip is not None:
            values += np.matmul(self._fed, parameters.skip.T, out=self._skipped[: len(X)])
        return values

    def differentiate(self, X: Floats, errors: Floats) -> Floats:
        """Gradient (size,) of a loss whose derivative by the outputs is `errors`, right after `values(X)`."""
        rows, parts, parameters = len(X), self._parts, self.parameters
        hidden = [buffer[:rows] for buffer in self._hidden]
        back = [buffer[:rows] for buffer in self._back]
        np.sum(errors, axis=0, out=parts.offset)
        if parts.skip is not None:
            np.matmul(errors.T, self._fed, out=parts.skip)
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
        np.matmul(back[0].T, self._fed, out=parts.hidden[0])
        if self._waves is not None and parts.waves is not None:
            self._waves.differentiate(X, back[0], parameters.hidden[0], errors, parameters.skip, parts.waves)
        return self.gradient
