"""Losses ℓ(f, y), their derivatives in f, and the gradient of the mean loss of a `TwoLayer`, written to be read.

hinge     max(1 − y f, 0); derivative −y where y f < 1, else 0 (0 at the kink)
logistic  log(1 + exp(−y f))
square    (f − y)² / 2
absolute  |f − y|; derivative sign(f − y), 0 at the tie

f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c,  g_i = ℓ'(f(x_i), y_i) / m
∂/∂u_j = Σ_i g_i σ(z_ij)      ∂/∂c = Σ_i g_i
∂/∂b_j = Σ_i g_i u_j σ'(z_ij)  ∂/∂w_j = Σ_i g_i u_j σ'(z_ij) x_i
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fewfire._validate import check_choice, check_inputs, check_labels
from fewfire.networks import check_single_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, FloatArray
    from fewfire.networks import TwoLayer

LossName = Literal["hinge", "logistic", "square", "absolute"]


@dataclass(frozen=True)
class Loss:
    """One loss: `value(f, y)` and `slope(f, y)`, elementwise on vectors of shape (rows,).

    `signs` says that labels must be ±1.
    """

    name: str
    value: Callable[[FloatArray, FloatArray], FloatArray]
    slope: Callable[[FloatArray, FloatArray], FloatArray]
    signs: bool = False


def _sigmoid(z: FloatArray) -> FloatArray:
    from scipy.special import expit  # late: the workers of a sweep need SciPy for this loss alone

    found: FloatArray = expit(z)
    return found


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("hinge", lambda f, y: np.maximum(1 - y * f, 0), lambda f, y: np.where(y * f < 1, -y, 0), signs=True),
        Loss("logistic", lambda f, y: np.logaddexp(0, -y * f), lambda f, y: -y * _sigmoid(-y * f), signs=True),
        Loss("square", lambda f, y: (f - y) ** 2 / 2, lambda f, y: f - y),
        Loss("absolute", lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y)),
    )
}


def get_loss(name: str) -> Loss:
    """The loss of that name.

    Examples
    --------
    >>> from fewfire.engines import get_loss
    >>> get_loss("hinge").name
    'hinge'
    """
    return LOSSES[check_choice("loss", name, LOSSES)]


def error_rate(outputs: FloatArray, labels: FloatArray) -> float:
    """Share of wrong signs when all labels are ±1 (an output of 0 is wrong), else the mean squared error.

    Examples
    --------
    >>> import fewfire as ff
    >>> import numpy as np
    >>> ff.engines.error_rate(np.array([0.3, -2.0, 1.0]), np.array([1.0, 1.0, 1.0]))
    0.3333333333333333
    """
    if np.all(np.abs(labels) == 1):
        return float(np.mean(outputs * labels <= 0))
    return float(np.mean((outputs - labels) ** 2))


class Gradients(NamedTuple):
    """Gradients shaped like the parameters, with the loss and what fired on the way."""

    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    offset: float
    loss: float
    outputs: FloatArray
    active_pairs: int


def gradients(network: TwoLayer, X: AnyArray, y: AnyArray, loss: LossName = "hinge") -> Gradients:
    """Mean loss over the rows of X and its gradient.

    Parameters
    ----------
    network : TwoLayer
    X : array of shape (rows, inputs)
    y : array of shape (rows,)
    loss : "hinge", "logistic", "square" or "absolute"

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(6, 2).sample(64, seed=0)
    >>> ff.engines.gradients(ff.networks.init.sparse(2)(6, width=20, seed=0), X, y).hidden.shape
    (20, 6)
    """
    check_single_output(network, "gradients")
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
