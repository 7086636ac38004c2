"""The gradient of the mean loss of a `TwoLayer` in all its parameters, written to be read.

f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c,  g_i = ℓ'(f(x_i), y_i) / m
∂/∂u_j = Σ_i g_i σ(z_ij)      ∂/∂c = Σ_i g_i
∂/∂b_j = Σ_i g_i u_j σ'(z_ij)  ∂/∂w_j = Σ_i g_i u_j σ'(z_ij) x_i
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire._validate import check_inputs, check_labels
from fewfire.engines._losses import get_loss

if TYPE_CHECKING:
    from fewfire._types import AnyArray, FloatArray
    from fewfire.networks import TwoLayer


class Gradients(NamedTuple):
    """Gradients shaped like the parameters, with the loss and what fired on the way."""

    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    offset: float
    loss: float
    outputs: FloatArray
    active_pairs: int


def gradients(network: TwoLayer, X: AnyArray, y: AnyArray, loss: str = "hinge") -> Gradients:
    """Mean loss over the rows of X and its gradient.

    Parameters
    ----------
    network : TwoLayer
    X : array of shape (rows, inputs)
    y : array of shape (rows,)
    loss : "hinge", "logistic", "square" or "absolute"
    """
    X = check_inputs("X", X, network.inputs, network.dtype)
    return unchecked_gradients(network, X, check_labels("y", y, len(X)).astype(network.dtype), loss)


def unchecked_gradients(network: TwoLayer, X: AnyArray, y: FloatArray, loss: str) -> Gradients:
    """The same, for arguments that were checked before."""
    rule, activation = get_loss(loss), network.activation
    inputs = X.astype(network.dtype, copy=False)
    z = inputs @ network.hidden.T + network.bias
    features = activation.value(z)
    outputs = features @ network.output + network.offset
    g = (rule.slope(outputs, y) / len(X)).astype(network.dtype)
    through = g[:, None] * network.output * activation.slope(z)
    return Gradients(
        hidden=through.T @ inputs,
        bias=through.sum(axis=0),
        output=features.T @ g,
        offset=float(g.sum()),
        loss=float(np.mean(rule.value(outputs, y))),
        outputs=outputs,
        active_pairs=int(np.count_nonzero(activation.active(z))),
    )
