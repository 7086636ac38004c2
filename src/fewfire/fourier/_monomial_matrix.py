"""The matrix A[i, S] = χ_S(x_i) of all monomials of degree ≤ d on a sample, as an operator that is never stored.

Both products take one table access per sample and subcube (`_subcubes`), which stands for some 50 to 200 multiply-adds:
about 0.6 ns where a float64 matrix product spends them at 16 per cycle at best. Sums are in float64 throughout.

The functions `reference_…` are the reference implementations of csrc/kernels/subcubes.cpp and gram.cpp: the matrix
is formed for a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._threads import thread_count
from fewfire._types import Float64Array, SignArray
from fewfire._validate import check_finite, check_integer, check_signs
from fewfire.fourier._monomials import monomial_count, monomial_table, monomials
from fewfire.fourier._subcubes import choose_groups, cover_of, product_cost

THREAD_NS = 50_000
"""A thread is started for no less work than this."""

BLOCK_ENTRIES = 1 << 20
"""Entries of the matrix formed at once (8 MiB)."""


class MonomialMatrix:
    """Products with the matrix of monomials, shape (samples, monomial_count(n, degree)), columns as in `monomials`.

    `signs` (samples, n) are not checked; results do not depend on the number of threads.
    """

    def __init__(self, signs: SignArray, degree: int, threads: int) -> None:
        samples, n = signs.shape
        self.shape: tuple[int, int] = samples, monomial_count(n, degree)
        self.degree = degree
        self._signs = signs
        self._products = None
        groups = choose_groups(n, degree, samples) if degree else 1
        cost = product_cost(n, degree, samples, groups)
        self.threads = max(1, min(threads, int(cost / THREAD_NS)))
        self.product_seconds = 1e-9 * cost
        """Estimated time of one product on one core, by the cost model of the subcubes."""
        extension = core() if degree else None
        if extension is not None:
            cover = cover_of(n, degree, groups)
            self._products = extension.SubcubeProducts(
                cover.patterns(signs), cover.group_bits, cover.groups, *cover.assignment
            )

    def values(self, coefficients: Float64Array) -> Float64Array:
        """A·coefficients: the polynomial at every sample, shape (samples,)."""
        if self._products is None:
            return reference_values(self._signs, self.degree, coefficients)
        out = np.empty(self.shape[0])
        self._products.values(coefficients, out, self.threads)
        return out

    def sums(self, weights: Float64Array) -> Float64Array:
        """Aᵀ·weights: the weighted sum of every monomial over the samples, shape (monomials,)."""
        if self._products is None:
            return reference_sums(self._signs, self.degree, weights)
        out = np.empty(self.shape[1])
        self._products.sums(weights, out, self.threads)
        return out


def evaluate(X: object, values: object, degree: int, *, threads: int | None = None) -> Float64Array:
    """Σ_S values[S] χ_S(x) for every row x, without a matrix of monomials.

    Parameters
    ----------
    X : array of ±1, shape (samples, n)
    values : array of shape (monomial_count(n, degree),)
        Coefficients in the order of `monomials(n, degree)`; zeros cost nothing where they come together.
    degree : int
    threads : int, optional
        All cores unless given.

    Returns
    -------
    array of shape (samples,)

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.evaluate([[1, 1], [1, -1]], [0.5, 0.0, 1.0, 0.0], degree=2).tolist()  # ½ + x₁
    [1.5, -0.5]
    """
    signs = check_signs("X", X)
    n = signs.shape[1]
    degree = check_integer("degree", degree, 0, n, "a monomial has at most n distinct coordinates")
    coefficients = np.ascontiguousarray(values, dtype=np.float64)
    count = monomial_count(n, degree)
    if coefficients.shape != (count,):
        rule = f"must hold one coefficient for each of the {count} monomials of degree at most {degree}"
        raise invalid("values", rule, f"shape {coefficients.shape}", "pass the values of an estimate of that degree")
    check_finite("values", coefficients)
    return MonomialMatrix(signs, degree, thread_count(threads)).values(coefficients)


def reference_values(signs: SignArray, degree: int, coefficients: Float64Array) -> Float64Array:
    """A·coefficients, shape (samples,), for signs of shape (samples, n)."""
    return np.concatenate([block @ coefficients for block in _blocks(signs, degree)])


def reference_sums(signs: SignArray, degree: int, weights: Float64Array) -> Float64Array:
    """Aᵀ·weights, shape (monomials,), for signs of shape (samples, n)."""
    total = np.zeros(monomial_count(signs.shape[1], degree))
    row = 0
    for block in _blocks(signs, degree):
        total += block.T @ weights[row : row + len(block)]
        row += len(block)
    return total


def reference_gram(signs: SignArray, degree: int, weights: Float64Array | None = None) -> Float64Array:
    """The Gram matrix of the centred columns without the constant one, shape (monomials − 1, monomials − 1)."""
    weights = np.ones(len(signs)) if weights is None else weights
    means = reference_sums(signs, degree, weights)[1:] / weights.sum()
    size = len(means)
    total = np.zeros((size, size))
    row = 0
    for block in _blocks(signs, degree):
        centred = block[:, 1:] - means
        total += centred.T @ (weights[row : row + len(block), None] * centred)
        row += len(block)
    return total


def _blocks(signs: SignArray, degree: int) -> Iterator[Float64Array]:
    """The matrix in blocks of rows of at most BLOCK_ENTRIES entries."""
    sets = monomials(signs.shape[1], degree)
    rows = max(1, BLOCK_ENTRIES // len(sets))
    for start in range(0, len(signs), rows):
        yield monomial_table(signs[start : start + rows], sets)
