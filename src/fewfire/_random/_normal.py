"""Normal numbers from pairs of random words (Box–Muller), the same bits on every processor.

√(−2 log u) cos(2πv) with u = (w₀ + ½)/2³² and v = (w₁ + ½)/2³². NumPy's logarithm and cosine, and a C library's, have
other last bits on other processors, so both functions are series of additions and multiplications here, in one order.
The reference implementation of csrc/kernels/normal.cpp, which has the same bits.
"""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import Float64Array

_LN2 = float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")  # the sum of both is log 2
_ATANH = [1.0 / (2 * i + 1) for i in range(11)]
_COSINE = [(-1.0) ** i / factorial(2 * i) for i in range(9)]
_SINE = [(-1.0) ** i / factorial(2 * i + 1) for i in range(9)]


def normal_numbers(words: NDArray[np.uint32]) -> Float64Array:
    """Words of shape (2·count,) as `count` standard normal numbers."""
    unit = (words.astype(np.float64) + 0.5) * 2.0**-32
    return np.asarray(np.sqrt(-2.0 * log_unit(unit[0::2])) * cos_turns(unit[1::2]))


def log_unit(u: Float64Array) -> Float64Array:
    """log(u) for 0 < u < 2, of any shape: u = 2^e m with m in [√½, √2), log m = 2 atanh((m − 1)/(m + 1))."""
    m, e = np.frexp(u)
    small = m < float.fromhex("0x1.6a09e667f3bcdp-1")
    m, e = np.where(small, 2.0 * m, m), (e - small).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    return np.asarray(e * _LN2[0] + (2.0 * s * _horner(_ATANH, s * s) + e * _LN2[1]))


def cos_turns(turns: Float64Array) -> Float64Array:
    """cos(2π turns) for turns ≥ 0, of any shape: whole quarter turns are taken off exactly."""
    nearest = np.rint(4.0 * turns)
    angle = (4.0 * turns - nearest) * float.fromhex("0x1.921fb54442d18p+0")
    square, quadrant = angle * angle, nearest.astype(np.int64)
    value = np.where(quadrant & 1, -(angle * _horner(_SINE, square)), _horner(_COSINE, square))
    return np.asarray(np.where(quadrant & 2, -value, value))


def _horner(coefficients: list[float], x: Float64Array) -> Float64Array:
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total
