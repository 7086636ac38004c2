"""The complexity of a polynomial (sublinear, Definition 4.1), and what Lemma 4.7 makes of it.

𝓒(φ, ε) = Σ_j c^j (1 + (log(1/ε)/j)^(j/2)) |α_j| and 𝓒(φ) = c Σ_j (j + 1)^1.75 |α_j|, with c open; at j = 0 the power is
1, its limit. For the polynomial of Lemma 4.2 both are past the floats at any interesting γ, so bounds come as log₁₀.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_finite, check_number
from fewfire.theory._numbers import check_constant
from fewfire.theory.sublinear._robust_target import robust_degree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


def complexity(coefficients: ArrayLike, constant: float = 1.0) -> float:
    """𝓒(φ) = c·Σ_j (j + 1)^1.75 |α_j| for the coefficients α_j of z^j, of shape (degree + 1,)."""
    sizes = _sizes(coefficients)
    check_constant(constant)
    return float(constant * np.sum((np.arange(len(sizes)) + 1.0) ** 1.75 * sizes))


def complexity_at(coefficients: ArrayLike, error: float, constant: float = 1.0) -> float:
    """𝓒(φ, ε) = Σ_j c^j (1 + (log(1/ε)/j)^(j/2)) |α_j| for the coefficients α_j of z^j, of shape (degree + 1,)."""
    sizes = _sizes(coefficients)
    check_constant(constant)
    log = math.log(1 / check_number("error", error, 0.0, 1.0, open_low=True, open_high=True))
    return float(sum(constant**j * (1 + _root(log, j)) * size for j, size in enumerate(sizes)))


def log10_complexity(n: int, gamma: float, epsilon: float, constant: float = 1.0) -> float:
    """Lemma 4.7: log₁₀ of c·(M + 1)^2.75·2^(6M)/γ, a bound on 𝓒(q) for q of Lemma 4.2; ε₃ is its inverse."""
    check_constant(constant)
    degree = robust_degree(n, gamma, epsilon)
    return math.log10(constant / gamma) + 2.75 * math.log10(degree + 1) + 6 * degree * math.log10(2)


def log10_complexity_at(n: int, gamma: float, epsilon: float, constant: float = 1.0) -> float:
    """Lemma 4.7: log₁₀ of Σ_{j ≤ M} c^j (1 + (log(1/ε₃)/j)^(j/2))·2^(6M)/γ, a bound on 𝓒(q, ε₃)."""
    degree = robust_degree(n, gamma, epsilon)
    log = log10_complexity(n, gamma, epsilon, constant) * math.log(10)
    j = np.arange(1.0, math.floor(degree) + 1)
    terms = j * math.log(constant) + np.logaddexp(0.0, j / 2 * np.log(log / j))
    total = np.logaddexp.reduce(terms, initial=math.log(2))
    return float(total / math.log(10) + 6 * degree * math.log10(2) - math.log10(gamma))


def _root(log: float, j: int) -> float:
    return (log / j) ** (j / 2) if j else 1.0


def _sizes(coefficients: ArrayLike) -> Float64Array:
    array = np.asarray(coefficients, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise invalid("coefficients", "must be a vector of at least one number", f"shape {array.shape}")
    check_finite("coefficients", array)
    return np.abs(array)
