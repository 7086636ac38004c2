"""The gradient of the mean loss ℓ of a `TwoLayer`, written to be read; losses are those of `_dense/losses.py`.

f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c,  g_i = ℓ'(f(x_i), y_i) / m
∂/∂u_j = Σ_i g_i σ(z_ij)      ∂/∂c = Σ_i g_i
∂/∂b_j = Σ_i g_i u_j σ'(z_ij)  ∂/∂w_j = Σ_i g_i u_j σ'(z_ij) x_i
"""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

import numpy as np

from fewfire._dense.losses import LOSSES as EVERY_LOSS
from fewfire._dense.losses import LossName
from fewfire._types import AnyArray, FloatArray
from fewfire._validate import check_choice, check_inputs, check_labels
from fewfire.networks import TwoLayer
from fewfire.networks._two_layer import check_single_output

LOSSES: Final = {name: EVERY_LOSS[name] for name in get_args(LossName) if name != "cross_entropy"}
"""Losses that engines train networks of one output by."""


def error_rate(outputs: FloatArray, labels: FloatArray, *others: FloatArray) -> float:
    """Share of wrong signs when all labels, others too, are ±1 (an output of 0 is wrong), else mean squared error."""
    if all(np.all(np.abs(part) == 1) for part in (labels, *others)):
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
    y = check_labels("y", y, len(X)).astype(network.dtype)
    return unchecked_gradients(network, X, y, check_choice("loss", loss, LOSSES))


def unchecked_gradients(network: TwoLayer, X: AnyArray, y: FloatArray, loss: str) -> Gradients:
    """The same, for arguments that were checked before."""
    rule, activation = LOSSES[loss], network.activation
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
