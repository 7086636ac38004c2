"""A 1-sparse network whose weights are not sparse (sparse-activations, Appendix A).

An input is (x, y) with b and q coordinates. The neuron of the pattern α computes σ(⟨w_α, y⟩ + Γ(⟨x, α⟩ − b)),
so at x = α it is σ(⟨w_α, y⟩), and elsewhere it loses at least 2Γ. Since |⟨w_α, y⟩| ≤ √q for a unit vector
w_α, Γ = √q silences all neurons but the one of α = x; a smaller Γ of order √log s does so for most inputs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number
from fewfire.networks._two_layer import TwoLayer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


def unit_rows(stream: Stream, rows: int, columns: int) -> Float64Array:
    """Independent uniform unit vectors: shape (rows, columns)."""
    gaussian = stream.normal((rows, columns))
    return np.asarray(gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True))


def dense_weights(
    b: int, q: int, weights: ArrayLike | None = None, seed: int | Stream = 0, gamma: float | None = None
) -> TwoLayer:
    """The network of width 2^b on b + q coordinates that returns σ(⟨w_x, y⟩) at (x, y).

    Parameters
    ----------
    b, q : int
        Coordinates of x, at most 20, and of y.
    weights : array of shape (2^b, q), optional
        The unit vectors w_α as rows: bit i of the row number is set iff α_i = −1. Drawn uniformly by default.
    seed : int or Stream
        Of the drawn weights (stream "construct").
    gamma : float, optional
        Γ > 0; √q by default, with which at most one neuron fires on every input.
    """
    b = check_integer("b", b, 1, 20, "the network has 2**b neurons")
    q = check_integer("q", q, 1)
    gamma = math.sqrt(q) if gamma is None else check_number("gamma", gamma, 0.0, open_low=True)
    if weights is None:
        vectors = unit_rows(as_stream(seed, "construct"), 2**b, q)
    else:
        vectors = _checked(np.asarray(weights, dtype=np.float64), (2**b, q))
    hidden = np.concatenate([gamma * cube(b), vectors], axis=1)
    return TwoLayer(hidden, np.full(2**b, -gamma * b), np.ones(2**b))


def _checked(vectors: Float64Array, shape: tuple[int, int]) -> Float64Array:
    if vectors.shape != shape:
        raise invalid("weights", f"must have shape {shape}, one row per pattern of x", f"shape {vectors.shape}")
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= 1e-6))  # written so that NaN is wrong too
    if len(wrong):
        got = f"a norm of {lengths[wrong[0]]:g} in row {wrong[0]}"
        raise invalid("weights", "must have rows of norm 1", got, "divide each row by its norm")
    return vectors
