"""All low-degree Fourier coefficients from samples: the estimation step of the low-degree algorithm.

sparse-activations, section 2.1: with x uniform on {±1}ⁿ, f̂(S) = E[f(x) χ_S(x)], so (1/m) Σ y_i χ_S(x_i) estimates
it. The columns of X are bit vectors: χ_S is an XOR of |S| of them, and for ±1 labels its sum is a popcount, exact
in integers. For real labels the sum is taken in float64, in blocks of 1024 samples that are then added up: off by at
most (m/1024 + 512)·2⁻⁵³·mean|y| from the exact value. Neither depends on the number of threads.

`estimate_reference` is the reference implementation of csrc/kernels/estimate.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from time import perf_counter
from types import ModuleType

import numpy as np

from fewfire._bits import pack, pack_columns, unpack
from fewfire._errors import InvalidArgument
from fewfire._extension import core
from fewfire._progress import ProgressCallback, progress_callback
from fewfire._threads import thread_count
from fewfire._types import Float64Array, IdArray, SignArray, WordArray
from fewfire._validate import check_integer, check_labels, check_number, check_signs, check_support
from fewfire.fourier._monomials import (
    Term,
    above,
    monomial_count,
    monomial_index,
    monomial_members,
    monomials,
    strongest,
    terms,
)

_SLICE_SECONDS = 0.1
"""Between slices of about this length, progress is reported and an interrupt can stop the call."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Empirical Fourier coefficients of degree at most `degree`.

    Attributes
    ----------
    values : array of shape (monomial_count(n, degree),)
        Coefficients, in the order of `monomials(n, degree)`.
    n, degree, samples : int
    """

    values: Float64Array
    n: int
    degree: int
    samples: int

    @cached_property
    def sets(self) -> IdArray:
        """The sets, one per row, padded with −1: array of shape (monomial_count(n, degree), degree)."""
        return monomials(self.n, self.degree)

    def coefficient(self, members: Sequence[int]) -> float:
        """The estimate for one set of coordinates."""
        chosen = sorted(check_support("members", members, self.n))
        check_integer("the size of members", len(chosen), 0, self.degree, "estimate to a higher degree")
        return float(self.values[monomial_index(self.n, tuple(chosen))])

    def largest(self, count: int) -> list[Term]:
        """The `count` terms of largest magnitude, largest first."""
        return self._terms(strongest(self.values, check_integer("count", count, 0)))

    def prune(self, threshold: float) -> list[Term]:
        """The terms of magnitude at least `threshold`, largest first."""
        return self._terms(above(self.values, check_number("threshold", threshold, 0.0)))

    def _terms(self, indices: IdArray) -> list[Term]:
        return terms(self.values, indices, lambda index: monomial_members(self.n, index))


def estimate(
    X: object, y: object, degree: int, *, threads: int | None = None, progress: bool | ProgressCallback | None = None
) -> Estimate:
    """All empirical coefficients (1/m) Σ_i y_i χ_S(x_i) with |S| ≤ degree.

    Parameters
    ----------
    X : array of ±1, shape (samples, n)
    y : array of shape (samples,)
        Labels; ±1 labels take the popcount path, any other numbers the float64 one.
    degree : int
        Largest size of a set, at most n.
    threads : int, optional
        All cores unless given.
    progress : bool or callable (done, total), optional
        True shows one bar, in a notebook or on a terminal. A callable is called at most about ten times per second, and
        once at the end.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(30, 2, support=[3, 8]).sample(2000, seed=0)
    >>> ff.fourier.estimate(X, y, degree=2).largest(1)
    [((3, 8), 1.0)]
    """
    columns, n, samples = packed_columns(X)
    labels = np.asarray(check_labels("y", y, samples), dtype=np.float64)
    degree = check_integer("degree", degree, 0, n, "a monomial has at most n distinct coordinates")
    workers = thread_count(threads)
    notify = progress_callback(progress, "estimate")
    extension = core()
    if extension is None:
        signs = np.ascontiguousarray(unpack(columns, samples).T)
        values = estimate_reference(signs, labels, degree)
        if notify is not None:
            notify(len(values), len(values))
    else:
        values = _estimate_in_slices(extension, columns, labels, degree, workers, notify)
    return Estimate(values, n, degree, samples)


def packed_columns(X: object) -> tuple[WordArray, int, int]:
    """The columns of a ±1 table as bit vectors of shape (n, ceil(samples / 64)), and n, samples."""
    if isinstance(X, np.ndarray) and X.dtype == np.int8 and X.ndim == 2 and X.size:
        try:
            return pack_columns(X), X.shape[1], X.shape[0]
        except InvalidArgument:
            pass  # check_signs words the error for X
    signs = check_signs("X", X)
    return pack_columns(signs), signs.shape[1], signs.shape[0]


def estimate_reference(signs: SignArray, labels: Float64Array, degree: int) -> Float64Array:
    """(1/m) Σ_i y_i χ_S(x_i) for all |S| ≤ degree, in the order of `monomials`.

    A set of size s is its first s − 1 members, for which the signed labels are formed once, and a last one.
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


def _estimate_in_slices(
    extension: ModuleType,
    columns: WordArray,
    labels: Float64Array,
    degree: int,
    threads: int,
    progress: ProgressCallback | None,
) -> Float64Array:
    """Run the kernel on ranges of coefficients, each about _SLICE_SECONDS long."""
    total = monomial_count(len(columns), degree)
    values = np.empty(total, dtype=np.float64)
    if np.all(np.abs(labels) == 1.0):
        kernel = partial(extension.estimate_signs, columns, pack(labels.astype(np.int8)[None])[0], len(labels), degree)
    else:
        kernel = partial(extension.estimate_reals, columns, labels, degree)
    first, size, reported = 0, max(1, 2**24 // len(labels)), perf_counter()
    while first < total:
        last = min(total, first + size)
        began = perf_counter()
        kernel(first, last, threads, values)
        elapsed = max(perf_counter() - began, 1e-6)
        size = max(1, min(int((last - first) * _SLICE_SECONDS / elapsed), 8 * size))
        first = last
        if progress is not None and (first == total or perf_counter() - reported >= _SLICE_SECONDS):
            reported = perf_counter()
            progress(first, total)
    return values
