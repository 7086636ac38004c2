"""Networks of any depth and number of outputs: h_l = σ(W_l h_{l−1} + b_l), f(x) = V h_L + c, as pareto, C.3, has them.

`TwoLayer` is the case of one hidden layer and one output, which most of the package is about; this one is what training
deeper networks gives. Files are safe archives (`fewfire._archive`): the sizes of the layers, all weights and biases as
one vector in the order of `_dense.network.Layout`, and the activation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from fewfire import _archive
from fewfire._dense.network import Layout
from fewfire._errors import InvalidArgument, invalid
from fewfire._types import AnyArray, FloatArray
from fewfire.networks._activations import Activation
from fewfire.networks._activations import activation as resolve
from fewfire.networks._evaluate import row_blocks

FORMAT: Final = "fewfire.networks.Mlp"
VERSION: Final = 1
_FIELDS: Final = ("sizes", "parameters", "activation")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Mlp:
    """A network of one or more hidden layers; call it on a table of inputs to evaluate it.

    It never changes: the arrays are private and read-only, float32 unless the first weights are float64.

    Parameters
    ----------
    weights : sequence of arrays (neurons, inputs of the layer)
        The last one is that of the outputs.
    biases : sequence of arrays (neurons,)
    activation : "relu", "relu6", "shifted_relu(τ)" or Activation

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.engines.Start(ff.networks.init.sparse(2), inputs=10, width=(100, 50)).draw()
    Mlp(inputs=10, widths=(100, 50), outputs=1, activation=relu, dtype=float32)
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: Activation

    def __init__(
        self, weights: Sequence[ArrayLike], biases: Sequence[ArrayLike], activation: Activation | str = "relu"
    ) -> None:
        dtype = np.float64 if weights and np.asarray(weights[0]).dtype == np.float64 else np.float32
        matrices, vectors = ([np.array(part, dtype=dtype) for part in parts] for parts in (weights, biases))
        chain = [part.shape for part in matrices]
        if (
            len(chain) < 2
            or any(len(s) != 2 or 0 in s for s in chain)
            or any(above[1] != below[0] for below, above in pairwise(chain))
        ):
            rule = "must be at least two matrices, each with as many columns as the one before has rows"
            raise invalid("weights", rule, f"shapes {chain}", "put the weights of one neuron in each row")
        if [part.shape for part in vectors] != [(rows,) for rows, _ in chain]:
            rule = "must be one vector per matrix of weights, with an entry per row"
            raise invalid("biases", rule, f"shapes {[part.shape for part in vectors]}")
        for part in (*matrices, *vectors):
            if not np.isfinite(part).all():
                raise invalid("weights and biases", "must be finite", "an infinity or NaN")
            part.flags.writeable = False
        state = {"weights": tuple(matrices), "biases": tuple(vectors), "activation": resolve(activation)}
        for name, value in state.items():
            object.__setattr__(self, name, value)

    @property
    def inputs(self) -> int:
        """How many coordinates an input has."""
        return int(self.weights[0].shape[1])

    @property
    def widths(self) -> tuple[int, ...]:
        """How many neurons each hidden layer has."""
        return tuple(len(part) for part in self.weights[:-1])

    @property
    def width(self) -> int:
        """How many hidden neurons there are."""
        return sum(self.widths)

    @property
    def outputs(self) -> int:
        """How many values f(x) has."""
        return len(self.weights[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, of all arrays and of every result."""
        return self.weights[0].dtype

    def __call__(self, X: AnyArray) -> FloatArray:
        """f(x) for each row of X: shape (rows,), or (rows, outputs) for several outputs."""
        parts = []
        for rows in row_blocks(self, X):
            below: FloatArray = rows.astype(self.dtype, copy=False)
            for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                below = self.activation.value(below @ weights.T + bias)
            parts.append(below @ self.weights[-1].T + self.biases[-1])
        values = np.concatenate(parts)
        return values if self.outputs > 1 else values[:, 0]

    def equals(self, other: Mlp) -> bool:
        """Whether every weight, the dtype and the activation are equal."""
        pairs = zip((*self.weights, *self.biases), (*other.weights, *other.biases), strict=False)
        same = len(self.weights) == len(other.weights) and all(np.array_equal(*pair) for pair in pairs)
        return same and self.dtype == other.dtype and self.activation == other.activation

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to exactly this path, once the file is complete; `Mlp.load` reads it back."""
        parts = {
            "sizes": np.array([self.inputs, *self.widths, self.outputs]),
            "parameters": np.concatenate([part.ravel() for part in (*self.weights, *self.biases)]),
            "activation": np.array(str(self.activation)),
        }
        _archive.write(path, FORMAT, VERSION, parts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Mlp:
        """The network that `save` wrote to this path, equal in every bit; other files raise `FileFormatError`."""
        source, arrays = _archive.read(path, FORMAT, VERSION, _FIELDS, "Mlp.save")
        sizes, flat, name = arrays["sizes"], arrays["parameters"], _archive.text(arrays["activation"])
        try:
            if sizes.dtype.kind != "i" or sizes.ndim != 1 or flat.dtype.kind != "f" or name is None:
                raise TypeError("they have the wrong type")
            inputs, *widths, outputs = sizes.tolist()
            layout = Layout(inputs, tuple(widths), outputs, skip=False)
            if min(sizes) < 1 or flat.shape != (layout.size,):
                raise ValueError(f"{flat.shape} parameters for layers of {sizes.tolist()}")
            parts = layout.unpack(flat)
            return cls([*parts.hidden, parts.output], [*parts.biases, parts.offset], name)
        except (InvalidArgument, TypeError, ValueError) as error:
            wrong = f"its arrays do not fit together ({error})"
            raise _archive.unreadable(source, wrong, "write it again with Mlp.save") from error

    def __repr__(self) -> str:
        shape = f"inputs={self.inputs}, widths={self.widths}, outputs={self.outputs}"
        return f"Mlp({shape}, activation={self.activation}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[object, ...]:
        return Mlp, (self.weights, self.biases, self.activation)
