"""Ridge regression over all monomials of one degree, with every penalty validated on rows that the fit did not see.

Small samples are solved in the space of the samples, whatever the number of monomials. The inner product of two rows
of monomials depends on how many coordinates differ alone: Σ_{1 ≤ s ≤ d} K_s(differences; n), K_s the Krawtchouk
polynomials. One eigendecomposition gives the fit H y for every penalty, and with it the fit of every fold without a
second one: held out of the fit, the residuals of rows F are (I − H_FF)⁻¹ (y − H y)_F, exactly.

Large samples are solved over the monomials: through the Gram matrix where it is small, else by conjugate gradients.
"""

from __future__ import annotations

from functools import partial
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier import least_squares, monomial_count, monomials
from fewfire.fourier._gram import centred_gram
from fewfire.fourier._monomial_matrix import MonomialMatrix
from fewfire.fourier._monomials import monomial_table
from fewfire.learners._low_degree._polynomial import Polynomial, full_polynomial
from fewfire.learners._low_degree._sample import SMALL, Fit, SignSample, splits

if TYPE_CHECKING:
    from fewfire._types import Float64Array, IdArray, SignArray

RATIOS = (1e-3, 4e-3, 1.5e-2, 6e-2, 0.25, 1.0, 4.0, 15.0)
"""Penalties tried, times the larger of the numbers of samples and monomials."""

COARSE_RATIOS = (1e-3, 1e-2, 0.1, 1.0)  # those tried where each takes a fit of its own
FEW_MONOMIALS = 1500  # up to this many, the Gram matrix is decomposed once for all penalties
COARSE = 1e-3  # relative error of the fits that only serve to choose a penalty


def ridge_fits(sample: SignSample, degree: int, folds: IdArray, threads: int, alpha: float | None = None) -> list[Fit]:
    """Fits over all monomials up to a degree of at least 1, with several penalties or with the one given."""
    count = monomial_count(sample.signs.shape[1], degree) - 1
    small = SmallRidge(sample, degree) if len(sample) <= SMALL and alpha != 0.0 else None  # I − H_FF may be singular
    if alpha is not None:
        alphas = np.array([alpha])
    else:
        ratios = RATIOS if small is not None or count <= FEW_MONOMIALS else COARSE_RATIOS
        alphas = max(len(sample), count) * float(sample.weights.mean()) * np.array(ratios)
    if small is not None:
        held_out = np.stack([small.held_out(float(alpha), folds) for alpha in alphas])
    else:
        held_out = np.full((len(alphas), len(sample)), np.nan)
        for train, test in splits(folds):
            held_out[:, test] = _large_fits(sample.take(train), sample.signs[test], degree, alphas, threads)

    def polynomial(alpha: float) -> Polynomial:
        if small is not None:
            return small.polynomial(alpha, threads)
        fitted = least_squares(
            sample.signs, sample.labels, degree, alpha=alpha, weights=sample.weights, threads=threads
        )
        return full_polynomial(fitted.n, fitted.degree, fitted.values)

    return [
        Fit("ridge", degree, ridge_words(degree, penalty), predicted, partial(polynomial, penalty), penalty)
        for penalty, predicted in zip(alphas.tolist(), held_out, strict=True)
    ]


def ridge_words(degree: int, alpha: float) -> str:
    """A fit in a few words."""
    return f"ridge over all monomials of degree at most {degree}, penalty {alpha:.3g}"


class SmallRidge:
    """All penalties of one degree from one eigendecomposition in the space of the samples."""

    def __init__(self, sample: SignSample, degree: int) -> None:
        self.sample, self.degree = sample, degree
        weights = sample.weights
        self.roots = np.sqrt(weights)
        self.centred = self.roots * (sample.labels - sample.mean)
        n = sample.signs.shape[1]
        if monomial_count(n, degree) - 1 < len(sample):
            table = monomial_table(sample.signs, monomials(n, degree)[1:])
            table = self.roots[:, None] * (table - np.average(table, axis=0, weights=weights))
            spectrum, vectors = np.linalg.eigh(table.T @ table)
            kept = spectrum > _floor(spectrum)
            self.spectrum = spectrum[kept]
            self.vectors = (table @ vectors[:, kept]) / np.sqrt(self.spectrum)
        else:
            kernel = monomial_kernel(sample.signs, degree)
            kernel -= np.average(kernel, axis=0, weights=weights)
            kernel -= np.average(kernel, axis=1, weights=weights)[:, None]
            spectrum, vectors = np.linalg.eigh(self.roots[:, None] * kernel * self.roots)
            kept = spectrum > _floor(spectrum)
            self.spectrum, self.vectors = spectrum[kept], vectors[:, kept]
        self.projected = self.vectors.T @ self.centred

    def held_out(self, alpha: float, folds: IdArray) -> Float64Array:
        """Predictions of every row by the fit without its fold, shape (samples,)."""
        shrinkage = self.spectrum / (self.spectrum + alpha)
        residual = self.centred - self.vectors @ (shrinkage * self.projected)
        constant = self.roots / np.sqrt(self.sample.weights.sum())
        predicted = np.empty(len(folds))
        for _, rows in splits(folds):
            part, share = self.vectors[rows], constant[rows]
            hat = (part * shrinkage) @ part.T + np.outer(share, share)
            kept = np.eye(len(share)) - hat
            try:
                left = np.linalg.solve(kept, residual[rows])
            except np.linalg.LinAlgError:  # the rest of the sample does not determine it
                left = np.linalg.lstsq(kept, residual[rows], rcond=None)[0]
            predicted[rows] = self.sample.labels[rows] - left / self.roots[rows]
        return predicted

    def polynomial(self, alpha: float, threads: int) -> Polynomial:
        """The fit to all rows. Its coefficients are Aᵀ a with a the residuals over alpha, which sum to zero."""
        sample = self.sample
        if alpha == 0.0:
            inner = self.vectors @ (self.projected / self.spectrum)
        else:
            inner = (self.centred - self.vectors @ (self.spectrum / (self.spectrum + alpha) * self.projected)) / alpha
        matrix = MonomialMatrix(sample.signs, self.degree, threads)
        values = matrix.sums(self.roots * inner)
        values[0] = 0.0
        values[0] = sample.mean - float(np.average(matrix.values(values), weights=sample.weights))
        return full_polynomial(sample.signs.shape[1], self.degree, values)


def monomial_kernel(signs: SignArray, degree: int) -> Float64Array:
    """Σ_{1 ≤ |S| ≤ degree} χ_S(x_i) χ_S(x_j), shape (samples, samples)."""
    n = signs.shape[1]
    by_difference = [
        sum((-1) ** j * comb(k, j) * comb(n - k, size - j) for size in range(1, degree + 1) for j in range(size + 1))
        for k in range(n + 1)
    ]
    table = signs.astype(np.float32)  # inner products of signs are exact in it
    differences = np.rint((n - table @ table.T) / 2).astype(np.int64)
    return np.asarray(np.array(by_difference, dtype=np.float64)[differences])


def _large_fits(train: SignSample, test: SignArray, degree: int, alphas: Float64Array, threads: int) -> Float64Array:
    """Predictions for held-out rows, shape (penalties, rows)."""
    n = train.signs.shape[1]
    matrix = MonomialMatrix(test, degree, threads)
    if monomial_count(n, degree) - 1 > FEW_MONOMIALS:
        fits = [
            least_squares(
                train.signs, train.labels, degree, alpha=float(a), tol=COARSE, weights=train.weights, threads=threads
            ).values
            for a in alphas
        ]
        return np.stack([matrix.values(values) for values in fits])
    gram = centred_gram(train.signs, degree, threads, weights=train.weights)
    spectrum, vectors = np.linalg.eigh(gram, UPLO="L")
    kept = spectrum > _floor(spectrum)
    spectrum, vectors = spectrum[kept], vectors[:, kept]
    operator = MonomialMatrix(train.signs, degree, threads)
    target = vectors.T @ operator.sums(train.weights * (train.labels - train.mean))[1:]
    means = operator.sums(train.weights)[1:] / train.weights.sum()
    predicted = []
    for alpha in alphas:
        values = vectors @ (target / (spectrum + alpha))
        predicted.append(matrix.values(np.concatenate([[train.mean - means @ values], values])))
    return np.stack(predicted)


def _floor(spectrum: Float64Array) -> float:
    """Eigenvalues up to this are rounding of zero."""
    return 10 * len(spectrum) * float(np.finfo(np.float64).eps * spectrum.max(initial=0.0))
