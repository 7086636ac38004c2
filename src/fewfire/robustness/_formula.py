"""What a model is to attacks and certificates: layers with a formula, or any values that have gradients.

Scores have shape (rows, heads): one head for two classes (positive for the second) and for regression, one per class
for more. Attacks need values and gradients; certificates and float32 searches need the formula, which `Layers` is.

The shifted ReLU jumps by τ at τ, which no gradient shows. Smoothed over a window of half-width h around τ, the jump is
a slope τ/2h there; h is how far a small move of the point can move that neuron.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from fewfire._errors import invalid
from fewfire.networks import Activation

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, FloatArray
    from fewfire.networks import TwoLayer

    Pull = Callable[[Float64Array], Float64Array]

BLOCK: Final = 1 << 21  # rows × width attacked or certified at once, which bounds the memory


class Scores(ABC):
    """Scores of points of `inputs` coordinates, with their gradients: what a model of one's own gives."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many coordinates a point has."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that one row takes on the way to its scores; attacks take as many rows at once as memory allows."""

    @abstractmethod
    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, inputs): shape (rows, heads)."""

    @abstractmethod
    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k ∂score_k/∂x, shape (rows, inputs)."""

    def near(self, rho: float) -> Scores:
        """These scores for an adversary of radius ρ."""
        return self

    def single(self) -> Scores:
        """These scores in float32 where that is faster, to search on; verdicts are taken on the scores themselves."""
        return self

    def smoothed(self, distance: float) -> Scores:
        """With gradients that see jumps within `distance` of a point; these scores themselves where nothing jumps."""
        return self

    @property
    def formula(self) -> Layers | None:
        """The same scores as layers, which certificates bound; None where they are not known to be layers."""
        return None

    def after(self, scale: Float64Array, shift: Float64Array) -> Scores:
        """These scores at scale·x + shift, or x·scale + shift of a matrix (columns of x, inputs), as scores of x."""
        return _Wrapped(self, scale, shift)

    def lead(self) -> Scores:
        """Two scores, one per class, as one: the second less the first, positive for the second class."""
        return _Wrapped(self, one=True)


@dataclass(frozen=True, eq=False)
class _Wrapped(Scores):
    """Other scores at scale·x + shift, or x·scale + shift of a matrix; with `one` the second of two less the first."""

    inner: Scores
    scale: Float64Array | None = None
    shift: Float64Array | float = 0.0
    one: bool = False

    @property
    def inputs(self) -> int:
        return self.inner.inputs if self.scale is None else len(self.scale)

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def formula(self) -> Layers | None:
        known = self.inner.formula
        if known is None:
            return None
        known = known if self.scale is None else known.after(self.scale, np.asarray(self.shift))
        return known.lead() if self.one else known

    def scores(self, points: Float64Array) -> Float64Array:
        return self._led(self.inner.scores(self._moved(points)))

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        scores, pull = self.inner.linearise(self._moved(points))

        def back(weights: Float64Array) -> Float64Array:
            gradients = pull(weights * np.array([-1.0, 1.0]) if self.one else weights)
            if self.scale is None:
                return gradients
            return gradients * self.scale if self.scale.ndim == 1 else gradients @ self.scale.T

        return self._led(scores), back

    def near(self, rho: float) -> Scores:
        if self.scale is not None:
            rho *= float(abs(self.scale).max() if self.scale.ndim == 1 else np.linalg.norm(self.scale, 2))
        return replace(self, inner=self.inner.near(rho))

    def _moved(self, points: Float64Array) -> Float64Array:
        if self.scale is None:
            return points
        return np.asarray((points * self.scale if self.scale.ndim == 1 else points @ self.scale) + self.shift)

    def _led(self, scores: Float64Array) -> Float64Array:
        return scores[:, 1:] - scores[:, :1] if self.one else scores


# name: (σ(z), σ′ written in terms of the value s = σ(z)); "relu" is an Activation of fewfire.networks
SMOOTH: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda s: s * (1.0 - s)),
    "tanh": (np.tanh, lambda s: 1.0 - s**2),
}
TOGETHER: Final[dict[Any, int]] = {np.float32: 1 << 17, np.float64: 1 << 20}
"""Hidden values computed at once: those of float32, which searches use, stay in cache."""


@dataclass(frozen=True, eq=False)
class Layers(Scores):
    """Layers s_{l+1} = σ(s_l V_l + c_l), the last one without σ; a single layer is a linear model.

    Parameters
    ----------
    weights : arrays V_l of shape (units of layer l, units of layer l + 1)
    biases : arrays c_l of shape (units of layer l + 1,)
    activation : "identity", "logistic", "tanh", "relu" or an Activation of fewfire.networks
        σ; must be given for more than one layer.
    window : array of shape (neurons,), optional
        Half-widths over which gradients see the jump at τ, as `smoothed` sets them. Values are exact in any case.
    precision : float64 or float32
        Of weights and values, as `single` sets it.
    """

    weights: tuple[Float64Array, ...]
    biases: tuple[Float64Array, ...]
    activation: str | Activation = ""
    window: FloatArray | None = None
    precision: type[np.floating[Any]] = np.float64

    def __post_init__(self) -> None:
        for name in ("weights", "biases"):
            parts = tuple(np.asarray(part, dtype=self.precision) for part in getattr(self, name))
            object.__setattr__(self, name, parts)
        named = self.activation if self.activation or len(self.weights) > 1 else "identity"  # no layer has it
        named = Activation("relu") if named == "relu" else named
        if not isinstance(named, Activation) and named not in SMOOTH:
            rule = f"must be one of {', '.join(map(repr, (*SMOOTH, 'relu')))} where there is more than one layer"
            got = self.activation or f"none for {len(self.weights)} layers"
            raise invalid("activation", rule, got, "write Layers(weights, biases, 'relu')")
        object.__setattr__(self, "activation", named)

    @classmethod
    def of(cls, *networks: TwoLayer) -> Layers:
        """Two-layer networks side by side in float64, the scores of one after those of the other."""
        hidden, bias, *outputs = (
            [np.asarray(part, dtype=np.float64) for part in parts]
            for parts in zip(*((net.hidden, net.bias, net.output, net.offset) for net in networks), strict=True)
        )
        tables = [output.reshape(net.width, -1) for net, output in zip(networks, outputs[0], strict=True)]
        offsets = [np.broadcast_to(c, table.shape[1]) for c, table in zip(outputs[1], tables, strict=True)]
        if any(net.activation != networks[0].activation for net in networks):
            raise invalid("networks", "must have one activation", [str(net.activation) for net in networks])
        output = block_diag(*tables) if len(tables) > 1 else tables[0]
        weights = (hidden[0] if len(hidden) == 1 else np.concatenate(hidden)).T, output
        return cls(weights, (np.concatenate(bias), np.concatenate(offsets)), networks[0].activation)

    @property
    def inputs(self) -> int:
        return len(self.weights[0])

    @property
    def width(self) -> int:
        """Hidden neurons of all layers together; the scores of a linear model."""
        return sum(len(bias) for bias in self.biases[:-1]) or len(self.biases[-1])

    @property
    def formula(self) -> Layers:
        """These layers."""
        return self

    @property
    def threshold(self) -> float:
        """τ, above which a neuron fires."""
        return self.activation.threshold if isinstance(self.activation, Activation) else 0.0

    def scores(self, points: Float64Array) -> Float64Array:
        return np.concatenate([self._forward(points[part])[1] for part in self._parts(points)])

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        parts, kind = self._parts(points), self.precision
        slopes, values = zip(*(self._forward(points[part], slopes=True) for part in parts), strict=True)

        def pull(weights: Float64Array) -> Float64Array:
            gradients: Any = np.empty((len(points), self.inputs), dtype=kind)
            weights = weights.astype(kind, copy=False)
            for part, steps in zip(parts, slopes, strict=True):
                back: Any = weights[part]
                for matrix, slope in zip(self.weights[:0:-1], steps[::-1], strict=True):
                    back = (back @ matrix.T) * slope
                np.matmul(back, self._outward, out=gradients[part])
            return np.asarray(gradients)

        return np.concatenate(values), pull

    def after(self, scale: Float64Array, shift: Float64Array) -> Layers:
        """Layers whose first weights have taken the scaling in."""
        taken_in = self.weights[0] * scale[:, None] if scale.ndim == 1 else scale @ self.weights[0]
        first = (taken_in, *self.weights[1:])
        return replace(self, weights=first, biases=(self.biases[0] + shift @ self.weights[0], *self.biases[1:]))

    def lead(self) -> Layers:
        """Two scores as one, within the last layer."""
        return self.combination(np.array([-1.0, 1.0]))

    def combination(self, weights: Float64Array) -> Layers:
        """The one score ⟨weights, scores⟩."""
        last, bias = self.weights[-1] @ weights[:, None], self.biases[-1] @ weights[:, None]
        return replace(self, weights=(*self.weights[:-1], last), biases=(*self.biases[:-1], bias))

    def single(self) -> Layers:
        """The layers in float32."""
        parts: Any = [
            tuple(np.ascontiguousarray(part, dtype=np.float32) for part in side) for side in (self.weights, self.biases)
        ]
        return replace(self, weights=parts[0], biases=parts[1], precision=np.float32)

    def smoothed(self, distance: float) -> Layers:
        """With gradients that see the jump as far as points moved by `distance` in the 2-norm can meet it."""
        if self.threshold == 0.0 or len(self.weights) != 2:
            return self
        window = distance * np.linalg.norm(self._outward, axis=1)
        return replace(self, window=np.maximum(window, 1e-6 * self.threshold).astype(self.precision))

    # As certificates read one score of one hidden layer, or none: f(x) = ⟨v, x⟩ + Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) + c.

    @property
    def hidden(self) -> Float64Array:
        """The w_r as rows (neurons, inputs); a linear model has none."""
        return self.weights[0].T if len(self.weights) > 1 else np.zeros((0, self.inputs))

    @property
    def bias(self) -> Float64Array:
        """The b_r, shape (neurons,)."""
        return self.biases[0] if len(self.weights) > 1 else np.zeros(0)

    @property
    def output(self) -> Float64Array:
        """The a_r, shape (neurons,)."""
        return self.weights[1][:, 0] if len(self.weights) > 1 else np.zeros(0)

    @property
    def offset(self) -> float:
        """c."""
        return float(self.biases[-1][0])

    @property
    def linear(self) -> Float64Array | None:
        """v, shape (inputs,), of a linear model."""
        return self.weights[0][:, 0] if len(self.weights) == 1 else None

    def of_neurons(self, neurons: AnyArray) -> Layers:
        """The part that some neurons make, c included."""
        if len(self.weights) == 1:
            return self
        weights = (self.hidden[neurons].T, self.weights[1][neurons])
        return replace(self, weights=weights, biases=(self.biases[0][neurons], self.biases[1]))

    @cached_property
    def _outward(self) -> FloatArray:
        rows = self.weights[0].T
        return np.ascontiguousarray(rows) if self.precision is np.float32 else rows

    def _parts(self, points: Float64Array) -> list[slice]:
        rows = max(16, TOGETHER[self.precision] // max(1, self.width))
        return [slice(start, start + rows) for start in range(0, max(1, len(points)), rows)]

    def _forward(self, points: Float64Array, slopes: bool = False) -> tuple[list[Any], FloatArray]:
        """The slopes of all hidden layers, on demand, and the scores of a part of the rows."""
        values: Any = points.astype(self.precision, copy=False)
        found, shape = [], self.activation
        for matrix, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z = values @ matrix
            z += bias
            if isinstance(shape, Activation):
                values, on = self._fired(z, shape.ceiling)
                found.append(self._slopes(z, on, shape.ceiling) if slopes else None)
            else:
                value, slope = SMOOTH[shape]
                values = value(z)
                found.append(slope(values) if slopes else None)
        return found, values @ self.weights[-1] + self.biases[-1]

    def _fired(self, z: FloatArray, ceiling: float) -> tuple[FloatArray, AnyArray]:
        """σ(z), in place where that saves a table, and which neurons fire."""
        on, values = z > self.threshold, np.maximum(z, self.precision(0))
        if self.threshold > 0.0:
            values *= on
        if np.isfinite(ceiling):
            np.minimum(values, self.precision(ceiling), out=values)
        return values, on

    def _slopes(self, z: FloatArray, on: AnyArray, ceiling: float) -> Any:
        if np.isfinite(ceiling):
            on &= z < ceiling
        if self.window is None:
            return on
        near = np.abs(z - self.precision(self.threshold)) < self.window
        return on + near * (self.precision(self.threshold / 2.0) / self.window)
