"""Polynomials near the sign function (sublinear, Lemmas 3.19 and 4.4, Theorem 3.20, Proposition 4.5).

Lemma 3.19: p_k(x) = x·Σ_{i ≤ k} c_i (1 − x²)^i with c_i = Π_{j ≤ i} (2j − 1)/(2j). Theorem 3.20 writes a power as
u^i = E[T_|X_i|(u)] over X_i, the sum of i random signs, and cuts it at degree t, losing Pr[|X_i| > t]. Together
p(x) = x·Σ_{j ≤ t} d_j T_j(1 − x²) with d_j = Σ_i c_i Pr[|X_i| = j], of degree 2t + 1.

This is stable for degrees in the thousands: T_j(1 − x²) = (−1)^j T_2j(x/√2), and all d_j are positive. In powers of x
the terms of one degree have one sign, so the sum of the absolute coefficients is Σ_j d_j T_j(2), exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev, chebmul

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


MAX_POWERS = 1_000_000_000
"""The most powers (1 − x²)^i that are summed, for degrees of some 10⁵; η = 10⁻⁴ at error 10⁻⁴ is about there."""

_ROUNDING = 1e-16  # what the weights of k powers are off together, divided by k: 7e-17 at k = 10³, 2e-17 at k = 10⁹

_NEGLIGIBLE = 40.0  # exp(−40) is below the rounding of a double


@dataclass(frozen=True, eq=False)
class SignPolynomial:
    """A polynomial within `error` of the sign function on [−1, 1] outside (−gap, gap) (Lemma 4.4).

    Attributes
    ----------
    gap : float
        η.
    error : float
        ε₁, kept by construction.
    weights : float64 array of shape (t + 1,)
        d_j, all positive: p(x) = x·Σ_j d_j T_j(1 − x²).
    """

    gap: float
    error: float
    weights: Float64Array

    @property
    def degree(self) -> int:
        """2t + 1."""
        return 2 * len(self.weights) - 1

    @property
    def degree_bound(self) -> float:
        """Lemma 4.4: M = (3/η)·log(2/(ηε₁))."""
        return 3 / self.gap * math.log(2 / (self.gap * self.error))

    @property
    def series(self) -> Chebyshev:
        """p as a Chebyshev series on [−√2, √2]."""
        even = np.zeros(2 * len(self.weights) - 1)
        even[::2] = self.weights * (-1.0) ** np.arange(len(self.weights))
        root = math.sqrt(2)
        return Chebyshev(chebmul([0.0, root], even), domain=[-root, root])

    def __call__(self, x: ArrayLike) -> Float64Array:
        """p at every entry of x, an array of numbers in [−1, 1]."""
        return np.asarray(self.series(np.asarray(x, dtype=np.float64)))

    def log2_size(self, radius: float = 1.0) -> float:
        """log₂ of Σ_i |α_i|·radius^i over the coefficients of p: exact, and finite where the sum is not."""
        steps = np.arange(len(self.weights)) * math.acosh(1 + radius**2)
        # T_j(1 + r²) = cosh(j·acosh(1 + r²)), as its logarithm.
        logs = np.log(self.weights) + np.logaddexp(steps, -steps) - math.log(2)
        return float((np.logaddexp.reduce(logs) + math.log(radius)) / math.log(2))


def sign_polynomial(gap: float, error: float) -> SignPolynomial:
    """The polynomial of Lemma 4.4, with half of the error spent on the powers and half on the cut.

    Parameters
    ----------
    gap : float in (0, 1)
        η: nothing is asked on (−η, η).
    error : float in (0, 1)
        ε₁.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> polynomial = sublinear.sign_polynomial(gap=0.5, error=0.1)
    >>> bool(abs(polynomial(0.7) - 1) <= 0.1)
    True
    """
    gap = check_number("gap", gap, 0.0, 1.0, open_low=True, open_high=True)
    error = check_number("error", error, 0.0, 1.0, open_low=True, open_high=True)
    highest = sign_powers(gap, error)
    if highest > most_powers(error):
        rule = f"must keep log(2/error)/gap² at most {most_powers(error)}, past which rounding or time is too much"
        raise invalid("gap", rule, gap, "take a wider gap or a larger error")
    weights = sign_weights(highest)
    after = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0)  # what a cut behind j loses, at most
    cut = int(np.argmax(after <= error / 2))
    return SignPolynomial(gap, error, weights[: cut + 1])


def sign_powers(gap: float, error: float) -> int:
    """Lemma 3.19: k = log(2/ε₁)/η², the powers (1 − x²)^i that are summed for an error of ε₁/2, rounded up.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.sign_powers(gap=0.1, error=0.01)
    530
    """
    return math.ceil(math.log(2 / error) / gap**2)


def most_powers(error: float) -> int:
    """The most powers that `sign_polynomial` sums for an error of ε₁: MAX_POWERS, or fewer where rounding shows."""
    return min(MAX_POWERS, int(error / (4 * _ROUNDING)))


def truncated_power(power: int, degree: int) -> Chebyshev:
    """Theorem 3.20, Corollary 4.6: E[T_|X|(u)·1[|X| ≤ t]] over a sum X of random signs, near u^power on [−1, 1].

    It is off by Pr[|X| > t] ≤ 2·exp(−t²/(2·power)) at most, and has degree t.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> u = 0.7
    >>> round(float(sublinear.truncated_power(10, degree=8)(u)), 2), round(u**10, 2)
    (0.03, 0.03)
    """
    power, degree = check_integer("power", power, 0), check_integer("degree", degree, 0)
    coefficients = np.zeros(degree + 1)
    for size in range(power % 2, min(power, degree) + 1, 2):
        probability = math.comb(power, (power + size) // 2) / 2**power
        coefficients[size] = probability if size == 0 else 2 * probability
    return Chebyshev(coefficients)


def power_sign_polynomial(x: ArrayLike, highest: int) -> Float64Array:
    """Lemma 3.19: p_k(x) for |x| ≤ 1, which is sign(x)·I_{x²}(½, k + 1), the regularised incomplete beta function.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.power_sign_polynomial([-1.0, -0.1, 0.0, 0.1, 1.0], highest=50).round(2)
    array([-1.  , -0.69,  0.  ,  0.69,  1.  ])
    """
    from scipy.special import betainc  # here: importing it takes longer than the rest of this package

    values = np.asarray(x, dtype=np.float64)
    return np.asarray(np.sign(values) * betainc(0.5, check_integer("highest", highest, 0) + 1.0, values**2))


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
    probabilities = np.cumprod(np.append(_central((power + first) // 2), (power - j) / (power + j + 2)))
    weights = np.zeros(reach + 1)
    weights[first::2] = probabilities[: len(weights[first::2])]
    weights[1:] *= 2
    return weights


def _central(i: int) -> float:
    """c_i = Π_{j ≤ i} (2j − 1)/(2j) = C(2i, i)/4^i, to rounding for any i."""
    if i < 1000:
        return float(math.comb(2 * i, i) / 4**i)
    return (1 - 1 / (8 * i) + 1 / (128 * i**2) + 5 / (1024 * i**3)) / math.sqrt(math.pi * i)
