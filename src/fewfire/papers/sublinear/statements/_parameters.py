"""Width, step size, iterations and radius for a robust loss of ε (sublinear), and the regret bound behind them.

Theorems 4.8 and 5.12: the numbers are astronomical (a width of 10^(thousands) for γ = 0.3), so every field is a log₁₀.
Constants that the paper leaves open are 1. As printed the setting contradicts itself (errata 26 to 28): the weights may
travel (K²/ε)·m^(−2/5), never within the m^(−15/24) that Lemma 5.14 asks for.

Corrected: radius K/m^(4/5) and η = ε·m^(−3/5), so that the regret is ηm^(3/5)/2 + K²m^(−3/5)/(2ηT) = ε and the travel
at most K₁/m^(4/5) with K₁ = max(K, K²/ε). Then m^(7/40) ≥ K₁ keeps the travel within m^(−15/24), m ≥ (2nK₁/ε)⁸ the
coupling error 2K₁m^(−4/5)·n·m^(27/40) within ε, and m ≥ (K₁²/ε)^(10/3), ε^(−10) the distance of Theorem 5.1.

The width of Lemma 4.7 follows the complexity of a polynomial (Definition 4.1), with c open and the power 1 at j = 0:
𝓒(φ, ε) = Σ_j c^j (1 + (log(1/ε)/j)^(j/2)) |α_j| and 𝓒(φ) = c Σ_j (j + 1)^1.75 |α_j|.

The cost of one iteration (Corollary 6.2 and Lemma 6.3); a dense one is m·n·d. Corollary 6.2 hides constants that
depend on d; they are 1 here, so its figures are shapes. The paper's own term for the forward and backward pass counts
Q₀ once where each of the n examples has its own: n·Q₀ stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewfire._errors import invalid
from fewfire._types import Float64Array
from fewfire._validate import check_finite, check_integer, check_number
from fewfire.papers._numbers import log10, power
from fewfire.papers.sublinear.statements._robust_fit import robust_degree


@dataclass(frozen=True)
class TheoremParameters:
    """K, m, η, T and ‖W* − W_0‖ of the theorem as decimal logarithms, and the degree M of Lemma 4.2.

    `log10_widths` are what each condition asks of the width, `log10_travel` is ηT·m^(−1/5), how far training may go,
    and `log10_travel_allowed` m^(−15/24), how far Lemma 5.14 lets it go.
    """

    log10_K: float
    log10_width: float
    log10_step_size: float
    log10_iterations: float
    log10_radius: float
    log10_travel: float
    log10_travel_allowed: float
    log10_widths: dict[str, float]
    degree: float

    @property
    def consistent(self) -> bool:
        """Whether the travel stays within what is allowed; rounding aside."""
        return self.log10_travel <= self.log10_travel_allowed + 1e-9 * abs(self.log10_width)


def theorem_parameters(n: int, d: int, gamma: float, epsilon: float, K: float | None = None) -> TheoremParameters:
    """The setting of Theorems 4.8 and 5.12, corrected.

    Parameters
    ----------
    n, d : int
        Examples and inputs.
    gamma, epsilon : float
        γ of the separation and ε of the loss.
    K : float
        Scale of the radius; 2n·𝓒(q, ε₃), the proof's own, unless given. A K that is given also leaves out the width
        that Lemma 4.7 asks for, so that Theorem 5.12 stands alone.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.theorem_parameters(n=10, d=8, gamma=0.1, epsilon=0.5).log10_width)  # a width of 55,870 digits
    55870
    """
    n, d = check_integer("n", n, 1), check_integer("d", d, 2)
    degree = robust_degree(n, gamma, epsilon)
    widths: dict[str, float] = {}
    if K is None:
        single, double = log10_complexity(n, gamma, epsilon), log10_complexity_at(n, gamma, epsilon)
        scale = math.log10(2 * n) + double
        widths["Lemma 4.7, n·d·𝓒²/ε₃²"] = math.log10(n * d) + 2 * (double + single)
        widths["Theorem 4.8, n²"] = 2 * math.log10(n)
    else:
        scale = log10(check_number("K", K, 0.0, open_low=True))
    small = math.log10(epsilon)
    iterations = 2 * scale - 2 * small
    reach = max(scale, 2 * scale - small)
    widths |= {
        "travel, K₁^(40/7)": 40 / 7 * reach,
        "coupling, (2nK₁/ε)⁸": 8 * (math.log10(2 * n) + reach - small),
        "Theorem 5.1, (K₁²/ε)^(10/3)": 10 / 3 * (2 * reach - small),
        "Theorem 5.1, ε^(−10)": -10 * small,
    }
    width = max(widths.values())
    step = small - 0.6 * width
    return TheoremParameters(
        log10_K=scale,
        log10_width=width,
        log10_step_size=step,
        log10_iterations=iterations,
        log10_radius=scale - 0.8 * width,
        log10_travel=step + iterations - 0.2 * width,
        log10_travel_allowed=-15 / 24 * width,
        log10_widths=widths,
        degree=degree,
    )


def complexity(coefficients: ArrayLike, constant: float = 1.0) -> float:
    """𝓒(φ) = c·Σ_j (j + 1)^1.75 |α_j| for the coefficients α_j of z^j, of shape (degree + 1,).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.complexity([0.0, 1.0, 0.5]), 3)
    6.783
    """
    sizes = _sizes(coefficients)
    check_number("constant", constant, 0.0, open_low=True)
    return float(constant * np.sum((np.arange(len(sizes)) + 1.0) ** 1.75 * sizes))


def complexity_at(coefficients: ArrayLike, error: float, constant: float = 1.0) -> float:
    """𝓒(φ, ε) = Σ_j c^j (1 + (log(1/ε)/j)^(j/2)) |α_j| for the coefficients α_j of z^j, of shape (degree + 1,).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.complexity_at([0.0, 1.0, 0.5], error=0.1), 3)
    3.593
    """
    sizes = _sizes(coefficients)
    check_number("constant", constant, 0.0, open_low=True)
    log = math.log(1 / check_number("error", error, 0.0, 1.0, open_low=True, open_high=True))
    roots = [(log / j) ** (j / 2) if j else 1.0 for j in range(len(sizes))]
    return float(sum(constant**j * (1 + root) * size for j, (root, size) in enumerate(zip(roots, sizes, strict=True))))


def log10_complexity(n: int, gamma: float, epsilon: float, constant: float = 1.0) -> float:
    """Lemma 4.7: log₁₀ of c·(M + 1)^2.75·2^(6M)/γ, a bound on 𝓒(q) for q of Lemma 4.2; ε₃ is its inverse.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.log10_complexity(n=100, gamma=0.5, epsilon=0.1))
    942
    """
    check_number("constant", constant, 0.0, open_low=True)
    degree = robust_degree(n, gamma, epsilon)
    return math.log10(constant / gamma) + 2.75 * math.log10(degree + 1) + 6 * degree * math.log10(2)


def log10_complexity_at(n: int, gamma: float, epsilon: float, constant: float = 1.0) -> float:
    """Lemma 4.7: log₁₀ of Σ_{j ≤ M} c^j (1 + (log(1/ε₃)/j)^(j/2))·2^(6M)/γ, a bound on 𝓒(q, ε₃).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.log10_complexity_at(n=100, gamma=0.5, epsilon=0.1))
    1097
    """
    degree = robust_degree(n, gamma, epsilon)
    log = log10_complexity(n, gamma, epsilon, constant) * math.log(10)
    j = np.arange(1.0, math.floor(degree) + 1)
    terms = j * math.log(constant) + np.logaddexp(0.0, j / 2 * np.log(log / j))
    total = np.logaddexp.reduce(terms, initial=math.log(2))
    return float(total / math.log(10) + 6 * degree * math.log10(2) - math.log10(gamma))


def regret(step_size: float, iterations: int, gradient: float, distance: float) -> float:
    """ηG²/2 + D²/(2ηT), eq. (19): the average excess of T subgradient steps with ‖∇‖ ≤ G towards a point D away.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.regret(step_size=0.1, iterations=100, gradient=1.0, distance=1.0)
    0.1
    """
    step = check_number("step_size", step_size, 0.0, open_low=True)
    iterations = check_integer("iterations", iterations, 1)
    gradient, distance = check_number("gradient", gradient, 0.0), check_number("distance", distance, 0.0)
    return step * gradient**2 / 2 + distance**2 / (2 * step * iterations)


def _sizes(coefficients: ArrayLike) -> Float64Array:
    array = np.asarray(coefficients, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise invalid("coefficients", "must be a vector of at least one number", f"shape {array.shape}")
    check_finite("coefficients", array)
    return np.abs(array)


@dataclass(frozen=True)
class ReportingTime:
    """Time of a half-space reporting structure, up to constants that depend on d: build, one query, one update."""

    build: float
    query: float
    update: float


@dataclass(frozen=True)
class IterationCost:
    """Multiply-adds of one iteration, and `dense`, the same work with every neuron.

    `query` finds the active neurons of every example, `forward` and `backward` are on these alone, `update` moves the
    touched weights in the structure, `attack` is the adversary's own work, which Lemma 6.3 leaves out.
    """

    query: float
    forward: float
    backward: float
    update: float
    attack: float
    dense: float

    @property
    def total(self) -> float:
        """All terms but the dense one."""
        return self.query + self.forward + self.backward + self.update + self.attack

    @property
    def speedup(self) -> float:
        """dense/total."""
        return self.dense / self.total


def reporting_small(points: int, d: int, reported: float) -> ReportingTime:
    """Corollary 6.2, part 1: build n log n, query n^(1 − 1/⌊d/2⌋) + k, update log² n, for d of at least 2.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> time = sublinear.reporting_small(points=10_000, d=4, reported=10.0)
    >>> time.query
    110.0
    """
    points, d, reported = _check(points, d, reported)
    log = math.log2(max(points, 2))
    return ReportingTime(points * log, power(points, 1 - 1 / (d // 2)) + reported, log**2)


def reporting_fast(points: int, d: int, reported: float, epsilon: float = 0.1) -> ReportingTime:
    """Corollary 6.2, part 2: build n^(⌊d/2⌋ + ε), query log n + k, update n^(⌊d/2⌋ − 1 + ε), for d of at least 2.

    The update is printed as n⌊d/2⌋ − 1; n updates have to cost what the structure costs to build.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.reporting_fast(10_000, d=4, reported=100).query, 1)
    113.3
    """
    points, d, reported = _check(points, d, reported)
    epsilon = check_number("epsilon", epsilon, 0.0, open_low=True)
    build = power(points, d // 2 + epsilon)
    return ReportingTime(build, math.log2(max(points, 2)) + reported, power(points, d // 2 - 1 + epsilon))


def iteration_cost(width: int, n: int, d: int, active: float, attack_steps: int = 0) -> IterationCost:
    """Lemma 6.3 in multiply-adds, with part 1 of Corollary 6.2 as the structure.

    Parameters
    ----------
    width, n, d : int
        m neurons, n examples, d inputs.
    active : float
        Neurons active on one example on average, at most the width: `expected_active`, `reachable_active`, Q₀, or
        what was measured.
    attack_steps : int
        Gradient steps of the adversary for each example, each a query, a forward and a backward pass.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> cost = sublinear.iteration_cost(100_000, n=256, d=64, active=600)
    >>> cost.forward + cost.backward < cost.dense / 100
    True
    """
    width, n, d = check_integer("width", width, 1), check_integer("n", n, 1), check_integer("d", d, 2)
    active = check_number("active", active, 0.0, width)
    steps = check_integer("attack_steps", attack_steps, 0)
    structure = reporting_small(width, d, active)
    query, forward, backward = n * d * structure.query, n * active * (d + 1), n * active * d
    touched = min(float(width), n * active)
    update = touched * (d + 2 * reporting_small(2 * width, d, 0).update)  # one removal and one insertion each
    dense = n * width * (2 * d + 1) * (1 + steps) + width * d
    return IterationCost(query, forward, backward, update, steps * (query + forward + backward), dense)


def cost_exponent(d: int, activity_exponent: float, flip_exponent: float | None = 7 / 8) -> float:
    """The power of m in Lemma 6.3: the largest of 1 − 1/⌊d/2⌋ (queries), c for m^c active neurons, and 7/8 (changes).

    Parameters
    ----------
    d : int
        Inputs, at least 2.
    activity_exponent : float in [0, 1]
        c.
    flip_exponent : float or None
        Of the neurons that change side on an example; None leaves them out.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.cost_exponent(d=4, activity_exponent=0.6)
    0.875
    """
    d = check_integer("d", d, 2)
    c = check_number("activity_exponent", activity_exponent, 0.0, 1.0)
    return max(1 - 1 / (d // 2), c, 0.0 if flip_exponent is None else check_number("flip_exponent", flip_exponent))


def _check(points: int, d: int, reported: float) -> tuple[int, int, float]:
    return check_integer("points", points, 1), check_integer("d", d, 2), check_number("reported", reported, 0.0)
