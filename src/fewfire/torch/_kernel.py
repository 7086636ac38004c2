"""Exact sparse inference of a block of two layers, on arrays: what the wrappers of PyTorch modules stand on.

`SparseUp` finds the neurons that fire, `SparseDown` multiplies what they give by their rows of the second layer, and
`SparseBlock` does both at once. Weights are kept by reference, in float32; nothing is changed after building, so calls
may run at the same time. The formulas are in `_kernel_reference.py`; how firing neurons are found without reading all
weights, and why none is missed, in csrc/kernels/sparse_block.hpp. Without the C++ part the NumPy twin serves.

With the C++ part the output of a row has the same bits for every batch around it, thread count and instruction set.
A row that is not finite, or so large that sums may overflow, is computed as a dense block would: NaN and infinity
reach the outputs. So do weights that are not finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fewfire._cores import usable_cores
from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.torch import _kernel_reference as reference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import IdArray

    Floats = NDArray[np.float32]

Activation = Literal["relu", "shifted", "threshold", "relu2"]
Gated = Literal["reglu", "drelu"]

ACTIVATIONS: tuple[Activation, ...] = ("relu", "shifted", "threshold", "relu2")
GATED: tuple[Gated, ...] = ("reglu", "drelu")

# Inputs from which the codes leave open about twice the neurons that fire, where 3% do.
_RESIDUAL_FROM = 2048


class SparseWork(NamedTuple):
    """What one call has cost, over all rows of its batch."""

    screened: int
    """Pairs of a row and a neuron that the codes were asked about."""
    open: int
    """Pairs that the codes left open."""
    scored: int
    """Pairs that the residual codes left open as well, scored in float32."""
    firing: int
    """Pairs that fire."""
    multiply_adds: int
    """Of float32 numbers; products of codes are not counted."""
    bytes: int
    """Of codes and weights that were read, each row of weights once per batch."""


class SparseUp:
    """The first layer of a block, or its gate: scores of the neurons that fire.

    Parameters
    ----------
    weight : float32 array of shape (width, inputs), C-contiguous
        Kept by reference.
    bias : float32 array of shape (width,), or None
    activation : {"relu", "shifted", "threshold", "relu2"}
    threshold : float
        A neuron fires where its score is above it; 0 for "relu" and "relu2".
    residual : bool or None
        Whether neurons that the codes leave open are asked again with residual codes, half a byte per weight more; None
        decides by the number of inputs, with which the bound of the codes grows.
    """

    def __init__(
        self,
        weight: Floats,
        bias: Floats | None,
        *,
        activation: Activation = "relu",
        threshold: float = 0.0,
        residual: bool | None = None,
    ) -> None:
        self.weight = _matrix("weight", weight)
        self.width, self.inputs = self.weight.shape
        self.bias = _vector("bias", bias, self.width)
        self.activation, self.threshold = _activation(activation, threshold)
        self.residual = residual
        self.refresh()

    def __call__(self, x: Floats, threads: int = 1) -> Floats:
        """Scores of the neurons that fire, and a score that the activation maps to 0 elsewhere: (batch, width)."""
        x, threads = _rows("x", x, self.inputs), _threads(threads)
        resting = np.float32(reference.resting(self.activation, self.threshold))
        if self._native is not None:
            out = np.empty((len(x), self.width), dtype=np.float32)
            self._native.scores(x, float(resting), out, threads)
            return out
        z = reference.scores(x, self.weight, self.bias)
        return np.where(reference.fires(z, self.threshold), z, resting)

    def firing(self, x: Floats, threads: int = 1) -> tuple[IdArray, IdArray, Floats]:
        """The neurons that fire, row by row: `indptr`, ascending `indices`, and their scores."""
        x, threads = _rows("x", x, self.inputs), _threads(threads)
        if self._native is not None:
            indptr, indices, values, _ = self._native.firing(x, threads)
            return indptr, indices, values
        z = reference.scores(x, self.weight, self.bias)
        where, which = np.nonzero(reference.fires(z, self.threshold))
        indptr = np.searchsorted(where, np.arange(len(x) + 1)).astype(np.int64)
        return indptr, which.astype(np.int64), z[where, which]

    @property
    def extra_bytes(self) -> int:
        """Memory held beside the weights."""
        return 0 if self._native is None else int(self._native.memory)

    def refresh(self) -> None:
        """Look at the weights again: call it after they were changed in place."""
        native, residual = core(), _residual(self.residual, self.inputs)
        self._native = native and native.ScreenedLayer(self.weight, self.bias, self.threshold, residual, usable_cores())

    def recode(self, neurons: IdArray, threads: int = 1) -> None:
        """Look at the rows and biases of these distinct neurons again; no other call may run at the same time."""
        if self._native is not None:
            self._native.recode(np.ascontiguousarray(neurons, dtype=np.int64), _threads(threads))

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"activation": self.activation, "threshold": self.threshold, "residual": self.residual}
        return _rebuild, (SparseUp, (self.weight, self.bias), options)


class SparseDown:
    """The second layer of a block, neuron by neuron: rows of neurons that give 0 are not read.

    Parameters
    ----------
    weight_t : float32 array of shape (width, outputs), C-contiguous
        Row j is what neuron j adds to the outputs (the transpose of a `torch.nn.Linear`'s weight). Kept by reference.
    bias : float32 array of shape (outputs,), or None
    """

    def __init__(self, weight_t: Floats, bias: Floats | None) -> None:
        self.weight_t = _matrix("weight_t", weight_t)
        self.width, self.outputs = self.weight_t.shape
        self.bias = _vector("bias", bias, self.outputs)
        self.refresh()

    def __call__(self, h: Floats, threads: int = 1) -> Floats:
        """h·weight_t + bias of the neurons' values h, of shape (batch, width): shape (batch, outputs)."""
        h, threads, native = _rows("h", h, self.width), _threads(threads), core()
        if native is None:
            return reference.down(h, self.weight_t, self.bias)
        out = np.empty((len(h), self.outputs), dtype=np.float32)
        native.sparse_down(self.weight_t, self.bias, self._unbounded, h, out, threads)
        return out

    @property
    def extra_bytes(self) -> int:
        """Memory held beside the weights."""
        return 0 if self._unbounded is None else self._unbounded.nbytes

    def refresh(self) -> None:
        """Look at the weights again: call it after they were changed in place."""
        # 0 times a weight that is not finite is NaN, as in a dense layer: such rows are never left out.
        unbounded = ~np.isfinite(self.weight_t).all(axis=1)
        self._unbounded = unbounded.astype(np.uint8) if unbounded.any() else None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (SparseDown, (self.weight_t, self.bias), {})


class SparseBlock:
    """Two layers at once, with or without a gate: the output of a block at the cost of the neurons that fire.

    Parameters
    ----------
    up : float32 array of shape (width, inputs), C-contiguous
        Rows of the first layer; with a gate, of the layer that the gate multiplies.
    up_bias : float32 array of shape (width,), or None
    down_t : float32 array of shape (width, outputs), C-contiguous
        Rows of the second layer, neuron by neuron.
    down_bias : float32 array of shape (outputs,), or None
    gate, gate_bias : as `up` and `up_bias`, or None
    activation : {"relu", "shifted", "threshold", "relu2"}
    threshold : float
    gated : {None, "reglu", "drelu"}
        What the gate does: a(g)·z, or a(g)·a(z). Only the gate is searched for firing neurons.
    residual : bool or None
        As in `SparseUp`.
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
        residual: bool | None = None,
    ) -> None:
        self.up, self.down_t = _matrix("up", up), _matrix("down_t", down_t)
        self.width, self.inputs = self.up.shape
        self.outputs = self.down_t.shape[1]
        if len(self.down_t) != self.width:
            rule = f"must have one row per neuron, {self.width} of them"
            raise invalid("down_t", rule, f"shape {self.down_t.shape}", "pass the second layer's weight transposed")
        self.up_bias = _vector("up_bias", up_bias, self.width)
        self.down_bias = _vector("down_bias", down_bias, self.outputs)
        self.activation, self.threshold = _activation(activation, threshold)
        self.gated: Gated | None = None
        self.gate: Floats | None = None
        if gated is not None:
            self.gated = check_choice("gated", gated, GATED)  # type: ignore[assignment]
            self.gate = _matrix("gate", gate)
            if self.gate.shape != self.up.shape:
                raise invalid("gate", f"must have the shape of up, {self.up.shape}", f"shape {self.gate.shape}")
        elif gate is not None or gate_bias is not None:
            raise invalid("gated", "must say what the gate does where there is one", gated, "pass 'reglu' or 'drelu'")
        self.gate_bias = _vector("gate_bias", gate_bias, self.width)
        self.residual = residual
        self.refresh()

    def __call__(self, x: Floats, threads: int = 1) -> Floats:
        """The block's output for rows x of shape (batch, inputs): shape (batch, outputs)."""
        return self.counted(x, threads)[0]

    def counted(self, x: Floats, threads: int = 1) -> tuple[Floats, SparseWork]:
        """The output, and what it has cost."""
        x, threads = _rows("x", x, self.inputs), _threads(threads)
        if self._native is None:
            return self._reference(x)
        out = np.empty((len(x), self.outputs), dtype=np.float32)
        return out, SparseWork(*self._native.forward(x, out, threads))

    def _reference(self, x: Floats) -> tuple[Floats, SparseWork]:
        z = reference.scores(x, self.up, self.up_bias)
        if self.gate is None:
            firing = reference.fires(z, self.threshold)
            h = reference.activate(z, self.activation, self.threshold)
        else:
            g = reference.scores(x, self.gate, self.gate_bias)
            firing = reference.fires(g, self.threshold)
            value = z if self.gated == "reglu" else reference.activate(z, self.activation, self.threshold)
            with np.errstate(all="ignore"):
                h = reference.activate(g, self.activation, self.threshold) * value
        layers = [array for array in (self.up, self.gate, self.down_t) if array is not None]
        products = len(x) * sum(array.size for array in layers)
        work = SparseWork(z.size, z.size, z.size, int(firing.sum()), products, sum(array.nbytes for array in layers))
        return reference.down(h, self.down_t, self.down_bias), work

    @property
    def extra_bytes(self) -> int:
        """Memory held beside the weights."""
        return 0 if self._native is None else int(self._native.memory)

    def refresh(self) -> None:
        """Look at the weights again: call it after they were changed in place."""
        native = core()
        self._native = native and native.SparseBlock(
            self.up,
            self.up_bias,
            self.down_t,
            self.down_bias,
            self.gate,
            self.gate_bias,
            self.activation,
            self.threshold,
            self.gated or "",
            _residual(self.residual, self.inputs),
            usable_cores(),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        options = {
            "gate": self.gate,
            "gate_bias": self.gate_bias,
            "activation": self.activation,
            "threshold": self.threshold,
            "gated": self.gated,
            "residual": self.residual,
        }
        return _rebuild, (SparseBlock, (self.up, self.up_bias, self.down_t, self.down_bias), options)


def _residual(asked: bool | None, inputs: int) -> bool:
    return inputs >= _RESIDUAL_FROM if asked is None else bool(asked)


def _rebuild(kind: type, arrays: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return kind(*arrays, **options)


def _matrix(name: str, value: object) -> Floats:
    """A table of float32 that can be kept by reference."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        got = f"dtype {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise invalid(name, "must be a float32 array", got, "convert it with astype(numpy.float32)")
    if value.ndim != 2 or 0 in value.shape:
        raise invalid(name, "must be a table that is not empty", f"shape {value.shape}")
    if not value.flags.c_contiguous:
        remedy = "pass numpy.ascontiguousarray of it and keep that"
        raise invalid(name, "must be C-contiguous, because it is kept by reference", "an array that is not", remedy)
    return value


def _vector(name: str, value: object, length: int) -> Floats | None:
    """A vector of float32, or None."""
    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.shape != (length,):
        array = isinstance(value, np.ndarray)
        got = f"shape {value.shape} of {value.dtype}" if array else f"a {type(value).__name__}"  # type: ignore[attr-defined]
        raise invalid(name, f"must be a float32 vector of length {length}, or None", got)
    return np.ascontiguousarray(value)


def _rows(name: str, value: object, columns: int) -> Floats:
    """A batch of rows, made contiguous where it is not."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        got = f"dtype {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise invalid(name, "must be a float32 array", got, "convert it with astype(numpy.float32)")
    if value.ndim != 2 or value.shape[1] != columns:
        raise invalid(name, f"must have the shape (batch, {columns})", f"shape {value.shape}", "reshape it")
    return np.ascontiguousarray(value)


def _threads(threads: object) -> int:
    return check_integer("threads", threads, 1, 1024)


def _activation(activation: object, threshold: object) -> tuple[Activation, float]:
    """The name and the threshold as float32 has it."""
    name: Activation = check_choice("activation", activation, ACTIVATIONS)  # type: ignore[assignment]
    value = float(np.float32(check_number("threshold", threshold, -3e38, 3e38)))
    if name in ("relu", "relu2") and value != 0:
        raise invalid("threshold", f"must be 0 for {name!r}", threshold, "use 'shifted' or 'threshold'")
    return name, value
