"""Neurons that fire at the start, and neurons that can change side while weights move (sublinear, section 5).

m is `width`, τ is `threshold`. At the start of Definition 3.1 a preactivation z = ⟨w, x⟩ + b is N(0, (‖x‖² + 1)/m),
independent by neuron, so all counts are binomial and known exactly. The inverse of `expected_active` is
`fewfire.networks.init.activity_threshold`.

Lemma 5.15 bounds the neurons that fire by Q₀ = 2m·exp(−K²/(4m^(1/5))) at τ = K/m^(3/5). For a fixed K that tends to
2m: it is sublinear only when K grows like m^(1/10)·√log m (`activity_scale`), which Theorem 5.12 excludes.

Claims 5.2 and 5.16: a neuron that moves by ‖Δw‖ ≤ R can change on x when |z − τ| ≤ R‖x‖. The density at 0 bounds the
probability by R‖x‖·√(2m/(π(‖x‖² + 1))), the constant that the paper leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import power


def active_probability(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact probability 1 − Φ(τ√(m/(‖x‖² + 1))) that a neuron fires at the start on an input of norm ‖x‖.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.active_probability(10_000, threshold=0.0329), 3)
    0.01
    """
    return tail(check_number("threshold", threshold, 0.0) / deviation(width, input_norm))


def expected_active(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire at the start: m·(1 − Φ(τ√(m/(‖x‖² + 1)))).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> from fewfire.networks.init import activity_threshold
    >>> round(sublinear.expected_active(10_000, activity_threshold(10_000, active=100)))
    100
    """
    return width * active_probability(width, threshold, input_norm)


def active_interval(width: int, threshold: float, confidence: float = 0.95, input_norm: float = 1.0) -> tuple[int, int]:
    """Counts between which the number of firing neurons lies with probability of at least `confidence`, exactly.

    At most (1 − confidence)/2 is left out on either side.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> low, high = sublinear.active_interval(10_000, threshold=0.0329)
    >>> low < sublinear.expected_active(10_000, 0.0329) < high
    True
    """
    outside = (1 - check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)) / 2
    share = active_probability(width, threshold, input_norm)
    return binomial_quantile(width, share, outside), binomial_quantile(width, share, 1 - outside)


def lemma_threshold(width: int, K: float) -> float:
    """τ = K/m^(3/5), the threshold of Lemma 5.15.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.lemma_threshold(width=10_000, K=10.0), 4)
    0.0398
    """
    return check_number("K", K, 0.0) * power(check_integer("width", width, 1), -0.6)


def activity_bound(width: int, K: float) -> float:
    """Lemma 5.15: Q₀ = 2m·exp(−K²/(4m^(1/5))), a bound on the neurons that fire with threshold K/m^(3/5).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.activity_bound(width=10_000, K=10.0))
    380
    """
    width = check_integer("width", width, 1)
    return 2 * width * math.exp(-(check_number("K", K, 0.0) ** 2) / (4 * width**0.2))


def activity_failure(width: int, K: float, n: int) -> float:
    """Lemma 5.15: n·exp(−3Q₀/16), a bound on the probability that one of n inputs has more than Q₀ firing neurons.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.activity_failure(width=10_000, K=10.0, n=100) < 1e-3
    True
    """
    return min(1.0, check_integer("n", n, 1) * math.exp(-3 * activity_bound(width, K) / 16))


def activity_scale(width: int, active: float) -> float:
    """The least K for which Q₀ of Lemma 5.15 is at most `active`: K² = 4m^(1/5)·log(2m/active).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> K = sublinear.activity_scale(width=10_000, active=100.0)
    >>> round(sublinear.activity_bound(width=10_000, K=K), 6)
    100.0
    """
    width = check_integer("width", width, 1)
    active = check_number("active", active, 0.0, 2 * width, open_low=True, remedy="Q₀ is never above twice the width")
    return math.sqrt(4 * width**0.2 * math.log(2 * width / active))


def binomial_quantile(count: int, share: float, level: float) -> int:
    """The least c with Pr[Binomial(count, share) ≤ c] ≥ level."""
    from scipy.stats import binom  # here: importing it takes longer than the rest of this package

    return int(binom.ppf(level, count, share))


@dataclass(frozen=True)
class FlipBound:
    """Claim 5.16: the probability that one neuron can change on one of the n examples, and how many can in `total`.

    `total` is twice the bound on the mean, at most the width; `failure` is Chernoff's bound on the probability of more.
    """

    per_neuron: float
    total: float
    failure: float


def claim_radius(width: int) -> float:
    """m^(−15/24), the distance ‖Δw‖ of Claim 5.16.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.claim_radius(10_000), 6)
    0.003162
    """
    return float(check_integer("width", width, 1) ** (-15 / 24))


def flip_probability(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact probability Pr[|z − τ| ≤ R‖x‖] that a neuron can change on one input while it moves by at most R.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.flip_probability(10_000, radius=0.001, threshold=0.0329), 4)
    0.0038
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    low, high = (tau - reach) / spread, (tau + reach) / spread
    # On the side where no digits cancel.
    return tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low)


def flip_probability_bound(width: int, radius: float, input_norm: float = 1.0) -> float:
    """Claim 3.18 with its constant: Pr[|z − τ| ≤ R‖x‖] ≤ R‖x‖·√(2m/(π(‖x‖² + 1))) for every τ, at most 1.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.flip_probability_bound(width=10_000, radius=1e-3), 4)
    0.0564
    """
    spread, reach, _ = _scale(width, radius, 0.0, input_norm)
    return min(1.0, reach / spread * math.sqrt(2 / math.pi))


def reachable_active(width: int, radius: float, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire on one input after some move by at most R: m·Pr[z > τ − R‖x‖].

    Remark 5.17 without its bounds: no training that stays within R of the start can have more, on average.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.reachable_active(width=10_000, radius=1e-3, threshold=0.02), 1)
    895.5
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return width * tail((tau - reach) / spread)


def claim_5_16(n: int, width: int, radius: float | None = None) -> FlipBound:
    """Claim 5.16 with explicit constants: how many of m neurons can change on one of n fixed examples of norm 1.

    Parameters
    ----------
    n : int
        Examples.
    width : int
        m.
    radius : float
        Largest ‖Δw‖; m^(−15/24) unless given.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> bound = sublinear.claim_5_16(n=2, width=10_000, radius=1e-5)
    >>> round(bound.per_neuron, 4), round(bound.total, 1)
    (0.0011, 22.6)
    """
    n = check_integer("n", n, 1)
    distance = claim_radius(width) if radius is None else radius
    mean = n * width * flip_probability_bound(width, distance)
    return FlipBound(min(1.0, mean / width), min(float(width), 2 * mean), math.exp(-mean / 3))


def deviation(width: int, input_norm: float) -> float:
    """√((‖x‖² + 1)/m), the standard deviation of one preactivation."""
    width = check_integer("width", width, 1)
    norm = check_number("input_norm", input_norm, 0.0)
    return math.sqrt((norm**2 + 1) / width)


def tail(z: float) -> float:
    """1 − Φ(z), with all digits of a small tail."""
    return math.erfc(z / math.sqrt(2)) / 2


def _scale(width: int, radius: float, threshold: float, input_norm: float) -> tuple[float, float, float]:
    """The deviation of z, the reach R‖x‖ and τ."""
    spread = deviation(width, input_norm)
    reach = check_number("radius", radius, 0.0) * input_norm
    return spread, reach, check_number("threshold", threshold, 0.0)
