"""Empirical low-degree coefficients in NumPy: the readable twin of csrc/kernels/estimate.cpp."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array, SignArray


def estimate_reference(signs: SignArray, labels: Float64Array, degree: int) -> Float64Array:
    """(1/m) Σ_i y_i χ_S(x_i) for all |S| ≤ degree, in the order of `monomials`.

    A set of size s is its first s − 1 members, for which the signed labels are formed once, and a last one.

    Parameters
    ----------
    signs : int8 array of shape (samples, n)
    labels : array of shape (samples,)
    degree : int

    Returns
    -------
    array of shape (monomial_count(n, degree),)
    """
    n = signs.shape[1]
    table = signs.astype(np.float64)
    sums = [np.array([labels.sum()])]
    for size in range(1, degree + 1):
        for prefix in combinations(range(n - 1 if size > 1 else n), size - 1):
            signed = labels * table[:, list(prefix)].prod(axis=1)
            first = prefix[-1] + 1 if prefix else 0
            sums.append(signed @ table[:, first:])
    return np.asarray(np.concatenate(sums) / len(labels))
