"""Well-separated points on a slice of the sphere (sublinear, sections 3.2 and 3.4): ‖x‖ = 1 and x_d = 1/2.

Points are drawn one after the other, uniform on the slice among those at least `separation` from all earlier
ones (rejection), so the first points are the same however many are drawn. Distances are those of the float32
points that are returned.

`separation` and `gamma` are about any points (Definition 3.7). With ε the smallest distance, a set is
γ-separable when γ ≤ ε(ε − 2ρ). On the unit sphere this is the gap that matters: a point moved by ρ keeps
⟨x_j, x̃_j⟩ ≥ 1 − ρ²/2 with itself and has ⟨x_i, x̃_j⟩ ≤ 1 − (ε − ρ)²/2 with any other, and the two sides differ by γ/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewfire._errors import InvalidArgument, invalid
from fewfire._random import Stream, as_stream
from fewfire._sphere import DIAMETER, RADIUS, check_on_slice, uniform_points
from fewfire._types import AnyArray, Float64Array, FloatArray
from fewfire._validate import check_choice, check_inputs, check_integer, check_number
from fewfire.problems._base import assign, check_outputs

ROWS = 1024
"""Rows compared at once: two blocks and a ROWS × ROWS table are needed besides X."""

MAX_TRIES = 5000
"""Candidates refused in a row before a set is given up."""

_BLOCK = 256  # candidates screened together
_MARGIN = 1e-12  # more than the rounding of squared distances from inner products: accepted points keep their distance


@dataclass(frozen=True)
class SphereSlice:
    """A set of n points in dimension d with ‖x‖ = 1, x_d = 1/2 and pairwise distance at least `separation`.

    Parameters
    ----------
    n : int
        Size of the set.
    d : int
        Dimension; the last coordinate is 1/2.
    separation : float in [0, √3]
        Smallest distance between two points.
    labels : "linear", "xor" or callable
        y = sign(x_1), y = sign(x_1 x_2), with sign 0 = +1, or a function from X of shape (rows, d) to numbers in
        [−1, 1] of shape (rows,).

    Examples
    --------
    >>> import fewfire as ff
    >>> problem = ff.problems.SphereSlice(n=20, d=8, separation=0.3)
    >>> X, y = problem.sample(20, seed=0)
    >>> bool(ff.problems.separation(X) >= 0.3)
    True
    """

    input_bytes: ClassVar[int] = 4  # inputs are float32

    n: int
    d: int
    separation: float
    labels: str | Callable[[FloatArray], ArrayLike] = "linear"

    def __post_init__(self) -> None:
        n = check_integer("n", self.n, 1)
        labels = self.labels if callable(self.labels) else check_choice("labels", self.labels, ("linear", "xor"))
        d = check_integer("d", self.d, 3 if labels == "xor" else 2)
        remedy = f"the slice has diameter √3 = {DIAMETER:.4f}"
        distance = check_number("separation", self.separation, 0.0, DIAMETER, remedy=remedy)
        limit = packing_limit(d, distance)
        if n > limit:
            rule = f"must be at most {limit:.0f}, the packing limit of the slice for d = {d}, separation = {distance:g}"
            raise invalid("n", rule, n, "lower n or the separation, or raise d")
        assign(self, n=n, d=d, separation=distance, labels=labels)

    @property
    def inputs(self) -> int:
        """The number of columns of X: d."""
        return self.d

    @property
    def bayes_error(self) -> float:
        """0: labels carry no noise."""
        return 0.0

    def target(self, X: ArrayLike) -> AnyArray:
        """The label of each row.

        Parameters
        ----------
        X : array of shape (rows, d)
            Points of the slice, to 1e-5.

        Returns
        -------
        int8 array of ±1 of shape (rows,), or float64 from a callable
        """
        points = check_inputs("X", X, self.d, np.dtype(np.float32))
        check_on_slice("X", points, "", "project it first")
        return self._values(points)

    def sample(
        self, m: int | None = None, seed: int | Stream = 0, start: int = 0
    ) -> tuple[NDArray[np.float32], AnyArray]:
        """Points start … start + m − 1 of the set that the seed fixes; all from `start` on unless m is given.

        Returns
        -------
        X : float32 array of shape (m, d)
        y : array of shape (m,), as `target` gives
        """
        start = check_integer("start", start, 0, self.n - 1, f"the set has n = {self.n} points")
        left = self.n - start
        remedy = f"the set has n = {self.n} points and {left} from start = {start} on"
        rows = left if m is None else check_integer("m", m, 1, left, remedy)
        X = self._draw_points(as_stream(seed, "data"), start + rows)[start:]
        return X, self._values(X)

    def _values(self, X: AnyArray) -> AnyArray:
        if callable(self.labels):
            values = check_outputs("labels", self.labels(X), len(X))
            if np.abs(values).max() > 1.0:
                worst = float(values[np.abs(values).argmax()])
                raise invalid("labels", "must give numbers in [−1, 1]", worst, "scale them")
            return values
        score = X[:, 0] if self.labels == "linear" else X[:, 0] * X[:, 1]
        return np.where(score >= 0, 1, -1).astype(np.int8)

    def _draw_points(self, stream: Stream, count: int) -> NDArray[np.float32]:
        placed = np.empty((count, self.d), dtype=np.float64)
        least = self.separation**2 + _MARGIN if self.separation > 0.0 else -math.inf
        size, refused, block = 0, 0, 0
        while size < count:
            points = uniform_points(stream, block * _BLOCK, _BLOCK, self.d).astype(np.float64)
            clash = np.asarray((squared_distances(points, placed[:size]) < least).any(axis=1))
            among = squared_distances(points, points) < least
            for candidate in range(_BLOCK):
                if clash[candidate]:
                    refused += 1
                    if refused == MAX_TRIES:
                        raise self._crowded(size)
                    continue
                placed[size] = points[candidate]
                size, refused = size + 1, 0
                if size == count:
                    break
                clash |= among[candidate]
            block += 1
        return placed.astype(np.float32)

    def _crowded(self, size: int) -> InvalidArgument:
        limit = packing_limit(self.d, self.separation)
        bound = f"no more than {limit:.0f} can ever fit" if math.isfinite(limit) else "no packing limit is known"
        rule = (
            f"must leave room for the points asked: {size} were placed, then {MAX_TRIES} random tries in a row were "
            f"too close (d = {self.d}; packing limit: {bound}, and random placement stops well before it)"
        )
        return invalid("separation", rule, self.separation, "lower the separation or the number of points, or raise d")


def packing_limit(d: int, separation: float) -> float:
    """No more than this many points of the slice in dimension d are pairwise `separation` apart (may be infinity).

    The slice is a sphere of radius r = √3/2 in D = d − 1 dimensions. Points s apart have disjoint caps of angle θ,
    sin θ = s/(2r), so their number is at most one over the share of the sphere in a cap. When s² > 2r² all inner
    products are negative and Rankin's bound 1 + r²/(s²/2 − r²), at most D + 1, is far better.
    """
    if separation <= 0.0:
        return math.inf
    if d == 2:
        return 2.0
    from scipy.special import betainc  # late: the workers of a sweep need no SciPy

    sphere = d - 1
    share = 0.5 * float(betainc((sphere - 1) / 2, 0.5, min(1.0, (separation / DIAMETER) ** 2)))
    limit = 1.0 / share if share > 0.0 else math.inf
    excess = separation**2 / 2 - RADIUS**2
    if excess > 0.0:
        limit = min(limit, 1.0 + RADIUS**2 / excess, sphere + 1.0)
    # The bound is attained by simplices and polygons: rounding must not take their last point away.
    return float(math.floor(limit * (1.0 + 1e-9))) if math.isfinite(limit) else limit


def separation(X: ArrayLike) -> float:
    """The smallest distance between two rows; infinity when there is one row.

    Nearest pairs are found through inner products in float64 and then measured by subtraction, so the result
    is right to rounding, except that pairs closer than 1e-7 of the points' size are only known to be that close.

    Parameters
    ----------
    X : array of shape (rows, dimensions)

    Examples
    --------
    >>> import fewfire as ff
    >>> round(ff.problems.separation([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), 3)
    0.632
    """
    points = check_inputs("X", X, None, np.dtype(np.float64))
    smallest = math.inf
    for start in range(0, len(points), ROWS):
        here = points[start : start + ROWS].astype(np.float64)
        for other in range(start, len(points), ROWS):
            there = points[other : other + ROWS].astype(np.float64)
            squares = squared_distances(here, there)
            if start == other:
                np.fill_diagonal(squares, math.inf)
            nearest = squares.argmin(axis=1)
            if len(there) > 1 or start != other:
                smallest = min(smallest, float(np.linalg.norm(here - there[nearest], axis=1).min()))
    return smallest


def gamma(X: ArrayLike, rho: float) -> float:
    """ε(ε − 2ρ) with ε = separation(X): the largest γ for which X is γ-separable when ε > 2ρ, else no more than 0.

    Parameters
    ----------
    X : array of shape (rows, dimensions)
    rho : float
        Radius of the adversary.

    Examples
    --------
    >>> from fewfire.problems import gamma
    >>> round(gamma([[0.6, 0.0], [0.0, 0.8]], rho=0.1), 6)  # their distance is 1
    0.8
    """
    rho = check_number("rho", rho, 0.0)
    epsilon = separation(X)
    return epsilon * (epsilon - 2.0 * rho)


def squared_distances(here: Float64Array, there: Float64Array) -> Float64Array:
    """‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩ for every row a of `here` and b of `there`, of shape (len(here), len(there))."""
    squares = -2.0 * (here @ there.T)
    squares += np.einsum("ij,ij->i", here, here)[:, None]
    squares += np.einsum("ij,ij->i", there, there)
    return squares
