"""The reference implementation, in NumPy, of a stream's words and of the normal numbers made of them.

Words are those of Philox4x32-10 (csrc/kernels/philox.cpp): Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as
easy as 1, 2, 3* (SC 2011). Word w of stream (key, id) is word w mod 4 of the block with counter (b mod 2³², b div 2³²,
id mod 2³², id div 2³²), b = w div 4.

Normal numbers (csrc/kernels/normal.cpp) are √(−2 log u) cos(2πv) with u = (w₀ + ½)/2³² and v = (w₁ + ½)/2³² (Box and
Muller). NumPy's logarithm and cosine, and a C library's, have other last bits on other processors, so both functions
are series of additions and multiplications here, in one order: the same bits everywhere.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

from fewfire._types import Float64Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox_block(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Ten rounds on counters (blocks, 4) of 32-bit words in uint64, and a key of two such words: shape (blocks, 4)."""
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(10):
        a, b = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ np.uint64(k0), b & _LOW, (a >> _HALF) ^ c3 ^ np.uint64(k1), a & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def philox_words(key: int, stream: int, first_word: int, count: int) -> NDArray[np.uint32]:
    """Words first_word … first_word + count − 1 of a stream."""
    first_block, skip = divmod(first_word, 4)
    blocks = np.arange((skip + count + 3) // 4, dtype=np.uint64) + np.uint64(first_block)
    counter = np.empty((len(blocks), 4), dtype=np.uint64)
    counter[:, 0], counter[:, 1] = blocks & _LOW, blocks >> _HALF
    counter[:, 2], counter[:, 3] = stream & 0xFFFFFFFF, stream >> 32
    return philox_block(counter, (key & 0xFFFFFFFF, key >> 32)).reshape(-1)[skip : skip + count]


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
