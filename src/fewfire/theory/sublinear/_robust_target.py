"""The robust fit f* made of step polynomials (sublinear, Lemma 4.2).

f*(x) = Σ_i y_i q(⟨x_i, x⟩) with q of Claim 4.3 for ε₁ = ε/(3n) is within ε/3 of y_j (the lemma prints y_i) wherever x
of norm 1 is within ρ of x_j, if the points are γ-separable: its own term is within ε₁ of y_j, each other of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_integer, check_labels, check_number
from fewfire.theory.sublinear._step_polynomial import StepPolynomial, step_degree, step_polynomial

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


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
    """Lemma 4.2: M = (24/γ)·log(48n/ε), the degree that is enough to fit n examples within ε/3."""
    return step_degree(gamma, _share(n, epsilon))


def _share(n: int, epsilon: float) -> float:
    """ε/(3n), what each of n terms may be off."""
    epsilon = check_number("epsilon", epsilon, 0.0, 1.0, open_low=True, open_high=True)
    return epsilon / (3 * check_integer("n", n, 1))
