"""How far apart points are, and what that gives against a ρ-bounded adversary (sublinear, Definition 3.7).

With ε the smallest distance, a set is γ-separable when γ ≤ ε(ε − 2ρ). On the unit sphere this is the gap
that matters: a point moved by ρ keeps ⟨x_j, x̃_j⟩ ≥ 1 − ρ²/2 with itself and has ⟨x_i, x̃_j⟩ ≤ 1 − (ε − ρ)²/2
with any other, and the two sides differ by γ/2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_inputs, check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array

BLOCK = 1024
"""Rows compared at once: two blocks and a BLOCK × BLOCK table are all that is held besides X."""


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
    for start in range(0, len(points), BLOCK):
        here = points[start : start + BLOCK].astype(np.float64)
        for other in range(start, len(points), BLOCK):
            there = points[other : other + BLOCK].astype(np.float64)
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


def is_separable(X: ArrayLike, gamma: float, rho: float) -> bool:
    """Whether X of shape (rows, dimensions) is γ-separable for a ρ-bounded adversary.

    γ must be positive: with ε = 0 every set would be 0-separable.

    Examples
    --------
    >>> from fewfire.problems import is_separable
    >>> is_separable([[0.6, 0.0], [0.0, 0.8]], gamma=0.5, rho=0.1)
    True
    """
    remedy = "with gamma = 0 any set would pass"
    return check_number("gamma", gamma, 0.0, open_low=True, remedy=remedy) <= _gamma(X, rho)


def squared_distances(here: Float64Array, there: Float64Array) -> Float64Array:
    """‖a − b‖² = ‖a‖² + ‖b‖² − 2⟨a, b⟩ for every row a of `here` and b of `there`, of shape (len(here), len(there))."""
    squares = -2.0 * (here @ there.T)
    squares += np.einsum("ij,ij->i", here, here)[:, None]
    squares += np.einsum("ij,ij->i", there, there)
    return squares


_gamma = gamma  # the argument of is_separable hides the function
