"""The state of a two-layer network, f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c.

`hidden` holds the w_j as rows, `bias` the b_j, `output` the u_j and `offset` the c. With several outputs each u_j is a
row of weights, one per output, and c a vector: f(x) = features @ output + offset either way. The papers have one
output, and write the bias of sparse-activations, Definition 1, with a minus sign; here it is added everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._html import card
from fewfire._validate import check_number
from fewfire.networks import _activity, _evaluate
from fewfire.networks._activations import Activation
from fewfire.networks._activations import activation as resolve
from fewfire.networks._weights import Norms, norms

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, DTypeLike

    from fewfire._types import AnyArray, FloatArray
    from fewfire.halfspace import MethodName
    from fewfire.networks._activity import ActiveSets, Activity
    from fewfire.networks._indexed import IndexedTwoLayer


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
        shape = _output_shape(output, len(matrix))
        state = {
            "hidden": _frozen("hidden", matrix, matrix.shape, dtype),
            "bias": _frozen("bias", bias, shape[:1], dtype),
            "output": _frozen("output", output, shape, dtype),
            "offset": _offset(offset, shape[1:], dtype),
            "activation": resolve(activation),
        }
        for name, value in state.items():
            object.__setattr__(self, name, value)

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
        return _evaluate.values(self, X)

    def preactivations(self, X: AnyArray) -> FloatArray:
        """⟨w_j, x⟩ + b_j for each row of X: shape (rows, width)."""
        return _evaluate.preactivations(self, X)

    def features(self, X: AnyArray) -> FloatArray:
        """σ(⟨w_j, x⟩ + b_j) for each row of X: shape (rows, width)."""
        return self.activation.value(self.preactivations(X))

    def active(self, X: AnyArray) -> ActiveSets:
        """The neurons that fire on each row of X, as compressed rows `indptr, indices`."""
        return _activity.active_sets(self, X)

    def activity(self, X: AnyArray) -> Activity:
        """How many neurons fire on each row of X, on how many rows each neuron fires, and which never do."""
        return _activity.activity(self, X)

    def norms(self) -> Norms:
        """W = ‖u‖_∞ max‖w_j‖₂ and B = ‖u‖_∞ max|b_j|, largest over outputs (sparse-activations, Definition 2)."""
        return norms(self)

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
        return TwoLayer(
            self.hidden if hidden is None else hidden,
            self.bias if bias is None else bias,
            self.output if output is None else output,
            self.offset if offset is None else offset,
            self.activation if activation is None else activation,
        )

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
        """Write the network to exactly this path; `fewfire.networks.load` reads it back."""
        from fewfire.networks._files import save  # _files builds networks, so it imports this module

        save(self, path)

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


def check_single_output(network: TwoLayer, what: str) -> TwoLayer:
    """The network itself, if its output weights are a vector; `what` names what takes no others.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.dense()(5, width=3, seed=0)
    >>> ff.networks.check_single_output(network, "a certificate") is network
    True
    """
    if network.output.ndim != 1:
        rule = f"must have one output for {what}, output weights of shape ({network.width},)"
        remedy = "take one column of output and one entry of offset at a time"
        raise invalid("network", rule, f"shape {network.output.shape}", remedy)
    return network


def _output_shape(output: ArrayLike, width: int) -> tuple[int, ...]:
    """The shape of the output weights: (width,), or (width, outputs)."""
    shape = np.shape(output)
    if len(shape) == 2 and shape[0] == width and shape[1] > 0:
        return shape
    if shape != (width,):
        rule = f"must have shape ({width},) or ({width}, outputs), one entry or row per row of hidden"
        raise invalid("output", rule, f"shape {shape}")
    return shape


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
