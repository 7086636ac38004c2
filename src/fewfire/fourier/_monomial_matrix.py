"""The matrix A[i, S] = χ_S(x_i) of all monomials of degree ≤ d on a sample, as an operator that is never stored.

Both products take one table access a sample and subcube (`_subcubes`), which stands for some 50 to 200 multiply-adds:
about 0.6 ns where a float64 matrix product spends them at 16 a cycle at best. Sums are in float64 throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._extension import core
from fewfire.fourier._monomial_matrix_reference import reference_sums, reference_values
from fewfire.fourier._monomials import monomial_count
from fewfire.fourier._subcubes import choose_groups, cover_of, product_cost

if TYPE_CHECKING:
    from fewfire._types import Float64Array, SignArray


THREAD_NS = 50_000
"""A thread is started for no less work than this."""


class MonomialMatrix:
    """Products with the matrix of monomials, shape (samples, monomial_count(n, degree)), columns as in `monomials`.

    Parameters
    ----------
    signs : int8 array of ±1, shape (samples, n), not checked
    degree : int in [0, n]
    threads : int
        The most to use; results do not depend on it.
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
        self.product_seconds = 1e-9 * cost / self.threads
        """Estimated time of one product, by the cost model of the subcubes."""
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
