"""What linear classifiers cannot do: on fixed embeddings (Theorem 1 of parities), and on the bits themselves.

Theorem 1, made explicit. Forster: if signs M_{xA} = sign⟨w_A, Ψ(x)⟩ for a matrix M of ±1 with a rows and b columns, the
dimension of Ψ is at least √(ab)/‖M‖. The columns χ_A, |A| = k, of the parity matrix are orthogonal of squared length
2ⁿ, so the dimension is at least √C(n, k). A random embedding that serves each A with probability at least 1/N serves
C(n, k)/N of the columns in some draw, so N ≥ √(C(n, k)/N) and N ≥ C(n, k)^{1/3}.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, islice
from math import comb, exp, inf, log, sqrt

import numpy as np

from fewfire._cube import cube
from fewfire._validate import check_integer, check_number
from fewfire.papers.parities.statements._separator import check_odd


def forster_bound(rows: float, columns: float, spectral_norm: float) -> float:
    """√(rows·columns)/‖M‖: the least dimension in which a matrix of signs is realised by half-spaces.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.forster_bound(1024, 1024, spectral_norm=32.0)
    32.0
    """
    check_number("spectral_norm", spectral_norm, 0.0, open_low=True)
    return sqrt(check_number("rows", rows, 1.0)) * sqrt(check_number("columns", columns, 1.0)) / spectral_norm


def embedding_dimension(n: int, k: int, randomised: bool = False) -> float:
    """The least dimension of an embedding on which linear classifiers give all (n, k)-parities: √C(n, k).

    With `randomised` the embedding may be drawn and need serve each parity with probability 1/N only (Theorem 1):
    C(n, k)^{1/3}.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.embedding_dimension(20, 3), 2)
    33.76
    """
    n = check_integer("n", n, 1)
    # By the logarithm: C(n, k) itself may be past the floats.
    exponent = log(comb(n, check_integer("k", k, 0, n))) / (3 if randomised else 2)
    return exp(exponent) if exponent < 709 else inf


def halfspace_accuracy(k: int) -> float:
    """The highest accuracy on D_A of sign(⟨w, x_A⟩ − t) with integer weights |w_j| ≤ 5.

    0.875 for k = 3, 0.84375 for k = 5, 0.828125 for k = 7. Every threshold function of five bits or fewer has weights
    of at most 5, so for k ≤ 5 this is the best half-space of all; for larger k it is found among small weights.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.halfspace_accuracy(3)
    0.875
    """
    k = check_odd(check_integer("k", k, 3, 9, "the half-spaces of more bits are too many to try"))
    X = cube(k).astype(np.int64)
    mass = np.full(2**k, 2.0 ** -(k + 1))
    mass[[0, -1]] += 0.25
    signed = mass * X.prod(axis=1)
    best = 0.0
    # Mass and label do not change when coordinates are permuted, so ascending weights suffice.
    candidates = combinations_with_replacement(range(-5, 6), k)
    while block := list(islice(candidates, 2000)):
        scores = X @ np.array(block).T
        order = np.argsort(scores, axis=0)
        ranked = np.take_along_axis(scores, order, axis=0)
        below = np.cumsum(signed[order], axis=0)
        # A threshold fits only between different scores; the label sum is 0 by symmetry.
        correlation = np.where(ranked[1:] != ranked[:-1], np.abs(2 * below[:-1]), 0.0)
        best = max(best, float(correlation.max()))
    return (1 + best) / 2
