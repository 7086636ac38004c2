"""How sure the outputs of a fitted model may be: one factor, learned on held-out rows.

Smoothed labels and the mean of many networks make outputs timid. Multiplying them all by the factor that gives the
held-out rows the lowest log loss makes probabilities of them, and leaves the likeliest class as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from fewfire.learners.sparse_init._losses import LOSSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray, Float64Array

LARGEST = 3.0  # few held-out rows, all predicted right, would ask for an infinite factor


def combine(pooled: Sequence[Float64Array], weights: Float64Array) -> Float64Array:
    """Weighted mean (rows, outputs) of views' outputs; NaN, where a view did not hold a row out, counts for nothing."""
    total, share = np.zeros(pooled[0].shape), np.zeros(pooled[0].shape)
    for weight, outputs in zip(weights, pooled, strict=True):
        known = ~np.isnan(outputs)
        total += weight * np.where(known, outputs, 0.0)
        share += weight * known
    return np.asarray(np.divide(total, share, out=np.full(total.shape, np.nan), where=share > 0))


def sharpness(loss: str, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> float:
    """The factor in [1/3, 3] by which outputs (rows, outputs), NaN where unknown, predict classes best."""
    known = ~np.isnan(outputs).any(axis=1)

    def mean_loss(logarithm: float) -> float:
        losses, _ = LOSSES[loss](np.exp(logarithm) * outputs[known], target[known])
        return float(np.average(losses, weights=weight[known]))

    bound = np.log(LARGEST)
    return float(np.exp(minimize_scalar(mean_loss, bounds=(-bound, bound), method="bounded").x))
