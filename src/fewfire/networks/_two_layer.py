"""The state of a two-layer network, f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c.

`hidden` holds the w_j as rows, `bias` the b_j, `output` the u_j and `offset` the c. The papers write
the bias of sparse-activations, Definition 1, with a minus sign; here it is added everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.networks import _evaluate
from fewfire.networks._activations import Activation
from fewfire.networks._activations import activation as resolve
from fewfire.networks._norms import Norms, norms

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, DTypeLike

    from fewfire._types import AnyArray, FloatArray
    from fewfire.networks._active_sets import ActiveSets
    from fewfire.networks._activity import Activity


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
    output : array of shape (width,)
        The weights of the hidden neurons in the sum.
    offset : float
        The constant added to the sum.
    activation : "relu", "relu6", "shifted_relu(τ)" or Activation
    """

    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    offset: float
    activation: Activation

    def __init__(
        self,
        hidden: ArrayLike,
        bias: ArrayLike,
        output: ArrayLike,
        offset: float = 0.0,
        activation: Activation | str = "relu",
    ) -> None:
        matrix = np.asarray(hidden)
        if matrix.ndim != 2 or matrix.size == 0:
            rule = "must be a matrix of shape (width, inputs) with at least one entry"
            raise invalid("hidden", rule, f"shape {matrix.shape}", "put the weights of one neuron in each row")
        double = matrix.dtype.kind == "f" and matrix.dtype.itemsize == 8
        dtype = np.dtype(np.float64 if double else np.float32)
        width = len(matrix)
        state = {
            "hidden": _frozen("hidden", matrix, matrix.shape, dtype),
            "bias": _frozen("bias", bias, (width,), dtype),
            "output": _frozen("output", output, (width,), dtype),
            "offset": float(_frozen("offset", check_number("offset", offset), (), dtype)),
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
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, of all arrays and of every result."""
        return self.hidden.dtype

    def __call__(self, X: AnyArray) -> FloatArray:
        """f(x) for each row of X, int8 ±1 or numbers of shape (rows, inputs): shape (rows,)."""
        return _evaluate.values(self, X)

    def preactivations(self, X: AnyArray) -> FloatArray:
        """⟨w_j, x⟩ + b_j for each row of X: shape (rows, width)."""
        return _evaluate.preactivations(self, X)

    def features(self, X: AnyArray) -> FloatArray:
        """σ(⟨w_j, x⟩ + b_j) for each row of X: shape (rows, width)."""
        return self.activation.value(self.preactivations(X))

    def active(self, X: AnyArray) -> ActiveSets:
        """The neurons that fire on each row of X, as compressed rows `indptr, indices`."""
        return _evaluate.active_sets(self, X)

    def activity(self, X: AnyArray) -> Activity:
        """How many neurons fire on each row of X, on how many rows each neuron fires, and which never do."""
        return _evaluate.activity(self, X)

    def norms(self) -> Norms:
        """W = ‖u‖_∞ max‖w_j‖₂ and B = ‖u‖_∞ max|b_j| (sparse-activations, Definition 2)."""
        return norms(self)

    def with_parameters(
        self,
        hidden: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        output: ArrayLike | None = None,
        offset: float | None = None,
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
        arrays = ("hidden", "bias", "output")
        return (
            self.dtype == other.dtype
            and (self.offset, self.activation) == (other.offset, other.activation)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to exactly this path; `fewfire.networks.load` reads it back."""
        from fewfire.networks._files import save  # _files builds networks, so it imports this module

        save(self, path)

    def __repr__(self) -> str:
        return f"TwoLayer(inputs={self.inputs}, width={self.width}, activation={self.activation}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[object, ...]:
        # Rebuilding through the constructor keeps unpickled and copied arrays read-only.
        return TwoLayer, (self.hidden, self.bias, self.output, self.offset, self.activation)


def _frozen(name: str, values: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FloatArray:
    """A read-only copy of finite numbers of the given shape."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold real numbers", f"dtype {array.dtype}")
    if array.shape != shape:
        raise invalid(name, f"must have shape {shape}, one entry per row of hidden", f"shape {array.shape}")
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite and is refused below
        copy = np.array(array, dtype=dtype, order="C", copy=True)
    if not np.isfinite(copy).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(copy))[0])
        rule = f"must hold finite {dtype} numbers"
        raise invalid(name, rule, f"a {array[where]} at index {where}", "look for divergence where it was computed")
    copy.flags.writeable = False
    return copy
