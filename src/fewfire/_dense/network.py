"""Dense networks: rows, parameters as one flat vector, embeddings, forward and backward in NumPy, epochs in C++.

Output of a row x: skip·h_0 + V·h_L + offset, with h_l = relu(W_l h_(l−1) + b_l), and h_0 = x or, with an embedding, x
and its outputs. All matrices come first in the vector, those of the embedding too, then biases and the rest: so weight
decay is one slice. W_l is (neurons, inputs): a row is a neuron, as in pareto.

An embedding is a layer that is trained with the network and adds to its inputs. The one here is the periodic embedding
of Gorishniy, Rubachev and Babenko (On Embeddings for Numerical Features in Tabular Deep Learning, 2022), one value per
input: v_j = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_j + phase_jk). A first layer of kinks needs many neurons for a
target that goes up and down along one column; cosines that learn their frequencies give it such shapes at once.

`Backprop`, `TABLE_LOSSES` and `Descent.step` are the reference of `FusedNetwork`, whose epochs run in C++ as a whole
(csrc/kernels/mlp_training.hpp, mlp.hpp and periodic.hpp). What is predicted for a row must not depend on the rows
around it. The products in C++ sum in one order whatever the rows; those of BLAS do not, so NumPy predicts in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fewfire import _extension
from fewfire._dense.kernels import kernels, reference
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from fewfire._dense.losses import TabularLoss
    from fewfire._dense.optimisers import Descent
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray

FEWEST_ROWS, MOST_ROWS = 16, 1024
"""Rows of a prediction at a time, so that products are worth their call and the hidden layer stays in cache."""
BUFFERS = 2**24
"""Bytes the layers of those rows may take; an embedding of a wide table keeps much."""
CACHE_LINE = 64
STRATA = 100  # that folds of groups are balanced by, at most; of more, quantiles


@dataclass(frozen=True)
class Rows:
    """Rows of a table, without a copy of them: the `chosen` of it, their inputs times `gains`.

    Parameters
    ----------
    X : array (all rows, inputs), or a table that has its inputs in several encodings
    target : array (all rows, outputs), or labels (all rows,) that are not encoded yet
    weight : array (all rows,)
    strata : array (all rows,), optional
        What folds are balanced by.
    chosen : array of row numbers, optional
        All rows by default.
    gains : array (inputs,), optional
        1 by default.
    groups : array (all rows,), optional
        Numbers of the groups that folds keep together.
    """

    X: Any
    target: AnyArray
    weight: AnyArray
    strata: AnyArray | None = None
    chosen: IdArray | None = None
    gains: FloatArray | None = None
    groups: IdArray | None = None

    def __getitem__(self, rows: IdArray) -> Rows:
        return replace(self, chosen=rows if self.chosen is None else self.chosen[rows])

    def __len__(self) -> int:
        return len(self.X if self.chosen is None else self.chosen)

    def with_gains(self, gains: FloatArray) -> Rows:
        """Inputs multiplied by gains (inputs,)."""
        return replace(self, gains=gains if self.gains is None else self.gains * gains)

    def smoothed(self, share: float) -> Rows:
        """Targets of classes with a share of them spread over the classes as these are distributed over the rows.

        So the mean target stays what it is; spread evenly, the share would make rare classes too likely.
        """
        if not share:
            return self
        chosen = self.indices()
        prior = np.average(self.target[chosen], axis=0, weights=self.weight[chosen].astype(np.float64))
        return replace(self, target=np.float32(1 - share) * self.target + np.float32(share * prior))

    def indices(self) -> IdArray:
        """Numbers of the rows in the table."""
        return np.arange(len(self.X)) if self.chosen is None else self.chosen

    def factors(self) -> FloatArray:
        """The gains, 1 where there are none."""
        return np.ones(self.X.shape[1], np.float32) if self.gains is None else self.gains

    def copied(self) -> Rows:
        """The same rows as arrays of their own, gains included."""
        chosen = slice(None) if self.chosen is None else self.chosen
        return Rows(self.inputs(), self.target[chosen], self.weight[chosen])

    def inputs(self) -> FloatArray:
        """Inputs (rows, inputs), gains included."""
        X: FloatArray = self.X if self.chosen is None else self.X[self.chosen]
        return X if self.gains is None else X * self.gains


def held_out_folds(
    strata: AnyArray, networks: int, folds: int, stream: Stream, groups: IdArray | None = None
) -> list[IdArray]:
    """For each network the rows it does not train on; `folds` successive networks together hold out every row once.

    Rows are dealt out stratum by stratum (classes, or sorted targets), so that every fold sees the same mix; or group
    by group, the largest first, each to the fold that has the least of its strata and rows so far.
    """
    held: list[IdArray] = []
    for partition in range(-(-networks // folds)):
        order = stream.child(f"folds{partition}").permutation(len(strata))
        dealt = order[np.argsort(strata[order], kind="stable")]
        if groups is None:
            held.extend(np.sort(dealt[fold::folds]) for fold in range(folds))
        else:
            of_row = _dealt_groups(dealt, strata, groups, folds)
            held.extend(np.flatnonzero(of_row == fold) for fold in range(folds))
    return held[:networks]


def _dealt_groups(order: IdArray, strata: AnyArray, groups: IdArray, folds: int) -> IdArray:
    """The fold of each row (rows,); groups of one size come in the order of their first rows in `order`."""
    distinct, level = np.unique(strata, return_inverse=True)
    level = level if len(distinct) <= STRATA else np.argsort(np.argsort(strata, kind="stable")) * STRATA // len(strata)
    members = np.split(order[np.argsort(groups[order], kind="stable")], np.cumsum(np.bincount(groups))[:-1])
    first, scale = np.argsort(order), 1 / np.append(np.bincount(level), len(level))
    filled, fold_of = np.zeros((folds, len(scale))), np.empty(len(groups), np.int64)
    for ids in sorted((ids for ids in members if len(ids)), key=lambda ids: (-len(ids), first[ids[0]])):
        counts = np.append(np.bincount(level[ids], minlength=len(scale) - 1), len(ids))
        fold_of[ids] = fold = int(np.argmin(filled @ (counts * scale)))
        filled[fold] += counts
    return fold_of


class EmbeddingLayer(Protocol):
    """An embedding with its parameters, for up to a fixed number of rows at a time."""

    def forward(self, X: FloatArray) -> FloatArray:
        """[X, embedded] (rows, inputs + outputs) of X (rows, inputs); overwritten by the next call."""

    def backward(
        self, X: FloatArray, slopes: FloatArray, into: Sequence[FloatArray] | None = None
    ) -> Sequence[FloatArray]:
        """Gradients of the parameters, right after `forward(X)`, of a loss whose derivative by embedded is `slopes`."""


class Embedding(ABC):
    """Settings of a trained layer that adds `outputs` values to the inputs.

    Its parameters are arrays that others may own, such as parts of one long vector; `layer` adds buffers to them, and
    `build` makes both for use by itself."""

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """Values added to so many inputs."""

    @abstractmethod
    def matrices(self, inputs: int) -> list[tuple[int, int]]:
        """Shapes of the parameters that weight decay shrinks; they come first."""

    @abstractmethod
    def vectors(self, inputs: int) -> list[tuple[int, ...]]:
        """Shapes of the other parameters."""

    @abstractmethod
    def kept(self, inputs: int) -> int:
        """Numbers per row that a layer keeps for its gradients."""

    @abstractmethod
    def draw(self, parameters: Sequence[FloatArray], stream: Stream) -> None:
        """Fill in a random start."""

    @abstractmethod
    def layer(
        self, parameters: Sequence[FloatArray], rows: int, *, gradient: bool = True, by: ModuleType | None = None
    ) -> EmbeddingLayer:
        """The layer of these parameters, which are read at every call.

        Parameters
        ----------
        rows : int
            Most rows of a call.
        gradient : bool
            Whether `backward` will be called.
        by : module, optional
            `kernels()` by default, `reference()` for the same bits on every machine.
        """

    def values_at(self, parameters: Sequence[FloatArray], X: FloatArray, columns: IdArray) -> FloatArray:
        """What `forward` gives in some columns (rows, any), by NumPy; override it where few cost less."""
        fed = self.layer(parameters, len(X), gradient=False, by=reference()).forward(X)
        return np.take_along_axis(fed, columns, axis=1)

    def build(self, inputs: int, rows: int, seed: int | Stream = 0) -> tuple[Sequence[FloatArray], EmbeddingLayer]:
        """Fresh float32 parameters for so many inputs, and their layer for up to `rows` rows at a time."""
        check_integer("inputs", inputs, 1)
        check_integer("rows", rows, 1)
        shapes = [*self.matrices(inputs), *self.vectors(inputs)]
        parameters = [np.zeros(shape, np.float32) for shape in shapes]
        self.draw(parameters, as_stream(seed, "embedding"))
        return parameters, self.layer(parameters, rows)


class PeriodicParameters(NamedTuple):
    """Arrays (inputs, frequencies), and `bias` (inputs,)."""

    mix: FloatArray
    frequency: FloatArray
    phase: FloatArray
    bias: FloatArray


@dataclass(frozen=True)
class PeriodicEmbedding(Embedding):
    """For each input a sum of cosines of it whose frequencies, phases and weights are learned.

    Not the multi-valued embedding of the paper: one value per input proved enough. Gradients by the inputs are not
    computed, so it is a first layer.

    Parameters
    ----------
    frequencies : int
        Cosines per input.
    frequency_scale : float
        Standard deviation of the frequencies at the start: 0.1 is a tenth of a turn for an input one deviation away.

    Examples
    --------
    >>> import numpy as np
    >>> from fewfire.tabular import ENCODINGS
    >>> X = np.linspace(-2, 2, 50, dtype=np.float32).reshape(25, 2)
    >>> parameters, layer = ENCODINGS["periodic"](8, frequency_scale=0.5).build(inputs=2, rows=25, seed=0)
    >>> target = np.sin(3 * X)
    >>> losses = []
    >>> for step in range(200):
    ...     errors = layer.forward(X)[:, 2:] - target
    ...     losses.append(float((errors**2).mean()))
    ...     for parameter, gradient in zip(parameters, layer.backward(X, errors / 25), strict=True):
    ...         parameter -= 0.1 * gradient
    >>> losses[-1] < losses[0] / 100
    True
    """

    frequencies: int = 16
    frequency_scale: float = 0.1

    def __post_init__(self) -> None:
        check_integer("frequencies", self.frequencies, 1)
        check_number("frequency_scale", self.frequency_scale, 0.0, open_low=True)

    def outputs(self, inputs: int) -> int:
        """One value for each input."""
        return inputs

    def matrices(self, inputs: int) -> list[tuple[int, int]]:
        """The weights of the cosines."""
        return [(inputs, self.frequencies)]

    def vectors(self, inputs: int) -> list[tuple[int, ...]]:
        """Frequencies, phases and biases."""
        return [(inputs, self.frequencies), (inputs, self.frequencies), (inputs,)]

    def kept(self, inputs: int) -> int:
        """Cosines and sines."""
        return 2 * inputs * self.frequencies

    def draw(self, parameters: Sequence[FloatArray], stream: Stream) -> None:
        """Low frequencies, any phase, sums of variance ½."""
        mix, frequency, phase, bias = parameters
        drawn = stream.child("waves")  # names of streams outlive renamings: the same seed, the same start
        mix[:] = drawn.child("mix").normal(mix.shape) / np.sqrt(self.frequencies)
        frequency[:] = self.frequency_scale * drawn.child("frequency").normal(mix.shape)
        phase[:] = np.pi * (2 * drawn.child("phase").uniform(mix.shape) - 1)
        bias[:] = 0

    def layer(
        self, parameters: Sequence[FloatArray], rows: int, *, gradient: bool = True, by: ModuleType | None = None
    ) -> PeriodicLayer:
        """The layer of mix, frequency, phase and bias."""
        return PeriodicLayer(PeriodicParameters(*parameters), rows, gradient, by)

    def values_at(self, parameters: Sequence[FloatArray], X: FloatArray, columns: IdArray) -> FloatArray:
        """Inputs, and sums of cosines of those that are asked for."""
        mix, frequency, phase, bias = parameters
        inputs = len(mix)
        if 2 * columns.shape[1] >= inputs:
            return super().values_at(parameters, X, columns)
        source = columns % inputs
        values = np.take_along_axis(X, source, axis=1)
        angles = 2 * np.pi * values[..., None] * frequency[source] + phase[source]
        sums = np.einsum("rpk,rpk->rp", np.cos(angles), mix[source]) + bias[source]
        return np.where(columns < inputs, values, sums)


class PeriodicLayer:
    """Values and gradients of a periodic embedding in preallocated buffers.

    Parameters
    ----------
    parameters : PeriodicParameters
        float32, or float64, whose gradients only the NumPy code computes.
    rows : int
    gradient : bool
    by : module, optional
    """

    def __init__(self, parameters: PeriodicParameters, rows: int, gradient: bool, by: ModuleType | None) -> None:
        inputs, count = parameters.mix.shape
        dtype = parameters.mix.dtype
        self.parameters, self._fed = parameters, np.empty((rows, 2 * inputs), dtype)
        single = dtype == np.float32
        self._by = by or (kernels() if single or not gradient else reference())
        self._keeps = gradient or single
        kept = inputs * count if self._keeps else 0
        self._cosines, self._sines = np.empty((rows, kept), dtype), np.empty((rows, kept), dtype)

    def forward(self, X: FloatArray) -> FloatArray:
        """[X, v] (rows, 2·inputs); overwritten by the next call."""
        rows, X = slice(0, len(X)), np.ascontiguousarray(X)
        fed = self._fed[rows]
        if self._keeps:
            self._by.periodic_values(X, *self.parameters, fed, self._cosines[rows], self._sines[rows])
        else:
            self._by.periodic_outputs(X, *self.parameters, fed)
        return fed

    def backward(
        self, X: FloatArray, slopes: FloatArray, into: Sequence[FloatArray] | None = None
    ) -> Sequence[FloatArray]:
        """Gradients of mix, frequency, phase and bias, right after `forward(X)`.

        Parameters
        ----------
        slopes : array (rows, inputs)
            Derivative of the loss by v.
        into : four arrays, optional
            Where to write them; fresh arrays by default.
        """
        rows = slice(0, len(X))
        if into is None:
            into = PeriodicParameters(*map(np.empty_like, self.parameters))
        self._by.periodic_gradients(
            np.ascontiguousarray(X),
            np.ascontiguousarray(slopes),
            self._cosines[rows],
            self._sines[rows],
            self.parameters.mix,
            *into,
        )
        return into


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
        """Inputs of the first layer: those of the network and the outputs of its embedding."""
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


class Backprop:
    """Values and gradients of one network, in buffers that are kept between calls.

    Parameters
    ----------
    layout : Layout
    flat : array (layout.size,)
        The parameters; read at every call.
    rows : int
        Rows that there are buffers for; more of them make larger ones, but not where there is an embedding.
    gradient : bool
        Whether `differentiate` or `pull` will be called.
    """

    def __init__(self, layout: Layout, flat: FloatArray, rows: int, *, gradient: bool = True) -> None:
        self.layout, self.flat, self.parameters = layout, flat, layout.unpack(flat)
        self._differentiates = gradient
        if gradient:
            self.gradient = np.zeros_like(flat)
            self._parts = layout.unpack(self.gradient)
        # In C++ there are gradients of float32 alone.
        self._kernels = kernels() if flat.dtype == np.float32 or not gradient else reference()
        self._layer: EmbeddingLayer | None = None
        if layout.embedding is not None:
            self._layer = layout.embedding.layer(self.parameters.embedding, rows, gradient=gradient)
        self._make_room(rows)

    def _make_room(self, rows: int) -> None:
        """Buffers for so many rows."""
        layout, dtype = self.layout, self.flat.dtype
        self._hidden = [np.empty((rows, width), dtype) for width in layout.hidden]
        if self._differentiates:
            self._back = [np.empty((rows, width), dtype) for width in layout.hidden]
            self._slopes = np.empty((rows, layout.fed - layout.inputs), dtype)
        self._values = np.empty((rows, layout.outputs), dtype)
        self._skipped = np.empty_like(self._values)

    def values(self, X: FloatArray) -> FloatArray:
        """Outputs (rows, outputs) at X (rows, inputs); overwritten by the next call."""
        if len(X) > len(self._values):
            self._make_room(len(X))
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
        parts, back = self._parts, self._back_to_first(errors)
        below = [self._fed, *(buffer[: len(X)] for buffer in self._hidden)]
        np.sum(errors, axis=0, out=parts.offset)
        if parts.skip is not None:
            np.matmul(errors.T, self._fed, out=parts.skip)
        np.matmul(errors.T, below[-1], out=parts.output)
        for layer, slopes in enumerate(back):
            np.matmul(slopes.T, below[layer], out=parts.hidden[layer])
        if self._layer is not None:
            self._layer.backward(X, self._slopes_of_embedding(back[0], errors), parts.embedding)
        return self.gradient

    def pull(self, errors: FloatArray) -> FloatArray:
        """The same gradient by X (rows, inputs); of networks without an embedding."""
        found = self._back_to_first(errors)[0] @ self.parameters.hidden[0]
        return found if self.parameters.skip is None else found + errors @ self.parameters.skip

    def _back_to_first(self, errors: FloatArray) -> list[FloatArray]:
        """Derivatives (rows, width) by what each layer's ReLU is given; their sums are the gradients of the biases."""
        parts, parameters, rows = self._parts, self.parameters, len(errors)
        hidden, back = [buffer[:rows] for buffer in self._hidden], [buffer[:rows] for buffer in self._back]
        if self.layout.outputs == 1:
            output, bias = parameters.output[0], parts.biases[-1]
            self._kernels.outer_relu_backward(np.ascontiguousarray(errors[:, 0]), output, hidden[-1], back[-1], bias)
        else:
            np.matmul(errors, parameters.output, out=back[-1])
            self._kernels.relu_backward(back[-1], hidden[-1], parts.biases[-1])
        for layer in range(len(hidden) - 1, 0, -1):
            np.matmul(back[layer], parameters.hidden[layer], out=back[layer - 1])
            self._kernels.relu_backward(back[layer - 1], hidden[layer - 1], parts.biases[layer - 1])
        return back

    def _slopes_of_embedding(self, back: FloatArray, errors: FloatArray) -> FloatArray:
        """Derivative by the outputs of the embedding, by way of the first layer (`back`) and of the skip."""
        added, parameters = slice(self.layout.inputs, None), self.parameters
        slopes = np.matmul(back, parameters.hidden[0][:, added], out=self._slopes[: len(back)])
        if parameters.skip is not None:
            slopes += errors @ parameters.skip[:, added]
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


@lru_cache(maxsize=64)
def _packing(core: Any, layout: Layout) -> Any:
    embedding = layout.embedding
    frequencies = embedding.frequencies if isinstance(embedding, PeriodicEmbedding) else 0
    hidden = np.array(layout.hidden, np.int64)
    ladders = np.array(layout.ladders, np.int64)
    return core.PackedMlp(layout.inputs, hidden, layout.outputs, layout.skip, frequencies, ladders)


def packing(layout: Layout) -> Any | None:
    """The C++ side of a layout, or None where it is missing or has no such embedding."""
    core = _extension.core()
    known = layout.embedding is None or type(layout.embedding) is PeriodicEmbedding
    return _packing(core, layout) if core is not None and known else None


def aligned(rows: int, size: int) -> FloatArray:
    """Zeros (rows, size), float32, that begin on a cache line."""
    count = rows * size * np.dtype(np.float32).itemsize
    memory = np.zeros(count + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + count].view(np.float32).reshape(rows, size)


class FusedNetwork:
    """Packed parameters and optimiser of a network.

    Parameters
    ----------
    packed : PackedMlp
        From `packing`.
    flat : array (layout.size,)
    descent : Descent
        Its steps are counted here too.

    Attributes
    ----------
    parameters : array (size,)
        Packed.
    """

    def __init__(self, packed: Any, flat: FloatArray, descent: Descent) -> None:
        self._packed, self._flat, self._descent = packed, flat, descent
        self.parameters = aligned(1, packed.size)[0]
        self._state = aligned(len(descent.state), packed.size)
        packed.pack(flat, self.parameters)
        for row, part in zip(self._state, descent.state, strict=True):
            packed.pack(part, row)

    def epoch(self, rows: Rows, chosen: IdArray, loss: TabularLoss, batch: int) -> float:
        """One pass over the chosen rows in their order, `batch` per step; the mean loss met on the way."""
        total = self._packed.epoch(*self._descending(rows, chosen, loss, batch))
        return self._count(total, len(chosen), batch)

    def advance(
        self,
        rows: Rows,
        loss: TabularLoss,
        batch: int,
        words: tuple[Stream, int],
        mean: FloatArray,
        newest: float,
        validation: Rows,
        outputs: int,
    ) -> tuple[float, Float64Array]:
        """One pass over the rows, the newest share of the weights' mean, outputs (validation, outputs) by that mean.

        `words` is where the order of the rows is drawn from: all in one call, which needs the interpreter once.
        """
        (stream, start), out = words, np.empty((len(validation), outputs))
        total = self._packed.advance(
            *self._descending(rows, rows.indices(), loss, batch),
            int(stream.key),
            stream.id,
            start,
            mean,
            newest,
            validation.X,
            validation.factors(),
            validation.indices(),
            out,
        )
        return self._count(total, len(rows), batch), out

    def _descending(self, rows: Rows, chosen: IdArray, loss: TabularLoss, batch: int) -> tuple[Any, ...]:
        """The arguments of an epoch."""
        descent = self._descent
        table = rows.X, rows.factors(), chosen, rows.target, rows.weight
        rule = descent.rule.name, descent.learning_rate, descent.decay, *descent.memory
        return self.parameters, self._state, descent.steps, *table, loss, batch, *rule

    def _count(self, total: float, rows: int, batch: int) -> float:
        """Count the steps of an epoch; its mean loss."""
        self._descent.steps += -(-rows // batch)
        return float(total) / rows

    def values(
        self, X: FloatArray, gains: FloatArray, chosen: IdArray, outputs: int, parameters: FloatArray
    ) -> Float64Array:
        """Outputs (rows, outputs) at the chosen rows, by packed parameters (size,)."""
        out = np.empty((len(chosen), outputs))
        self._packed.outputs(parameters[None], X, gains, chosen, out)
        return out

    def unpack(self) -> None:
        """Write parameters and the optimiser's state back to where they came from."""
        self._packed.unpack(self.parameters, self._flat)
        for row, part in zip(self._state, self._descent.state, strict=True):
            self._packed.unpack(row, part)


def mean_outputs(layout: Layout, flats: FloatArray) -> Callable[[FloatArray, FloatArray], Float64Array]:
    """Of networks (networks, layout.size): a function of X (rows, inputs), float32, and gains (inputs,).

    It gives the mean output (rows, outputs), that of a row whatever the others: by C++ in one pass over the rows, or by
    NumPy, network by network. The weights are converted once.
    """
    packed = packing(layout)
    if packed is None:
        exact = flats.astype(np.float64)

        def reference_outputs(X: FloatArray, gains: FloatArray) -> Float64Array:
            inputs = (X * gains).astype(np.float64)
            return np.asarray(sum(evaluate(layout, flat, inputs) for flat in exact) / len(exact))

        return reference_outputs
    parameters = aligned(len(flats), packed.size)
    for flat, row in zip(flats, parameters, strict=True):
        packed.pack(flat, row)

    def outputs(X: FloatArray, gains: FloatArray) -> Float64Array:
        out = np.empty((len(X), layout.outputs))
        packed.outputs(parameters, np.ascontiguousarray(X), gains, np.arange(len(X)), out)
        return out

    return outputs
