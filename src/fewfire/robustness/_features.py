"""Tables are not images: radii of each feature's own, features that stay, features that are whole numbers.

A feature's radius is the unit in which its moves are measured: ‖((x_j − x₀_j)/r_j)_j‖ ≤ 1, which for the ∞-norm is
|x_j − x₀_j| ≤ r_j and for the 2-norm an ellipsoid with these half axes. A feature of radius 0 stays where it is, to the
bit. Whole numbers move by whole numbers, so that they stay whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire.robustness._boxes import pull_inside
from fewfire.robustness._l1 import L1Ball
from fewfire.robustness._threats import L2Ball, LinfBall, Threat

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._boxes import Radius, Span

ORDERS = {L1Ball: 1, L2Ball: 2, LinfBall: np.inf}


@dataclass(frozen=True, eq=False)
class FeatureBall:
    """A ball whose features have radii of their own.

    Parameters
    ----------
    inner : L1Ball, L2Ball or LinfBall
        Over the features that move, in units of `scale`.
    scale : array of shape (d,)
        0 for features that stay; the largest is 1, so that ρ of the inner ball is the largest radius.
    whole : boolean array of shape (d,)
        Features that move by whole numbers.
    radii : array of shape (d,)
        As they were given; scale is them divided by the largest, with a rounding.
    """

    inner: L1Ball | L2Ball | LinfBall
    scale: Float64Array
    whole: AnyArray
    radii: Float64Array

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

    def reach(self, dimensions: int) -> float:
        """Of the inner ball: no scale is above 1."""
        return self.inner.reach(int(np.count_nonzero(self.scale)))

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest allowed points as the radii measure it, whole numbers rounded."""
        return self._back(self.inner.project(self._into(points), self._into(centres)), centres)

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Steepest as the radii measure it."""
        move = self.inner.ascend(np.zeros_like(self._into(points)), self._pull(gradients), size)
        moved = points.copy()
        moved[:, self.scale > 0.0] += (move * self.scale[self.scale > 0.0]).astype(points.dtype)
        return moved

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Where linear functions are largest; with whole numbers the best found by rounding towards the centre."""
        return self._back(self.inner.extreme(self._pull(gradients), self._into(centres)), centres, inward=True)

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Members in exact arithmetic: features that stay at their centres, whole numbers whole."""
        moves = self.scale > 0.0
        rho, unit = (1.0, self.radii[moves]) if np.ndim(self.rho) == 0 else (self.rho, self.scale[moves])
        ball = _ExactBall(centres[:, moves], rho, ORDERS[type(self.inner)], unit)
        inside = np.clip(points[:, moves], self.low[moves], self.high[moves]).astype(np.float64)
        settled = centres.copy()
        settled[:, moves] = ball.with_whole(inside, self.whole[moves]) if self.whole.any() else ball.pulled(inside)
        return settled

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """A random point of the inner ball."""
        return self._back(self.inner.draw(self._into(centres), stream), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """As of the inner ball; of whole numbers a range that holds theirs."""
        return self.inner.span(self._pull(weights), self._into(centres))

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """As of the inner ball; of whole numbers a range that holds theirs."""
        return self.inner.row_span(self._pull(weights), self._into(centres))

    def _into(self, points: Float64Array) -> Float64Array:
        moves = self.scale > 0.0
        return np.asarray((points[:, moves] / self.scale[moves]).astype(points.dtype, copy=False))

    def _pull(self, gradients: Float64Array) -> Float64Array:
        moves = self.scale > 0.0
        return np.asarray((gradients[:, moves] * self.scale[moves]).astype(gradients.dtype, copy=False))

    def _back(self, inner_points: Float64Array, centres: Float64Array, inward: bool = False) -> Float64Array:
        moves = self.scale > 0.0
        points = centres.copy()
        points[:, moves] = inner_points * self.scale[moves]
        if not self.whole.any():
            return points
        whole = _whole_steps(points, centres, inward=True)
        if not inward:  # to the nearest, where that is allowed
            nearest = np.where(self.whole, _whole_steps(points, centres, inward=False), points)
            length = np.linalg.norm(self._into(nearest - centres), ord=ORDERS[type(self.inner)], axis=1, keepdims=True)
            inside = (nearest >= self.low).all(axis=1, keepdims=True) & (nearest <= self.high).all(
                axis=1, keepdims=True
            )
            whole = np.where(inside & (length <= self.rho), nearest, whole)
        return np.where(self.whole, whole, points).astype(points.dtype, copy=False)

    def _ends(self, ends: float | Float64Array, free: float) -> Float64Array:
        moves = self.scale > 0.0
        full = np.full(len(self.scale), free)
        full[moves] = ends * self.scale[moves]
        return full


@dataclass(frozen=True, eq=False)
class _ExactBall:
    """‖(x − x₀)/unit‖ ≤ ρ in exact arithmetic, around centres (rows, d)."""

    centres: Float64Array
    rho: Radius
    order: float
    unit: Float64Array

    def pulled(self, points: Float64Array) -> Float64Array:
        """Points drawn in."""
        return pull_inside(points, self.centres, self.rho, self.order, self.unit)

    def with_whole(self, points: Float64Array, whole: AnyArray) -> Float64Array:
        """Points with whole steps of some features, the others shortened to what these leave, or at their centres."""
        steps = np.where(whole, _whole_steps(points, self.centres, inward=True), points)
        low, high = np.zeros((len(points), 1)), np.ones((len(points), 1))
        for _ in range(50):  # the largest share of the other features' moves that fits
            middle = (low + high) / 2
            fits = self._length(self._mixed(steps, whole, middle)) <= np.asarray(self.rho) * (1.0 - 1e-12)
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        cut = np.where(whole, _whole_steps(self.pulled(steps), self.centres, inward=True, tolerance=0.0), self.centres)
        result, left = cut, np.ones(len(points), dtype=bool)
        for candidate in (steps, self._mixed(steps, whole, low), self._mixed(steps, whole, np.zeros_like(low))):
            good = np.array([left[row] and self._holds(candidate[row], row) for row in range(len(points))], dtype=bool)
            result, left = np.where(good[:, None], candidate, result), left & ~good
        return result

    def _mixed(self, steps: Float64Array, whole: AnyArray, share: Float64Array) -> Float64Array:
        return np.where(whole, steps, self.centres + share * (steps - self.centres))

    def _length(self, points: Float64Array) -> Float64Array:
        return np.asarray(np.linalg.norm((points - self.centres) / self.unit, ord=self.order, axis=1, keepdims=True))

    def _holds(self, point: Float64Array, row: int) -> bool:
        """Whether a point lies in the ball around a row's centre, in rational arithmetic."""
        radius = Fraction(float(np.ravel(self.rho)[0 if np.ndim(self.rho) == 0 else row]))
        sizes = [
            abs((Fraction(x) - Fraction(x0)) / Fraction(unit))
            for x, x0, unit in zip(point.tolist(), self.centres[row].tolist(), self.unit.tolist(), strict=True)
        ]
        if self.order == np.inf:
            return max(sizes, default=Fraction(0)) <= radius
        return sum(size ** int(self.order) for size in sizes) <= radius ** int(self.order)


def _whole_steps(points: Float64Array, centres: Float64Array, inward: bool, tolerance: float = 1e-6) -> Float64Array:
    """Moves cut (or rounded) to whole numbers; a move just short of one by rounding counts as that one."""
    delta = points - centres
    steps = np.trunc(delta + np.sign(delta) * tolerance) if inward else np.rint(delta)
    return np.asarray(centres + steps)


def restrict(threat: Threat, radii: Any, fixed: Any, whole: Any, dimensions: int) -> Threat:
    """A ball with radii per feature, features that stay and whole numbers; the ball itself where none is asked for."""
    if radii is None and fixed is None and whole is None:
        return threat
    if not isinstance(threat, L1Ball | L2Ball | LinfBall):
        rule = "can be told of features only where the adversary moves in a ball"
        raise invalid("rho, fixed and integers", rule, f"a {type(threat).__name__}", "leave them out")
    scale = np.full(dimensions, float(np.max(threat.rho))) if radii is None else check_radii(radii, dimensions)
    scale = np.where(columns_mask("fixed", fixed, dimensions), 0.0, scale)
    radii, largest = scale, float(scale.max())
    scale = scale / largest if largest > 0.0 else scale
    moves, rounded = scale > 0.0, columns_mask("integers", whole, dimensions)
    low, high = (np.broadcast_to(end, dimensions)[moves] / scale[moves] for end in (threat.low, threat.high))
    return FeatureBall(replace(threat, rho=largest, low=low, high=high), scale, rounded, radii)


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
