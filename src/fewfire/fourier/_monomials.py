"""The monomials χ_S, |S| ≤ d, in one fixed order, and terms: a set of coordinates with its coefficient.

Monomials are ordered by size, then lexicographically; every table of low-degree coefficients in fewfire uses this
order. Lists of terms put the largest coefficient first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np

from fewfire._types import Float64Array, FloatArray, IdArray, SignArray
from fewfire._validate import check_integer

Term: TypeAlias = tuple[tuple[int, ...], float]
"""A set S, members ascending, and the coefficient of χ_S."""


def monomial_count(n: int, degree: int) -> int:
    """C(n, ≤ degree): how many sets of at most `degree` of `n` coordinates there are.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.monomial_count(100, 3)
    166751
    """
    return sum(comb(n, size) for size in range(degree + 1))


def monomials(n: int, degree: int) -> IdArray:
    """All sets of at most `degree` coordinates.

    Returns
    -------
    array of shape (monomial_count(n, degree), degree)
        One set per row, members ascending, padded with −1 on the right; row 0 is the empty set.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.monomials(3, 2).tolist()
    [[-1, -1], [0, -1], [1, -1], [2, -1], [0, 1], [0, 2], [1, 2]]
    """
    n = check_integer("n", n, 1)
    degree = check_integer("degree", degree, 0, n, "a monomial has at most n distinct coordinates")
    table = np.full((monomial_count(n, degree), degree), -1, dtype=np.int64)
    row = 1
    for size in range(1, degree + 1):
        block = comb(n, size)
        members = np.fromiter(combinations(range(n), size), dtype=np.dtype((np.int64, (size,))), count=block)
        table[row : row + block, :size] = members
        row += block
    return table


def monomial_index(n: int, members: tuple[int, ...]) -> int:
    """The row of `monomials(n, degree)` that holds a set; the same for every degree ≥ its size.

    Parameters
    ----------
    n : int
    members : distinct coordinates, ascending

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.monomial_index(10, (0, 2))
    12
    """
    size = len(members)
    index = monomial_count(n, size - 1)
    previous = -1
    for position, member in enumerate(members):
        # Sets that agree so far and go on with a smaller member come first.
        left = size - position
        index += comb(n - previous - 1, left) - comb(n - member, left)
        previous = member
    return index


def monomial_members(n: int, index: int) -> tuple[int, ...]:
    """The set in row `index` of `monomials(n, degree)`: the inverse of `monomial_index`.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.monomial_members(10, 12)
    (0, 2)
    """
    size = 0
    while index >= comb(n, size):
        index -= comb(n, size)
        size += 1
    members = []
    member = 0
    for left in range(size, 0, -1):
        while index >= (block := comb(n - member - 1, left - 1)):
            index -= block
            member += 1
        members.append(member)
        member += 1
    return tuple(members)


def monomial_table(signs: SignArray, sets: IdArray) -> Float64Array:
    """χ_S of every row for every set, shape (rows, sets)."""
    padded = np.concatenate([signs, np.ones((len(signs), 1), dtype=np.int8)], axis=1)  # −1 is the column of ones
    product = np.ones((len(signs), len(sets)), dtype=np.int8)
    for members in sets.T:
        product *= padded[:, members]
    return product.astype(np.float64)


def members_of(index: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, ascending: the set whose coefficient a transform has at that index."""
    return tuple(bit for bit in range(index.bit_length()) if index >> bit & 1)


def strongest(values: FloatArray, count: int) -> IdArray:
    """Indices of the `count` values largest in magnitude, largest first; ties go to the lower index."""
    count = min(count, len(values))
    magnitude = np.abs(values)
    if count < len(values) // 4:
        # Sorting only what can be among the strongest: everything at least as large as the count-th.
        floor = np.partition(magnitude, len(values) - count)[len(values) - count] if count else np.inf
        candidates = np.flatnonzero(magnitude >= floor)
    else:
        candidates = np.arange(len(values))
    order = np.argsort(-magnitude[candidates], kind="stable")
    return np.asarray(candidates[order[:count]], dtype=np.int64)


def above(values: FloatArray, threshold: float) -> IdArray:
    """Indices of the values of magnitude at least `threshold`, largest first; ties go to the lower index."""
    candidates = np.flatnonzero(np.abs(values) >= threshold)
    return np.asarray(candidates[np.argsort(-np.abs(values[candidates]), kind="stable")], dtype=np.int64)


def terms(values: FloatArray, indices: IdArray, members: Callable[[int], tuple[int, ...]]) -> list[Term]:
    """The terms at some indices; `members` names the set of an index."""
    return [(members(int(index)), float(values[index])) for index in indices]
