"""A polynomial in ±1 columns: a full table of coefficients up to some degree, and single terms above it.

Sparse fits hold a few terms of a high degree, of which a full table would take gigabytes; dense ones hold a table and
are evaluated without a matrix of monomials (`fewfire.fourier.evaluate`). A mixture holds both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier import evaluate, monomial_count, monomial_index, monomials
from fewfire.fourier._monomials import monomial_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array, IdArray, SignArray

BLOCK_ENTRIES = 1 << 22  # entries of a table of monomials formed at once


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Σ_S c_S·χ_S over sets S of n columns."""

    n: int
    full_degree: int
    full: Float64Array  # all coefficients up to that degree, in the order of `fewfire.fourier.monomials`
    sets: IdArray  # (terms, any), padded with −1: larger sets, members ascending
    values: Float64Array  # (terms,)

    @property
    def degree(self) -> int:
        """The size of the largest set, whatever its coefficient."""
        return max(self.full_degree, int((self.sets >= 0).sum(axis=1).max(initial=0)))

    def at(self, signs: SignArray, threads: int) -> Float64Array:
        """The value at every row of int8 signs of shape (rows, n): shape (rows,)."""
        if self.full_degree:
            total = evaluate(signs, self.full, self.full_degree, threads=threads)
        else:
            total = np.full(len(signs), self.full[0])
        rows = max(1, BLOCK_ENTRIES // max(1, len(self.values)))
        for start in range(0, len(signs) if len(self.values) else 0, rows):
            total[start : start + rows] += monomial_table(signs[start : start + rows], self.sets) @ self.values
        return total

    @property
    def all_sets(self) -> IdArray:
        """Every set, those of the full table first: shape (terms, degree), padded with −1."""
        degree = self.degree
        table = monomials(self.n, self.full_degree) if self.n else np.zeros((1, 0), dtype=np.int64)
        return np.concatenate([_padded(table, degree), _padded(self.sets, degree)])

    @property
    def all_values(self) -> Float64Array:
        """The coefficient of every set in `all_sets`; the constant comes first."""
        return np.concatenate([self.full, self.values])

    def dense(self, degree: int) -> Float64Array:
        """The coefficients of all monomials up to a degree not below the polynomial's."""
        table = np.zeros(monomial_count(self.n, degree))
        table[: len(self.full)] = self.full
        for members, value in zip(self.sets.tolist(), self.values.tolist(), strict=True):
            table[monomial_index(self.n, tuple(member for member in members if member >= 0))] += value
        return table


def full_polynomial(n: int, degree: int, values: Float64Array) -> Polynomial:
    """The polynomial of a table of all coefficients up to a degree."""
    return Polynomial(n, degree, values, np.zeros((0, 0), dtype=np.int64), np.zeros(0))


def sparse_polynomial(n: int, constant: float, sets: IdArray, values: Float64Array) -> Polynomial:
    """A constant and some terms, `sets` of shape (terms, any) padded with −1."""
    return Polynomial(n, 0, np.array([constant]), sets, values)


def add(parts: Sequence[Polynomial], factors: Sequence[float]) -> Polynomial:
    """Σ factors[i]·parts[i]; terms that have become small enough for the largest full table move into it."""
    n = parts[0].n
    degree = max(part.full_degree for part in parts)
    full = np.zeros(monomial_count(n, degree))
    above: dict[tuple[int, ...], float] = {}
    for part, factor in zip(parts, factors, strict=True):
        full[: len(part.full)] += factor * part.full
        for row, value in zip(part.sets.tolist(), part.values.tolist(), strict=True):
            members = tuple(member for member in row if member >= 0)
            if len(members) <= degree:
                full[monomial_index(n, members)] += factor * value
            else:
                above[members] = above.get(members, 0.0) + factor * value
    return Polynomial(n, degree, full, padded_sets(list(above)), np.array(list(above.values()), dtype=np.float64))


def padded_sets(members: Sequence[Sequence[int]]) -> IdArray:
    """Sets as an array of shape (sets, size of the largest), padded with −1."""
    width = max(map(len, members), default=0)
    sets = np.array([[*row, *[-1] * (width - len(row))] for row in members], dtype=np.int64)
    return sets.reshape(len(members), width)


def _padded(sets: IdArray, width: int) -> IdArray:
    table = np.full((len(sets), width), -1, dtype=np.int64)
    table[:, : sets.shape[1]] = sets[:, :width]
    return table
