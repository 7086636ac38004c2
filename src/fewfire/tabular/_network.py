"""A multilayer ReLU network in one flat vector of parameters: layout, sparse start, losses, gradient, evaluation.

Output of a row x: skip·h_0 + V·h_L + offset, with h_l = relu(W_l h_(l−1) + b_l), and h_0 = x or, with an embedding, x
and what it shows beside. All matrices come first in the vector, those of the embedding too, then biases and the rest:
so weight decay is one slice. W_l is (neurons, inputs): a row is a neuron, as in pareto.

The start (pareto, sections 4.2 and C.3): a sparse neuron has s weights of random sign and size 1/√s and its kink
through a training row: it splits the data along s columns, as a split of a tree does along one. All weights are trained
afterwards, so sparsity is a start, not a constraint. The output layer and the skip start at 0, so every network starts
as the constant `offset`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax

from fewfire.tabular._kernels import kernels, twins

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import FloatArray, IdArray
    from fewfire.tabular._embeddings import Embedding, EmbeddingLayer
    from fewfire.tabular._training import TrainingRows


TabularLoss = Literal["logistic", "cross_entropy", "squared"]

FEWEST_ROWS, MOST_ROWS = 16, 1024
"""Rows of a prediction at a time, so that products are worth their call and the hidden layer stays in cache."""
BUFFERS = 2**24
"""Bytes the layers of those rows may take; an embedding of a wide table keeps much."""


class Parameters(NamedTuple):
    """Parts of one flat vector: hidden matrices, output (outputs, width), skip (outputs, fed), biases, embedding's."""

    hidden: list[FloatArray]
    output: FloatArray
    skip: FloatArray | None
    biases: list[FloatArray]
    offset: FloatArray
    embedding: list[FloatArray]


@dataclass(frozen=True)
class Layout:
    """Sizes of a network: inputs, hidden widths, outputs, whether inputs reach the outputs directly, its embedding.

    `ladders` are the numbers of bins of the columns whose piecewise-linear encoding the last inputs are: C++ then sees
    the first layer as tables, which changes sums by rounding alone. Such inputs must be of that form.
    """

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    skip: bool
    embedding: Embedding | None = None
    ladders: tuple[int, ...] = ()

    @property
    def fed(self) -> int:
        """What the first layer sees: the inputs and what an embedding shows beside."""
        return self.inputs + (self.embedding.outputs(self.inputs) if self.embedding else 0)

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes of what decays, in the order of the vector: hidden layers, output, skip, those of the embedding."""
        sizes = [self.fed, *self.hidden, self.outputs]
        shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
        shapes += [(self.outputs, self.fed)] if self.skip else []
        return shapes + (self.embedding.matrices(self.inputs) if self.embedding else [])

    @property
    def vectors(self) -> list[tuple[int, ...]]:
        """Shapes of the rest: biases of the layers and the output, then what of the embedding does not decay."""
        shapes: list[tuple[int, ...]] = [(width,) for width in (*self.hidden, self.outputs)]
        return shapes + (self.embedding.vectors(self.inputs) if self.embedding else [])

    @property
    def decayed(self) -> int:
        """Length of the leading part that holds matrices."""
        return sum(math.prod(shape) for shape in self.matrices)

    @property
    def size(self) -> int:
        """Length of the whole vector."""
        return self.decayed + sum(math.prod(shape) for shape in self.vectors)

    def unpack(self, flat: FloatArray) -> Parameters:
        """The parts of a vector of length `size`, sharing its memory."""
        parts, start = [], 0
        for shape in [*self.matrices, *self.vectors]:
            parts.append(flat[start : start + math.prod(shape)].reshape(shape))
            start += math.prod(shape)
        return self.group(parts)

    def group(self, parts: list[Any]) -> Parameters:
        """Parts in the order of the vector by what they are for."""
        depth, count = len(self.hidden), len(self.matrices)
        own = depth + 1 + int(self.skip)
        matrices, vectors = parts[:count], parts[count:]
        embedding = [*matrices[own:], *vectors[depth + 1 :]]
        skip = matrices[depth + 1] if self.skip else None
        return Parameters(matrices[:depth], matrices[depth], skip, vectors[:depth], vectors[depth], embedding)


def draw_start(
    layout: Layout, sparsity: int | None, rows: TrainingRows, offset: FloatArray, stream: Stream
) -> FloatArray:
    """Initial parameters (layout.size,), float32.

    Parameters
    ----------
    sparsity : int or None
        Non-zero weights of each first-layer row; None, or at least the number of inputs: dense rows.
    rows : TrainingRows
        Kinks of the first layer pass through them, through a row of weight 2 as often as through two.
    offset : array (outputs,)
        Start of the outputs.
    """
    flat = np.zeros(layout.size, dtype=np.float32)
    parts = layout.unpack(flat)
    if layout.embedding is not None:
        layout.embedding.draw(parts.embedding, stream)
    for layer, weights in enumerate(parts.hidden):
        if layer == 0:
            weights[:] = first_layer(weights.shape[0], weights.shape[1], sparsity, stream.child("hidden"))
            chosen = _rows_by_weight(rows, len(weights), stream.child("kinks"))
            # Of its row a neuron sees the inputs it has weights for: all others need not be embedded.
            places = np.nonzero(weights)[1].reshape(len(weights), -1)
            read = np.take_along_axis(weights, places, axis=1)
            parts.biases[0][:] = -np.einsum("ji,ji->j", read, _embedded_at(layout, parts, chosen, places))
        else:
            weights[:] = stream.child(f"hidden{layer}").normal(weights.shape) * np.sqrt(2.0 / weights.shape[1])
    parts.offset[:] = offset
    return flat


def first_layer(width: int, inputs: int, sparsity: int | None, stream: Stream) -> FloatArray:
    """Rows (width, inputs) with `sparsity` entries ±1/√sparsity each, or dense normal rows of unit expected length."""
    if sparsity is None:
        return np.asarray(stream.child("dense").normal((width, inputs)) / np.sqrt(inputs))
    few = min(sparsity, inputs)
    weights = np.zeros((width, inputs))
    chosen = stream.child("inputs").subsets(width, inputs, few)
    np.put_along_axis(weights, chosen, stream.child("signs").signs((width, few)) / np.sqrt(few), axis=1)
    return weights


def _rows_by_weight(rows: TrainingRows, count: int, stream: Stream) -> FloatArray:
    """`count` rows drawn by their weights, in an order that depends on what the rows hold, not on where they stand."""
    along, places = stream.child("order").normal(rows.X.shape[1]), np.arange(len(rows))
    # Some rows at a time: threads that each copy a whole table wait for one another's memory.
    parts = (rows[places[start : start + MOST_ROWS]].inputs() for start in range(0, len(rows), MOST_ROWS))
    sums = [np.einsum("ij,j->i", X.astype(np.float64), along) for X in parts]
    order = np.argsort(np.concatenate(sums), kind="stable")
    mass = np.cumsum(rows.weight[rows.places()][order], dtype=np.float64)
    chosen = np.searchsorted(mass / mass[-1], stream.child("rows").uniform(count))
    return np.asarray(rows[order[np.minimum(chosen, len(rows) - 1)]].inputs(), np.float64)


def _embedded_at(layout: Layout, parts: Parameters, X: FloatArray, places: IdArray) -> FloatArray:
    """What the first layer sees at places (rows, few) of X, in float64 by NumPy: the same bits on every machine."""
    if layout.embedding is None:
        return np.take_along_axis(X, places, axis=1)
    doubles = [part.astype(np.float64) for part in parts.embedding]
    return layout.embedding.values_at(doubles, X, places)


def logistic(values: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """−p log σ(z) − (1 − p) log σ(−z), and σ(z) − p."""
    losses = np.logaddexp(0.0, values) - target * values
    # σ by tanh, not by scipy's expit, whose last bit differs in float32: fits keep their bits.
    return losses[:, 0], 0.5 * (1.0 + np.tanh(0.5 * values)) - target


def cross_entropy(values: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """−Σ_c p_c log softmax(z)_c, and softmax(z) − p."""
    top = values.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(values - top).sum(axis=1, keepdims=True)) + top
    return (target * (log_sum - values)).sum(axis=1), np.asarray(softmax(values, axis=1)) - target


def squared(values: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Half the mean over outputs of (z − y)², and (z − y) / outputs."""
    errors = (values - target) / values.shape[1]
    return 0.5 * (errors * (values - target)).sum(axis=1), errors


LOSSES: dict[TabularLoss, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    "logistic": logistic,
    "cross_entropy": cross_entropy,
    "squared": squared,
}
"""Of outputs (rows, outputs) and a target of that shape the losses (rows,) and their derivative (rows, outputs).

Two classes use one output, the log odds; a target of classes may be smoothed, so it holds probabilities.
"""


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

    def __init__(self, layout: Layout, flat: FloatArray, rows: int, *, gradient: bool = True) -> None:
        self.layout, self.parameters, self.rows = layout, layout.unpack(flat), rows
        self._hidden = [np.empty((rows, width), flat.dtype) for width in layout.hidden]
        if gradient:
            self.gradient = np.zeros_like(flat)
            self._parts = layout.unpack(self.gradient)
            self._back = [np.empty((rows, width), flat.dtype) for width in layout.hidden]
            self._slopes = np.empty((rows, layout.fed - layout.inputs), flat.dtype)
        self._values = np.empty((rows, layout.outputs), flat.dtype)
        self._skipped = np.empty_like(self._values)
        # In C++ there are gradients of float32 alone.
        self._kernels = kernels() if flat.dtype == np.float32 or not gradient else twins()
        self._layer: EmbeddingLayer | None = None
        if layout.embedding is not None:
            self._layer = layout.embedding.layer(self.parameters.embedding, rows, gradient=gradient)

    def values(self, X: FloatArray) -> FloatArray:
        """Outputs (rows, outputs) at X (rows, inputs); overwritten by the next call."""
        parameters = self.parameters
        self._fed = X if self._layer is None else self._layer.forward(X)
        below = self._fed
        for weights, bias, buffer in zip(parameters.hidden, parameters.biases, self._hidden, strict=True):
            hidden = buffer[: len(X)]
            np.matmul(below, weights.T, out=hidden)
            self._kernels.bias_relu(hidden, bias)
            below = hidden
        values = self._values[: len(X)]
        np.matmul(below, parameters.output.T, out=values)
        values += parameters.offset
        if parameters.skip is not None:
            values += np.matmul(self._fed, parameters.skip.T, out=self._skipped[: len(X)])
        return values

    def differentiate(self, X: FloatArray, errors: FloatArray) -> FloatArray:
        """Gradient (size,) of a loss whose derivative by the outputs is `errors`, right after `values(X)`."""
        rows, parts, parameters = len(X), self._parts, self.parameters
        hidden = [buffer[:rows] for buffer in self._hidden]
        back = [buffer[:rows] for buffer in self._back]
        np.sum(errors, axis=0, out=parts.offset)
        if parts.skip is not None:
            np.matmul(errors.T, self._fed, out=parts.skip)
        np.matmul(errors.T, hidden[-1], out=parts.output)
        if self.layout.outputs == 1:
            output, bias = parameters.output[0], parts.biases[-1]
            self._kernels.outer_relu_backward(errors[:, 0], output, hidden[-1], back[-1], bias)
        else:
            np.matmul(errors, parameters.output, out=back[-1])
            self._kernels.relu_backward(back[-1], hidden[-1], parts.biases[-1])
        for layer in range(len(hidden) - 1, 0, -1):
            np.matmul(back[layer].T, hidden[layer - 1], out=parts.hidden[layer])
            np.matmul(back[layer], parameters.hidden[layer], out=back[layer - 1])
            self._kernels.relu_backward(back[layer - 1], hidden[layer - 1], parts.biases[layer - 1])
        np.matmul(back[0].T, self._fed, out=parts.hidden[0])
        if self._layer is not None:
            self._layer.backward(X, self._slopes_of_embedding(back[0], errors), parts.embedding)
        return self.gradient

    def _slopes_of_embedding(self, back: FloatArray, errors: FloatArray) -> FloatArray:
        """Derivative by what the embedding shows, of which the first layer's scores (`back`) and the skip know."""
        beside, parameters = slice(self.layout.inputs, None), self.parameters
        slopes = np.matmul(back, parameters.hidden[0][:, beside], out=self._slopes[: len(back)])
        if parameters.skip is not None:
            slopes += errors @ parameters.skip[:, beside]
        return slopes


def rows_at_once(layout: Layout, itemsize: int) -> int:
    """How many rows to predict at a time with numbers of so many bytes."""
    kept = layout.embedding.kept(layout.inputs) if layout.embedding else 0
    of_row = layout.fed + kept + sum(layout.hidden) + 2 * layout.outputs
    return min(MOST_ROWS, max(FEWEST_ROWS, BUFFERS // (of_row * itemsize)))


def evaluate(layout: Layout, flat: FloatArray, X: FloatArray) -> FloatArray:
    """Outputs (rows, outputs) of a network at X (rows, inputs), in the precision of `flat`."""
    out, block = np.empty((len(X), layout.outputs), flat.dtype), rows_at_once(layout, flat.itemsize)
    backprop = Backprop(layout, flat, min(block, max(len(X), 1)), gradient=False)
    for start in range(0, len(X), block):
        out[start : start + block] = backprop.values(X[start : start + block])
    return out
