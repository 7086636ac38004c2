"""How the views of a fitted model are mixed, and how sure the mixture may be: both by the rows held out from them.

Weights, none negative and 1 together, are those whose weighted mean of outputs has the lowest loss on held-out rows; a
view that says nothing new gets none. Smoothed labels and means of many networks leave classifiers timid, so one factor,
again the best on held-out rows, makes probabilities of their outputs and leaves the likeliest class as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax

from fewfire.learners.sparse_init._losses import LOSSES

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

LEAST = 0.01  # a view of less weight is dropped
LARGEST = 3.0  # rows that are all predicted right would ask for an infinite factor
DOUBT = 2.0  # a factor e^t costs DOUBT · t² over all rows together: thirty rows do not say much about it


def mixing_weights(loss: str, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> Float64Array:
    """Weights (views,) of outputs (views, rows, outputs) at rows with their targets and weights, the least cut off."""

    def mean_loss(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        losses, errors = LOSSES[loss](np.tensordot(shares, outputs, 1), target)
        slopes = np.einsum("vro,ro,r->v", outputs, errors, weight) / weight.sum()
        return float(np.average(losses, weights=weight)), shares * (slopes - shares @ slopes)

    found = softmax(minimize(mean_loss, np.zeros(len(outputs)), jac=True, method="L-BFGS-B").x)
    found[found < LEAST] = 0.0
    return np.asarray(found / found.sum())


def sharpness(loss: str, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> float:
    """The factor in [1/3, 3] by which outputs (rows, outputs) predict classes best, nearer to 1 for few rows."""

    def mean_loss(logarithm: float) -> float:
        losses, _ = LOSSES[loss](np.exp(logarithm) * outputs, target)
        return float(np.average(losses, weights=weight)) + DOUBT * logarithm**2 / len(target)

    bound = np.log(LARGEST)
    return float(np.exp(minimize_scalar(mean_loss, bounds=(-bound, bound), method="bounded").x))
