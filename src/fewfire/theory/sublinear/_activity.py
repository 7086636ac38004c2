"""Neurons that fire at the start (sublinear, Lemma 5.15): the bound, the exact count, and how far apart they are.

m is `width`, τ is `threshold`. The count on one input is Binomial(m, 1 − Φ(τ√(m/(‖x‖² + 1)))), exactly. The lemma takes
τ = K/m^(3/5) and bounds it by Q₀ = 2m·exp(−K²/(4m^(1/5))). It counts |z| ≥ τ, though only z > τ fires; the bound holds
for both, and is above the expected number that fires by a factor of at least 4.

For a fixed K the exponential tends to 1 and Q₀ to 2m: Q₀ is sublinear only when K grows like m^(1/10)·√log m
(`activity_scale`), which Theorem 5.12 excludes, as it asks for K² ≤ ε·m^(29/300). Besides, that a robust network exists
near the start (Lemma 5.18) and that the pseudo-network is near it (Theorem 5.1) are proved for τ = O(1/m), where half
of the neurons fire: for few active neurons both have to be measured.

A threshold for a wanted activity is `fewfire.networks.init.activity_threshold`, the inverse of `expected_active`.
"""

from __future__ import annotations

import math

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import power
from fewfire.theory.sublinear._gaussian import deviation, tail


def active_probability(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact probability 1 − Φ(τ√(m/(‖x‖² + 1))) that a neuron fires at the start on an input of norm ‖x‖."""
    return tail(check_number("threshold", threshold, 0.0) / deviation(width, input_norm))


def expected_active(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire at the start: m·(1 − Φ(τ√(m/(‖x‖² + 1))))."""
    return width * active_probability(width, threshold, input_norm)


def active_quantile(width: int, threshold: float, level: float, input_norm: float = 1.0) -> int:
    """The least count c with Pr[neurons that fire ≤ c] ≥ level, from the exact binomial distribution."""
    share = active_probability(width, threshold, input_norm)
    return binomial_quantile(width, share, check_number("level", level, 0.0, 1.0))


def active_interval(width: int, threshold: float, confidence: float = 0.95, input_norm: float = 1.0) -> tuple[int, int]:
    """Counts between which the number of firing neurons lies with probability of at least `confidence`, exactly.

    At most (1 − confidence)/2 is left out on either side.
    """
    outside = (1 - check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)) / 2
    share = active_probability(width, threshold, input_norm)
    return binomial_quantile(width, share, outside), binomial_quantile(width, share, 1 - outside)


def lemma_threshold(width: int, K: float) -> float:
    """τ = K/m^(3/5), the threshold of Lemma 5.15."""
    return check_number("K", K, 0.0) * power(check_integer("width", width, 1), -0.6)


def activity_bound(width: int, K: float) -> float:
    """Lemma 5.15: Q₀ = 2m·exp(−K²/(4m^(1/5))), a bound on the neurons that fire with threshold K/m^(3/5)."""
    width = check_integer("width", width, 1)
    return 2 * width * math.exp(-(check_number("K", K, 0.0) ** 2) / (4 * width**0.2))


def activity_failure(width: int, K: float, n: int) -> float:
    """Lemma 5.15: n·exp(−3Q₀/16), a bound on the probability that one of n inputs has more than Q₀ firing neurons."""
    return min(1.0, check_integer("n", n, 1) * math.exp(-3 * activity_bound(width, K) / 16))


def activity_slack(width: int, K: float) -> float:
    """How many times Q₀ of Lemma 5.15 is above the exact mean on an input of norm 1: at least 4, and growing in K."""
    exact = expected_active(width, lemma_threshold(width, K))
    return activity_bound(width, K) / exact if exact > 0 else math.inf


def activity_scale(width: int, active: float) -> float:
    """The least K for which Q₀ of Lemma 5.15 is at most `active`: K² = 4m^(1/5)·log(2m/active)."""
    width = check_integer("width", width, 1)
    active = check_number("active", active, 0.0, 2 * width, open_low=True, remedy="Q₀ is never above twice the width")
    return math.sqrt(4 * width**0.2 * math.log(2 * width / active))


def theorem_activity(width: int, epsilon: float) -> float:
    """The least share Q₀/m that Lemma 5.15 can give under Theorem 5.12, whose width asks for K² ≤ ε·m^(29/300).

    2·exp(−ε·m^(29/300 − 1/5)/4): at least 2·exp(−1/4) = 1.56 for every m, so the bound says nothing there.
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
