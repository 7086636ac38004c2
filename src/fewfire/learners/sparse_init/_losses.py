"""Losses of the outputs, weighted by row: log loss for classes, half the squared error for numbers.

Each takes outputs (rows, outputs) and a target of the same shape and gives the losses (rows,) and their derivative. Two
classes use one output, the log odds; a target of classes may be smoothed, so it holds probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


def sigmoid(values: Floats) -> Floats:
    """1/(1 + e^−z), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


def softmax(values: Floats) -> Floats:
    """Probabilities of each row's outputs."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def logistic(values: Floats, target: Floats) -> tuple[Floats, Floats]:
    """−p log σ(z) − (1 − p) log σ(−z), and σ(z) − p."""
    losses = np.logaddexp(0.0, values) - target * values
    return losses[:, 0], sigmoid(values) - target


def cross_entropy(values: Floats, target: Floats) -> tuple[Floats, Floats]:
    """−Σ_c p_c log softmax(z)_c, and softmax(z) − p."""
    top = values.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(values - top).sum(axis=1, keepdims=True)) + top
    return (target * (log_sum - values)).sum(axis=1), softmax(values) - target


def squared(values: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Half the mean over outputs of (z − y)², and (z − y) / outputs."""
    errors = (values - target) / values.shape[1]
    return 0.5 * (errors * (values - target)).sum(axis=1), errors


LOSSES: dict[str, Callable[[Floats, Floats], tuple[Floats, Floats]]] = {
    "logistic": logistic,
    "cross_entropy": cross_entropy,
    "squared": squared,
}
