"""Ridge regression by the Gram matrix of the monomials and a Cholesky factor.

χ_S χ_T = χ_{S△T}, so the Gram matrix holds moments Σ_i χ_U(x_i), |U| ≤ 2d. Those are counted once on bit-packed
columns (`estimate` with labels 1, exact integers; with the weights of the samples, where they have some); afterwards
the number of samples costs nothing.
"""

from __future__ import annotations

from math import comb

import numpy as np

from fewfire._extension import core
from fewfire._progress import ProgressCallback
from fewfire._types import Float64Array, SignArray
from fewfire.fourier._estimate import estimate
from fewfire.fourier._monomial_matrix import reference_gram
from fewfire.fourier._monomials import monomial_count, monomials

MAX_GRAM = 11_000
"""Most monomials: their Gram matrix takes 1 GiB."""

MAX_MOMENTS = 1 << 26
"""Most moments (half a gibibyte)."""

WORD_NS, ENTRY_NS, FLOP_NS = 0.11, 45.0, 0.022
"""Cost model, one core: a word of a moment, an entry of the Gram matrix, an operation of the factorisation."""


def gram_seconds(samples: int, n: int, degree: int) -> float:
    """Estimated time of the Gram route on one core; infinite where it would take too much memory."""
    size, moments = monomial_count(n, degree), monomial_count(n, min(2 * degree, n))
    if size > MAX_GRAM or moments > MAX_MOMENTS:
        return float("inf")
    return 1e-9 * (moments * (samples / 64) * WORD_NS + size**2 / 2 * ENTRY_NS + size**3 / 3 * FLOP_NS)


def centred_gram(
    signs: SignArray,
    degree: int,
    threads: int,
    progress: ProgressCallback | None = None,
    weights: Float64Array | None = None,
) -> Float64Array:
    """The Gram matrix of the centred monomials without the constant one: its lower triangle; the rest is not set."""
    extension = core()
    if extension is None:
        return reference_gram(signs, degree, weights)
    samples, n = signs.shape
    labels = np.ones(samples) if weights is None else weights
    moments = estimate(signs, labels, min(2 * degree, n), threads=threads, progress=progress).values * samples
    if weights is None:
        moments = np.rint(moments)
    binomials = np.array([[comb(x, k) for k in range(2 * degree + 1)] for x in range(n + 1)], dtype=np.int64)
    size = monomial_count(n, degree) - 1
    gram = np.empty((size, size))
    extension.monomial_gram(moments, n, binomials, monomials(n, degree), float(labels.sum()), gram, threads)
    return gram


def solve_by_gram(
    signs: SignArray,
    target: Float64Array,
    degree: int,
    alpha: float,
    threads: int,
    progress: ProgressCallback | None = None,
    weights: Float64Array | None = None,
) -> Float64Array:
    """The solution v of (G + α·identity) v = target, G the centred Gram matrix; of least norm where that is singular.

    `target` (monomials − 1,) are the correlations of the centred labels with the monomials.
    """
    if not len(target):
        return target
    solution = _cholesky(centred_gram(signs, degree, threads, progress, weights), target, alpha)
    if solution is not None:
        return solution
    # The factorisation has overwritten the matrix; a singular one is rare enough to be formed again.
    return _least_norm(centred_gram(signs, degree, threads, weights=weights), target, alpha)


def _cholesky(gram: Float64Array, target: Float64Array, alpha: float) -> Float64Array | None:
    """The solution, or None where the matrix is singular to rounding; overwrites the lower triangle of `gram`."""
    from scipy.linalg import cho_factor, cho_solve  # here: importing it takes longer than the rest of fewfire

    gram[np.diag_indices(len(gram))] += alpha
    floor = _rounding(gram)
    try:
        # The transposed view is in LAPACK's order: nothing is copied.
        factor = cho_factor(gram.T, lower=False, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    if float(factor[0].diagonal().min()) ** 2 <= floor:
        return None
    return np.asarray(cho_solve(factor, target, check_finite=False))


def _least_norm(gram: Float64Array, target: Float64Array, alpha: float) -> Float64Array:
    """The solution in the span of the eigenvectors whose eigenvalue is not lost in rounding."""
    from scipy.linalg import eigh

    floor = _rounding(gram)
    spectrum, vectors = eigh(gram.T, lower=False, overwrite_a=True, check_finite=False)
    vectors = vectors[:, spectrum > floor]
    return np.asarray(vectors @ ((vectors.T @ target) / (spectrum[spectrum > floor] + alpha)))


def _rounding(gram: Float64Array) -> float:
    """What rounding leaves of an eigenvalue that is zero."""
    return 10 * len(gram) * float(np.finfo(np.float64).eps * gram.diagonal().max())
