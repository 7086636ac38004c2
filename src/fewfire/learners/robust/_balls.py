"""Balls of the 2-norm and the ∞-norm around a point, cut by a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.learners.robust._slice import units

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.learners.robust._threats import Span


@dataclass(frozen=True, eq=False)
class L2Ball:
    """‖x − x₀‖₂ ≤ ρ, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: float
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def reach(self, dimensions: int) -> float:
        """ρ."""
        return self.rho

    def project(self, points: Float64Array, centers: Float64Array) -> Float64Array:
        """The nearest points of ball and box: x₀ + t·(x − x₀), clipped to the box, with the largest t ≤ 1 that fits.

        t = 1 where clipping alone brings a point into the ball. Elsewhere the squared length Σ_j min(t·|δ_j|, room_j)²
        is quadratic in t between the places room_j/|δ_j| where a coordinate meets the box, so t is found exactly.
        """
        nearest = np.clip(points, self.low, self.high)
        far = np.linalg.norm(nearest - centers, axis=1) > self.rho
        if far.any():
            nearest[far] = self._rim(points[far], centers[far])
        return np.asarray(nearest)

    def _rim(self, points: Float64Array, centers: Float64Array) -> Float64Array:
        delta = points - centers
        if np.all(np.isinf(self.low)) and np.all(np.isinf(self.high)):
            return centers + self.rho * units(delta)
        size = np.abs(delta)
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centers, centers - self.low), delta.shape)
        meet = np.divide(room, size, out=np.full_like(size, math.inf), where=size > 0.0)
        order = np.argsort(meet, axis=1)
        meet = np.take_along_axis(meet, order, axis=1)
        squares = np.take_along_axis(size**2, order, axis=1)
        bounded = np.minimum(np.take_along_axis(room, order, axis=1), 1e150)
        met = np.cumsum(np.where(np.isfinite(meet), bounded**2, 0.0), axis=1)
        met = np.column_stack([np.zeros(len(delta)), met])
        free = np.column_stack([np.cumsum(squares[:, ::-1], axis=1)[:, ::-1], np.zeros(len(delta))])
        # Squared length when the first k coordinates have just met the box; the first k beyond ρ² ends the search.
        beyond = met[:, :-1] + np.minimum(meet, 1e75) ** 2 * free[:, :-1] >= self.rho**2
        last = np.where(beyond.any(axis=1), beyond.argmax(axis=1), delta.shape[1])
        row = np.arange(len(delta))
        left, rest = np.maximum(self.rho**2 - met[row, last], 0.0), free[row, last]
        t = np.minimum(1.0, np.sqrt(np.divide(left, rest, out=np.ones_like(rest), where=rest > 0.0)))
        return np.asarray(np.clip(centers + t[:, None] * delta, self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient."""
        return points + size * units(gradients)

    def draw(self, centers: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        radii = stream.child("radius").uniform(len(centers)) ** (1.0 / centers.shape[1])
        moved = centers + self.rho * radii[:, None] * units(stream.normal(centers.shape))
        return self.project(moved, centers)

    def span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """±ρ‖w‖, or what the box leaves of it."""
        most = self.rho * np.linalg.norm(weights, axis=1)
        low, high = _box_span(weights, *_room(self, centers))
        return np.maximum(-most, low), np.minimum(most, high)

    def row_span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """±ρ‖w‖, or what the box leaves of it."""
        most = self.rho * np.linalg.norm(weights, axis=1)
        low, high = _box_row_span(weights, *_room(self, centers))
        return np.maximum(-most, low), np.minimum(most, high)


@dataclass(frozen=True, eq=False)
class LinfBall:
    """|x_j − x₀_j| ≤ ρ for every j, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: float
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def reach(self, dimensions: int) -> float:
        """ρ√d."""
        return self.rho * math.sqrt(dimensions)

    def project(self, points: Float64Array, centers: Float64Array) -> Float64Array:
        """Clipped coordinate by coordinate."""
        low = np.maximum(centers - self.rho, self.low)
        return np.clip(points, low, np.minimum(centers + self.rho, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient's signs."""
        return points + size * np.sign(gradients)

    def draw(self, centers: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the cube, then clipped."""
        return self.project(centers + stream.uniform(centers.shape, -self.rho, self.rho), centers)

    def span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return _box_span(weights, *_room(self, centers))

    def row_span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return _box_row_span(weights, *_room(self, centers))


def _room(threat: L2Ball | LinfBall, centers: Float64Array) -> Span:
    """How far each coordinate can go down (≤ 0) and up (≥ 0), each of shape (rows, d)."""
    down = np.maximum(-threat.rho, threat.low - centers)
    return np.minimum(down, 0.0), np.maximum(np.minimum(threat.rho, threat.high - centers), 0.0)


def _box_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    positive, negative = np.maximum(weights, 0.0).T, np.minimum(weights, 0.0).T
    return down @ positive + up @ negative, up @ positive + down @ negative


def _box_row_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    first, second = weights * down, weights * up
    return np.minimum(first, second).sum(axis=1), np.maximum(first, second).sum(axis=1)
