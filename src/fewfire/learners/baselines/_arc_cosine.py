"""Arc-cosine kernels: expectations of products of ReLU neurons and of their slopes, in closed form.

A neuron of a wide two-layer network with standard normal weights w and bias weight v computes relu(⟨w, x⟩/√n + βv)
= relu(⟨g, x̃⟩) with g standard normal and x̃ = (x/√n, β). With c the cosine of the angle between x̃ and ỹ,

    κ₀(c) = 2 E[step(⟨g, x̃⟩) step(⟨g, ỹ⟩)]                = (π − arccos c) / π
    κ₁(c) = 2 E[relu(⟨g, x̃⟩) relu(⟨g, ỹ⟩)] / (‖x̃‖ ‖ỹ‖) = (√(1 − c²) + c (π − arccos c)) / π.

Without the bias (β = 0) κ₁(c), and c κ₀(c) alike, hold no odd power of c but the first: no odd parity of three
or more bits is in reach of either kernel. The bias is what makes them rivals at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array, FloatArray


def order_zero(cosine: Float64Array) -> Float64Array:
    """κ₀, of the shape of `cosine`."""
    return np.asarray(1.0 - np.arccos(cosine) / np.pi)


def order_one(cosine: Float64Array) -> Float64Array:
    """κ₁, of the shape of `cosine`."""
    sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
    return np.asarray((sine + cosine * (np.pi - np.arccos(cosine))) / np.pi)


def inner_products(A: FloatArray, B: FloatArray, bias: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """⟨x̃, ỹ⟩ and ‖x̃‖ ‖ỹ‖ for all rows of A and B, and the cosines, each of shape (len(A), len(B))."""
    n = A.shape[1]
    products = A @ B.T / n + bias**2
    lengths = [np.sqrt(np.einsum("ij,ij->i", rows, rows) / n + bias**2) for rows in (A, B)]
    scale = np.outer(*lengths)
    # Rows of zeros without a bias have no direction; any cosine does, their kernel is 0.
    cosine = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return products, scale, np.clip(cosine, -1.0, 1.0)


def conjugate_kernel(A: FloatArray, B: FloatArray, bias: float) -> Float64Array:
    """‖x̃‖ ‖ỹ‖ κ₁(c): the limit of (2/width) Σ_j σ_j(x) σ_j(y), of shape (len(A), len(B))."""
    _, scale, cosine = inner_products(A, B, bias)
    return scale * order_one(cosine)


def tangent_kernel(A: FloatArray, B: FloatArray, bias: float) -> Float64Array:
    """‖x̃‖ ‖ỹ‖ κ₁(c) + ⟨x̃, ỹ⟩ κ₀(c): output weights, and hidden weights with biases; shape (len(A), len(B))."""
    products, scale, cosine = inner_products(A, B, bias)
    return scale * order_one(cosine) + products * order_zero(cosine)
