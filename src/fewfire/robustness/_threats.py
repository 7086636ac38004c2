"""What an adversary may do to a point: a ball around it, or a cap on the slice (sublinear, Definition 3.3).

A threat knows its exact projection, the direction of steepest ascent in its norm, the point where a linear function is
largest, random points of itself, and the range of a linear function over itself (`span` of balls cut by a box bounds
ball and box apart, `row_span` is exact); attacks and certificates need no more. The ball of the 1-norm is in `_l1`,
radii per feature in `_features`.

Searches may work in float32: whatever a threat returns has the dtype of the points it was given, and `settle` brings
the result into the set exactly, in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._sphere import DIAMETER, cap_span, opening, project_to_cap, tangents, turn, units
from fewfire._validate import check_choice
from fewfire.robustness._boxes import box_room, box_row_span, box_span, pull_inside
from fewfire.robustness._l1 import L1Ball
from fewfire.robustness._linear_range import linear_span

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._boxes import Radius, Span

Norm: TypeAlias = Literal["l1", "l2", "linf"]
NORMS: Final = get_args(Norm)


class Threat(Protocol):
    """The set of points an adversary may choose around each row of `centres`, an array of shape (rows, d)."""

    @property
    def rho(self) -> Radius:
        """The radius, or an array of shape (rows, 1) of one per row."""

    def take(self, rows: AnyArray) -> Threat:
        """The same threat for some rows of the centres."""

    def reach(self, dimensions: int) -> float:
        """How far a point can be moved, in the 2-norm."""

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest allowed points, shape (rows, d)."""

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Points moved by `size` in the direction that raises a function with these gradients most."""

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """The allowed points at which linear functions with these gradients (rows, d) are largest."""

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Points brought in by the rounding that took them out: of balls, members in exact arithmetic; float64."""

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """One random allowed point per row, shape (rows, d)."""

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for every row w of weights (k, d) and x₀ of centres: two arrays (rows, k)."""

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for row w of weights (rows, d) and the same row of centres: two arrays (rows,)."""


@dataclass(frozen=True, eq=False)
class L2Ball:
    """‖x − x₀‖₂ ≤ ρ, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: Radius
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def take(self, rows: AnyArray) -> L2Ball:
        """The same ball for some rows."""
        return replace(self, rho=self.rho[rows]) if isinstance(self.rho, np.ndarray) else self

    def reach(self, dimensions: int) -> float:
        """ρ."""
        return float(np.max(self.rho))

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of ball and box: x₀ + t·(x − x₀), clipped to the box, with the largest t ≤ 1 that fits.

        t = 1 where clipping alone brings a point into the ball. Elsewhere Σ_j min(t·|δ_j|, room_j)² = ρ² is solved for
        the coordinates that have not met the box, again while more of them meet it: after a few times t is exact.
        """
        nearest = np.clip(points, self.low, self.high).astype(points.dtype, copy=False)
        far = (np.linalg.norm(nearest - centres, axis=1, keepdims=True) > self.rho)[:, 0]
        if far.any():
            nearest[far] = self.take(far)._rim((points - centres)[far], centres[far], 1.0)
        return np.asarray(nearest)

    def _rim(self, delta: Float64Array, centres: Float64Array, longest: float) -> Float64Array:
        """x₀ + t·δ clipped to the box, with the largest t ≤ longest for which that lies in the ball."""
        if np.all(np.isinf(self.low)) and np.all(np.isinf(self.high)):
            return np.asarray(centres + (self.rho * units(delta)).astype(centres.dtype, copy=False))
        centres, delta = centres.astype(np.float64), delta.astype(np.float64)
        size = np.abs(delta)
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centres, centres - self.low), delta.shape)
        square = np.broadcast_to(np.asarray(self.rho, dtype=np.float64) ** 2, (len(delta), 1))
        free = size > 0.0
        while True:
            # Coordinates that are taken to be free and are not make the move look longer, so that t only grows.
            ended = np.where(free | (size == 0.0), 0.0, room)
            left = np.maximum(square - (ended**2).sum(axis=1)[:, None], 0.0)
            rest = np.where(free, size**2, 0.0).sum(axis=1)[:, None]
            t = np.sqrt(np.divide(left, rest, out=np.full_like(rest, math.inf), where=rest > 0.0))
            met = free & (np.where(rest > 0.0, t, 0.0) * size >= room)
            if not met.any():
                break
            free &= ~met
        far = np.where(np.isinf(t), np.divide(room, size, out=np.zeros_like(size), where=size > 0.0), 0.0)
        t = np.minimum(longest, np.where(np.isinf(t[:, 0]), far.max(axis=1), t[:, 0]))  # infinite: all met the box
        return np.asarray(np.clip(centres + t[:, None] * delta, self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the gradient."""
        return points + size * units(gradients)

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Where the gradient leaves the ball, coordinates that meet the box before staying there."""
        return self._rim(units(gradients), centres, math.inf).astype(centres.dtype, copy=False)

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped, then drawn in by a rounding."""
        return pull_inside(np.clip(points, self.low, self.high), centres, self.rho, 2)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        radii = stream.child("radius").uniform(len(centres)) ** (1.0 / centres.shape[1])
        moved = self.rho * radii[:, None] * units(stream.normal(centres.shape))
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖, or what the box leaves of it."""
        most = self.rho * np.linalg.norm(weights, axis=1)
        low, high = box_span(weights, *box_room(self, centres))
        return np.maximum(-most, low), np.minimum(most, high)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖, or exactly what the box leaves of it."""
        return linear_span("l2", weights, *box_room(self, centres), self.rho)


@dataclass(frozen=True, eq=False)
class LinfBall:
    """|x_j − x₀_j| ≤ ρ for every j, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: Radius
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def take(self, rows: AnyArray) -> LinfBall:
        """The same ball for some rows."""
        return replace(self, rho=self.rho[rows]) if isinstance(self.rho, np.ndarray) else self

    def reach(self, dimensions: int) -> float:
        """ρ√d."""
        return float(np.max(self.rho)) * math.sqrt(dimensions)

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped coordinate by coordinate."""
        low = np.maximum(centres - self.rho, self.low)
        nearest = np.clip(points, low, np.minimum(centres + self.rho, self.high))
        return np.asarray(nearest.astype(points.dtype, copy=False))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the gradient's signs."""
        return points + size * np.sign(gradients)

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Every coordinate at its end."""
        return self.project(self.ascend(centres, gradients, self.rho), centres)

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped, then drawn in by a rounding."""
        return pull_inside(np.clip(points, self.low, self.high), centres, self.rho, math.inf)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the cube, then clipped."""
        moved = self.rho * stream.uniform(centres.shape, -1.0, 1.0)
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return box_span(weights, *box_room(self, centres))

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return box_row_span(weights, *box_room(self, centres))


@dataclass(frozen=True)
class SliceCap:
    """‖x − x₀‖₂ ≤ ρ on the slice ‖x‖ = 1, x_d = 1/2: ℬ₂(x₀, ρ) of sublinear, Definition 3.3."""

    rho: float

    def take(self, rows: AnyArray) -> SliceCap:
        """The cap itself."""
        return self

    def reach(self, dimensions: int) -> float:
        """ρ, or the slice's diameter √3."""
        return min(self.rho, DIAMETER)

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of the caps."""
        return project_to_cap(points, centres, self.rho)

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the gradient's part on the slice."""
        return points + size * units(tangents(gradients, points))

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """The point of the cap nearest to the gradient's direction: all points have the same length."""
        return project_to_cap(gradients, centres, self.rho)

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of the caps; a sphere holds numbers of a computer to rounding only."""
        return project_to_cap(points.astype(np.float64), centres, self.rho)

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


def ball(norm: str, rho: float, bounds: tuple[object, object] | None, dimensions: int) -> L1Ball | L2Ball | LinfBall:
    """The ball of a norm, within bounds (low, high) given as numbers or arrays of shape (dimensions,)."""
    low, high = (-math.inf, math.inf) if bounds is None else _check_bounds(bounds, dimensions)
    kinds: dict[str, type[L1Ball | L2Ball | LinfBall]] = {"l1": L1Ball, "l2": L2Ball, "linf": LinfBall}
    return kinds[check_choice("norm", norm, NORMS)](rho, low, high)


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
