"""Few monomials among all of degree at most d: screening, a path of lasso fits, and refits on what each has kept.

All empirical coefficients are scanned (`fewfire.fourier.estimate`). Of N sets of one size, uniform inputs and labels
that have nothing to do with them give a largest coefficient of about σ·√(2 ln(2N) / m), so coefficients are measured in
that unit, size by size: a term of size 4 has to be larger than one of size 1, but is not shut out. The largest go into
a working set, over which the lasso is solved with the same unit as the weight of each term's penalty. What correlated
columns hid from the first scan, a second one of the residuals brings in.

The lasso shrinks what it keeps; the refit ("relaxed") does not. Which of them, and at which penalty, is chosen on rows
held out, next to the fits over all monomials.

A function of few columns (a junta, an indexing function, a conjunction) has many terms, each small, but together they
name few columns, and on those everything can be fitted. The strongest terms of a sparse fit are gone through in order
and their columns collected; ridge regression over all monomials of the first r columns, of degree at most d, follows,
for some r, d and penalties.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache, partial
from math import comb, log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import enet_path

from fewfire.fourier import estimate, monomial_count, monomial_members, monomials
from fewfire.fourier._monomials import monomial_table, strongest
from fewfire.learners._low_degree._polynomial import Polynomial, sparse_polynomial
from fewfire.learners._low_degree._sample import Fit, SignSample, splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array, IdArray

PENALTIES = np.geomspace(1.0, 0.03, 16)  # penalties of the path, times the least one that keeps nothing
WORKING_SET = 300  # terms that a path may use, about
REFIT_RIDGE = 1e-6  # ridge of a refit, per row: enough to make it solvable
MOST_ENTRIES = 1 << 32  # rows times monomials that one scan may look at: a second or so of one core
MOST_MONOMIALS = 1 << 22  # monomials that one scan may hold
FEW_MONOMIALS = 50_000  # up to this many, their sets are listed once and kept
NAMING_DEGREE = 3  # columns are taken in the order in which sparse fits of at most this degree name them
SUBCUBE_SIZES = (2, 3, 5, 7, 10, 14)  # numbers of columns tried
SUBCUBE_DEGREES = (2, 3, 4, 6)  # degrees tried on them
SUBCUBE_RATIOS = (1e-3, 3e-2, 0.3)  # penalties tried, per row
MOST_SUBCUBE_MONOMIALS = 600  # subcubes with more are not tried


def scannable(n: int, rows: int, degree: int) -> bool:
    """Whether all monomials of a degree can be scanned in reasonable time."""
    count = monomial_count(n, degree)
    return count <= MOST_MONOMIALS and count * rows <= MOST_ENTRIES


@dataclass(frozen=True, eq=False)
class Terms:
    """Fits over one working set: the lasso's and the refit's, in turn, for every penalty."""

    sets: IdArray  # (terms, degree), padded with −1; strongest first
    coefficients: Float64Array  # (terms, 2·penalties)
    constants: Float64Array  # (2·penalties,)

    def polynomial(self, n: int, index: int) -> Polynomial:
        """One of the fits, in n columns."""
        values = self.coefficients[:, index]
        kept = np.flatnonzero(values)
        return sparse_polynomial(n, float(self.constants[index]), self.sets[kept], values[kept])


def sparse_fits(sample: SignSample, degrees: list[int], max_degree: int, folds: IdArray, threads: int) -> list[Fit]:
    """The lasso and its refits of each degree, then all monomials of the columns that they name."""
    n, fits = sample.signs.shape[1], list[Fit]()
    orders: list[IdArray] = []
    for degree in degrees:
        held_out = np.full((2 * len(PENALTIES), len(sample)), np.nan)
        sets = []
        for train, test in splits(folds):
            found = fit_terms(sample.take(train), degree, threads)
            table = monomial_table(sample.signs[test], found.sets)
            held_out[:, test] = (table @ found.coefficients + found.constants).T
            sets.append(found.sets)
        terms = fit_terms(sample, degree, threads)
        for index, predicted in enumerate(held_out):
            family = ("lasso", "refit")[index % 2]
            words = f"{family} of degree at most {degree}, penalty {PENALTIES[index // 2]:.2g} of the largest"
            fits.append(Fit(family, degree, words, predicted, partial(terms.polynomial, n, index)))
        if degree <= NAMING_DEGREE:
            orders = [*sets, terms.sets]
    return fits + subcube_fits(sample, max_degree, folds, orders) if orders else fits


def fit_terms(sample: SignSample, degree: int, threads: int) -> Terms:
    """Screen, follow the path, scan the residuals half-way down, and follow it again with what they bring."""
    n = sample.signs.shape[1]
    total = float(sample.weights.sum())
    centred = sample.labels - sample.mean
    chosen = _screen(sample, centred, degree, WORKING_SET, threads)
    everything = len(chosen) + 1 >= monomial_count(n, degree)
    path = _path(sample, centred, _sets(n, chosen, degree))
    if not everything:
        middle = path.coefficients[:, 2 * (len(PENALTIES) // 2)]
        residual = centred - (monomial_table(sample.signs, path.sets) @ middle)
        residual -= float(residual @ sample.weights) / total
        more = _screen(sample, residual, degree, WORKING_SET // 3, threads)
        fresh = more[~np.isin(more, chosen)]
        if len(fresh):
            path = _path(sample, centred, _sets(n, np.concatenate([chosen, fresh]), degree))
    return path


def _screen(sample: SignSample, labels: Float64Array, degree: int, count: int, threads: int) -> IdArray:
    """Indices of the `count` monomials of largest empirical coefficient in the unit of its size, largest first."""
    found = estimate(sample.signs, labels * sample.weights, degree, threads=threads).values
    counts = [comb(sample.signs.shape[1], size) for size in range(degree + 1)]
    found /= np.repeat([np.inf, *map(_unit, counts[1:])], counts)
    return strongest(found, min(count, len(found) - 1))


def _unit(count: int) -> float:
    """√(2 ln(2N)), the unit of the N monomials of one size."""
    return sqrt(2.0 * log(2.0 * count))


@lru_cache(maxsize=8)
def _table(n: int, degree: int) -> IdArray:
    return monomials(n, degree)


def _sets(n: int, indices: IdArray, degree: int) -> IdArray:
    """The sets of some monomials, shape (indices, degree), padded with −1."""
    if monomial_count(n, degree) <= FEW_MONOMIALS:
        return _table(n, degree)[indices]
    sets = np.full((len(indices), degree), -1, dtype=np.int64)
    for row, index in enumerate(indices.tolist()):
        members = monomial_members(n, index)
        sets[row, : len(members)] = members
    return sets


def _path(sample: SignSample, centred: Float64Array, sets: IdArray) -> Terms:
    """The lasso over some terms at every penalty, each followed by the refit of the terms it keeps."""
    n, rows = sample.signs.shape[1], len(sample)
    units = np.array([_unit(comb(n, size)) for size in (sets >= 0).sum(axis=1).tolist()])
    table, labels, means = _centred(sample, monomial_table(sample.signs, sets), centred)
    gram, target = table.T @ table, table.T @ labels
    largest = float(np.abs(target / units).max(initial=0.0))
    if largest == 0.0:
        values = np.zeros((len(sets), 2 * len(PENALTIES)))
        return Terms(sets, values, np.full(values.shape[1], sample.mean))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of slow convergence at small penalties, which held-out rows judge
        path = enet_path(
            np.asfortranarray(table / units),
            labels,
            l1_ratio=1.0,
            alphas=PENALTIES * largest / rows,
            tol=1e-3,
            max_iter=300,
            precompute=gram / units[:, None] / units,
            Xy=target / units,
            check_input=False,
        )
    lasso = np.asarray(path[1]) / units[:, None]
    values = np.repeat(lasso, 2, axis=1)
    for index in range(len(PENALTIES)):
        kept = np.flatnonzero(lasso[:, index])
        if 0 < len(kept) <= max(1, rows // 3):
            ridged = gram[np.ix_(kept, kept)] + REFIT_RIDGE * np.eye(len(kept))
            values[kept, 2 * index + 1] = np.linalg.solve(ridged, target[kept])
    return Terms(sets, values, sample.mean - means @ values)


def _centred(
    sample: SignSample, table: Float64Array, centred: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """A table (rows, terms) and labels (rows,) as least squares of equal weights have them, and the terms' means."""
    roots = np.sqrt(sample.weights / sample.weights.sum())
    means = np.average(table, axis=0, weights=sample.weights)
    return roots[:, None] * (table - means), roots * centred, means


def subcube_fits(sample: SignSample, max_degree: int, folds: IdArray, orders: Sequence[IdArray]) -> list[Fit]:
    """Fits on few columns; `orders` are the terms, strongest first, of each fold's sparse fit and of the one to all."""
    n = sample.signs.shape[1]
    pairs = [
        (size, degree)
        for size in SUBCUBE_SIZES
        for degree in sorted({min(d, size, max_degree) for d in SUBCUBE_DEGREES})
        if size <= n and monomial_count(size, degree) <= MOST_SUBCUBE_MONOMIALS
    ]
    settings = [(size, degree, ratio) for size, degree in pairs for ratio in SUBCUBE_RATIOS]
    held_out = np.full((len(settings), len(sample)), np.nan)
    for (train, test), order in zip(splits(folds), orders[:-1], strict=True):
        part, rows = sample.take(train), sample.signs[test]
        nested = nested_columns(order)
        for index, (size, degree) in enumerate(pairs):
            columns = largest_within(nested, size)
            sets, values, constants = fit_subcube(part, columns, degree, SUBCUBE_RATIOS)
            table = monomial_table(np.ascontiguousarray(rows[:, columns]), sets)
            first = index * len(SUBCUBE_RATIOS)
            held_out[first : first + len(SUBCUBE_RATIOS), test] = (table @ values + constants).T
    everything = nested_columns(orders[-1])

    def polynomial(size: int, degree: int, ratio: float) -> Polynomial:
        columns = largest_within(everything, size)
        sets, values, constants = fit_subcube(sample, columns, degree, (ratio,))
        named = np.append(np.array(columns, dtype=np.int64), -1)[sets]  # a member is an index; −1 stays −1
        named = np.sort(np.where(named < 0, n, named), axis=1)
        named[named == n] = -1
        return sparse_polynomial(n, float(constants[0]), named, values[:, 0])

    words = "all monomials of degree at most {} on up to {} columns, penalty {:g} per row"
    return [
        Fit("subcube", degree, words.format(degree, size, ratio), predicted, partial(polynomial, size, degree, ratio))
        for (size, degree, ratio), predicted in zip(settings, held_out, strict=True)
    ]


def nested_columns(order: IdArray) -> list[tuple[int, ...]]:
    """Growing tuples of columns, each with the new ones of one more term that does not bring too many."""
    found: tuple[int, ...] = ()
    nested = [found]
    for row in order.tolist():
        fresh = tuple(member for member in row if member >= 0 and member not in found)
        if fresh and len(found) + len(fresh) <= SUBCUBE_SIZES[-1]:
            found += fresh
            nested.append(found)
    return nested


def largest_within(nested: Sequence[tuple[int, ...]], size: int) -> tuple[int, ...]:
    """The largest tuple of at most `size` columns."""
    return [columns for columns in nested if len(columns) <= size][-1]


def fit_subcube(
    sample: SignSample, columns: tuple[int, ...], degree: int, ratios: Sequence[float]
) -> tuple[IdArray, Float64Array, Float64Array]:
    """Ridge over all monomials of some columns: sets of indices into `columns`, values (sets, ratios), constants."""
    if not columns:
        return np.zeros((0, 0), dtype=np.int64), np.zeros((0, len(ratios))), np.full(len(ratios), sample.mean)
    sets = monomials(len(columns), min(degree, len(columns)))[1:]
    table = monomial_table(np.ascontiguousarray(sample.signs[:, columns]), sets)
    table, labels, means = _centred(sample, table, sample.labels - sample.mean)
    gram, target = table.T @ table, table.T @ labels
    values = np.stack([np.linalg.solve(gram + ratio * np.eye(len(gram)), target) for ratio in ratios], axis=1)
    return sets, values, sample.mean - means @ values
