"""Lucky neurons of parities (Lemmas 7 and 8): w uniform in {−1, 0, 1}ⁿ, u uniform in ±n/k, b = 1/(8k)."""

from __future__ import annotations

from math import comb, sqrt

from fewfire._validate import check_integer, check_number


def balanced_probability(k: int) -> float:
    """P[Σ_{j∈A} w_j = 0] exactly, a central trinomial coefficient over 3^k; Lemma 7 bounds it by 1/(6√k)."""
    k = check_integer("k", k, 1)
    return float(sum(comb(k, 2 * j) * comb(2 * j, j) for j in range(k // 2 + 1)) / 3**k)


def good_neuron_bound(k: int) -> float:
    """Lemma 7: a neuron is good after the first step with probability at least 1/(14√k), for 7 ≤ k ≤ ⁴√n/(2√2)."""
    return 1 / (14 * sqrt(check_integer("k", k, 1)))


def feature_probability(k: int, eps: float) -> float:
    """Lemma 8: u is such that a good neuron is φ_r within ε with probability at least ε/(8k²).

    φ_r must be the plain ReLU of −sign(r) z + |r|, which reaches 2k; printed, it is cut at 6.
    """
    k = check_integer("k", k, 1)
    return check_number("eps", eps, 0.0, k * k, open_low=True) / (8 * k * k)
