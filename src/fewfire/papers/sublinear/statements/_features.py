"""A function of random features whose mean is a given polynomial (sublinear, Lemma 3.17, after Allen-Zhu, Li, Liang).

u ~ N(0, I_d) and β ~ N(0, 1) are a neuron's weights and bias in units of 1/√m, x* and x have norm 1 and t = ⟨x*, x⟩.
For every polynomial φ(t) = Σ_j c_j t^j and every threshold τ

φ(⟨x*, x⟩) = E[h(⟨x*, u⟩, β)·1[⟨u, x⟩ + β > τ]],  h(α, β) = Σ_j (c_j/N_j)·He_j(α)·κ_j(β),  N_j = E κ_j(β)²,
κ_0(β) = Φ(β − τ),  κ_j(β) = He_{j−1}(τ − β)·Φ'(τ − β):

given β, the mean of He_j(α)·1[tα + √(1 − t²)·g > τ − β] is t^j·κ_j(β). The lemma has τ = 0 and an error ε₂; here the
mean is exact, for τ > 0 too. Among all functions of (α, β) with this mean, h has the least mean square.

The lemma has |h| bounded. Clipped at C, the mean is off by at most E(|h| − C)₊, whatever x; `clipped` finds the
least C for a given ε₂, which Definition 4.1 bounds by 𝓒(φ, ε₂).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.hermite_e import hermevander

from fewfire._errors import invalid
from fewfire._validate import check_finite, check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array

LARGEST_DEGREE = 60  # j! and He_j stay within the floats, and their rounding below that of the sums they enter
_REACH, _POINTS = 9.0, 721


@dataclass(frozen=True, eq=False)
class FeatureFunction:
    """h of Lemma 3.17 for one polynomial and threshold.

    Attributes
    ----------
    coefficients : float64 array of shape (degree + 1,)
        c_j.
    threshold : float
        τ in units of 1/√m: that of a network of width m times √m.
    norms : float64 array of shape (degree + 1,)
        N_j.
    limit : float
        Where h is clipped; infinite for h itself.
    """

    coefficients: Float64Array
    threshold: float
    norms: Float64Array
    limit: float = math.inf

    def __call__(self, alpha: ArrayLike, beta: ArrayLike) -> Float64Array:
        """h(α, β), for arrays that broadcast."""
        kernels = _kernels(len(self.coefficients) - 1, np.asarray(beta, dtype=np.float64), self.threshold)
        powers = _hermite(len(self.coefficients) - 1, np.asarray(alpha, dtype=np.float64))
        parts = zip(self.coefficients, self.norms, powers, kernels, strict=True)
        total: Float64Array = np.asarray(sum(c / n * p * k for c, n, p, k in parts), dtype=np.float64)
        return np.asarray(np.clip(total, -self.limit, self.limit))

    @property
    def square(self) -> float:
        """E h² of the function that is not clipped: Σ_j j!·c_j²/N_j."""
        return float(np.sum(np.array([math.factorial(j) / N for j, N in enumerate(self.norms)]) * self.coefficients**2))

    def mean(self, t: float) -> float:
        """E[h(⟨x*, u⟩, β)·1[⟨u, x⟩ + β > τ]] at t = ⟨x*, x⟩, by quadrature to about 1e-4 of the limit."""
        t = check_number("t", t, -1.0, 1.0, open_low=True, open_high=True)
        z, weights = _grid()
        fires = _normal((t * z[:, None] + z[None, :] - self.threshold) / math.sqrt(1 - t * t))
        return float(weights @ (self(z[:, None], z[None, :]) * fires) @ weights)

    def excess(self, limit: float) -> float:
        """E(|h| − C)₊ for h as it is: how far clipping at C can move the mean."""
        z, weights = _grid()
        return float(weights @ np.maximum(np.abs(self(z[:, None], z[None, :])) - limit, 0.0) @ weights)

    def clipped(self, error: float) -> FeatureFunction:
        """h clipped at the least C for which E(|h| − C)₊ is at most `error`, to a thousandth of C."""
        error = check_number("error", error, 0.0, open_low=True)
        z, weights = _grid()
        sizes = np.abs(self(z[:, None], z[None, :]))
        low, high = 0.0, float(sizes.max())
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            if weights @ np.maximum(sizes - middle, 0.0) @ weights <= error:
                high = middle
            else:
                low = middle
        return replace(self, limit=min(self.limit, high))


def feature_function(coefficients: ArrayLike, threshold: float = 0.0) -> FeatureFunction:
    """Lemma 3.17: the h of least mean square with E[h(⟨x*, u⟩, β)·1[⟨u, x⟩ + β > τ]] = Σ_j c_j ⟨x*, x⟩^j, exactly.

    Parameters
    ----------
    coefficients : array of shape (degree + 1,)
        c_j, of degree at most 60.
    threshold : float of at least 0
        τ, in units of 1/√m.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> h = sublinear.feature_function([0.0, 1.0])
    >>> h.coefficients.shape, round(h.square, 3)
    ((2,), 10.883)
    """
    values = np.asarray(coefficients, dtype=np.float64)
    if values.ndim != 1 or not 1 <= len(values) <= LARGEST_DEGREE + 1:
        rule = f"must be a vector of 1 to {LARGEST_DEGREE + 1} coefficients"
        raise invalid("coefficients", rule, f"shape {values.shape}", "take a polynomial of lower degree")
    check_finite("coefficients", values)
    tau = check_number("threshold", threshold, 0.0)
    z, weights = _grid()
    norms = np.array([np.sum(weights * kernel**2) for kernel in _kernels(len(values) - 1, z, tau)])
    return FeatureFunction(values, tau, norms)


def _hermite(degree: int, x: Float64Array) -> Float64Array:
    """He_0 … He_degree at x, of shape (degree + 1, *x.shape)."""
    return np.asarray(np.moveaxis(hermevander(x, degree), -1, 0), dtype=np.float64)


def _kernels(degree: int, beta: Float64Array, threshold: float) -> list[Float64Array]:
    """κ_0 … κ_degree at β."""
    gap = threshold - beta
    density = np.exp(-(gap**2) / 2) / math.sqrt(2 * math.pi)
    return [_normal(-gap), *(value * density for value in _hermite(max(degree - 1, 0), gap)[:degree])]


def _normal(x: Float64Array) -> Float64Array:
    """Φ."""
    from scipy.special import ndtr  # here: importing it takes longer than the rest of this package

    return np.asarray(ndtr(x))


def _grid() -> tuple[Float64Array, Float64Array]:
    """Points of a standard normal and their weights: the trapezoidal rule, exact to rounding on smooth functions."""
    z = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    return z, weights
