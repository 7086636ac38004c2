"""Theorem 1 of parities: fixed embeddings need exponential dimension (Forster's spectral bound, made explicit).

Forster: if signs M_{xA} = sign⟨w_A, Ψ(x)⟩ for a matrix M of ±1 with a rows and b columns, the dimension of Ψ is at
least √(ab)/‖M‖. The columns χ_A, |A| = k, of the parity matrix are orthogonal of squared length 2ⁿ, so its spectral
norm is 2^{n/2} and the dimension at least √(2ⁿ C(n, k))/2^{n/2} = √C(n, k): the whole 2^n × C(n, k) matrix is used,
not only a 2^k × 2^k Hadamard block (which gives 2^{k/2}, as C(n, k) ≥ 2^k does for n ≥ 2k).

For a random embedding that serves each A with probability at least 1/N, some draw serves C(n, k)/N of the columns at
once; the bound on these gives N ≥ √(C(n, k)/N), so N ≥ C(n, k)^{1/3}.
"""

from __future__ import annotations

from math import comb, exp, inf, log, sqrt

from fewfire._validate import check_integer, check_number


def forster_bound(rows: float, columns: float, spectral_norm: float) -> float:
    """√(rows·columns)/‖M‖: the least dimension in which a matrix of signs is realised by half-spaces."""
    check_number("spectral_norm", spectral_norm, 0.0, open_low=True)
    return sqrt(check_number("rows", rows, 1.0)) * sqrt(check_number("columns", columns, 1.0)) / spectral_norm


def parity_spectral_norm(n: int) -> float:
    """2^{n/2}: the spectral norm of any set of columns χ_A on the whole cube."""
    return float(2.0 ** (check_integer("n", n, 1, 2000) / 2))


def embedding_dimension(n: int, k: int, randomised: bool = False) -> float:
    """The least dimension of an embedding on which linear classifiers give all (n, k)-parities: √C(n, k).

    With `randomised` the embedding may be drawn and need serve each parity with probability 1/N only (Theorem 1):
    C(n, k)^{1/3}.
    """
    n = check_integer("n", n, 1)
    # By the logarithm: C(n, k) itself may be past the floats.
    exponent = log(comb(n, check_integer("k", k, 0, n))) / (3 if randomised else 2)
    return exp(exponent) if exponent < 709 else inf
