"""Weighted ranks of the values of a column, equal values together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import Float64Array


class Ranks(NamedTuple):
    """Distinct values (ascending), their mass and middle ranks (distinct,), and which of them each row has (rows,)."""

    distinct: Float64Array
    mass: Float64Array
    middle: Float64Array
    of_row: NDArray[np.int64]


def ranks(values: NDArray[np.floating[Any]], weight: Float64Array) -> Ranks:
    """Of values (rows,) with weights (rows,): a middle rank, in (0, 1), is the mass below a value and half its own."""
    distinct, of_row = np.unique(values, return_inverse=True)
    mass = np.bincount(of_row, weights=weight).astype(np.float64)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    # A weight that vanishes beside the others would have rank 0 or 1 exactly, whose normal quantile is infinite.
    return Ranks(distinct.astype(np.float64), mass, np.clip(middle, 1e-9, 1 - 1e-9), of_row)
