"""The Chebyshev weights d_j of the sign polynomial, in time that follows its degree and not the powers it sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array

_NEGLIGIBLE = 40.0  # exp(−40) is below the rounding of a double


def sign_weights(highest: int) -> Float64Array:
    """d_j = Σ_{i ≤ k} c_i Pr[|X_i| = j], for every j whose share is above rounding, by a recurrence from the top.

    S(u) = Σ_i c_i u^i solves S − 2(1 − u)S′ = (2k + 1)c_k u^k, since (x·S(1 − x²))′ = (2k + 1)c_k (1 − x²)^k. In the
    Chebyshev coefficients d_j of S, s_j of S′ and e_j of u^k, where s_(j−1) = s_(j+1) + 2j·d_j, that is
    (2j + 1)d_j = (2k + 1)c_k e_j + 2(s_j − s_(j+1)).
    """
    reach = min(highest, math.ceil(math.sqrt(2 * highest * _NEGLIGIBLE)))
    source = (2 * highest + 1) * _central(highest) * _power_weights(highest, reach)
    weights, slope, above = np.empty(reach + 1), 0.0, 0.0
    for j in range(reach, 0, -1):
        weights[j] = (source[j] + 2 * (slope - above)) / (2 * j + 1)
        slope, above = above + 2 * j * weights[j], slope
    weights[0] = source[0] + slope - above  # the constant term of a Chebyshev derivative counts half
    return weights


def _power_weights(power: int, reach: int) -> Float64Array:
    """e_j = Pr[|X| = j] for a sum X of `power` random signs, j ≤ reach."""
    first = power % 2
    j = np.arange(first, reach - 1, 2)
    chances = np.cumprod(np.append(_central((power + first) // 2), (power - j) / (power + j + 2)))
    weights = np.zeros(reach + 1)
    weights[first::2] = chances[: len(weights[first::2])]
    weights[1:] *= 2
    return weights


def _central(i: int) -> float:
    """c_i = Π_{j ≤ i} (2j − 1)/(2j) = C(2i, i)/4^i, to rounding for any i."""
    if i < 1000:
        return float(math.comb(2 * i, i) / 4**i)
    return (1 - 1 / (8 * i) + 1 / (128 * i**2) + 5 / (1024 * i**3)) / math.sqrt(math.pi * i)
