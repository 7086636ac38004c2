"""Geometry of the slice 𝒳 = {x : ‖x‖ = 1, x_d = 1/2} (sublinear, section 3.2) and of caps on it.

Problems draw points of it, adversaries move on it, certificates bound linear functions over its caps.

The first d − 1 coordinates, the *flat* part, lie on a sphere of radius R = √3/2. A point at distance at most ρ from x₀
on the slice is R(cos θ·e + sin θ·u) with e = x₀/R, u a unit vector at right angles to e, and θ at most
θ_max = 2 asin(ρ/2R). Everything here has a closed form in θ.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array

DIAMETER: Final = math.sqrt(3.0)
"""The largest distance on the slice."""

RADIUS: Final = DIAMETER / 2.0
"""Radius of the slice around (0, …, 0, 1/2)."""

LAST: Final = 0.5
"""The last coordinate."""

TOLERANCE: Final = 1e-5
"""How far ‖x‖ and x_d of points given by users may be from 1 and 1/2: what float32 and a little care leave."""


def check_on_slice(name: str, points: AnyArray, where: str, remedy: str) -> None:
    """Refuse points (rows, d) with a row off the slice by more than TOLERANCE; `where` ends the rule that is named."""
    norms = np.linalg.norm(points.astype(np.float64), axis=1)
    off = np.maximum(np.abs(norms - 1.0), np.abs(points[:, -1] - LAST))
    if off.max() > TOLERANCE:
        row = int(off.argmax())
        got = f"a row {row} with norm {norms[row]:.6g} and last coordinate {points[row, -1]:.6g}"
        raise invalid(name, f"must have rows with ‖x‖ = 1 and x_d = 1/2 (to {TOLERANCE:g}){where}", got, remedy)


def uniform_points(stream: Stream, first: int, count: int, d: int) -> NDArray[np.float32]:
    """Points first … first + count − 1, shape (count, d), of the endless uniform sequence that a stream holds."""
    directions = stream.normal((count, d - 1), first * (d - 1))
    points = np.full((count, d), LAST)
    # Multiplied before it is divided, unlike `on_slice`: data sets are the same to the bit wherever they are drawn.
    points[:, :-1] = RADIUS * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return points.astype(np.float32)


def opening(rho: float) -> float:
    """θ_max of a cap of chord ρ; π, the whole slice, from ρ = √3 on."""
    return 2.0 * math.asin(min(1.0, rho / DIAMETER))


def units(vectors: Float64Array) -> Float64Array:
    """Rows divided by their length, of the shape of `vectors`; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))


def on_slice(directions: Float64Array) -> Float64Array:
    """The points of the slice whose flat part has the given direction: (rows, d − 1) to (rows, d)."""
    return np.column_stack([RADIUS * units(directions), np.full(len(directions), LAST)])


def tangents(vectors: Float64Array, points: Float64Array) -> Float64Array:
    """The part of vectors (rows, d) along the slice at points (rows, d) of it."""
    flat, axes = vectors[:, :-1], units(points[:, :-1])
    along = np.einsum("ij,ij->i", flat, axes)[:, None]
    return np.column_stack([flat - along * axes, np.zeros(len(vectors))])


def turn(points: Float64Array, directions: Float64Array, angles: Float64Array) -> Float64Array:
    """Points (rows, d) of the slice moved by angles (rows,) along unit tangents (rows, d)."""
    axes = units(points[:, :-1])
    flat = np.cos(angles)[:, None] * axes + np.sin(angles)[:, None] * directions[:, :-1]
    return on_slice(flat)


def project_to_cap(points: Float64Array, centres: Float64Array, rho: float) -> Float64Array:
    """The nearest points of the caps of chord ρ around `centres`, both of shape (rows, d).

    The nearest point of the whole slice has the direction of the flat part; outside the cap the nearest one lies on
    its rim, towards the point.
    """
    axes, flat, limit = units(centres[:, :-1]), points[:, :-1], opening(rho)
    along = np.einsum("ij,ij->i", flat, axes)
    across = flat - along[:, None] * axes
    width = np.linalg.norm(across, axis=1)
    angles = np.where((width == 0.0) & (along == 0.0), 0.0, np.arctan2(width, along))
    sides = across / np.where(width > 0.0, width, 1.0)[:, None]
    # Opposite to the centre every side is as near: take the axis that the centre leans to least.
    lost = np.flatnonzero((width == 0.0) & (along < 0.0))
    if lost.size and flat.shape[1] > 1:
        basis = np.zeros((lost.size, flat.shape[1]))
        basis[np.arange(lost.size), np.abs(axes[lost]).argmin(axis=1)] = 1.0
        sides[lost] = units(basis - np.einsum("ij,ij->i", basis, axes[lost])[:, None] * axes[lost])
    elif lost.size and limit < math.pi:
        angles[lost] = 0.0  # a slice of two points: the other one is out of reach
    angles = np.minimum(angles, limit)
    return on_slice(np.cos(angles)[:, None] * axes + np.sin(angles)[:, None] * sides)


def cap_span(along: Float64Array, length: Float64Array, rho: float) -> tuple[Float64Array, Float64Array]:
    """Smallest and largest ⟨w, x − x₀⟩ over the cap of chord ρ around x₀; arguments of one shape.

    `along` is ⟨w, x₀⟩/R and `length` ‖w‖, of the flat parts. With φ the angle between the flat parts of w and x₀, ⟨w, x
    − x₀⟩ ranges over ‖w‖R(cos ψ − cos φ) for ψ from max(φ − θ_max, 0) to min(φ + θ_max, π).
    """
    limit: Float64Array | float = opening(rho)
    cosine = np.clip(along / np.where(length > 0.0, length, 1.0), -1.0, 1.0)
    phi = np.arccos(cosine)
    # Near 0 and π the angle is known only to the root of the cosine's rounding; the range is widened by that.
    limit = limit + 4e-15 / np.maximum(np.sqrt(1.0 - cosine**2), 6e-8)
    low = RADIUS * length * (np.cos(np.minimum(phi + limit, math.pi)) - cosine)
    high = RADIUS * length * (np.cos(np.maximum(phi - limit, 0.0)) - cosine)
    return low, high
