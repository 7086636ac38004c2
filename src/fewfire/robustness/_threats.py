"""What an adversary may do to a point: a ball around it, or a cap on the slice (sublinear, Definition 3.3).

A threat knows its exact projection, the direction of steepest ascent in its norm, random points of itself, and the
range of a linear function over itself (`span` of a 2-norm ball cut by a box bounds ball and box apart, `row_span` is
exact); attacks and certificates need no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._sphere import DIAMETER, cap_span, opening, project_to_cap, tangents, turn, units
from fewfire._validate import check_choice
from fewfire.robustness._linear_range import linear_span

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array

Span: TypeAlias = "tuple[Float64Array, Float64Array]"
Norm: TypeAlias = Literal["l2", "linf"]
NORMS: Final = get_args(Norm)


class Threat(Protocol):
    """The set of points an adversary may choose around each row of `centres`, an array of shape (rows, d)."""

    @property
    def rho(self) -> float:
        """The radius."""

    def reach(self, dimensions: int) -> float:
        """How far a point can be moved, in the 2-norm."""

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest allowed points, shape (rows, d)."""

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Points moved by `size` in the direction that raises a function with these gradients most."""

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """One random allowed point per row, shape (rows, d)."""

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for every row w of weights (k, d) and x₀ of centres: two arrays (rows, k)."""

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for row w of weights (rows, d) and the same row of centres: two arrays (rows,)."""


@dataclass(frozen=True, eq=False)
class L2Ball:
    """‖x − x₀‖₂ ≤ ρ, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: float
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def reach(self, dimensions: int) -> float:
        """ρ."""
        return self.rho

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of ball and box: x₀ + t·(x − x₀), clipped to the box, with the largest t ≤ 1 that fits.

        t = 1 where clipping alone brings a point into the ball. Elsewhere the squared length Σ_j min(t·|δ_j|, room_j)²
        is quadratic in t between the places room_j/|δ_j| where a coordinate meets the box, so t is found exactly.
        """
        nearest = np.clip(points, self.low, self.high)
        far = np.linalg.norm(nearest - centres, axis=1) > self.rho
        if far.any():
            nearest[far] = self._rim(points[far], centres[far])
        return np.asarray(nearest)

    def _rim(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        delta = points - centres
        if np.all(np.isinf(self.low)) and np.all(np.isinf(self.high)):
            return centres + self.rho * units(delta)
        size = np.abs(delta)
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centres, centres - self.low), delta.shape)
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
        return np.asarray(np.clip(centres + t[:, None] * delta, self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient."""
        return points + size * units(gradients)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        radii = stream.child("radius").uniform(len(centres)) ** (1.0 / centres.shape[1])
        moved = centres + self.rho * radii[:, None] * units(stream.normal(centres.shape))
        return self.project(moved, centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖, or what the box leaves of it."""
        most = self.rho * np.linalg.norm(weights, axis=1)
        low, high = _box_span(weights, *_room(self, centres))
        return np.maximum(-most, low), np.minimum(most, high)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖, or exactly what the box leaves of it."""
        return linear_span("l2", weights, *_room(self, centres), self.rho)


@dataclass(frozen=True, eq=False)
class LinfBall:
    """|x_j − x₀_j| ≤ ρ for every j, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: float
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def reach(self, dimensions: int) -> float:
        """ρ√d."""
        return self.rho * math.sqrt(dimensions)

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped coordinate by coordinate."""
        low = np.maximum(centres - self.rho, self.low)
        return np.clip(points, low, np.minimum(centres + self.rho, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient's signs."""
        return points + size * np.sign(gradients)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the cube, then clipped."""
        return self.project(centres + stream.uniform(centres.shape, -self.rho, self.rho), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return _box_span(weights, *_room(self, centres))

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return _box_row_span(weights, *_room(self, centres))


@dataclass(frozen=True)
class SliceCap:
    """‖x − x₀‖₂ ≤ ρ on the slice ‖x‖ = 1, x_d = 1/2: ℬ₂(x₀, ρ) of sublinear, Definition 3.3."""

    rho: float

    def reach(self, dimensions: int) -> float:
        """ρ, or the slice's diameter √3."""
        return min(self.rho, DIAMETER)

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of the caps."""
        return project_to_cap(points, centres, self.rho)

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient's part on the slice."""
        return points + size * units(tangents(gradients, points))

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """A random direction and an angle that fills the cap evenly where it is nearly flat."""
        share = stream.child("radius").uniform(len(centres)) ** (1.0 / max(1, centres.shape[1] - 2))
        directions = units(tangents(stream.normal(centres.shape), centres))
        return turn(centres, directions, opening(self.rho) * share)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """The closed form of `cap_span`; the last coordinate does not move."""
        flat = weights[:, :-1]
        along = units(centres[:, :-1]) @ flat.T
        return cap_span(along, np.broadcast_to(np.linalg.norm(flat, axis=1), along.shape), self.rho)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """The closed form of `cap_span`; the last coordinate does not move."""
        flat = weights[:, :-1]
        along = np.einsum("ij,ij->i", units(centres[:, :-1]), flat)
        return cap_span(along, np.linalg.norm(flat, axis=1), self.rho)


def ball(norm: str, rho: float, bounds: tuple[object, object] | None, dimensions: int) -> Threat:
    """The ball of a norm, within bounds (low, high) given as numbers or arrays of shape (dimensions,)."""
    low, high = (-math.inf, math.inf) if bounds is None else _check_bounds(bounds, dimensions)
    return LinfBall(rho, low, high) if check_choice("norm", norm, NORMS) == "linf" else L2Ball(rho, low, high)


def check_within(points: Float64Array, threat: Threat) -> None:
    """Refuse points outside the box of a ball: the adversary's set would not contain them."""
    low, high = getattr(threat, "low", -math.inf), getattr(threat, "high", math.inf)
    outside = (points < low) | (points > high)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        got = f"a {points[where]:g} at index {where}"
        raise invalid("X", "must lie within bounds", got, "widen bounds or clip the table")


def _check_bounds(bounds: tuple[object, object], dimensions: int) -> tuple[Float64Array, Float64Array]:
    rule = f"must be a pair (low, high) of numbers or arrays of shape ({dimensions},) with low <= high"
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (dimensions,)) for end in bounds)
    except (TypeError, ValueError):
        raise invalid("bounds", rule, bounds, "write bounds=(0.0, 1.0)") from None
    if not np.all(low <= high):
        raise invalid("bounds", rule, bounds, "write bounds=(0.0, 1.0)")
    return low, high


def _room(threat: L2Ball | LinfBall, centres: Float64Array) -> Span:
    """How far each coordinate can go down (≤ 0) and up (≥ 0), each of shape (rows, d)."""
    down = np.maximum(-threat.rho, threat.low - centres)
    return np.minimum(down, 0.0), np.maximum(np.minimum(threat.rho, threat.high - centres), 0.0)


def _box_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    positive, negative = np.maximum(weights, 0.0).T, np.minimum(weights, 0.0).T
    return down @ positive + up @ negative, up @ positive + down @ negative


def _box_row_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    first, second = weights * down, weights * up
    return np.minimum(first, second).sum(axis=1), np.maximum(first, second).sum(axis=1)
