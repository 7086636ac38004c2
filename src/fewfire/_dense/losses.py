"""Losses ℓ(f, y) of scores f and their derivatives in f: the one table of engines and learners.

hinge          max(1 − y f, 0); derivative −y where y f < 1, else 0 (0 at the kink)
logistic       log(1 + exp(−y f))
square         (f − y)² / 2
absolute       |f − y|; derivative sign(f − y), 0 at the tie
huber          (f − y)² / 2 where |f − y| ≤ 1, else |f − y| − ½
log_odds       −p log σ(f) − (1 − p) log σ(−f), with p the probability of the second class
cross_entropy  −Σ_c p_c log softmax(f)_c over the last axis

All but the last are elementwise. C++ has its own formulas: csrc/kernels/losses.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from fewfire._types import FloatArray

Formula: TypeAlias = Callable[[Any, Any], FloatArray]

LossName = Literal["hinge", "logistic", "square", "absolute", "cross_entropy"]
"""Losses that engines train by; the last one is for networks of several outputs."""


@dataclass(frozen=True)
class Loss:
    """One loss: `value(f, y)` and `slope(f, y)`, elementwise; of "cross_entropy" the value has no last axis.

    With `signs` labels must be ±1.
    """

    name: str
    value: Formula
    slope: Formula
    signs: bool = False

    def both(self, f: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value and slope."""
        if self.name == "cross_entropy":  # they share their exponentials
            return _cross_entropy(f, y)
        return self.value(f, y), self.slope(f, y)

    def of_rows(self, f: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value (rows,) and slope (rows, outputs) of the mean over the outputs of tables (rows, outputs)."""
        value, slope = self.both(f, y)
        if self.name == "cross_entropy":
            return value, slope
        return value.mean(axis=1), slope / f.shape[1]


def _sigmoid(z: FloatArray) -> FloatArray:
    from scipy.special import expit  # late: the workers of a sweep need SciPy for this loss alone

    found: FloatArray = expit(z)
    return found


def _cross_entropy(f: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    shifted = f - f.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    sums = powers.sum(axis=-1, keepdims=True)
    return (p * (np.log(sums) - shifted)).sum(axis=-1), np.asarray(powers / sums - p)


def _huber(f: FloatArray, y: FloatArray) -> FloatArray:
    apart = np.abs(f - y)
    return np.where(apart <= 1, apart**2 / 2, apart - 0.5)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("hinge", lambda f, y: np.maximum(1 - y * f, 0), lambda f, y: np.where(y * f < 1, -y, 0), signs=True),
        Loss("logistic", lambda f, y: np.logaddexp(0, -y * f), lambda f, y: -y * _sigmoid(-y * f), signs=True),
        Loss("square", lambda f, y: (f - y) ** 2 / 2, lambda f, y: f - y),
        Loss("absolute", lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y)),
        Loss("huber", _huber, lambda f, y: np.clip(f - y, -1, 1)),
        # σ by tanh, not by SciPy's expit, whose last bit differs in float32: fits keep their bits.
        Loss("log_odds", lambda f, p: np.logaddexp(0.0, f) - p * f, lambda f, p: 0.5 * (1.0 + np.tanh(0.5 * f)) - p),
        Loss("cross_entropy", lambda f, p: _cross_entropy(f, p)[0], lambda f, p: _cross_entropy(f, p)[1]),
    )
}


TabularLoss = Literal["logistic", "cross_entropy", "squared"]
"""Losses of networks and trees on tables, by the names that C++ and CUDA have for them."""

TABLE_LOSSES: dict[TabularLoss, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    "logistic": LOSSES["log_odds"].of_rows,
    "cross_entropy": LOSSES["cross_entropy"].of_rows,
    "squared": LOSSES["square"].of_rows,
}
"""Of outputs (rows, outputs) and a target of that shape the losses (rows,) and their derivative (rows, outputs).

Two classes use one output, the log odds; a target of classes may be smoothed, so it holds probabilities.
"""
