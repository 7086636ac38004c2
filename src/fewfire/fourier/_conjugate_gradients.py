"""Ridge regression by conjugate gradients on the normal equations, with a free intercept.

Minimises ‖y − b − A v‖² + α‖v‖² over v and b, A the monomials without the constant one; where samples have weights, the
first norm and all means are weighted. The intercept is projected out: residuals are kept at mean zero. From v = 0 the
iterates stay in the row space, so with α = 0 and more monomials than samples the limit is the solution of least norm.

The iteration stops on its own error. Step k lowers the energy ‖A(v − v*)‖² + α‖v − v*‖² by exactly γ²/δ, a number
it computes anyway (Hestenes and Stiefel 1952), so what is left is the sum of the steps still to come; that is
extrapolated from the last two windows of steps, as a geometric series. Energy is, up to α, the squared error of the
fitted values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.fourier._monomial_matrix import MonomialMatrix

Notify: TypeAlias = Callable[[int, float], object]
"""Called after each step with the number of steps and the estimated relative error."""

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients with the intercept at index 0, shape (monomials,), and how they were reached."""

    values: Float64Array
    iterations: int
    error: float
    """Estimated energy norm of the error, relative to the norm of the centred labels."""


def conjugate_gradients(
    matrix: MonomialMatrix,
    labels: Float64Array,
    alpha: float,
    tol: float,
    max_iter: int,
    notify: Notify,
    weights: Float64Array | None = None,
) -> Solution:
    """Iterate until the estimated relative error is at most `tol`, or `max_iter` steps are done.

    `labels` and `weights`, those of the squared residuals, have the shape (samples,).
    """
    intercept = _mean(labels, weights)
    residual = labels - intercept
    scale = _dot(residual, _weighted(residual, weights))
    # Squared norms that rounding leaves of a residual and of a gradient that are zero.
    noise = matrix.shape[0] * (4.0 * _EPSILON * intercept) ** 2
    floor = matrix.shape[0] * matrix.shape[1] * _EPSILON**2 * scale
    values = np.zeros(matrix.shape[1])
    gradient = _gradient(matrix, _weighted(residual, weights), values, alpha)
    direction = gradient.copy()
    gamma = _dot(gradient, gradient)
    steps: list[float] = []
    error = inf if scale > noise and gamma > floor else 0.0
    while error > tol and len(steps) < max_iter:
        image = matrix.values(direction)
        mean = _mean(image, weights)
        image -= mean
        length = gamma / (_dot(image, _weighted(image, weights)) + alpha * _dot(direction, direction))
        values += length * direction
        intercept -= length * mean
        image *= length
        residual -= image
        steps.append(length * gamma)
        gradient = _gradient(matrix, _weighted(residual, weights), values, alpha)
        gamma, previous = _dot(gradient, gradient), gamma
        direction *= gamma / previous
        direction += gradient
        error = sqrt(_left_over(steps) / scale) if gamma > floor else 0.0
        notify(len(steps), error)
    values[0] = intercept
    return Solution(values, len(steps), error)


def expected_iterations(samples: int, monomials: int, alpha: float, tol: float) -> float:
    """Steps to the tolerance for uniform random signs, whose Gram matrix has the Marchenko–Pastur spectrum."""
    ratio = sqrt(monomials / samples)
    low, high = samples * (1.0 - ratio) ** 2 + alpha, samples * (1.0 + ratio) ** 2 + alpha
    if low <= 0.0:
        return inf
    return 0.5 * sqrt(high / low) * log(2.0 / tol) + 1.0


def _gradient(matrix: MonomialMatrix, residual: Float64Array, values: Float64Array, alpha: float) -> Float64Array:
    """Half the steepest descent: Aᵀ residual − α v, without the constant monomial."""
    gradient = matrix.sums(residual)
    if alpha:
        gradient -= alpha * values
    gradient[0] = 0.0
    return gradient


def _mean(values: Float64Array, weights: Float64Array | None) -> float:
    return float(values.mean() if weights is None else _dot(values, weights) / weights.sum())


def _weighted(values: Float64Array, weights: Float64Array | None) -> Float64Array:
    return values if weights is None else values * weights


def _left_over(steps: list[float]) -> float:
    """The sum of the steps still to come; infinite while they do not shrink."""
    window = max(2, len(steps) // 8)
    if len(steps) < 2 * window:
        return inf
    last, before = sum(steps[-window:]), sum(steps[-2 * window : -window])
    return last * last / (before - last) if last < before else inf


def _dot(a: Float64Array, b: Float64Array) -> float:
    """⟨a, b⟩ without BLAS, whose idle threads would spin while the kernels' own work."""
    return float(np.einsum("i,i->", a, b))
