"""Fixed features for linear rivals (parities, Theorem 1), and how well a linear classifier on them can do.

A family draws N features without seeing labels or the support, nested: the first N of 2N are those of N. Families:

- "relu": σ(⟨w, x⟩/√n + b), w and b normal; what a wide network has before training;
- "cosine": cos(⟨w, x⟩/√n + b), w normal of deviation k/4, b uniform;
- "galu": 1[⟨w, x⟩/√n + b > 0] times each of 1, x_1, …, x_n, so n + 1 features per gate: gated linear units;
- "monomials": the products of k inputs, in random order; all C(n, k) of them hold every parity.

Deviations are near the best in a scan; without biases no number of the first or the third suffices.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations
from math import comb, log2, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import Float64Array, SignArray


PENALTY = 1e-7
"""Of the squared weights, as a share of the mean squared length of a feature: only to keep the equations regular."""

NEWTON_STEPS, TOO_FAR = 6, 0.12
"""Steps of Newton's method, and the error of the first, least squares, from which no later one came below 5%."""

STEPS_PER_DOUBLING = 4  # how finely dimensions are searched: by factors of 2^(1/4)


def relu_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Gaussian ReLU features with biases."""
    return np.asarray(np.maximum(_projections(X, dimension, stream) + stream.child("bias").normal(dimension), 0.0))


def cosine_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Random Fourier features."""
    phases = stream.child("bias").uniform(dimension, 0.0, 2 * pi)
    return np.asarray(np.cos(k / 4 * _projections(X, dimension, stream) + phases))


def galu_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Gated linear units: every gate passes 1 and all inputs; the last one perhaps not all."""
    rows, n = X.shape
    gates = -(-dimension // (n + 1))
    is_open = _projections(X, gates, stream) + stream.child("bias").normal(gates) > 0
    passed = np.hstack([np.ones((rows, 1)), X])
    return np.asarray((is_open[:, :, None] * passed[:, None, :]).reshape(rows, -1)[:, :dimension])


def monomial_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Products of k inputs in random order; at most C(n, k) of them."""
    n = X.shape[1]
    total = comb(n, k)
    if total > 10**6:  # too many to list; repetitions are rare
        chosen = stream.child("monomials").subsets(dimension, n, k)
    else:
        everything = np.array(list(combinations(range(n), k)))
        chosen = everything[stream.child("monomials").permutation(total)[:dimension]]
    return np.stack([X[:, monomial].prod(axis=1) for monomial in chosen], axis=1).astype(np.float64)


FAMILIES: dict[str, Callable[..., Float64Array]] = {
    "relu": relu_features,
    "cosine": cosine_features,
    "galu": galu_features,
    "monomials": monomial_features,
}
"""Functions of X (rows, n), k, dimension and stream: the first so many features, shape (rows, dimension)."""


def fit_linear(
    features: Float64Array, y: Float64Array, mass: Float64Array, *, goal: float = 0.0, penalty: float = PENALTY
) -> tuple[Float64Array, float]:
    """Weights of a linear classifier and the mass that it gets wrong: logistic regression by Newton's method."""
    weights = np.zeros(features.shape[1])
    best, least = weights, 1.0
    for _ in range(NEWTON_STEPS):
        margin = np.clip(y * (features @ weights), -30, 30)
        right = 1 / (1 + np.exp(-margin))
        slope = features.T @ (mass * (1 - right) * y)
        curvature = np.maximum(mass * right * (1 - right), 1e-12 * mass)
        scaled = features * np.sqrt(curvature)[:, None]
        hessian = scaled.T @ scaled  # NumPy sees the symmetry, and computes half of it
        ridge = penalty * np.trace(hessian) / len(weights) + 1e-14
        hessian[np.diag_indices_from(hessian)] += ridge
        try:
            weights = weights + cho_solve(cho_factor(hessian, overwrite_a=True), slope - ridge * weights)
        except LinAlgError:
            break  # separated so well that nothing curves
        error = float(mass @ ((features @ weights > 0) != (y > 0)))
        if error < least:
            best, least = weights, error
        if least <= goal or (goal and least > TOO_FAR):
            break
    return best, least


def dimension_needed(error_at: Callable[[int], float], goal: float, start: int, largest: int) -> float:
    """The least dimension, to a factor 2^(1/4), at which the error is at most the goal; infinity above `largest`."""

    def size(exponent: int) -> int:
        return min(largest, round(start * 2 ** (exponent / STEPS_PER_DOUBLING)))

    def enough(exponent: int) -> bool:
        return error_at(size(exponent)) <= goal

    doublings = range(int(log2(max(largest / start, 1))) + 2)
    first = next((number for number in doublings if enough(STEPS_PER_DOUBLING * number)), None)
    if first is None:
        return float("inf")
    high = STEPS_PER_DOUBLING * first
    low = max(0, high - STEPS_PER_DOUBLING + 1)
    return float(size(bisect_left(range(high), True, low, high, key=enough)))


def _projections(X: SignArray, dimension: int, stream: Stream) -> Float64Array:
    directions = stream.child("directions").normal((dimension, X.shape[1]))
    return np.asarray(X.astype(np.float64) @ directions.T / sqrt(X.shape[1]))
