"""The state of a two-layer network, f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c.

`hidden` holds the w_j as rows, `bias` the b_j, `output` the u_j and `offset` the c. With several outputs each u_j is a
row of weights, one per output, and c a vector: f(x) = features @ output + offset either way. The papers have one
output, and write the bias of sparse-activations, Definition 1, with a minus sign; here it is added everywhere.

The scales W and B are those of sparse-activations, Definition 2, the largest over the outputs. The weight mass
Σ_j |u_j|·|w_ji| shows which inputs i the network uses: a learned parity or junta has its support as the inputs of
largest mass. It is read off the weights, not the function: neurons that cancel or never fire count as well.

Files are safe archives (`fewfire._archive`) of the five parts. Version 1 holds one output, `output` of shape (width,)
and `offset` of shape (). Version 2 adds networks of several outputs, of shapes (width, outputs) and (outputs,). A
network of one output is still written as version 1, which every version of fewfire reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fewfire import _archive
from fewfire._compressed_rows import CompressedRows
from fewfire._errors import InvalidArgument, invalid
from fewfire._html import card
from fewfire._validate import check_integer, check_number
from fewfire.networks._activations import Activation
from fewfire.networks._activations import activation as resolve
from fewfire.networks._evaluate import Activity, preactivation_blocks

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, DTypeLike

    from fewfire._types import AnyArray, Float64Array, FloatArray
    from fewfire.halfspace._methods import MethodName
    from fewfire.networks._indexed import IndexedTwoLayer


FORMAT: Final = "fewfire.networks.TwoLayer"
VERSION: Final = 2
_FIELDS: Final = ("hidden", "bias", "output", "offset", "activation")
_AGAIN: Final = "write it again with network.save"


class Norms(NamedTuple):
    """W = ‖u‖_∞ · max_j ‖w_j‖₂ and B = ‖u‖_∞ · max_j |b_j|; scaling u by c and (w, b) by 1/c changes neither."""

    W: float
    B: float


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TwoLayer:
    """A two-layer network; call it on a table of inputs to evaluate it.

    It never changes: the arrays are private, read-only, C-contiguous copies. They are float32 unless
    `hidden` is float64, which makes all of them float64.

    Parameters
    ----------
    hidden : array of shape (width, inputs)
        The weights of hidden neuron j are row j.
    bias : array of shape (width,)
    output : array of shape (width,) or (width, outputs)
        The weights of the hidden neurons in the sum, or one column of them per output.
    offset : float, or array of shape (outputs,) for several outputs
        The constant added to the sum; one number does for all outputs.
    activation : "relu", "relu6", "shifted_relu(τ)" or Activation

    Examples
    --------
    >>> import fewfire as ff
    >>> xor = ff.networks.TwoLayer(hidden=[[1, 1], [-1, -1]], bias=[-1, -1], output=[2, 2], offset=-1)
    >>> xor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).tolist()
    [1.0, -1.0, -1.0, 1.0]
    >>> xor.active([[1, 1], [1, -1]]).counts.tolist()  # how many neurons fire on each row
    [1, 0]
    >>> xor
    TwoLayer(inputs=2, width=2, activation=relu, dtype=float32)
    """

    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    offset: float | FloatArray
    activation: Activation

    def __init__(
        self,
        hidden: ArrayLike,
        bias: ArrayLike,
        output: ArrayLike,
        offset: ArrayLike = 0.0,
        activation: Activation | str = "relu",
    ) -> None:
        matrix = np.asarray(hidden)
        if matrix.ndim != 2 or matrix.size == 0:
            rule = "must be a matrix of shape (width, inputs) with at least one entry"
            raise invalid("hidden", rule, f"shape {matrix.shape}", "put the weights of one neuron in each row")
        double = matrix.dtype.kind == "f" and matrix.dtype.itemsize == 8
        dtype = np.dtype(np.float64 if double else np.float32)
        shape, width = np.shape(output), len(matrix)
        if shape != (width,) and (len(shape) != 2 or shape[0] != width or not shape[1]):
            rule = f"must have shape ({width},) or ({width}, outputs), one entry or row per row of hidden"
            raise invalid("output", rule, f"shape {shape}")
        vars(self).update(
            hidden=_frozen("hidden", matrix, matrix.shape, dtype),
            bias=_frozen("bias", bias, shape[:1], dtype),
            output=_frozen("output", output, shape, dtype),
            offset=_offset(offset, shape[1:], dtype),
            activation=resolve(activation),
        )

    @property
    def inputs(self) -> int:
        """How many coordinates an input has."""
        return int(self.hidden.shape[1])

    @property
    def width(self) -> int:
        """How many hidden neurons there are."""
        return len(self.hidden)

    @property
    def outputs(self) -> int:
        """How many values f(x) has."""
        return int(self.output.shape[1]) if self.output.ndim == 2 else 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, of all arrays and of every result."""
        return self.hidden.dtype

    def __call__(self, X: AnyArray) -> FloatArray:
        """f(x) for each row of X, int8 ±1 or numbers of shape (rows, inputs).

        Returns
        -------
        array of shape (rows,), or (rows, outputs) where `output` is a matrix
        """
        parts = [self.activation.value(z) @ self.output for z in preactivation_blocks(self, X)]
        total: FloatArray = np.concatenate(parts)
        total += np.asarray(self.offset, dtype=self.dtype)
        return total

    def preactivations(self, X: AnyArray) -> FloatArray:
        """⟨w_j, x⟩ + b_j for each row of X: shape (rows, width)."""
        return np.concatenate(list(preactivation_blocks(self, X)))

    def features(self, X: AnyArray) -> FloatArray:
        """σ(⟨w_j, x⟩ + b_j) for each row of X: shape (rows, width)."""
        return self.activation.value(self.preactivations(X))

    def active(self, X: AnyArray) -> CompressedRows:
        """The neurons that fire on each row of X, as compressed rows `indptr, indices`."""
        counts, indices = [np.zeros(1, dtype=np.int64)], []
        for z in preactivation_blocks(self, X):
            fires = self.activation.active(z)
            counts.append(np.count_nonzero(fires, axis=1))
            # Positions in the flat block, less those of the row starts: faster than the pairs of numpy.nonzero.
            indices.append(np.flatnonzero(fires) - np.repeat(self.width * np.arange(len(fires)), counts[-1]))
        return CompressedRows(np.concatenate(counts).cumsum(dtype=np.int64), np.concatenate(indices))

    def activity(self, X: AnyArray) -> Activity:
        """How many neurons fire on each row of X, on how many rows each neuron fires, and which never do."""
        per_input, per_neuron = [], np.zeros(self.width, dtype=np.int64)
        for z in preactivation_blocks(self, X):
            fires = self.activation.active(z)
            per_input.append(np.count_nonzero(fires, axis=1))
            per_neuron += np.count_nonzero(fires, axis=0)
        return Activity(np.concatenate(per_input).astype(np.int64), per_neuron)

    def norms(self) -> Norms:
        """W = ‖u‖_∞ max‖w_j‖₂ and B = ‖u‖_∞ max|b_j|, largest over outputs (sparse-activations, Definition 2)."""
        largest = float(np.abs(self.output).max())
        rows = np.sqrt(np.einsum("ji,ji->j", self.hidden, self.hidden, dtype=np.float64))
        return Norms(largest * float(rows.max()), largest * float(np.abs(self.bias).max()))

    def indexed(self, method: MethodName | str = "auto", threads: int | None = None) -> IndexedTwoLayer:
        """The same network, asked at the cost of the neurons that fire: its hidden neurons in a `halfspace.Index`.

        Parameters
        ----------
        method : "auto", "scan", "tree", "screen" or a name given to `halfspace.register_method`
            As in `halfspace.Index`: "auto" measures on the first queries.
        threads : int, optional
            All cores by default.
        """
        from fewfire.networks._indexed import IndexedTwoLayer  # which extends this class

        return IndexedTwoLayer(self, method, threads)

    def with_parameters(
        self,
        hidden: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        output: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        activation: Activation | str | None = None,
    ) -> TwoLayer:
        """A network that differs from this one in the parts given."""
        own = (self.hidden, self.bias, self.output, self.offset, self.activation)
        given = (hidden, bias, output, offset, activation)
        parts: Any = (old if new is None else new for old, new in zip(own, given, strict=True))
        return TwoLayer(*parts)

    def astype(self, dtype: DTypeLike) -> TwoLayer:
        """The same network in float32 or float64."""
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise invalid("dtype", "must be float32 or float64", str(np.dtype(dtype)))
        return self.with_parameters(hidden=self.hidden.astype(dtype))

    def equals(self, other: TwoLayer) -> bool:
        """Whether every weight, the dtype and the activation are equal."""
        arrays = ("hidden", "bias", "output", "offset")
        return (
            self.dtype == other.dtype
            and self.activation == other.activation
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to exactly this path, once the file is complete; `fewfire.networks.load` reads it back."""
        parts = {
            "hidden": self.hidden,
            "bias": self.bias,
            "output": self.output,
            "offset": np.array(self.offset, dtype=self.dtype),
            "activation": np.array(str(self.activation)),
        }
        _archive.write(path, FORMAT, 1 if self.output.ndim == 1 else VERSION, parts)

    def __repr__(self) -> str:
        outputs = f"outputs={self.outputs}, " if self.output.ndim == 2 else ""
        shape = f"inputs={self.inputs}, width={self.width}, {outputs}"
        return f"TwoLayer({shape}activation={self.activation}, dtype={self.dtype})"

    def _repr_html_(self) -> str:
        weights = int(np.count_nonzero(self.hidden))
        facts = {
            "inputs → width → outputs": f"{self.inputs} → {self.width} → {self.outputs}",
            "activation": self.activation,
            "hidden weights": f"{self.hidden.size}, {weights / self.hidden.size:.3g} of them non-zero",
            "dtype": self.dtype,
        }
        return card(type(self).__name__, facts)

    def __reduce__(self) -> tuple[object, ...]:
        # Rebuilding through the constructor keeps unpickled and copied arrays read-only.
        return TwoLayer, (self.hidden, self.bias, self.output, self.offset, self.activation)


def load(path: str | os.PathLike[str]) -> TwoLayer:
    """The network that `TwoLayer.save` wrote to this path, equal in every bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.

    Examples
    --------
    >>> import fewfire as ff
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ff.networks.init.dense()(10, width=20, seed=0).save(Path(folder) / "network.npz")
    ...     network = ff.networks.load(Path(folder) / "network.npz")
    >>> network
    TwoLayer(inputs=10, width=20, activation=relu, dtype=float32)
    """
    source, arrays = _archive.read(path, FORMAT, VERSION, _FIELDS, "network.save")
    hidden, output, offset = (arrays[part] for part in ("hidden", "output", "offset"))
    name = _archive.text(arrays["activation"])
    if hidden.dtype.kind != "f" or offset.shape != output.shape[1:] or name is None:
        raise _archive.unreadable(source, "its arrays have the wrong type", _AGAIN)
    try:
        return TwoLayer(hidden, arrays["bias"], output, offset if offset.ndim else float(offset), name)
    except (InvalidArgument, TypeError, ValueError) as error:
        raise _archive.unreadable(source, f"its arrays do not fit together ({error})", _AGAIN) from error


def check_single_output(network: TwoLayer, what: str) -> TwoLayer:
    """The network itself, if its output weights are a vector; `what` names what takes no others."""
    if network.output.ndim != 1:
        rule = f"must have one output for {what}, output weights of shape ({network.width},)"
        remedy = "take one column of output and one entry of offset at a time"
        raise invalid("network", rule, f"shape {network.output.shape}", remedy)
    return network


@dataclass(frozen=True, eq=False)
class Relevance:
    """The weight mass of every input.

    Parameters
    ----------
    mass : float64 array of shape (inputs,)
    """

    mass: Float64Array

    def largest(self, k: int) -> tuple[int, ...]:
        """The k inputs of largest mass, heaviest first, the smaller id first among equals."""
        k = check_integer("k", k, 1, len(self.mass), "choose at most as many as there are inputs")
        return tuple(int(i) for i in np.argsort(-self.mass, kind="stable")[:k])


def relevance(network: TwoLayer) -> Relevance:
    """The weight mass Σ_j |output_j|·|hidden_ji| of each input i, summed over the outputs where there are several.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.junta(n=10, support=[1, 4, 7], table=[1, 1, 1, -1, 1, -1, -1, -1])
    >>> sorted(ff.networks.relevance(network).largest(3))
    [1, 4, 7]
    """
    size = np.abs(network.output)
    if size.ndim == 2:
        size = size.sum(axis=1, dtype=np.float64)
    return Relevance(np.einsum("j,ji->i", size, np.abs(network.hidden), dtype=np.float64))


def _offset(offset: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> float | FloatArray:
    """The constant of the one output, or a vector of them: of the given shape, () or (outputs,)."""
    if not shape:
        return float(_frozen("offset", check_number("offset", offset), (), dtype))
    if np.ndim(offset) == 0:
        offset = np.full(shape, check_number("offset", offset))
    return _frozen("offset", offset, shape, dtype, "column of output")


def _frozen(
    name: str, values: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], per: str = "row of hidden"
) -> FloatArray:
    """A read-only copy of finite numbers of the given shape, with one entry per `per`."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold real numbers", f"dtype {array.dtype}")
    if array.shape != shape:
        raise invalid(name, f"must have shape {shape}, one entry per {per}", f"shape {array.shape}")
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite and is refused below
        copy = np.array(array, dtype=dtype, order="C", copy=True)
    if not np.isfinite(copy).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(copy))[0])
        rule = f"must hold finite {dtype} numbers"
        raise invalid(name, rule, f"a {array[where]} at index {where}", "look for divergence where it was computed")
    copy.flags.writeable = False
    return copy
