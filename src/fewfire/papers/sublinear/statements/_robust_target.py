"""The robust fit f* made of step polynomials (sublinear, Definition 3.7, Claim 4.3 and Lemma 4.2).

γ = ε(ε − 2ρ) for separation ε and adversary radius ρ (Definition 3.7); `fewfire.problems` measures it on points.

A polynomial step between the two bands of inner products (Claim 4.3): q is within ε₁ of 0 on [−1, 1 − (ε − ρ)²/2] and
of 1 on [1 − ρ²/2, 1]. Here q(z) = (1 + p((z − c)/s))/2 with c midway between the bands, s = 1 + |c| and p of Lemma 4.4
for η = γ/(4s) and error 2ε₁. Lemma 4.4 then gives M at most (24/γ)·log(8/(γε₁)); the claim prints (24/γ)·log(16/ε₁),
and the polynomials made here stay below that over all γ that can be built.

The fit (Lemma 4.2): f*(x) = Σ_i y_i q(⟨x_i, x⟩) with q for ε₁ = ε/(3n) is within ε/3 of y_j (the lemma prints y_i)
wherever x of norm 1 is within ρ of x_j, if the points are γ-separable: its own term is within ε₁ of y_j, each other
of 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_integer, check_labels, check_number
from fewfire.papers.sublinear.statements._sign_polynomial import (
    SignPolynomial,
    most_powers,
    sign_polynomial,
    sign_powers,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


def inner_product_bands(gamma: float, rho: float) -> tuple[float, float]:
    """The two bands of inner products on the unit sphere end at 1 − (ε − ρ)²/2 and begin at 1 − ρ²/2.

    With x̃_j within ρ of x_j, no ⟨x_i, x̃_j⟩ with i ≠ j is above the first and no ⟨x_j, x̃_j⟩ below the second; they
    are γ/2 apart.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.inner_product_bands(gamma=0.5, rho=0.1)
    (0.745, 0.995)
    """
    other = math.sqrt(check_number("rho", rho, 0.0) ** 2 + check_number("gamma", gamma, 0.0, open_low=True))
    return 1 - other**2 / 2, 1 - rho**2 / 2


@dataclass(frozen=True, eq=False)
class StepPolynomial:
    """q of Claim 4.3: within `error` of 0 on the lower of the `bands` of [−1, 1] and of 1 on the upper.

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
    def bands(self) -> tuple[float, float]:
        """Where the lower band ends and the upper one begins."""
        return inner_product_bands(self.gamma, self.rho)

    @property
    def middle(self) -> float:
        """Halfway between the bands."""
        return sum(self.bands) / 2

    @property
    def scale(self) -> float:
        """What brings [−1, 1] less the middle into [−1, 1]."""
        return 1 + abs(self.middle)

    @property
    def degree(self) -> int:
        """The degree of q."""
        return self.sign.degree

    def __call__(self, z: ArrayLike) -> Float64Array:
        """q at every entry of z, an array of numbers in [−1, 1]."""
        return np.asarray((1 + self.sign((np.asarray(z, dtype=np.float64) - self.middle) / self.scale)) / 2)

    def log2_coefficients(self) -> float:
        """A bound on log₂ of the sum of the absolute coefficients of q; the claim allows 6M + log₂(1/γ) + O(1)."""
        # |α|(z − c)^i has absolute coefficients that add up to |α|(1 + |c|)^i, so those of q to (1 + Σ|α_i|)/2.
        return float(np.logaddexp2(0.0, self.sign.log2_size()) - 1)


def step_degree(gamma: float, error: float) -> float:
    """Claim 4.3: M = (24/γ)·log(16/ε₁), the degree that is enough for a step of error ε₁.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.step_degree(gamma=0.5, error=0.01))
    354
    """
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

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.step_polynomial(gamma=0.4, error=0.2).degree > 0
    True
    """
    gamma, error = _check(gamma, error)
    gap, doubled = _gap(gamma, rho), 2 * error
    powers, most = sign_powers(gap, doubled), most_powers(doubled)
    if powers > most:
        rule = f"must be larger: {powers} powers would be summed, and {most} is the most for this error"
        raise invalid("gamma", rule, gamma, "take points further apart, or a larger error")
    return StepPolynomial(gamma, rho, error, sign_polynomial(gap, doubled))


def step_is_buildable(gamma: float, error: float, rho: float = 0.0) -> bool:
    """Whether `step_polynomial` takes these arguments: it sums some 64·log(1/ε₁)/γ² powers, which has a limit.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.step_is_buildable(gamma=0.5, error=0.01), sublinear.step_is_buildable(gamma=1e-4, error=0.01)
    (True, False)
    """
    gamma, error = _check(gamma, error)
    return sign_powers(_gap(gamma, rho), 2 * error) <= most_powers(2 * error)


@dataclass(frozen=True, eq=False)
class RobustTarget:
    """f*(x) = Σ_i y_i q(⟨x_i, x⟩) of Lemma 4.2.

    Attributes
    ----------
    points : float64 array of shape (n, d)
        x_i, of norm 1.
    labels : float64 array of shape (n,)
        y_i in [−1, 1].
    step : StepPolynomial
        q, with error ε/(3n).
    """

    points: Float64Array
    labels: Float64Array
    step: StepPolynomial

    def __call__(self, X: ArrayLike) -> Float64Array:
        """f* at each row of X of shape (rows, d), rows of norm at most 1; of shape (rows,)."""
        rows = check_inputs("X", X, self.points.shape[1], np.dtype(np.float64))
        # Rounding may leave an inner product of unit vectors a little outside [−1, 1], where q grows steeply.
        return np.asarray(self.step(np.clip(rows @ self.points.T, -1.0, 1.0)) @ self.labels)

    def fit_error(self, X: ArrayLike, y: ArrayLike) -> float:
        """The largest |f*(x) − y| over rows x of X, of shape (rows, d), and their labels y, of shape (rows,)."""
        values = self(X)
        return float(np.abs(values - check_labels("y", y, len(values))).max())


def robust_target(points: ArrayLike, labels: ArrayLike, gamma: float, rho: float, epsilon: float) -> RobustTarget:
    """Lemma 4.2: the function that fits γ-separable points within ε/3 against every ρ-bounded adversary.

    Parameters
    ----------
    points : array of shape (n, d)
        Of norm 1, and γ-separable for ρ; `fewfire.problems.gamma` gives the largest γ.
    labels : array of shape (n,)
        In [−1, 1].
    gamma, rho, epsilon : float
        γ, ρ and ε.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> import numpy as np
    >>> points = np.array([[0.6, 0.0, 0.8], [-0.6, 0.0, 0.8]])
    >>> target = sublinear.robust_target(points, [1.0, -1.0], gamma=0.5, rho=0.1, epsilon=0.3)
    >>> target.fit_error(points, [1.0, -1.0]) <= 0.1
    True
    """
    X = check_inputs("points", points, None, np.dtype(np.float64)).astype(np.float64)
    y = check_labels("labels", labels, len(X)).astype(np.float64)
    off = float(np.abs(np.linalg.norm(X, axis=1) - 1).max())
    if off > 1e-5:
        raise invalid("points", "must have norm 1 (to 1e-5)", f"a norm off by {off:.2g}", "divide each by its norm")
    if np.abs(y).max() > 1:
        raise invalid("labels", "must lie in [−1, 1]", float(y[np.abs(y).argmax()]), "scale them")
    return RobustTarget(X, y, step_polynomial(gamma, _share(len(X), epsilon), rho))


def robust_degree(n: int, gamma: float, epsilon: float) -> float:
    """Lemma 4.2: M = (24/γ)·log(48n/ε), the degree that is enough to fit n examples within ε/3.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.robust_degree(n=100, gamma=0.5, epsilon=0.1))
    517
    """
    return step_degree(gamma, _share(n, epsilon))


def _gap(gamma: float, rho: float) -> float:
    """η: half of the distance between the bands, as [−1, 1] less the middle is scaled into [−1, 1]."""
    low, high = inner_product_bands(gamma, rho)
    if low <= -1:
        raise invalid("gamma", f"must be below 4 − rho² = {4 - rho**2:g}", gamma, "no points are that far apart")
    return gamma / (4 * (1 + abs(low + high) / 2))


def _check(gamma: float, error: float) -> tuple[float, float]:
    gamma = check_number("gamma", gamma, 0.0, 4.0, open_low=True, open_high=True)
    return gamma, check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)


def _share(n: int, epsilon: float) -> float:
    """ε/(3n), what each of n terms may be off."""
    epsilon = check_number("epsilon", epsilon, 0.0, 1.0, open_low=True, open_high=True)
    return epsilon / (3 * check_integer("n", n, 1))
