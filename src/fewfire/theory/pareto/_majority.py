"""Fourier coefficients of Maj and Half in closed form (pareto, Lemma 17), for every length and size.

Maj(x) = sign(Σ x_i) with sign(0) = −1, as pareto section B.3 defines it, and Half(x) = 1 if Σ x_i = 0 else 0. Both are
symmetric, so a coefficient depends on the size of its set alone. Lemma 17 covers Half at even length and Maj at odd
length; the rest follows. Half at odd length is 0. At even length n a tie of Maj is broken half to each side by a
further coordinate, so Maj_n is Maj_{n+1} averaged over it, minus Half_n.
"""

from __future__ import annotations

from math import comb, pi

from fewfire._errors import invalid
from fewfire._validate import check_integer


def half_coefficient(n: int, size: int) -> float:
    """The coefficient of Half, the indicator of Σ x_i = 0 on {±1}ⁿ, at a set of `size` coordinates."""
    n = check_integer("n", n, 0)
    size = check_integer("size", size, 0, n)
    if n % 2 or size % 2:
        return 0.0
    m, j = n // 2, size // 2
    # Python divides integers of any length with one rounding.
    magnitude = comb(m, j) * comb(2 * m, m) / (comb(2 * m, 2 * j) << 2 * m)
    return -magnitude if j % 2 else magnitude


def majority_coefficient(n: int, size: int) -> float:
    """The coefficient of Maj = sign(Σ x_i) on {±1}ⁿ, sign(0) = −1, at a set of `size` coordinates.

    For odd n there are no ties, and sets of even size have coefficient 0.
    """
    n = check_integer("n", n, 1)
    size = check_integer("size", size, 0, n)
    if size % 2 == 0:
        return -half_coefficient(n, size) if n % 2 == 0 else 0.0
    return half_coefficient(n - 1 if n % 2 else n, size - 1)


def majority_weight(length: int, size: int) -> float:
    """Σ of the squared coefficients of Maj at all sets of `size`; falls to `limit_weight` as the length grows."""
    return comb(length, size) * majority_coefficient(length, size) ** 2


def limit_weight(size: int) -> float:
    """ρ(v) = 4 C(v−1, (v−1)/2) / (π v 2^v) for odd v: ρ ≤ `majority_weight` ≤ 2ρ for v < length/2.

    The proof of Lemma 8 prints half of this, for which the upper bound fails at every length.
    """
    size = check_integer("size", size, 1)
    if size % 2 == 0:
        raise invalid("size", "must be odd", size, "Maj has no weight on even sizes")
    return 4 * comb(size - 1, (size - 1) // 2) / (pi * size * float(2**size))
