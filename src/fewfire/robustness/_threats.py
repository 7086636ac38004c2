"""What an adversary may do to a point: a ball around it, or a cap on the slice (sublinear, Definition 3.3).

A threat gives its exact projection, the direction of steepest ascent in its norm, the point where a linear function is
largest, random points of itself, and the range of a linear function over itself (`span` of balls cut by a box bounds
ball and box apart, `row_span` is exact); attacks and certificates need no more. Searches may work in float32: whatever
a threat returns has the dtype of the points it was given, and `settle` brings the result into the set exactly, in
float64.

Tables are not images: features may have radii of their own, stay, or be whole numbers (`FeatureBall`). A feature's
radius is the unit in which its moves are measured: ‖((x_j − x₀_j)/r_j)_j‖ ≤ 1, which for the ∞-norm is
|x_j − x₀_j| ≤ r_j and for the 2-norm an ellipsoid with these half axes. A feature of radius 0 stays, to the bit.

`linear_minimum` minimises ⟨w, d⟩ over down ≤ d ≤ up (down ≤ 0 ≤ up) and ‖d‖ ≤ ρ, exactly, one small problem per row.
Every coordinate goes against its weight, by at most its room, −down or up; how the ball's budget is shared differs:

l2    d_j = −sign(w_j)·min(t|w_j|, room_j) with the largest t that fits. Σ_j min(t|w_j|, room_j)² = ρ² is solved by
      water filling: t = √((ρ² − Σ_met room²)/Σ_free w²), coordinates that meet the box leave the free ones, again until
      none does. t only grows and each round settles a coordinate at least, so that the end is exact, not a limit.
l1    the greatest |w_j| first, each until its room or the budget is spent: a fractional knapsack
linf  every coordinate to its end
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, cast, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._sphere import DIAMETER, cap_span, opening, project_to_cap, tangents, turn, units
from fewfire._validate import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array

Span: TypeAlias = "tuple[Float64Array, Float64Array]"
Radius: TypeAlias = "float | Float64Array"
"""One radius, or an array of shape (rows, 1) of one per row."""
Ball: TypeAlias = "L1Ball | L2Ball | LinfBall"


def box_span(weights: Float64Array, down: Float64Array, up: Float64Array) -> Span:
    positive, negative = np.maximum(weights, 0.0).T, np.minimum(weights, 0.0).T
    return down @ positive + up @ negative, up @ positive + down @ negative


def pull_inside(
    points: Float64Array, centres: Float64Array, rho: Radius, order: float, unit: Float64Array | float = 1.0
) -> Float64Array:
    """Points drawn towards their centres until ‖(x − x₀)/unit‖ ≤ ρ holds in exact arithmetic, for norms 1, 2 and ∞.

    Lengths are computed in float64 and kept below ρ by more than their rounding; a coordinate that rounding has put
    further out than it was to go takes one step of float64 back, which matters where ρ is far below the centre.
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
    moved[out] = centres[out]  # ρ is below what float64 resolves around these centres
    return moved


def linear_minimum(
    norm: str, weights: Float64Array, down: Float64Array, up: Float64Array, rho: Radius
) -> tuple[Float64Array, Float64Array]:
    """The least ⟨w, d⟩ of every row, (rows,), and where it is, (rows, d); ends are infinite where there is no box."""
    radius = np.broadcast_to(np.reshape(np.asarray(rho, dtype=np.float64), (-1, 1)), (len(weights), 1))
    room = np.where(weights > 0.0, -down, up)
    size = np.abs(weights)
    length = np.where(size > 0.0, SHARES[norm](size, room, radius), 0.0)
    return -(size * length).sum(axis=1), -np.sign(weights) * length


def _filled(size: Float64Array, room: Float64Array, rho: Float64Array) -> Float64Array:
    """min(t·|w_j|, room_j) with the largest t for which its 2-norm is ρ at most."""
    square = size**2
    total = square.sum(axis=1, keepdims=True)
    t = np.divide(rho, np.sqrt(total), out=np.zeros_like(total), where=total > 0.0)
    length = t * size
    met = length > room
    todo = np.flatnonzero(met.any(axis=1))
    length = np.minimum(length, room)
    while todo.size:
        held = met[todo]
        left = rho[todo] ** 2 - (np.where(held, room[todo], 0.0) ** 2).sum(axis=1, keepdims=True)
        free = np.where(held, 0.0, square[todo]).sum(axis=1, keepdims=True)
        t = np.sqrt(np.divide(np.maximum(left, 0.0), free, out=np.zeros_like(free), where=free > 0.0))
        further = t * size[todo]
        more = (further > room[todo]) & ~held
        length[todo] = np.where(held, room[todo], np.minimum(further, room[todo]))
        met[todo] = held | more
        todo = todo[more.any(axis=1)]
    return np.asarray(length)


def _greedy(size: Float64Array, room: Float64Array, rho: Radius) -> Float64Array:
    """The budget ρ given out in the order of the weights."""
    order = np.argsort(-size, axis=1, kind="stable")
    ordered = np.minimum(np.take_along_axis(room, order, axis=1), rho)
    spent = np.cumsum(ordered, axis=1) - ordered
    length = np.empty_like(ordered)
    np.put_along_axis(length, order, np.clip(rho - spent, 0.0, ordered), axis=1)
    return length


def _ends(size: Float64Array, room: Float64Array, rho: Float64Array) -> Float64Array:
    """All of the room, ρ at most."""
    return np.minimum(room, rho)


SHARES: Final = {"l1": _greedy, "l2": _filled, "linf": _ends}

NormName: TypeAlias = Literal["l1", "l2", "linf"]
NORMS: Final = get_args(NormName)
Norm: TypeAlias = NormName | float
"""By name, or 1, 2 and infinity as NumPy has them."""


def norm_name(norm: Norm) -> NormName:
    """The name of a norm that may be given as a number."""
    numbers: dict[object, NormName] = {1: "l1", 2: "l2", math.inf: "linf"}
    known = numbers.get(norm) if isinstance(norm, int | float) else None
    return known or cast("NormName", check_choice("norm", norm, NORMS))


def shown(threat: Threat) -> str:
    """A threat in the print of a result: "ℓ₂ 0.3", the largest radius where rows have their own."""
    inner = threat.inner if isinstance(threat, FeatureBall) else threat
    kinds = {L1Ball: "ℓ₁ ", L2Ball: "ℓ₂ ", LinfBall: "ℓ∞ "}
    name = next((kind for cls, kind in kinds.items() if isinstance(inner, cls)), "")
    scaled = " in units of the features" if inner is not threat else ""
    return f"{name}{float(np.max(inner.rho)):g}{scaled}"


class Threat(Protocol):
    """The set of points an adversary may choose around each row of `centres`, an array of shape (rows, d)."""

    @property
    def rho(self) -> Radius:
        """The radius, or an array of shape (rows, 1) of one per row."""

    def take(self, rows: AnyArray) -> Threat:
        """The same threat for some rows of the centres."""

    def length(self, moves: Float64Array) -> Float64Array:
        """Of moves (rows, d) in the threat's own norm, shape (rows,)."""

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
class _BoxedBall:
    """‖x − x₀‖ ≤ ρ in some norm, within `low` and `high` (numbers or arrays of shape (d,))."""

    order: ClassVar[float]
    convex: ClassVar[bool] = True

    rho: Radius
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def take(self, rows: AnyArray) -> Self:
        """The same ball for some rows."""
        return replace(self, rho=self.rho[rows]) if isinstance(self.rho, np.ndarray) else self

    def resized(self, rho: Radius) -> Self:
        """The same ball of another radius."""
        return replace(self, rho=rho)

    def length(self, moves: Float64Array) -> Float64Array:
        """Of moves (rows, d) in the ball's norm, shape (rows,)."""
        return np.asarray(np.linalg.norm(moves, ord=self.order, axis=1))

    def reach(self, dimensions: int) -> float:
        """ρ."""
        return float(np.max(self.rho))

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of ball and box: clipped where that brings a point into the ball, else on its rim."""
        nearest = np.clip(points, self.low, self.high).astype(points.dtype, copy=False)
        far = (np.linalg.norm(nearest - centres, ord=self.order, axis=1, keepdims=True) > self.rho)[:, 0]
        if far.any():
            nearest[far] = self.take(far)._rim((points - centres)[far], centres[far])
        return np.asarray(nearest)

    def _rim(self, delta: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of ball and box for x₀ + δ outside the ball."""
        raise NotImplementedError

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped, then drawn in by a rounding."""
        return pull_inside(np.clip(points, self.low, self.high), centres, self.rho, self.order)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ times the dual norm of w, or what the box leaves of it."""
        most = self.rho * np.linalg.norm(weights, ord=math.inf if self.order == 1 else 2, axis=1)
        low, high = box_span(weights, *self.room(centres))
        return np.maximum(-most, low), np.minimum(most, high)

    def room(self, centres: Float64Array) -> Span:
        """How far each coordinate can go down (≤ 0) and up (≥ 0), each of shape (rows, d)."""
        down = np.maximum(-self.rho, self.low - centres)
        return np.minimum(down, 0.0), np.maximum(np.minimum(self.rho, self.high - centres), 0.0)


SHARE: Final = 0.2
"""A step of ascent moves this share of the coordinates, those of the largest slopes: one alone climbs too slowly."""


@dataclass(frozen=True, eq=False)
class L1Ball(_BoxedBall):
    """Σ_j |x_j − x₀_j| ≤ ρ."""

    order = 1

    def _rim(self, delta: Float64Array, centres: Float64Array) -> Float64Array:
        """Every |δ_j| lessened by one λ, but not below 0, then clipped to the box.

        Σ_j clip(|δ_j| − λ, 0, room_j) is linear in λ between the points |δ_j| and |δ_j| − room_j: λ is found exactly.
        """
        delta = delta.astype(np.float64)
        size, rows = np.abs(delta), np.arange(len(delta))
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centres, centres - self.low), delta.shape)
        room = np.minimum(room, size)
        # As λ grows the sum falls at rate 1 per coordinate, from where it leaves the box (size − room) to 0 (size).
        levels = np.concatenate([size - room, size], axis=1)
        change = np.concatenate([np.ones_like(size), -np.ones_like(size)], axis=1)
        order = np.argsort(levels, axis=1)
        levels = np.take_along_axis(levels, order, axis=1)
        count = np.cumsum(np.take_along_axis(change, order, axis=1), axis=1)
        changed = np.cumsum(count[:, :-1] * np.diff(levels, axis=1), axis=1)
        excess = room.sum(axis=1) - np.broadcast_to(np.ravel(np.asarray(self.rho, dtype=np.float64)), len(delta))
        last = np.minimum((changed < excess[:, None]).sum(axis=1), changed.shape[1] - 1)
        before = np.where(last > 0, changed[rows, np.maximum(last - 1, 0)], 0.0)
        level = levels[rows, last] + (excess - before) / np.maximum(count[rows, last], 1.0)
        kept = np.clip(size - level[:, None], 0.0, room)
        return np.asarray(np.clip(centres + np.sign(delta) * kept, self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the signs of the largest slopes, evenly."""
        many = max(1, round(SHARE * points.shape[1]))
        slopes = np.abs(gradients)
        least = np.partition(slopes, -many, axis=1)[:, -many, None]
        signs = np.where(slopes >= least, np.sign(gradients), 0.0).astype(points.dtype, copy=False)
        return np.asarray(points + (size / many) * signs)

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Coordinates in the order of their slopes, each to the end of the box until ρ is used up."""
        slopes = np.abs(gradients)
        room = np.broadcast_to(np.where(gradients > 0.0, self.high - centres, centres - self.low), slopes.shape)
        move = _greedy(slopes, room, self.rho).astype(centres.dtype, copy=False)
        return np.clip(centres + np.sign(gradients) * move, self.low, self.high).astype(centres.dtype, copy=False)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        rows, d = centres.shape
        shares = -np.log(stream.uniform((rows, d + 1)))  # exponential: d + 1 of them, divided by their sum
        moved = self.rho * (shares[:, :-1] / shares.sum(axis=1, keepdims=True)) * stream.child("signs").signs((rows, d))
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """The values at the two extremes, exact with a box too."""
        high = np.einsum("ij,ij->i", weights, self.extreme(weights, centres) - centres)
        return -np.einsum("ij,ij->i", -weights, self.extreme(-weights, centres) - centres), high


@dataclass(frozen=True, eq=False)
class L2Ball(_BoxedBall):
    """‖x − x₀‖₂ ≤ ρ."""

    order = 2

    def _rim(self, delta: Float64Array, centres: Float64Array) -> Float64Array:
        """x₀ + t·δ clipped to the box, with the largest t for which that lies in the ball."""
        if np.all(np.isinf(self.low)) and np.all(np.isinf(self.high)):
            return np.asarray(centres + (self.rho * units(delta)).astype(centres.dtype, copy=False))
        centres, delta = centres.astype(np.float64), delta.astype(np.float64)
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centres, centres - self.low), delta.shape)
        rho = np.broadcast_to(np.asarray(self.rho, dtype=np.float64), (len(delta), 1))
        return np.asarray(np.clip(centres + np.sign(delta) * _filled(np.abs(delta), room, rho), self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the gradient."""
        return points + size * units(gradients)

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Where the gradient leaves the ball, coordinates that meet the box before staying there."""
        return self._rim(units(gradients), centres).astype(centres.dtype, copy=False)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        radii = stream.child("radius").uniform(len(centres)) ** (1.0 / centres.shape[1])
        moved = self.rho * radii[:, None] * units(stream.normal(centres.shape))
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖, or exactly what the box leaves of it."""
        room = self.room(centres)
        return linear_minimum("l2", weights, *room, self.rho)[0], -linear_minimum("l2", -weights, *room, self.rho)[0]


@dataclass(frozen=True, eq=False)
class LinfBall(_BoxedBall):
    """|x_j − x₀_j| ≤ ρ for every j."""

    order = math.inf

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

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the cube, then clipped."""
        moved = self.rho * stream.uniform(centres.shape, -1.0, 1.0)
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        return box_span(weights, *self.room(centres))

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """Every coordinate at its end: ±ρ‖w‖₁ without a box."""
        first, second = (weights * end for end in self.room(centres))
        return np.minimum(first, second).sum(axis=1), np.maximum(first, second).sum(axis=1)


@dataclass(frozen=True)
class SliceCap:
    """‖x − x₀‖₂ ≤ ρ on the slice ‖x‖ = 1, x_d = 1/2: ℬ₂(x₀, ρ) of sublinear, Definition 3.3."""

    rho: float

    def take(self, rows: AnyArray) -> SliceCap:
        """The cap itself."""
        return self

    def length(self, moves: Float64Array) -> Float64Array:
        """Of moves (rows, d) in the 2-norm, shape (rows,)."""
        return np.asarray(np.linalg.norm(moves, axis=1))

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


def ball(norm: Norm, rho: float, bounds: tuple[object, object] | None, dimensions: int) -> Ball:
    """The ball of radius ρ in a norm, as a threat of a `ModelAdapter`.

    Parameters
    ----------
    norm : {"l1", "l2", "linf"} or 1, 2, np.inf
    rho : float
    bounds : pair (low, high) of numbers or arrays of shape (dimensions,), or None
        That no column may leave.
    dimensions : int

    Examples
    --------
    >>> import numpy as np
    >>> from fewfire.robustness import ball
    >>> centres = np.array([[0.0, 0.0]])
    >>> ball("l2", 1.0, (-0.5, 2.0), 2).project(np.array([[3.0, 0.0]]), centres)
    array([[1., 0.]])
    """
    low, high = (-math.inf, math.inf) if bounds is None else _check_bounds(bounds, dimensions)
    kinds: dict[str, type[Ball]] = {"l1": L1Ball, "l2": L2Ball, "linf": LinfBall}
    return kinds[norm_name(norm)](rho, low, high)


def check_within(points: Float64Array, threat: Threat) -> None:
    """Refuse points outside the box of a ball: the adversary's set would not contain them."""
    low, high = getattr(threat, "low", -math.inf), getattr(threat, "high", math.inf)
    for group in getattr(threat, "groups", ()):
        categories = points[:, group]
        good = ((categories == 0.0) | (categories == 1.0)).all(axis=1) & (categories.sum(axis=1) == 1.0)
        if not good.all():
            rule, row = "must have one 1, and zeros, in every group of onehot", int(np.argmin(good))
            remedy = "encode every category as a column, none left out"
            raise invalid("X", rule, f"a row {row} with {categories[row].tolist()} there", remedy)
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


@dataclass(frozen=True, eq=False)
class FeatureBall:
    """A ball whose features have radii of their own."""

    inner: Ball  # over the features that move, in units of `scale`
    scale: Float64Array  # (d,): 0 for features that stay, 1 the largest: ρ of the inner ball is the largest radius
    whole: AnyArray  # (d,): features that move by whole numbers, those of groups among them
    radii: Float64Array  # (d,): as they were given; scale is them divided by the largest, with a rounding
    groups: tuple[AnyArray, ...] = ()  # columns of which one is 1 and the others 0
    kept: Float64Array | None = None  # (relations, moving features): orthonormal, in the inner units; moves have none

    @cached_property
    def moves(self) -> AnyArray:
        """Which features move, shape (d,)."""
        return self.scale > 0.0

    @property
    def rho(self) -> Radius:
        """The largest radius."""
        return self.inner.rho

    @property
    def low(self) -> Float64Array:
        """The lower ends of the box, shape (d,); where a feature stays there is none."""
        return self._ends(self.inner.low, -np.inf)

    @property
    def high(self) -> Float64Array:
        """The upper ends of the box, shape (d,); where a feature stays there is none."""
        return self._ends(self.inner.high, np.inf)

    def take(self, rows: AnyArray) -> FeatureBall:
        """The same ball for some rows."""
        return replace(self, inner=self.inner.take(rows))

    @property
    def convex(self) -> bool:
        """Whether every point between two of the set is in it."""
        return not self.whole.any()

    def resized(self, rho: Radius) -> FeatureBall:
        """The same ball, its largest radius another one."""
        return replace(self, inner=self.inner.resized(rho))

    def length(self, moves: Float64Array) -> Float64Array:
        """Of moves (rows, d) in the units of the largest radius, shape (rows,)."""
        return self.inner.length(self._into(moves))

    def reach(self, dimensions: int) -> float:
        """Of the inner ball: no scale is above 1."""
        return self.inner.reach(int(np.count_nonzero(self.scale)))

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest allowed points as the radii measure it, whole numbers rounded."""
        return self._back(self.inner.project(self._into(points), self._into(centres)), centres, guide=points)

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Steepest as the radii measure it."""
        move = self.inner.ascend(np.zeros_like(self._into(points)), self._pull(gradients), size)
        moved = points.copy()
        moved[:, self.moves] += (move * self.scale[self.moves]).astype(points.dtype)
        return moved

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Where linear functions are largest; with whole numbers the best found by rounding towards the centre."""
        pulls, here = self._pull(gradients), self._into(centres)
        found = self._back(self.inner.extreme(pulls, here), centres, inward=True)
        if not self.groups:
            return found
        others = np.where(self._grouped[self.moves], 0.0, pulls).astype(pulls.dtype)
        changed = self._back(self.inner.extreme(others, here), centres, inward=True, guide=gradients)
        gain = (gradients * (changed - found)).sum(axis=1, keepdims=True)
        return np.asarray(np.where(gain > 0.0, changed, found))

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Members in exact arithmetic: features that stay at their centres, whole numbers whole."""
        moves = self.moves
        rho, unit = (1.0, self.radii[moves]) if np.ndim(self.rho) == 0 else (self.rho, self.scale[moves])
        if self.kept is not None:
            points = self._keeping(self._into(points.astype(np.float64)), centres)
        inside = np.clip(points[:, moves], self.low[moves], self.high[moves]).astype(np.float64)
        ball, settled = (centres[:, moves], rho, self.inner.order, unit), centres.copy()
        whole = self.whole[moves]
        settled[:, moves] = _with_whole(inside, whole, *ball) if self.whole.any() else pull_inside(inside, *ball)
        for group in self.groups:  # a category that rounding has taken off alone
            lost = settled[:, group].sum(axis=1) != 1.0
            settled[lost] = centres[lost]
        return settled

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """A random point of the inner ball, with random categories."""
        guide = stream.child("categories").uniform(centres.shape)
        return self._back(self.inner.draw(self._into(centres), stream), centres, guide=guide)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """As of the inner ball; of whole numbers a range that holds theirs."""
        return self._narrower(self.inner.span, weights, centres)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """As of the inner ball; of whole numbers a range that holds theirs."""
        return self._narrower(self.inner.row_span, weights, centres)

    def _narrower(self, span: Callable[..., Span], weights: Float64Array, centres: Float64Array) -> Span:
        here, plain = self._into(centres), weights[:, self.moves] * self.scale[self.moves]
        low, high = span(plain, here)
        if self.kept is None:
            return low, high
        first, second = span(self._pull(weights), here)
        return np.maximum(low, first), np.minimum(high, second)

    def _into(self, points: Float64Array) -> Float64Array:
        return np.asarray((points[:, self.moves] / self.scale[self.moves]).astype(points.dtype, copy=False))

    def _pull(self, gradients: Float64Array) -> Float64Array:
        pulls = gradients[:, self.moves] * self.scale[self.moves]
        if self.kept is not None:  # the part along relations moves nothing
            pulls = pulls - (pulls @ self.kept.T) @ self.kept
        return np.asarray(pulls.astype(gradients.dtype, copy=False))

    def _back(
        self,
        inner_points: Float64Array,
        centres: Float64Array,
        inward: bool = False,
        guide: Float64Array | None = None,
    ) -> Float64Array:
        """Points of the user's units; groups get the category of the largest `guide`, or stay as they are."""
        points = centres.copy()
        points[:, self.moves] = inner_points * self.scale[self.moves]
        if self.kept is not None:
            points = self._keeping(inner_points, centres).astype(centres.dtype)
        if not self.whole.any():
            return points
        if self.groups:
            points = self._with_categories(points, centres, guide)
        whole = _whole_steps(points, centres, inward=True)
        if not inward:  # to the nearest, where that is allowed
            nearest = np.where(self.whole, _whole_steps(points, centres, inward=False), points)
            length = np.linalg.norm(self._into(nearest - centres), ord=self.inner.order, axis=1, keepdims=True)
            inside = ((nearest >= self.low) & (nearest <= self.high)).all(axis=1, keepdims=True)
            whole = np.where(inside & (length <= self.rho), nearest, whole)
        return np.where(self.whole, whole, points).astype(points.dtype, copy=False)

    @cached_property
    def _grouped(self) -> AnyArray:
        mask = np.zeros(len(self.scale), dtype=bool)
        mask[[column for group in self.groups for column in group]] = True
        return mask

    def _with_categories(self, points: Float64Array, centres: Float64Array, guide: Float64Array | None) -> Float64Array:
        """One category per group, the guide's where the radius allows the change, and shorter moves of the others."""
        guide = centres if guide is None else guide
        rho = np.broadcast_to(np.ravel(np.asarray(self.rho)), len(points))
        steps, rest = np.zeros_like(points), np.where(self._grouped, 0.0, points - centres)
        for group in self.groups:
            now, trial = centres[:, group] > 0.5, steps.copy()
            allowed = now | (self.scale[group] * rho[:, None] >= 1.0)
            best = np.where(allowed, guide[:, group], -np.inf).argmax(axis=1)
            trial[:, group] = (np.arange(len(group)) == best[:, None]) - centres[:, group]
            stays = (trial[:, group][:, self.scale[group] == 0.0] != 0.0).any(axis=1)
            steps = np.where(((self.length(trial) <= rho) & ~stays)[:, None], trial, steps)
        order, length = self.inner.order, self.length(rest)
        left = rho if order == np.inf else (rho**order - self.length(steps) ** order).clip(0.0) ** (1.0 / order)
        share = np.divide(left * (1.0 - 1e-12), length, out=np.ones(len(points)), where=length > left)
        return np.asarray(centres + steps + rest * share[:, None])

    def _keeping(self, inner_points: Float64Array, centres: Float64Array) -> Float64Array:
        """The user's points of moves that keep the relations."""
        here, points = self._into(centres), np.array(centres, dtype=np.float64)
        moved = self._relating(inner_points - here, *self.inner.room(here))
        length = np.maximum(self.inner.length(moved), 1e-300)[:, None]
        points[:, self.moves] += moved * np.minimum(1.0, self.rho / length) * self.scale[self.moves]
        return points

    def _relating(self, moves: Float64Array, down: Float64Array, up: Float64Array, tries: int = 6) -> Float64Array:
        """Moves that keep the relations: projected; what meets the box stays there while the others make up for it.

        Where these cannot, which needs moves to meet the box nearly everywhere, a shorter move is tried.
        """
        matrix, free, moved = cast("Float64Array", self.kept), np.ones(moves.shape, dtype=bool), moves
        for _ in range(moves.shape[1] + 1):
            gram = np.einsum("km,im,lm->ikl", matrix, free, matrix)
            price = np.einsum("ikl,il->ik", np.linalg.pinv(gram, hermitian=True), moved @ matrix.T)
            moved = moved - free * (price @ matrix)
            out = free & ((moved < down) | (moved > up))
            if not out.any():
                break
            free, moved = free & ~out, np.where(out, np.clip(moved, down, up), moved)
        broken = np.abs(moved @ matrix.T).max(axis=1) > 1e-12 * (1.0 + np.abs(moves).max(axis=1))
        if broken.any():
            part = moves[broken], down[broken], up[broken]
            moved[broken] = self._relating(part[0] / 3.0, *part[1:], tries - 1) if tries else 0.0
        return moved

    def _ends(self, ends: float | Float64Array, free: float) -> Float64Array:
        full = np.full(len(self.scale), free)
        full[self.moves] = ends * self.scale[self.moves]
        return full


def _with_whole(
    points: Float64Array, whole: AnyArray, centres: Float64Array, rho: Radius, order: float, unit: Float64Array
) -> Float64Array:
    """Points of `pull_inside` with whole steps of some features, the others shortened to what these leave."""
    steps = np.where(whole, _whole_steps(points, centres, inward=True), points)

    def mixed(share: Float64Array) -> Float64Array:
        return np.where(whole, steps, centres + share * (steps - centres))

    low, high = np.zeros((len(points), 1)), np.ones((len(points), 1))
    for _ in range(50):  # the largest share of the other features' moves that fits
        middle = (low + high) / 2
        length = np.linalg.norm((mixed(middle) - centres) / unit, ord=order, axis=1, keepdims=True)
        fits = length <= np.asarray(rho) * (1.0 - 1e-12)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    nearest = pull_inside(steps, centres, rho, order, unit)
    result = np.where(whole, _whole_steps(nearest, centres, inward=True, tolerance=0.0), centres)
    left, radii = np.ones(len(points), dtype=bool), np.broadcast_to(np.ravel(rho), len(points))
    alone = np.where(whole, steps, pull_inside(np.where(whole, centres, steps), centres, rho, order, unit))
    for candidate in (steps, alone, mixed(low), mixed(np.zeros_like(low))):
        for i in np.flatnonzero(left):
            if _inside(candidate[i], centres[i], radii[i], order, unit):
                result[i], left[i] = candidate[i], False
    return result


def _inside(point: Float64Array, centre: Float64Array, rho: float, order: float, unit: Float64Array) -> bool:
    """Whether ‖(x − x₀)/unit‖ ≤ ρ in rational arithmetic."""
    radius = Fraction(float(rho))
    sizes = [
        abs((Fraction(x) - Fraction(x0)) / Fraction(scale))
        for x, x0, scale in zip(point.tolist(), centre.tolist(), unit.tolist(), strict=True)
    ]
    if order == np.inf:
        return max(sizes, default=Fraction(0)) <= radius
    return sum(size ** int(order) for size in sizes) <= radius ** int(order)


def _whole_steps(points: Float64Array, centres: Float64Array, inward: bool, tolerance: float = 1e-6) -> Float64Array:
    """Moves cut (or rounded) to whole numbers; a move just short of one by rounding counts as that one."""
    delta = points - centres
    steps = np.trunc(delta + np.sign(delta) * tolerance) if inward else np.rint(delta)
    return np.asarray(centres + steps)


def restrict(
    threat: Threat,
    radii: Any,
    dimensions: int,
    fixed: Any = None,
    integers: Any = None,
    onehot: Any = None,
    relations: Any = None,
) -> Threat:
    """A ball with radii per feature and what `attack` lets an adversary do; the ball itself where none is given."""
    if all(part is None for part in (radii, fixed, integers, onehot, relations)):
        return threat
    if not isinstance(threat, L1Ball | L2Ball | LinfBall):
        rule = "can be given only where the adversary moves in a ball"
        name = "rho, fixed, integers, onehot and relations"
        raise invalid(name, rule, f"a {type(threat).__name__}", "leave them out")
    scale = np.full(dimensions, float(np.max(threat.rho))) if radii is None else check_radii(radii, dimensions)
    scale = np.where(columns_mask("fixed", fixed, dimensions), 0.0, scale)
    radii, largest = scale, float(scale.max())
    scale = scale / largest if largest > 0.0 else scale
    moves, rounded = scale > 0.0, columns_mask("integers", integers, dimensions)
    groups = tuple(np.flatnonzero(columns_mask("onehot", group, dimensions)) for group in onehot or ())
    columns = np.concatenate(groups) if groups else np.zeros(0, dtype=int)
    grouped = np.isin(np.arange(dimensions), columns)
    if len(columns) != len(set(columns.tolist())) or (grouped & rounded).any():
        raise invalid("onehot", "must be groups of columns, each in one group and none in integers", onehot)
    low, high = (np.broadcast_to(end, dimensions) for end in (threat.low, threat.high))
    low, high = np.where(grouped, np.maximum(low, 0.0), low), np.where(grouped, np.minimum(high, 1.0), high)
    kept = None
    if relations is not None:
        table = np.atleast_2d(np.asarray(relations, dtype=np.float64))
        rule = f"must be weights of shape (relations, {dimensions}), 0 where columns are one-hot or whole numbers"
        if table.shape[1:] != (dimensions,) or not np.isfinite(table).all() or table[:, grouped | rounded].any():
            raise invalid("relations", rule, relations, "write relations=[[1, 1, 1, 0]] to keep a sum")
        _, sizes, directions = np.linalg.svd(table[:, moves] * scale[moves], full_matrices=False)
        kept = directions[sizes > 1e-12 * sizes.max(initial=1e-300)]
        kept = kept if len(kept) else None
    inner = replace(threat, rho=largest, low=low[moves] / scale[moves], high=high[moves] / scale[moves])
    return FeatureBall(inner, scale, rounded | grouped, radii, groups, kept)


def check_radii(radii: Any, dimensions: int) -> Float64Array:
    """Radii of every feature, shape (dimensions,)."""
    rule = f"must be a number or an array of shape ({dimensions},) of finite numbers >= 0, one per feature"
    try:
        array = np.asarray(radii, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("rho", rule, radii) from None
    if array.shape != (dimensions,):
        raise invalid("rho", rule, f"shape {array.shape}")
    if not np.all(np.isfinite(array) & (array >= 0.0)):
        raise invalid("rho", rule, float(array[~(np.isfinite(array) & (array >= 0.0))][0]))
    return array


def columns_mask(name: str, columns: Any, dimensions: int) -> AnyArray:
    """Columns given by their numbers or as a mask: a boolean array of shape (dimensions,)."""
    mask = np.zeros(dimensions, dtype=bool)
    if columns is None:
        return mask
    rule = f"must be column numbers below {dimensions} or a mask of shape ({dimensions},)"
    chosen = np.asarray(columns)
    if chosen.dtype == bool and chosen.shape == (dimensions,):
        return chosen
    numbers = chosen.dtype.kind in "iu" and chosen.ndim == 1 and np.all((chosen >= 0) & (chosen < dimensions))
    if not (numbers or chosen.size == 0):
        raise invalid(name, rule, columns, f"write {name}=[0, 3]")
    mask[chosen.astype(np.int64)] = True
    return mask
