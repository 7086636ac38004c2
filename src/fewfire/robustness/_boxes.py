"""Balls cut by boxes: what all norms share. The room a box leaves, ranges of linear functions, exact membership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array

Span: TypeAlias = "tuple[Float64Array, Float64Array]"
Radius: TypeAlias = "float | Float64Array"
"""One radius, or an array of shape (rows, 1) of one per row."""


class BoxedBall(Protocol):
    """A ball of some norm around a point, within low ≤ x ≤ high."""

    @property
    def rho(self) -> Radius:
        """The radius."""

    @property
    def low(self) -> float | Float64Array:
        """The lower ends, a number or shape (d,)."""

    @property
    def high(self) -> float | Float64Array:
        """The upper ends, a number or shape (d,)."""


def box_room(threat: BoxedBall, centres: Float64Array) -> Span:
    """How far each coordinate of a ball can go down (≤ 0) and up (≥ 0), each of shape (rows, d)."""
    down = np.maximum(-threat.rho, threat.low - centres)
    return np.minimum(down, 0.0), np.maximum(np.minimum(threat.rho, threat.high - centres), 0.0)


def box_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    positive, negative = np.maximum(weights, 0.0).T, np.minimum(weights, 0.0).T
    return down @ positive + up @ negative, up @ positive + down @ negative


def box_row_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    first, second = weights * down, weights * up
    return np.minimum(first, second).sum(axis=1), np.maximum(first, second).sum(axis=1)


def pull_inside(
    points: Float64Array, centres: Float64Array, rho: Radius, order: float, unit: Float64Array | float = 1.0
) -> Float64Array:
    """Points drawn towards their centres until ‖(x − x₀)/unit‖ ≤ ρ holds in exact arithmetic, for norms 1, 2 and ∞.

    Lengths are computed in float64 and held below ρ by more than their rounding; a coordinate that rounding has put
    further out than it was to go takes one step of float64 back, which matters where ρ is small beside the centre.
    """
    moved = np.asarray(points, dtype=np.float64).copy()
    radius = np.broadcast_to(np.asarray(rho, dtype=np.float64), (len(moved), 1))
    slack = (moved.shape[1] + 16) * 2.0**-53
    for attempt in range(1, 5):
        delta = moved - centres
        length = np.linalg.norm(delta / unit, ord=order, axis=1, keepdims=True)
        out = (length > radius * (1.0 - slack))[:, 0]
        if not out.any():
            return moved
        shrunk = delta[out] * (radius[out] / length[out] * (1.0 - 2 * attempt * slack))
        nearer = centres[out] + shrunk
        overshot = np.abs(nearer - centres[out]) > np.abs(shrunk)
        moved[out] = np.where(overshot, np.nextafter(nearer, centres[out]), nearer)
    moved[out] = centres[out]  # ρ is below what float64 can tell apart around these centres
    return moved
