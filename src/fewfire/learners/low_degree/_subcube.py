"""All monomials on a few columns: what a function of few columns (a junta, an indexing function, a conjunction) needs.

Its terms are many and each is small, but together they name few columns, and on those everything can be fitted. The
strongest terms of a sparse fit are gone through in order and their columns collected; ridge regression over all
monomials of the first r columns, of degree at most d, follows, for some r, d and penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier import monomial_count, monomials
from fewfire.learners.low_degree._polynomial import Polynomial, monomial_table, sparse_polynomial
from fewfire.learners.low_degree._sample import SignSample, splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array, IdArray

SIZES = (2, 3, 5, 7, 10, 14)
"""Numbers of columns tried."""

DEGREES = (2, 3, 4, 6)
"""Degrees tried on them."""

RATIOS = (1e-3, 3e-2, 0.3)
"""Penalties tried, per row."""

MOST_MONOMIALS = 600
"""Subcubes with more are not tried."""


@dataclass(frozen=True, eq=False)
class SubcubeFits:
    """Fits on few columns.

    Attributes
    ----------
    settings : list of (columns at most, degree, penalty per row)
    held_out : array of shape (settings, samples)
    nested : list of tuples of int
        The columns that a fit to all rows takes, more and more of them.
    """

    sample: SignSample
    settings: list[tuple[int, int, float]]
    held_out: Float64Array
    nested: list[tuple[int, ...]]

    def polynomial(self, index: int) -> Polynomial:
        """The fit of one setting to all rows."""
        size, degree, ratio = self.settings[index]
        columns = largest_within(self.nested, size)
        sets, values, constants = fit_subcube(self.sample, columns, degree, (ratio,))
        named = np.append(np.array(columns, dtype=np.int64), -1)[sets]  # a member is a place; −1 stays −1
        named = np.sort(np.where(named < 0, self.sample.signs.shape[1], named), axis=1)
        named[named == self.sample.signs.shape[1]] = -1
        return sparse_polynomial(self.sample.signs.shape[1], float(constants[0]), named, values[:, 0])


def subcube_fits(sample: SignSample, max_degree: int, folds: IdArray, orders: Sequence[IdArray]) -> SubcubeFits:
    """Fit every setting; `orders` are the terms, strongest first, of each fold's sparse fit and of the one to all."""
    n = sample.signs.shape[1]
    pairs = [
        (size, degree)
        for size in SIZES
        for degree in sorted({min(d, size, max_degree) for d in DEGREES})
        if size <= n and monomial_count(size, degree) <= MOST_MONOMIALS
    ]
    settings = [(size, degree, ratio) for size, degree in pairs for ratio in RATIOS]
    held_out = np.full((len(settings), len(sample)), np.nan)
    for (train, test), order in zip(splits(folds), orders[:-1], strict=True):
        part, rows = sample.take(train), sample.signs[test]
        nested = nested_columns(order)
        for place, (size, degree) in enumerate(pairs):
            columns = largest_within(nested, size)
            sets, values, constants = fit_subcube(part, columns, degree, RATIOS)
            table = monomial_table(np.ascontiguousarray(rows[:, columns]), sets)
            first = place * len(RATIOS)
            held_out[first : first + len(RATIOS), test] = (table @ values + constants).T
    return SubcubeFits(sample, settings, held_out, nested_columns(orders[-1]))


def nested_columns(order: IdArray) -> list[tuple[int, ...]]:
    """Growing tuples of columns, each with the new ones of one more term; terms that lead beyond SIZES are skipped."""
    found: tuple[int, ...] = ()
    nested = [found]
    for row in order.tolist():
        fresh = tuple(member for member in row if member >= 0 and member not in found)
        if fresh and len(found) + len(fresh) <= SIZES[-1]:
            found += fresh
            nested.append(found)
    return nested


def largest_within(nested: Sequence[tuple[int, ...]], size: int) -> tuple[int, ...]:
    """The largest tuple of at most `size` columns."""
    return [columns for columns in nested if len(columns) <= size][-1]


def fit_subcube(
    sample: SignSample, columns: tuple[int, ...], degree: int, ratios: Sequence[float]
) -> tuple[IdArray, Float64Array, Float64Array]:
    """Ridge over all monomials of some columns: sets of places in `columns`, values (sets, ratios), constants."""
    if not columns:
        return np.zeros((0, 0), dtype=np.int64), np.zeros((0, len(ratios))), np.full(len(ratios), sample.mean)
    sets = monomials(len(columns), min(degree, len(columns)))[1:]
    table = monomial_table(np.ascontiguousarray(sample.signs[:, columns]), sets)
    roots = np.sqrt(sample.weights / sample.weights.sum())
    means = np.average(table, axis=0, weights=sample.weights)
    table = roots[:, None] * (table - means)
    gram, target = table.T @ table, table.T @ (roots * (sample.labels - sample.mean))
    values = np.stack([np.linalg.solve(gram + ratio * np.eye(len(gram)), target) for ratio in ratios], axis=1)
    return sets, values, sample.mean - means @ values
