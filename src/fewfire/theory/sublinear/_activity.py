"""Neurons that fire at the start, and neurons that can change side while weights move (sublinear, section 5).

m is `width`, τ is `threshold`. At the start of Definition 3.1 a preactivation ⟨w, x⟩ + b is N(0, (‖x‖² + 1)/m),
independent by neuron.

Lemma 5.15, the neurons that fire: their count on one input is Binomial(m, 1 − Φ(τ√(m/(‖x‖² + 1)))), exactly. The lemma
takes τ = K/m^(3/5) and bounds it by Q₀ = 2m·exp(−K²/(4m^(1/5))). It counts |z| ≥ τ, though only z > τ fires; the bound
holds for both, and is above the expected number that fires by a factor of at least 4.

For a fixed K the exponential tends to 1 and Q₀ to 2m: Q₀ is sublinear only when K grows like m^(1/10)·√log m
(`activity_scale`), which Theorem 5.12 excludes, as it asks for K² ≤ ε·m^(29/300). Besides, that a robust network exists
near the start (Lemma 5.18) and that the pseudo-network is near it (Theorem 5.1) are proved for τ = O(1/m), where half
of the neurons fire: for few active neurons both have to be measured.

A threshold for a wanted activity is `fewfire.networks.init.activity_threshold`, the inverse of `expected_active`.

Claims 5.2 and 5.16, the neurons that can change side of the threshold while weights move by at most R: one with
‖Δw‖ ≤ R can change on x when its start preactivation z has |z − τ| ≤ R‖x‖. The probability is exact, and its density at
0 gives the bound R‖x‖·√(2m/(π(‖x‖² + 1))) = R√(m/π) for ‖x‖ = 1: the constant that the paper leaves open. Claim 5.16
has R = m^(−15/24): at most m^(−1/8)/√π per neuron and example, n·m^(7/8)/√π on average over m neurons and n examples.
That is below m only for m > (n/√π)⁸.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import power


def active_probability(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact probability 1 − Φ(τ√(m/(‖x‖² + 1))) that a neuron fires at the start on an input of norm ‖x‖.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.active_probability(10_000, threshold=0.0329), 3)
    0.01
    """
    return tail(check_number("threshold", threshold, 0.0) / deviation(width, input_norm))


def expected_active(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire at the start: m·(1 − Φ(τ√(m/(‖x‖² + 1)))).

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> from fewfire.networks.init import activity_threshold
    >>> round(sublinear.expected_active(10_000, activity_threshold(10_000, active=100)))
    100
    """
    return width * active_probability(width, threshold, input_norm)


def active_quantile(width: int, threshold: float, level: float, input_norm: float = 1.0) -> int:
    """The least count c with Pr[neurons that fire ≤ c] ≥ level, from the exact binomial distribution.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> sublinear.active_quantile(width=10_000, threshold=0.02, level=0.999)
    871
    """
    share = active_probability(width, threshold, input_norm)
    return binomial_quantile(width, share, check_number("level", level, 0.0, 1.0))


def active_interval(width: int, threshold: float, confidence: float = 0.95, input_norm: float = 1.0) -> tuple[int, int]:
    """Counts between which the number of firing neurons lies with probability of at least `confidence`, exactly.

    At most (1 − confidence)/2 is left out on either side.

    Examples
    --------
    >>> from fewfire.theory import sublinear
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
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.lemma_threshold(width=10_000, K=10.0), 4)
    0.0398
    """
    return check_number("K", K, 0.0) * power(check_integer("width", width, 1), -0.6)


def activity_bound(width: int, K: float) -> float:
    """Lemma 5.15: Q₀ = 2m·exp(−K²/(4m^(1/5))), a bound on the neurons that fire with threshold K/m^(3/5).

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.activity_bound(width=10_000, K=10.0))
    380
    """
    width = check_integer("width", width, 1)
    return 2 * width * math.exp(-(check_number("K", K, 0.0) ** 2) / (4 * width**0.2))


def activity_failure(width: int, K: float, n: int) -> float:
    """Lemma 5.15: n·exp(−3Q₀/16), a bound on the probability that one of n inputs has more than Q₀ firing neurons.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> sublinear.activity_failure(width=10_000, K=10.0, n=100) < 1e-3
    True
    """
    return min(1.0, check_integer("n", n, 1) * math.exp(-3 * activity_bound(width, K) / 16))


def activity_slack(width: int, K: float) -> float:
    """How many times Q₀ of Lemma 5.15 is above the exact mean on an input of norm 1: at least 4, and growing in K.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.activity_slack(width=10_000, K=10.0), 1)
    15.6
    """
    exact = expected_active(width, lemma_threshold(width, K))
    return activity_bound(width, K) / exact if exact > 0 else math.inf


def activity_scale(width: int, active: float) -> float:
    """The least K for which Q₀ of Lemma 5.15 is at most `active`: K² = 4m^(1/5)·log(2m/active).

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> K = sublinear.activity_scale(width=10_000, active=100.0)
    >>> round(sublinear.activity_bound(width=10_000, K=K), 6)
    100.0
    """
    width = check_integer("width", width, 1)
    active = check_number("active", active, 0.0, 2 * width, open_low=True, remedy="Q₀ is never above twice the width")
    return math.sqrt(4 * width**0.2 * math.log(2 * width / active))


def theorem_activity(width: int, epsilon: float) -> float:
    """The least share Q₀/m that Lemma 5.15 can give under Theorem 5.12, whose width asks for K² ≤ ε·m^(29/300).

    2·exp(−ε·m^(29/300 − 1/5)/4): at least 2·exp(−1/4) = 1.56 for every m, so the bound says nothing there.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.theorem_activity(10_000, epsilon=0.1))
    2
    """
    width = check_integer("width", width, 1)
    epsilon = check_number("epsilon", epsilon, 0.0, 1.0, open_low=True, open_high=True)
    return 2 * math.exp(-epsilon * power(width, 29 / 300 - 1 / 5) / 4)


def binomial_quantile(count: int, share: float, level: float) -> int:
    """The least c with Pr[Binomial(count, share) ≤ c] ≥ level, by bisection on the exact distribution."""
    from scipy.special import bdtr  # here: importing it takes longer than the rest of this package

    if count > 2**31 - 1:
        raise invalid("width", "must be below 2^31 for exact binomial quantiles", count, "use expected_active")
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if bdtr(middle, count, share) >= level:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class FlipBound:
    """Claim 5.16 with its constants.

    Attributes
    ----------
    per_neuron : float
        Probability that one neuron can change on one of the n examples, at most 1.
    total : float
        Number of neurons that can change on one of the examples, at most the width: twice the bound on the mean.
    failure : float
        Probability that more than `total` can, for fixed examples (Chernoff's bound).
    """

    per_neuron: float
    total: float
    failure: float


def claim_radius(width: int) -> float:
    """m^(−15/24), the distance ‖Δw‖ of Claim 5.16.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.claim_radius(10_000), 6)
    0.003162
    """
    return float(check_integer("width", width, 1) ** (-15 / 24))


def flip_probability(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact probability Pr[|z − τ| ≤ R‖x‖] that a neuron can change on one input while it moves by at most R.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.flip_probability(10_000, radius=0.001, threshold=0.0329), 4)
    0.0038
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return between((tau - reach) / spread, (tau + reach) / spread)


def flip_probability_bound(width: int, radius: float, input_norm: float = 1.0) -> float:
    """Claim 3.18 with its constant: Pr[|z − τ| ≤ R‖x‖] ≤ R‖x‖·√(2m/(π(‖x‖² + 1))) for every τ, at most 1.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.flip_probability_bound(width=10_000, radius=1e-3), 4)
    0.0564
    """
    spread, reach, _ = _scale(width, radius, 0.0, input_norm)
    return min(1.0, reach / spread * math.sqrt(2 / math.pi))


def expected_flips(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that can change on one input: m·Pr[|z − τ| ≤ R‖x‖].

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.expected_flips(width=10_000, radius=1e-3), 1)
    563.7
    """
    return width * flip_probability(width, radius, threshold, input_norm)


def reachable_active(width: int, radius: float, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire on one input after some move by at most R: m·Pr[z > τ − R‖x‖].

    Remark 5.17 without its bounds: no training that stays within R of the start can have more, on average.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.reachable_active(width=10_000, radius=1e-3, threshold=0.02), 1)
    895.5
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return width * tail((tau - reach) / spread)


def claim_5_16(n: int, width: int, radius: float | None = None, input_norm: float = 1.0) -> FlipBound:
    """Claim 5.16 with explicit constants: how many of m neurons can change on one of n fixed examples.

    Parameters
    ----------
    n : int
        Examples.
    width : int
        m.
    radius : float
        Largest ‖Δw‖; m^(−15/24) unless given.
    input_norm : float
        ‖x‖ of the examples.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> bound = sublinear.claim_5_16(n=2, width=10_000, radius=1e-5)
    >>> round(bound.per_neuron, 4), round(bound.total, 1)
    (0.0011, 22.6)
    """
    n = check_integer("n", n, 1)
    distance = claim_radius(width) if radius is None else radius
    mean = n * width * flip_probability_bound(width, distance, input_norm)
    return FlipBound(min(1.0, mean / width), min(float(width), 2 * mean), math.exp(-mean / 3))


def deviation(width: int, input_norm: float) -> float:
    """√((‖x‖² + 1)/m), the standard deviation of one preactivation."""
    width = check_integer("width", width, 1)
    norm = check_number("input_norm", input_norm, 0.0)
    return math.sqrt((norm**2 + 1) / width)


def tail(z: float) -> float:
    """1 − Φ(z), with all digits of a small tail."""
    return math.erfc(z / math.sqrt(2)) / 2


def between(low: float, high: float) -> float:
    """Φ(high) − Φ(low) for low ≤ high, taken on the side where no digits cancel."""
    return tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low)


def _scale(width: int, radius: float, threshold: float, input_norm: float) -> tuple[float, float, float]:
    """The deviation of z, the reach R‖x‖ and τ."""
    spread = deviation(width, input_norm)
    reach = check_number("radius", radius, 0.0) * input_norm
    return spread, reach, check_number("threshold", threshold, 0.0)
