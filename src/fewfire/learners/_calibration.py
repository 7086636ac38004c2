"""Probabilities from values of a polynomial or network: one logistic slope, fitted to rows that it did not see.

P(+1 | value) = 1 / (1 + exp(−slope·value)), so that a class is predicted exactly where its probability is above 1/2.
Targets are drawn a little towards one half (Platt 1999), which keeps the slope finite where no held-out row is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from fewfire._types import Float64Array

STEPS = 100
LARGEST = 1e3
"""Slopes beyond say nothing new: values of 0.1 are certain."""


def logistic_slope(values: Float64Array, labels: Float64Array, weights: Float64Array | None = None) -> float:
    """The slope of least log loss, above 0; 1 where nothing was held out.

    Parameters
    ----------
    values : array of shape (samples,); NaN for rows never held out
    labels : −1 and 1, of shape (samples,)
    weights : of the rows, shape (samples,); alike unless given
    """
    seen = np.isfinite(values)
    if not seen.any():
        return 1.0
    weights = np.ones(int(seen.sum())) if weights is None else weights[seen]
    values, labels = values[seen], labels[seen]
    positive, negative = float(weights[labels > 0].sum()), float(weights[labels < 0].sum())
    unit = weights.mean()
    target = np.where(labels > 0, (positive + unit) / (positive + 2 * unit), unit / (negative + 2 * unit))
    low, high = 1e-6, LARGEST
    # The slope of the loss rises in the slope: bisect for its zero on a logarithmic scale.
    for _ in range(STEPS):
        middle = float(np.sqrt(low * high))
        if float(weights @ (values * (expit(middle * values) - target))) > 0.0:
            high = middle
        else:
            low = middle
    return float(np.sqrt(low * high))


def two_probabilities(slope: float, values: Float64Array) -> Float64Array:
    """The probability of each of two classes, shape (rows, 2), from values of shape (rows,)."""
    second = expit(slope * values)
    return np.stack([1.0 - second, second], axis=1)
