"""Exact sparse inference of a block of two layers, on arrays: what the wrappers of PyTorch modules call.

`SparseUp` finds the neurons that fire, `SparseDown` multiplies what they give by their rows of the second layer, and
`SparseBlock` does both at once. Weights are kept by reference, C-contiguous and in float32, as the C++ part checks;
nothing is changed after building, so calls may run at the same time. How firing neurons are found without reading all
weights, and why none is missed, is in csrc/kernels/sparse_block.hpp. Without the C++ part the reference in NumPy
serves, which scores all neurons:

A block maps a row x to y = Σ_j h_j·v_j + c, where neuron j has the score z_j = ⟨w_j, x⟩ + b_j, fires where z_j > τ, and
gives then, else 0,

    relu, threshold: h = z        shifted: h = z − τ        relu2: h = z²        (τ = 0 for relu and relu2)

and with a gate, whose score g decides: reglu: h = a(g)·z, drelu: h = a(g)·a(z), a the activation. A score that is no
number counts as firing, so NaN reaches the output as it does in a dense block.

With the C++ part the output of a row has the same bits for every batch around it, thread count and instruction set.
A row that is not finite, or so large that sums may overflow, is computed as a dense block would: NaN and infinity
reach the outputs. So do weights that are not finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fewfire._extension import core
from fewfire._threads import usable_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import IdArray

    Floats = NDArray[np.float32]

Activation = Literal["relu", "shifted", "threshold", "relu2"]
Gated = Literal["reglu", "drelu"]

ACTIVATIONS: tuple[Activation, ...] = ("relu", "shifted", "threshold", "relu2")
"""Activations whose formula is known; the others have exact zeros and a threshold, or neither."""

_RESIDUAL_FROM = 2048
"""Inputs from which the codes leave open about twice the neurons that fire, where 3% do: these are then compared by
residual codes too, half a byte per weight more."""


class SparseWork(NamedTuple):
    """What one call has cost, over all rows of its batch: pairs of a row and a neuron, products and bytes."""

    screened: int  # pairs that were compared by their codes
    open: int  # pairs that the codes left open
    scored: int  # pairs that the residual codes left open as well, scored in float32
    firing: int
    multiply_adds: int  # of float32 numbers; products of codes are not counted
    bytes: int  # of codes and weights that were read, each row of weights once per batch


class SparseUp:
    """The first layer of a block, or its gate: scores of the neurons that fire, those above the threshold.

    `weight` has shape (width, inputs) and `bias` (width,), both float32.
    """

    def __init__(
        self,
        weight: Floats,
        bias: Floats | None,
        *,
        activation: Activation = "relu",
        threshold: float = 0.0,
    ) -> None:
        self.weight, self.bias = weight, _contiguous(bias)
        self.width, self.inputs = weight.shape
        self.activation, self.threshold = activation, float(np.float32(threshold))
        native, coded = core(), self.inputs >= _RESIDUAL_FROM
        self._native = native and native.ScreenedLayer(weight, self.bias, self.threshold, coded, usable_cores())

    def __call__(self, x: Floats, threads: int = 1) -> Floats:
        """Scores of the neurons that fire, and a score that the activation maps to 0 elsewhere: (batch, width)."""
        x = np.ascontiguousarray(x)
        rest = np.float32(resting(self.activation, self.threshold))
        if self._native is not None:
            out = np.empty((len(x), self.width), dtype=np.float32)
            self._native.scores(x, float(rest), out, threads)
            return out
        z = affine(x, self.weight.T, self.bias)
        return np.where(fires(z, self.threshold), z, rest)

    def firing(self, x: Floats, threads: int = 1) -> tuple[IdArray, IdArray, Floats]:
        """The neurons that fire, row by row: `indptr`, ascending `indices`, and their scores."""
        x = np.ascontiguousarray(x)
        if self._native is not None:
            indptr, indices, values, _ = self._native.firing(x, threads)
            return indptr, indices, values
        z = affine(x, self.weight.T, self.bias)
        where, which = np.nonzero(fires(z, self.threshold))
        indptr = np.searchsorted(where, np.arange(len(x) + 1)).astype(np.int64)
        return indptr, which.astype(np.int64), z[where, which]

    @property
    def extra_bytes(self) -> int:
        """Memory used in addition to the weights."""
        return 0 if self._native is None else int(self._native.memory)

    def recode(self, neurons: IdArray, threads: int = 1) -> None:
        """Look at the rows and biases of these distinct neurons again; no other call may run at the same time."""
        if self._native is not None:
            self._native.recode(np.ascontiguousarray(neurons, dtype=np.int64), threads)


class SparseDown:
    """The second layer of a block, neuron by neuron: rows of neurons that give 0 are not read.

    `weight_t` of shape (width, outputs) is the transpose of a `torch.nn.Linear`'s weight; `bias` has shape (outputs,).
    """

    def __init__(self, weight_t: Floats, bias: Floats | None) -> None:
        self.weight_t, self.bias = weight_t, _contiguous(bias)
        self.width, self.outputs = weight_t.shape
        # 0 times a weight that is not finite is NaN, as in a dense layer: such rows are never left out.
        unbounded = ~np.isfinite(weight_t).all(axis=1)
        self._unbounded = unbounded.astype(np.uint8) if unbounded.any() else None

    def __call__(self, h: Floats, threads: int = 1) -> Floats:
        """h·weight_t + bias of the neurons' values h, of shape (batch, width): shape (batch, outputs)."""
        h, native = np.ascontiguousarray(h), core()
        if native is None:
            return affine(h, self.weight_t, self.bias)
        out = np.empty((len(h), self.outputs), dtype=np.float32)
        native.sparse_down(self.weight_t, self.bias, self._unbounded, h, out, threads)
        return out

    @property
    def extra_bytes(self) -> int:
        """Memory used in addition to the weights."""
        return 0 if self._unbounded is None else self._unbounded.nbytes


class SparseBlock:
    """Two layers at once, with or without a gate: the output of a block at the cost of the neurons that fire.

    `up` and `up_bias` are as in `SparseUp`, `down_t` and `down_bias` as in `SparseDown`; `gate`, `gate_bias` are like
    `up` and `up_bias`. Only the gate is searched for firing neurons.
    """

    def __init__(
        self,
        up: Floats,
        up_bias: Floats | None,
        down_t: Floats,
        down_bias: Floats | None,
        *,
        gate: Floats | None = None,
        gate_bias: Floats | None = None,
        activation: Activation = "relu",
        threshold: float = 0.0,
        gated: Gated | None = None,
    ) -> None:
        self.up, self.down_t, self.gate = up, down_t, gate
        self.up_bias, self.down_bias, self.gate_bias = map(_contiguous, (up_bias, down_bias, gate_bias))
        (self.width, self.inputs), self.outputs = up.shape, down_t.shape[1]
        self.activation, self.threshold, self.gated = activation, float(np.float32(threshold)), gated
        native = core()
        self._native = native and native.SparseBlock(
            up,
            self.up_bias,
            down_t,
            self.down_bias,
            gate,
            self.gate_bias,
            activation,
            self.threshold,
            gated or "",
            self.inputs >= _RESIDUAL_FROM,
            usable_cores(),
        )

    def __call__(self, x: Floats, threads: int = 1) -> Floats:
        """The block's output for rows x of shape (batch, inputs): shape (batch, outputs)."""
        return self.counted(x, threads)[0]

    def counted(self, x: Floats, threads: int = 1) -> tuple[Floats, SparseWork]:
        """The output, and what it has cost."""
        x = np.ascontiguousarray(x)
        if self._native is None:
            return self._reference(x)
        out = np.empty((len(x), self.outputs), dtype=np.float32)
        return out, SparseWork(*self._native.forward(x, out, threads))

    def _reference(self, x: Floats) -> tuple[Floats, SparseWork]:
        z = affine(x, self.up.T, self.up_bias)
        if self.gate is None:
            firing = fires(z, self.threshold)
            h = activate(z, self.activation, self.threshold)
        else:
            g = affine(x, self.gate.T, self.gate_bias)
            firing = fires(g, self.threshold)
            value = z if self.gated == "reglu" else activate(z, self.activation, self.threshold)
            with np.errstate(all="ignore"):
                h = activate(g, self.activation, self.threshold) * value
        layers = [array for array in (self.up, self.gate, self.down_t) if array is not None]
        products = len(x) * sum(array.size for array in layers)
        work = SparseWork(z.size, z.size, z.size, int(firing.sum()), products, sum(array.nbytes for array in layers))
        return affine(h, self.down_t, self.down_bias), work

    @property
    def extra_bytes(self) -> int:
        """Memory used in addition to the weights."""
        return 0 if self._native is None else int(self._native.memory)


def _contiguous(bias: Floats | None) -> Floats | None:
    return None if bias is None else np.ascontiguousarray(bias)


def affine(x: Floats, matrix: Floats, bias: Floats | None) -> Floats:
    """x·matrix + bias of each row: shape (batch, columns of the matrix)."""
    with np.errstate(all="ignore"):
        z = x @ matrix
        return z if bias is None else z + bias


def fires(z: Floats, threshold: float) -> NDArray[np.bool_]:
    """Where a neuron fires; NaN does."""
    return ~(z <= np.float32(threshold))


def activate(z: Floats, activation: str, threshold: float) -> Floats:
    """What a neuron with this score gives."""
    with np.errstate(all="ignore"):
        given = z * z if activation == "relu2" else z - np.float32(threshold) if activation == "shifted" else z
    return np.where(fires(z, threshold), given, np.float32(0))


def resting(activation: str, threshold: float) -> float:
    """A score that the activation maps to 0; 0 itself where it can be."""
    return min(0.0, threshold) if activation == "shifted" else 0.0
