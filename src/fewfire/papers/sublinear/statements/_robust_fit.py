"""The robust fit f* and W*, the network near the start that has it (sublinear, sections 3 and 4).

Polynomials near the sign function (Lemmas 3.19 and 4.4, Theorem 3.20, Proposition 4.5). Lemma 3.19:
p_k(x) = x·Σ_{i ≤ k} c_i (1 − x²)^i with c_i = Π_{j ≤ i} (2j − 1)/(2j). Theorem 3.20 writes a power as
u^i = E[T_|X_i|(u)] over X_i, the sum of i random signs, and cuts it at degree t, losing Pr[|X_i| > t]. Together
p(x) = x·Σ_{j ≤ t} d_j T_j(1 − x²) with d_j = Σ_i c_i Pr[|X_i| = j], of degree 2t + 1. This is stable for degrees in the
thousands: T_j(1 − x²) = (−1)^j T_2j(x/√2), and all d_j are positive. In powers of x the terms of one degree have one
sign, so the sum of the absolute coefficients is Σ_j d_j T_j(2), exactly.

γ = ε(ε − 2ρ) for separation ε and adversary radius ρ (Definition 3.7); `fewfire.problems` measures it on points.

A polynomial step between the two bands of inner products (Claim 4.3): q is within ε₁ of 0 on [−1, 1 − (ε − ρ)²/2] and
of 1 on [1 − ρ²/2, 1]. Here q(z) = (1 + p((z − c)/s))/2 with c midway between the bands, s = 1 + |c| and p of Lemma 4.4
for η = γ/(4s) and error 2ε₁. Lemma 4.4 then gives M at most (24/γ)·log(8/(γε₁)); the claim prints (24/γ)·log(16/ε₁),
and the polynomials made here stay below that over all γ that can be built.

The fit (Lemma 4.2): f*(x) = Σ_i y_i q(⟨x_i, x⟩) with q for ε₁ = ε/(3n) is within ε/3 of y_j (the lemma prints y_i)
wherever x of norm 1 is within ρ of x_j, if the points are γ-separable: its own term is within ε₁ of y_j, each other
of 0.

A function of random features whose mean is a given polynomial (Lemma 3.17, after Allen-Zhu, Li, Liang).
u ~ N(0, I_d) and β ~ N(0, 1) are a neuron's weights and bias in units of 1/√m, x* and x have norm 1 and t = ⟨x*, x⟩.
For every polynomial φ(t) = Σ_j c_j t^j and every threshold τ

φ(⟨x*, x⟩) = E[h(⟨x*, u⟩, β)·1[⟨u, x⟩ + β > τ]],  h(α, β) = Σ_j (c_j/N_j)·He_j(α)·κ_j(β),  N_j = E κ_j(β)²,
κ_0(β) = Φ(β − τ),  κ_j(β) = He_{j−1}(τ − β)·Φ'(τ − β):

given β, the mean of He_j(α)·1[tα + √(1 − t²)·g > τ − β] is t^j·κ_j(β). The lemma has τ = 0 and an error ε₂; here the
mean is exact, for τ > 0 too. Among all functions of (α, β) with this mean, h has the least mean square. The lemma has
|h| bounded. Clipped at C, the mean is off by at most E(|h| − C)₊, whatever x; `clipped` finds the least C for a given
ε₂, which Definition 4.1 bounds by 𝓒(φ, ε₂).

W* (Lemmas 5.18 and 4.7, Theorem 4.8): f*(x) = Σ_i y_i q(⟨x_i, x⟩) fits the examples wherever the adversary moves them
(Lemma 4.2). With h of Lemma 3.17 for q,

w*_r = w_{r,0} + (2/(k·a_r))·Σ_i y_i h(√m⟨w_{r,0}, x_i⟩, √m·b_r)·ê,   ê the last unit vector,

where k = m and every neuron serves every example, or, as Lemma 4.7 has it, k = ⌊m/n⌋ and the sum over the one example
that the neuron's block serves. x_d = 1/2 on the slice, so g(x; W*) has the mean f*(x), and |g − f*| falls as 1/√m.
With the polynomial of Lemma 4.2, of coefficients of 2^(6M), no width that exists serves; with that of
`small_step_polynomial`, which has the least h, W* can be built at m of 10⁴ to 10⁶.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev, chebmul
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import ArrayLike

from fewfire._errors import invalid
from fewfire._types import Float64Array
from fewfire._validate import check_finite, check_inputs, check_integer, check_labels, check_number
from fewfire.networks import TwoLayer

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


_ON_BAND = 200


@dataclass(frozen=True, eq=False)
class GoodNetwork:
    """W* and how far it is from the start.

    Attributes
    ----------
    network : TwoLayer
        The start with w*_r in float64.
    radius : float
        Largest ‖w*_r − w_{r,0}‖.
    radius_bound : float
        2·C·Σ|y_i|/(k·min|a_r|), Lemma 5.18's O(𝓒·m^(1/5)/k) with its constant; infinite where h is not clipped.
    """

    network: TwoLayer
    radius: float
    radius_bound: float


def good_network(
    start: TwoLayer, points: ArrayLike, labels: ArrayLike, features: FeatureFunction, *, blocks: bool = False
) -> GoodNetwork:
    """W* of Lemmas 5.18 and 4.7: its pseudo-network has the mean Σ_i y_i q(⟨x_i, x⟩) at every x of the slice.

    Parameters
    ----------
    start : TwoLayer
        Drawn as Definition 3.1 has it, as by `networks.init.ntk`.
    points : array of shape (n, inputs)
        x_i, of norm 1 and with last coordinate 1/2.
    labels : array of shape (n,)
        y_i.
    features : FeatureFunction
        h for q, with the threshold of the network times √m.
    blocks : bool
        As Lemma 4.7 has it, a block of ⌊m/n⌋ neurons per example (the last one has the rest), instead of every neuron
        for every example.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.0)(3, 64, seed=0)
    >>> points = [[0.75**0.5, 0.0, 0.5], [0.0, 0.75**0.5, 0.5]]
    >>> good = sublinear.good_network(start, points, [1.0, -1.0], sublinear.feature_function([0.0, 1.0]))
    >>> good.radius <= good.radius_bound
    True
    """
    width = start.width
    X = check_inputs("points", points, start.inputs, np.dtype(np.float64)).astype(np.float64)
    y = check_labels("labels", labels, len(X)).astype(np.float64)
    off = max(float(np.abs(np.linalg.norm(X, axis=1) - 1).max()), float(np.abs(X[:, -1] - 0.5).max()))
    if off > 1e-5:
        rule = "must have norm 1 and last coordinate 1/2 (to 1e-5)"
        raise invalid("points", rule, f"a point off by {off:.2g}", "place them by problems.SphereSlice")
    hidden, b, a = (part.astype(np.float64) for part in (start.hidden, start.bias, start.output))
    if not a.all():
        raise invalid("start", "must have no output weight of 0", "a 0", "draw it by networks.init.ntk")
    if blocks and width < len(X):
        raise invalid("blocks", f"can be True from a width of {len(X)} on, one neuron per example", width)
    scale = math.sqrt(width)
    moves = np.zeros(width)
    share = width // len(X) if blocks else width
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        last = width if i == len(X) - 1 else (i + 1) * share
        mine = slice(i * share, last) if blocks else slice(None)
        size = len(moves[mine])
        moves[mine] += 2 * label * features(scale * (hidden[mine] @ x), scale * b[mine]) / (size * a[mine])
    hidden[:, -1] += moves
    total = float(np.abs(y).max() if blocks else np.abs(y).sum())
    bound = 2 * features.limit * total / (share * float(np.abs(a).min()))
    return GoodNetwork(start.with_parameters(hidden=hidden), float(np.abs(moves).max()), bound)


def small_step_polynomial(
    low: float, high: float, error: float, *, threshold: float = 0.0, max_degree: int = 12
) -> Float64Array:
    """Coefficients of a step within `error` of 0 on [−1/2, low] and of 1 on [high, 1], made for small h.

    Inner products of points of the slice are at least 1/4 − 3/4, so the lower band begins at −1/2. Of the least degree
    that serves, the polynomial with the least Σ_j √(j!/N_j)·|c_j|, a bound on √(E h²), by linear programming over 200
    points per band.

    Parameters
    ----------
    low, high : float in (−1/2, 1]
        Where the lower band ends and the upper one begins: `inner_product_bands`, or what the points have.
    error : float in (0, 1/2)
    threshold : float
        τ in units of 1/√m, which the weights of the coefficients depend on.
    max_degree : int
        At most 60.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> import numpy as np
    >>> step = sublinear.small_step_polynomial(0.2, 0.8, error=0.1)
    >>> np.polynomial.polynomial.polyval([0.1, 0.9], step).round()
    array([0., 1.])
    """
    from scipy.optimize import linprog  # here: importing it takes longer than the rest of this package

    high = check_number("high", high, -0.5, 1.0, open_low=True)
    low = check_number("low", low, -0.5, high, open_low=True, open_high=True)
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    for degree in range(1, check_integer("max_degree", max_degree, 1, LARGEST_DEGREE) + 1):
        norms = feature_function(np.ones(degree + 1), threshold).norms
        weights = np.sqrt([math.factorial(j) / norm for j, norm in enumerate(norms)])
        off, on = (
            np.vander(np.linspace(*band, _ON_BAND), degree + 1, increasing=True) for band in ((-0.5, low), (high, 1.0))
        )
        sides = np.vstack([off, -off, on, -on])
        limits = np.repeat([error, error, 1 + error, error - 1], _ON_BAND)
        # c = p − q with p, q ≥ 0: then Σ weights·(p + q) is the sum of absolute values at the optimum.
        found = linprog(np.r_[weights, weights], np.hstack([sides, -sides]), limits, bounds=(0, None))
        if found.success and found.x is not None:
            return np.asarray(found.x[: degree + 1] - found.x[degree + 1 :])
    rule = f"must leave room for a polynomial of degree {max_degree} between low = {low:g} and high = {high:g}"
    raise invalid("error", rule, error, "take a larger error, points further apart or a larger max_degree")
