"""What an adversary may do to a point: a ball around it, or a cap on the slice (sublinear, Definition 3.3).

A threat knows its exact projection, the direction of steepest ascent in its norm, random points of itself, and the
range of a linear function over itself (exact but for a 2-norm ball cut by a box, where ball and box are bounded apart);
attacks and certificates need no more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_choice
from fewfire.learners.robust._balls import L2Ball, LinfBall

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array

Span: TypeAlias = "tuple[Float64Array, Float64Array]"


class Threat(Protocol):
    """The set of points an adversary may choose around each row of `centers`, an array of shape (rows, d)."""

    @property
    def rho(self) -> float:
        """The radius."""

    def reach(self, dimensions: int) -> float:
        """How far a point can be moved, in the 2-norm."""

    def project(self, points: Float64Array, centers: Float64Array) -> Float64Array:
        """The nearest allowed points, shape (rows, d)."""

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Points moved by `size` in the direction that raises a function with these gradients most."""

    def draw(self, centers: Float64Array, stream: Stream) -> Float64Array:
        """One random allowed point a row, shape (rows, d)."""

    def span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for every row w of weights (k, d) and x₀ of centers: two arrays (rows, k)."""

    def row_span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """Range of ⟨w, x − x₀⟩ for row w of weights (rows, d) and the same row of centers: two arrays (rows,)."""


NORMS = ("l2", "linf")


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
