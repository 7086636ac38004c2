"""A polynomial step between the two bands of inner products (sublinear, Claim 4.3).

Claim 4.3: q is within ε₁ of 0 on [−1, 1 − (ε − ρ)²/2] and of 1 on [1 − ρ²/2, 1], where γ = ε(ε − 2ρ). Here
q(z) = (1 + p((z − c)/s))/2 with c midway between the bands, s = 1 + |c| and p of Lemma 4.4 for η = γ/(4s) and error
2ε₁. Lemma 4.4 then gives M = (3/η)·log(1/(ηε₁)), at most (24/γ)·log(8/(γε₁)); the claim prints (24/γ)·log(16/ε₁),
without γ in the logarithm. The polynomials made here stay below the printed M over all γ that can be built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.theory.sublinear._separability import inner_product_bands
from fewfire.theory.sublinear._sign_polynomial import SignPolynomial, most_powers, sign_polynomial, sign_powers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


@dataclass(frozen=True, eq=False)
class StepPolynomial:
    """q of Claim 4.3: within `error` of 0 up to `low` and of 1 from `high` on, over [−1, 1].

    Attributes
    ----------
    gamma, rho, error : float
        γ, ρ and ε₁.
    sign : SignPolynomial
        p; q(z) = (1 + p((z − middle)/scale))/2.
    """

    gamma: float
    rho: float
    error: float
    sign: SignPolynomial

    @property
    def low(self) -> float:
        """1 − (ε − ρ)²/2, where the lower band ends."""
        return inner_product_bands(self.gamma, self.rho)[0]

    @property
    def high(self) -> float:
        """1 − ρ²/2, where the upper band begins."""
        return inner_product_bands(self.gamma, self.rho)[1]

    @property
    def middle(self) -> float:
        """Halfway between the bands."""
        return (self.low + self.high) / 2

    @property
    def scale(self) -> float:
        """What brings [−1, 1] less the middle into [−1, 1]."""
        return 1 + abs(self.middle)

    @property
    def degree(self) -> int:
        """The degree of q."""
        return self.sign.degree

    @property
    def degree_bound(self) -> float:
        """Claim 4.3 as printed: M = (24/γ)·log(16/ε₁)."""
        return step_degree(self.gamma, self.error)

    def __call__(self, z: ArrayLike) -> Float64Array:
        """q at every entry of z, an array of numbers in [−1, 1]."""
        return np.asarray((1 + self.sign((np.asarray(z, dtype=np.float64) - self.middle) / self.scale)) / 2)

    def log2_coefficients(self) -> float:
        """A bound on log₂ of the sum of the absolute coefficients of q; the claim allows 6M + log₂(1/γ) + O(1)."""
        # |α|(z − c)^i has absolute coefficients that add up to |α|(1 + |c|)^i, so those of q to (1 + Σ|α_i|)/2.
        return float(np.logaddexp2(0.0, self.sign.log2_size()) - 1)


def step_degree(gamma: float, error: float) -> float:
    """Claim 4.3: M = (24/γ)·log(16/ε₁), the degree that is enough for a step of error ε₁."""
    gamma, error = _check(gamma, error)
    return 24 / gamma * math.log(16 / error)


def step_polynomial(gamma: float, error: float, rho: float = 0.0) -> StepPolynomial:
    """The polynomial of Claim 4.3 for γ-separable points, an adversary of radius ρ and error ε₁.

    Parameters
    ----------
    gamma : float
        γ; with ρ it fixes the separation ρ + √(ρ² + γ), which must be at most 2 + ρ.
    error : float in (0, 1/2)
        ε₁.
    rho : float
        Radius of the adversary.
    """
    gamma, error = _check(gamma, error)
    if not step_is_buildable(gamma, error, rho):
        powers, most = sign_powers(_gap(gamma, rho), 2 * error), most_powers(2 * error)
        rule = f"must be larger: {powers} powers would be summed, and {most} is the most for this error"
        raise invalid("gamma", rule, gamma, "take points further apart, or a larger error")
    return StepPolynomial(gamma, rho, error, sign_polynomial(_gap(gamma, rho), 2 * error))


def step_is_buildable(gamma: float, error: float, rho: float = 0.0) -> bool:
    """Whether `step_polynomial` takes these arguments: it sums some 64·log(1/ε₁)/γ² powers, which has a limit."""
    gamma, error = _check(gamma, error)
    return sign_powers(_gap(gamma, rho), 2 * error) <= most_powers(2 * error)


def _gap(gamma: float, rho: float) -> float:
    """η: half of the distance between the bands, as [−1, 1] less the middle is scaled into [−1, 1]."""
    low, high = inner_product_bands(gamma, rho)
    if low <= -1:
        raise invalid("gamma", f"must be below 4 − rho² = {4 - rho**2:g}", gamma, "no points are that far apart")
    return gamma / (4 * (1 + abs(low + high) / 2))


def _check(gamma: float, error: float) -> tuple[float, float]:
    gamma = check_number("gamma", gamma, 0.0, 4.0, open_low=True, open_high=True)
    return gamma, check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
