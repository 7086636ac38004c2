"""Few monomials among all of degree at most d: screening, a path of lasso fits, and refits on what each has kept.

All empirical coefficients are scanned (`fewfire.fourier.estimate`). Of N sets of one size, uniform inputs and labels
that have nothing to do with them give a largest coefficient of about σ·√(2 ln(2N) / m), so coefficients are measured in
that unit, size by size: a term of size 4 has to be larger than one of size 1, but is not shut out. The largest go into
a working set, over which the lasso is solved with the same unit as the weight of each term's penalty. What correlated
columns hid from the first scan, a second one of the residuals brings in.

The lasso shrinks what it keeps; the refit ("relaxed") does not. Which of them, and at which penalty, is chosen on rows
held out, beside the fits over all monomials.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from math import comb, log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import enet_path

from fewfire.fourier import estimate, monomial_count, monomial_members, monomials
from fewfire.fourier._monomials import strongest
from fewfire.learners.low_degree._polynomial import Polynomial, monomial_table, sparse_polynomial
from fewfire.learners.low_degree._sample import SignSample, splits

if TYPE_CHECKING:
    from fewfire._types import Float64Array, IdArray

PENALTIES = np.geomspace(1.0, 0.03, 16)
"""Penalties of the path, times the least one that keeps nothing."""

WORKING_SET = 300
"""Terms that a path may use, about."""

REFIT_RIDGE = 1e-6
"""Ridge of a refit, per row: enough to make it solvable."""

MOST_ENTRIES = 1 << 32
"""Rows times monomials that one scan may look at: a second or so of one core."""

MOST_MONOMIALS = 1 << 22
"""Monomials that one scan may hold."""


FEW_MONOMIALS = 50_000
"""Up to this many, their sets are listed once and kept."""


def scannable(n: int, rows: int, degree: int) -> bool:
    """Whether all monomials of a degree can be scanned in reasonable time."""
    count = monomial_count(n, degree)
    return count <= MOST_MONOMIALS and count * rows <= MOST_ENTRIES


@dataclass(frozen=True, eq=False)
class Terms:
    """Fits over one working set.

    Attributes
    ----------
    sets : array of shape (terms, degree), padded with −1
        Strongest first.
    coefficients : array of shape (terms, 2·penalties)
        The lasso's and the refit's, in turn.
    constants : array of shape (2·penalties,)
    """

    sets: IdArray
    coefficients: Float64Array
    constants: Float64Array


@dataclass(frozen=True, eq=False)
class SparsePath:
    """Sparse fits of one degree: `held_out` of shape (fits, samples) by fits without the row's fold, and those to all.

    `orders` holds the working sets of the folds' fits and, last, of the fit to all rows.
    """

    n: int
    terms: Terms
    held_out: Float64Array
    orders: list[IdArray]

    def polynomial(self, index: int) -> Polynomial:
        """The fit of one penalty to all rows."""
        values = self.terms.coefficients[:, index]
        kept = np.flatnonzero(values)
        return sparse_polynomial(self.n, float(self.terms.constants[index]), self.terms.sets[kept], values[kept])


def sparse_path(sample: SignSample, degree: int, folds: IdArray, threads: int) -> SparsePath:
    """Fit one degree ≥ 1 at every penalty of the path, without and with a refit."""
    held_out = np.full((2 * len(PENALTIES), len(sample)), np.nan)
    orders = []
    for train, test in splits(folds):
        found = fit_terms(sample.take(train), degree, threads)
        table = monomial_table(sample.signs[test], found.sets)
        held_out[:, test] = (table @ found.coefficients + found.constants).T
        orders.append(found.sets)
    terms = fit_terms(sample, degree, threads)
    return SparsePath(sample.signs.shape[1], terms, held_out, [*orders, terms.sets])


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


def penalty_units(n: int, degree: int) -> Float64Array:
    """√(2 ln(2N)) for every monomial, N the number of those of its size; infinite for the constant."""
    sizes = [np.full(comb(n, size), sqrt(2.0 * log(2.0 * comb(n, size)))) for size in range(1, degree + 1)]
    return np.concatenate([[np.inf], *sizes])


def _screen(sample: SignSample, labels: Float64Array, degree: int, count: int, threads: int) -> IdArray:
    """Indices of the `count` monomials of largest empirical coefficient in the unit of its size, largest first."""
    weighted = labels * sample.weights
    found = estimate(sample.signs, weighted, degree, threads=threads).values
    found /= penalty_units(sample.signs.shape[1], degree)
    return strongest(found, min(count, len(found) - 1))


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
    roots = np.sqrt(sample.weights / sample.weights.sum())
    units = np.array([sqrt(2.0 * log(2.0 * comb(n, size))) for size in (sets >= 0).sum(axis=1).tolist()])
    table = monomial_table(sample.signs, sets)
    means = np.average(table, axis=0, weights=sample.weights)
    table = roots[:, None] * (table - means)
    gram, target = table.T @ table, table.T @ (roots * centred)
    largest = float(np.abs(target / units).max(initial=0.0))
    if largest == 0.0:
        values = np.zeros((len(sets), 2 * len(PENALTIES)))
        return Terms(sets, values, np.full(values.shape[1], sample.mean))
    lasso = _lasso(table / units, roots * centred, gram / units[:, None] / units, target / units, largest)
    lasso /= units[:, None]
    values = np.repeat(lasso, 2, axis=1)
    for place in range(len(PENALTIES)):
        kept = np.flatnonzero(lasso[:, place])
        if 0 < len(kept) <= max(1, rows // 3):
            ridged = gram[np.ix_(kept, kept)] + REFIT_RIDGE * np.eye(len(kept))
            values[kept, 2 * place + 1] = np.linalg.solve(ridged, target[kept])
    return Terms(sets, values, sample.mean - means @ values)


def _lasso(
    table: Float64Array, labels: Float64Array, gram: Float64Array, target: Float64Array, largest: float
) -> Float64Array:
    """Coefficients at every penalty, shape (terms, penalties), by scikit-learn's coordinate descent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of slow convergence at small penalties, which held-out rows judge
        path = enet_path(
            np.asfortranarray(table),
            labels,
            l1_ratio=1.0,
            alphas=PENALTIES * largest / len(table),
            tol=1e-3,
            max_iter=300,
            precompute=gram,
            Xy=target,
            check_input=False,
        )
    return np.asarray(path[1])
