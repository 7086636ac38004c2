"""Products with the matrix of monomials in NumPy: the readable twin of csrc/kernels/subcubes.cpp and gram.cpp.

The matrix is formed for a few rows at a time, each column from the column without its last member.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier._monomials import monomial_count, monomials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import Float64Array, SignArray

BLOCK_ENTRIES = 1 << 20
"""Entries of the matrix formed at once (8 MiB)."""


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


def reference_gram(signs: SignArray, degree: int) -> Float64Array:
    """The Gram matrix of the centred columns without the constant one, shape (monomials − 1, monomials − 1)."""
    means = reference_sums(signs, degree, np.ones(len(signs)))[1:] / len(signs)
    size = len(means)
    total = np.zeros((size, size))
    for block in _blocks(signs, degree):
        centred = block[:, 1:] - means
        total += centred.T @ centred
    return total


def _blocks(signs: SignArray, degree: int) -> Iterator[Float64Array]:
    """The matrix in blocks of rows of at most BLOCK_ENTRIES entries."""
    n = signs.shape[1]
    sets = monomials(n, degree)
    rows = max(1, BLOCK_ENTRIES // len(sets))
    for start in range(0, len(signs), rows):
        part = signs[start : start + rows].astype(np.float64)
        block = np.ones((len(part), len(sets)))
        for size in range(1, degree + 1):
            first = monomial_count(n, size - 1)
            members = sets[first : first + comb(n, size), :size]
            block[:, first : first + len(members)] = part[:, members].prod(axis=2)
        yield block
