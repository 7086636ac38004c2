"""Losses ℓ(f, y) and their derivatives in f.

hinge     max(1 − y f, 0); derivative −y where y f < 1, else 0 (0 at the kink)
logistic  log(1 + exp(−y f))
square    (f − y)² / 2
absolute  |f − y|; derivative sign(f − y), 0 at the tie
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from fewfire._validate import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import FloatArray


@dataclass(frozen=True)
class Loss:
    """One loss: `value(f, y)` and `slope(f, y)`, elementwise on vectors of shape (rows,)."""

    name: str
    value: Callable[[FloatArray, FloatArray], FloatArray]
    slope: Callable[[FloatArray, FloatArray], FloatArray]


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("hinge", lambda f, y: np.maximum(1 - y * f, 0), lambda f, y: np.where(y * f < 1, -y, 0)),
        Loss("logistic", lambda f, y: np.logaddexp(0, -y * f), lambda f, y: -y * expit(-y * f)),
        Loss("square", lambda f, y: (f - y) ** 2 / 2, lambda f, y: f - y),
        Loss("absolute", lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y)),
    )
}


def get_loss(name: str) -> Loss:
    """The loss of that name."""
    return LOSSES[check_choice("loss", name, LOSSES)]


def error_rate(outputs: FloatArray, labels: FloatArray) -> float:
    """Share of wrong signs when all labels are ±1 (an output of 0 is wrong), else the mean squared error."""
    if np.all(np.abs(labels) == 1):
        return float(np.mean(outputs * labels <= 0))
    return float(np.mean((outputs - labels) ** 2))
