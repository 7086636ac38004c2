"""scikit-learn's multi-layer perceptrons: scores before the output's activation, and gradients by backpropagation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import expit

from fewfire._errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array

# name: (σ(z), σ′ written in terms of the value s = σ(z))
ACTIVATIONS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda s: s * (1.0 - s)),
    "tanh": (np.tanh, lambda s: 1.0 - s**2),
    "relu": (lambda z: np.maximum(z, 0.0), lambda s: (s > 0.0).astype(s.dtype)),
}


@dataclass(frozen=True, eq=False)
class Perceptron:
    """Layers s_{l+1} = σ(s_l V_l + c_l), the last one without σ.

    Parameters
    ----------
    weights : arrays V_l of shape (units of layer l, units of layer l + 1)
    biases : arrays c_l of shape (units of layer l + 1,)
    activation : "identity", "logistic", "tanh" or "relu"
    """

    weights: tuple[Float64Array, ...]
    biases: tuple[Float64Array, ...]
    activation: str

    @classmethod
    def of(cls, model: Any) -> Perceptron:
        """The layers of a fitted MLPClassifier or MLPRegressor."""
        if model.out_activation_ not in ("identity", "logistic", "softmax"):
            raise invalid("model", "must end in identity, logistic or softmax", model.out_activation_)
        weights = tuple(np.asarray(layer, dtype=np.float64) for layer in model.coefs_)
        biases = tuple(np.asarray(layer, dtype=np.float64) for layer in model.intercepts_)
        return cls(weights, biases, model.activation)

    @property
    def width(self) -> int:
        """Units of all layers together."""
        return sum(len(bias) for bias in self.biases)

    @property
    def inputs(self) -> int:
        """How many coordinates an input has."""
        return len(self.weights[0])

    def scores(self, points: Float64Array) -> Float64Array:
        """The outputs before their activation, at points (rows, inputs): shape (rows, outputs)."""
        return self._layers(points)[-1]

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Callable[[Float64Array], Float64Array]]:
        """Scores, and the map from weights c (rows, outputs) to Σ_k c_k ∂score_k/∂x, shape (rows, inputs)."""
        layers = self._layers(points)
        slope = ACTIVATIONS[self.activation][1]

        def pull(weights: Float64Array) -> Float64Array:
            back = weights @ self.weights[-1].T
            for values, matrix in zip(layers[-2:0:-1], self.weights[-2::-1], strict=True):
                back = (back * slope(values)) @ matrix.T
            return np.asarray(back)

        return layers[-1], pull

    def after(self, scale: Float64Array, shift: Float64Array) -> Perceptron:
        """These scores at scale·x + shift, as a perceptron of x; both arrays of shape (inputs,)."""
        first = (self.weights[0] * scale[:, None], *self.weights[1:])
        return replace(self, weights=first, biases=(self.biases[0] + shift @ self.weights[0], *self.biases[1:]))

    def _layers(self, points: Float64Array) -> list[Float64Array]:
        """The input, every hidden layer's values and the scores."""
        layers, value = [points], ACTIVATIONS[self.activation][0]
        for matrix, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.asarray(value(layers[-1] @ matrix + bias)))
        layers.append(layers[-1] @ self.weights[-1] + self.biases[-1])
        return layers
