"""Scores with a formula that certificates can bound: two-layer networks of fewfire, layers of linear maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from fewfire._errors import invalid
from fewfire.robustness._bounds import ReluNetwork
from fewfire.robustness._score_function import Scores
from fewfire.robustness._shallow import ShallowScores

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array
    from fewfire.networks import TwoLayer
    from fewfire.robustness._score_function import Pull


@dataclass(frozen=True, eq=False)
class TwoLayerScores(Scores):
    """Two-layer networks side by side, one per score, in float64."""

    networks: tuple[TwoLayer, ...]

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return self.networks[0].inputs

    @property
    def width(self) -> int:
        """Hidden neurons of all networks together."""
        return sum(net.width for net in self.networks)

    def scores(self, points: Float64Array) -> Float64Array:
        """f_k at points (rows, inputs): shape (rows, heads)."""
        return np.column_stack([net(points) for net in self.networks])

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k Σ_r a_r σ′(z_r) w_r, shape (rows, inputs)."""
        columns, slopes = [], []
        for net in self.networks:
            z = net.preactivations(points)
            columns.append(net.activation.value(z) @ net.output + net.offset)
            slopes.append(net.activation.slope(z) * net.output)

        def pull(weights: Float64Array) -> Float64Array:
            total = np.zeros_like(points)
            for k, (net, slope) in enumerate(zip(self.networks, slopes, strict=True)):
                total += weights[:, k, None] * (slope @ net.hidden)
            return total

        return np.column_stack(columns), pull

    def after(self, scale: Float64Array, shift: Float64Array) -> TwoLayerScores:
        """Networks of x whose weights have taken the scaling in."""
        return TwoLayerScores(
            tuple(net.with_parameters(net.hidden * scale, net.bias + net.hidden @ shift) for net in self.networks)
        )

    def relu_networks(self) -> tuple[ReluNetwork, ...]:
        """The networks; those of relu6 are refused."""
        return tuple(ReluNetwork.of(net) for net in self.networks)

    def single(self) -> Scores:
        """One layer of all neurons; of the neurons that the networks share, where they share all."""
        first = self.networks[0]
        if any(net.activation != first.activation for net in self.networks):
            return self
        offset, shape = np.array([float(net.offset) for net in self.networks]), first.activation
        if all(
            np.array_equal(net.hidden, first.hidden) and np.array_equal(net.bias, first.bias) for net in self.networks
        ):
            output = np.column_stack([net.output for net in self.networks])
            return ShallowScores.single_precision(
                first.hidden, first.bias, output, offset, shape.threshold, shape.ceiling
            )
        output = block_diag(*(net.output[:, None] for net in self.networks))
        hidden, bias = (np.concatenate([getattr(net, part) for net in self.networks]) for part in ("hidden", "bias"))
        return ShallowScores.single_precision(hidden, bias, output, offset, shape.threshold, shape.ceiling)


# name: (σ(z), σ′ written in terms of the value s = σ(z))
ACTIVATIONS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda s: s * (1.0 - s)),
    "tanh": (np.tanh, lambda s: 1.0 - s**2),
    "relu": (lambda z: np.maximum(z, 0.0), lambda s: (s > 0.0).astype(s.dtype)),
}


@dataclass(frozen=True, eq=False)
class LayeredScores(Scores):
    """Layers s_{l+1} = σ(s_l V_l + c_l), the last one without σ; a single layer is a linear model.

    Parameters
    ----------
    weights : arrays V_l of shape (units of layer l, units of layer l + 1)
    biases : arrays c_l of shape (units of layer l + 1,)
    activation : "identity", "logistic", "tanh" or "relu"
        σ; must be given for more than one layer.
    """

    weights: tuple[Float64Array, ...]
    biases: tuple[Float64Array, ...]
    activation: str = ""

    def __post_init__(self) -> None:
        if len(self.weights) == 1 and not self.activation:
            object.__setattr__(self, "activation", "identity")  # no layer has it
        if self.activation not in ACTIVATIONS:
            rule = f"must be one of {', '.join(map(repr, ACTIVATIONS))} where there is more than one layer"
            got = self.activation or f"none for {len(self.weights)} layers"
            raise invalid("activation", rule, got, "write LayeredScores(weights, biases, 'relu')")

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return len(self.weights[0])

    @property
    def width(self) -> int:
        """Units of all layers together."""
        return sum(len(bias) for bias in self.biases)

    def scores(self, points: Float64Array) -> Float64Array:
        """The last layer's values at points (rows, inputs): shape (rows, heads)."""
        return self._layers(points)[-1]

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k ∂score_k/∂x by backpropagation."""
        layers = self._layers(points)
        slope = ACTIVATIONS[self.activation][1]

        def pull(weights: Float64Array) -> Float64Array:
            back = weights @ self.weights[-1].T
            for values, matrix in zip(layers[-2:0:-1], self.weights[-2::-1], strict=True):
                back = (back * slope(values)) @ matrix.T
            return np.asarray(back)

        return layers[-1], pull

    def after(self, scale: Float64Array, shift: Float64Array) -> LayeredScores:
        """Layers whose first weights have taken the scaling in."""
        first = (self.weights[0] * scale[:, None], *self.weights[1:])
        return replace(self, weights=first, biases=(self.biases[0] + shift @ self.weights[0], *self.biases[1:]))

    def relu_networks(self) -> tuple[ReluNetwork, ...]:
        """Linear functions, or networks of one hidden layer of ReLUs; other perceptrons are refused."""
        if len(self.weights) == 1:
            ((matrix,), (offsets,)) = self.weights, self.biases
            return tuple(ReluNetwork.linear_function(matrix[:, k], float(offsets[k])) for k in range(matrix.shape[1]))
        if len(self.weights) != 2 or self.activation != "relu":
            got = f"a perceptron of {len(self.weights) - 1} hidden layers of {self.activation}"
            raise invalid("model", "must have one hidden layer of relu neurons to be certified", got)
        (first, second), (bias, offsets) = self.weights, self.biases
        hidden = np.ascontiguousarray(first.T)
        return tuple(
            ReluNetwork(hidden, bias, np.ascontiguousarray(second[:, k]), float(offsets[k]))
            for k in range(second.shape[1])
        )

    def single(self) -> Scores:
        """One hidden layer of ReLUs as such, other layers with weights of float32."""
        if len(self.weights) == 2 and self.activation == "relu":
            return ShallowScores.single_precision(self.weights[0].T, self.biases[0], self.weights[1], self.biases[1])
        layers: Any = [tuple(part.astype(np.float32) for part in parts) for parts in (self.weights, self.biases)]
        return replace(self, weights=layers[0], biases=layers[1])

    def _layers(self, points: Float64Array) -> list[Float64Array]:
        """The points, every hidden layer's values and the scores."""
        layers, value = [points], ACTIVATIONS[self.activation][0]
        for matrix, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.asarray(value(layers[-1] @ matrix + bias)))
        layers.append(layers[-1] @ self.weights[-1] + self.biases[-1])
        return layers
