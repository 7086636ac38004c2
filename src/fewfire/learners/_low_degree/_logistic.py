"""Logistic regression over all monomials of one degree, with every penalty validated on rows that the fit did not see.

The polynomial f is half the log odds of +1: Σ_i w_i log(1 + exp(−2 y_i f(x_i))) + 2α Σ_{S ≠ ∅} v_S² is minimised, w of
mean 1. A sum of squares also pays for rows that lie far on the right side of a half-space or a majority; this does not.

SciPy's L-BFGS does it, over the monomials or, where a small sample has fewer rows than monomials, over one coordinate
per row: with K = L Lᵀ the inner products of the rows' monomials (`_ridge.monomial_kernel`), f = L u + constant has
Σ v_S² = ‖u‖² and v = Aᵀ L⁻ᵀ u, A the monomials. One L serves all folds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire._dense.losses import LOSSES
from fewfire.fourier import monomial_count
from fewfire.fourier._monomial_matrix import MonomialMatrix
from fewfire.learners._low_degree._polynomial import Polynomial, full_polynomial
from fewfire.learners._low_degree._ridge import monomial_kernel
from fewfire.learners._low_degree._sample import SMALL, Fit, SignSample, splits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, IdArray

PENALTIES = (100.0, 20.0, 5.0, 1.0, 0.1, 0.01)  # the values of α, in rows; each fit starts from the one before
HIGHEST = 3  # degrees beyond are not fitted
MOST_MONOMIALS = 100_000  # degrees with more are not fitted …
MOST_ENTRIES = 1 << 27  # … nor those with more rows times monomials: some seconds of one core
STEPS = 200  # most steps of the solver per penalty; where it ends there, what it has is validated
JITTER = 1e-10  # added to the diagonal of K, in shares of it: rows may be equal


class Products(NamedTuple):
    """A matrix known by its columns, A·coefficients and Aᵀ·weights."""

    columns: int
    values: Callable[[Float64Array], Float64Array]
    sums: Callable[[Float64Array], Float64Array]


class LogisticPath:
    """Fits of one degree ≥ 1 to a sample for PENALTIES."""

    def __init__(self, sample: SignSample, degree: int, threads: int) -> None:
        self.sample, self.degree, self.threads = sample, degree, threads
        rows, n = sample.signs.shape
        self.factor: Float64Array | None = None
        if rows <= SMALL and monomial_count(n, degree) > rows:
            kernel = monomial_kernel(sample.signs, degree)
            kernel[np.diag_indices(rows)] *= 1.0 + JITTER
            self.factor = np.asarray(np.linalg.cholesky(kernel), dtype=np.float64)

    def held_out(self, folds: IdArray) -> Float64Array:
        """Predictions by fits without the row's fold, shape (penalties, samples)."""
        held_out = np.full((len(PENALTIES), len(self.sample)), np.nan)
        for train, test in splits(folds):
            validation = self._products(test)
            for index, found in enumerate(_minimise(self._products(train), self.sample.take(train), PENALTIES)):
                held_out[index, test] = validation.values(found)
        return held_out

    def polynomial(self, index: int) -> Polynomial:
        """The fit of one penalty to all rows."""
        everything = np.ones(len(self.sample), dtype=bool)
        values = _minimise(self._products(everything), self.sample, PENALTIES[: index + 1])[-1]
        if self.factor is not None:
            from scipy.linalg import solve_triangular

            inner = solve_triangular(self.factor, values[1:], lower=True, trans="T", check_finite=False)
            constant, values = values[0], MonomialMatrix(self.sample.signs, self.degree, self.threads).sums(inner)
            values[0] = constant
        return full_polynomial(self.sample.signs.shape[1], self.degree, values)

    def _products(self, rows: AnyArray) -> Products:
        """The matrix of some rows, given as a mask: of monomials, or of the coordinates that stand for them."""
        if self.factor is not None:
            table = np.insert(self.factor[rows], 0, 1.0, axis=1)
            return Products(table.shape[1], lambda values: table @ values, lambda weights: weights @ table)
        matrix = MonomialMatrix(np.ascontiguousarray(self.sample.signs[rows]), self.degree, self.threads)
        return Products(matrix.shape[1], matrix.values, matrix.sums)


def logistic_degrees(n: int, rows: int, max_degree: int) -> list[int]:
    """The degrees from 1 to HIGHEST that can be fitted in reasonable time; 1 always."""
    counts = {d: monomial_count(n, d) for d in range(1, min(max_degree, n, HIGHEST) + 1)}
    return [d for d, count in counts.items() if d == 1 or (count <= MOST_MONOMIALS and count * rows <= MOST_ENTRIES)]


def logistic_fits(sample: SignSample, degree: int, folds: IdArray, threads: int) -> list[Fit]:
    """Logistic regression over all monomials: half the log odds."""
    path = LogisticPath(sample, degree, threads)
    words = f"logistic regression over all monomials of degree at most {degree}, penalty"
    return [
        Fit("logistic", degree, f"{words} {penalty:g}", predicted, partial(path.polynomial, index))
        for index, (penalty, predicted) in enumerate(zip(PENALTIES, path.held_out(folds), strict=True))
    ]


def _minimise(matrix: Products, sample: SignSample, penalties: tuple[float, ...]) -> list[Float64Array]:
    """The coefficients of each penalty, the constant first, of shape (columns of the matrix,)."""
    from scipy.optimize import minimize

    labels, weights = sample.labels, sample.weights / sample.weights.sum()
    found = [np.zeros(matrix.columns)]
    for penalty in penalties:
        strength = penalty / len(sample)

        def loss(values: Float64Array, strength: float = strength) -> tuple[float, Float64Array]:
            losses, slopes = LOSSES["logistic"].both(2.0 * matrix.values(values), labels)
            gradient = matrix.sums(2.0 * weights * slopes)
            gradient[1:] += 4.0 * strength * values[1:]
            squares = float(np.einsum("i,i->", values[1:], values[1:]))
            return float(np.einsum("i,i->", weights, losses)) + 2.0 * strength * squares, gradient

        solved = minimize(loss, found[-1], jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "gtol": 1e-5})
        found.append(np.asarray(solved.x, dtype=np.float64))
    return found[1:]
