"""Embeddings: layers that are trained with the network and stand beside its inputs.

The one at hand is the periodic embedding of Gorishniy, Rubachev and Babenko (On Embeddings for Numerical Features in
Tabular Deep Learning, 2022), one value per input: v_j = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_j + phase_jk). A
first layer of kinks needs many neurons for a target that goes up and down along one column; cosines that learn their
frequencies give it such shapes at once. csrc/kernels/periodic.hpp adds them up.

An `Embedding` holds settings alone. Its parameters are arrays that others may own, such as parts of one long vector;
`layer` puts buffers beside them, and `build` makes both for use by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fewfire._random import as_stream
from fewfire._validate import check_integer, check_number
from fewfire.tabular._kernels import kernels, twins

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from fewfire._random import Stream
    from fewfire._types import FloatArray, IdArray


class EmbeddingLayer(Protocol):
    """An embedding with its parameters, for up to a fixed number of rows at a time."""

    def forward(self, X: FloatArray) -> FloatArray:
        """[X, embedded] (rows, inputs + outputs) of X (rows, inputs); overwritten by the next call."""

    def backward(
        self, X: FloatArray, slopes: FloatArray, into: Sequence[FloatArray] | None = None
    ) -> Sequence[FloatArray]:
        """Gradients of the parameters, right after `forward(X)`, of a loss whose derivative by embedded is `slopes`."""


class Embedding(ABC):
    """Settings of a trained layer that shows `outputs` more values beside the inputs."""

    @abstractmethod
    def outputs(self, inputs: int) -> int:
        """Values beside so many inputs."""

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
            Who computes: `kernels()` by default, `twins()` for the same bits on every machine.
        """

    @abstractmethod
    def torch_values(self, torch: Any, X: Any, *parameters: Any) -> Any:
        """The embedded values (members, rows, outputs) at tensors X (members, rows, inputs), parameters by member."""

    def values_at(self, parameters: Sequence[FloatArray], X: FloatArray, places: IdArray) -> FloatArray:
        """What `forward` gives of X (rows, inputs) at places (rows, any), by NumPy; override it where few cost less."""
        fed = self.layer(parameters, len(X), gradient=False, by=twins()).forward(X)
        return np.take_along_axis(fed, places, axis=1)

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
    """Beside each input a sum of cosines of it whose frequencies, phases and weights are learned.

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
    >>> from fewfire.tabular import PeriodicEmbedding
    >>> X = np.linspace(-2, 2, 50, dtype=np.float32).reshape(25, 2)
    >>> parameters, layer = PeriodicEmbedding(8, frequency_scale=0.5).build(inputs=2, rows=25, seed=0)
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
        """One value beside each input."""
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

    def values_at(self, parameters: Sequence[FloatArray], X: FloatArray, places: IdArray) -> FloatArray:
        """Inputs, and sums of cosines of those that are asked for."""
        mix, frequency, phase, bias = parameters
        inputs = len(mix)
        if 2 * places.shape[1] >= inputs:
            return super().values_at(parameters, X, places)
        columns = places % inputs
        values = np.take_along_axis(X, columns, axis=1)
        angles = 2 * np.pi * values[..., None] * frequency[columns] + phase[columns]
        sums = np.einsum("rpk,rpk->rp", np.cos(angles), mix[columns]) + bias[columns]
        return np.where(places < inputs, values, sums)

    def torch_values(self, torch: Any, X: Any, *parameters: Any) -> Any:
        """Sums of cosines (members, rows, inputs)."""
        mix, frequency, phase, bias = (parameter[:, None] for parameter in parameters)
        angles = 2 * np.pi * X[..., None] * frequency + phase
        return (torch.cos(angles) * mix).sum(dim=-1) + bias


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
        self._by = by or (kernels() if single or not gradient else twins())
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
