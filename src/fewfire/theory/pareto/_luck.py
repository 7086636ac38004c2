"""How many neurons start lucky (pareto, Lemmas 7 and 15, and the proof of Theorem 21).

Lemma 15 sets r′ = (r/2k)(s/2n)^k, taking the lower bound of Lemma 7 for the probability itself; the numbers of good
neurons then exceed its upper limit 2r′ almost surely. Here r′ is the expected number, with the exact probability. The
proof prints its two tails from the wrong sides (docs/errata.md, rows 21 and 48).
"""

from __future__ import annotations

from math import ceil, comb, exp, log

from fewfire._validate import check_integer, check_number


def good_neuron_probability(n: int, k: int, s: int) -> float:
    """The probability that s random ones contain the support (s ≥ k), or lie in it (s < k).

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.good_neuron_probability(50, 3, s=10), 4)
    0.0061
    """
    n = check_integer("n", n, 1)
    k, s = check_integer("k", k, 0, n), check_integer("s", s, 0, n)
    return comb(n - k, s - k) / comb(n, s) if s >= k else comb(k, s) / comb(n, s)


def good_neuron_bound(n: int, k: int, s: int) -> float:
    """Lemma 7: the probability is at least (s/2n)^k, for 4k < s ≤ n.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> pareto.good_neuron_bound(50, 3, s=20) <= pareto.good_neuron_probability(50, 3, s=20)
    True
    """
    n = check_integer("n", n, 1)
    return (check_integer("s", s, 4 * k + 1, n) / (2 * n)) ** k


def good_neurons(n: int, k: int, s: int, width: int, biases: int | None = None) -> float:
    """r′: the expected number of good neurons of each bias, in a network of `width` neurons in mirrored pairs.

    `biases` is the number of values a bias is drawn from: k/2 in B.2.2 (corrected), k in B.3, unless given.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.good_neurons(50, 3, s=10, width=1000), 2)
    3.06
    """
    choices = _biases(k, s) if biases is None else check_integer("biases", biases, 1)
    return check_integer("width", width, 2) / 2 * good_neuron_probability(n, k, s) / choices


def good_start_failure(n: int, k: int, s: int, width: int) -> float:
    """A bound on the probability that some bias has fewer than r′/2 or more than 2r′ good neurons.

    Exact binomial tails, summed over the biases; Lemma 15 bounds the same event.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> 0 <= pareto.good_start_failure(50, 3, s=10, width=1000) <= 1
    True
    """
    from scipy.stats import binom  # half a second to load, which every worker of a sweep would pay

    pairs, choices = check_integer("width", width, 2) // 2, _biases(k, s)
    probability = good_neuron_probability(n, k, s) / choices
    expected = pairs * probability
    low = float(binom.cdf(ceil(expected / 2) - 1, pairs, probability))
    high = float(binom.sf(int(2 * expected), pairs, probability))
    return min(1.0, choices * (low + high))


def width_for_good_start(n: int, k: int, s: int, delta: float = 0.01) -> int:
    """Lemma 15, corrected: a width that gives every bias between r′/2 and 2r′ good neurons but with probability δ.

    By Chernoff the two tails are at most exp(−r′/8) and exp(−r′/3); r′ solves biases·(their sum) = δ.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> width = pareto.width_for_good_start(50, 3, s=10)
    >>> pareto.good_start_failure(50, 3, s=10, width=width) <= 0.01
    True
    """
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    choices = _biases(k, s)
    expected = 8 * log(2 * choices / delta)
    while choices * (exp(-expected / 8) + exp(-expected / 3)) < delta:
        expected -= 0.5
    expected += 0.5
    return 2 * ceil(expected * choices / good_neuron_probability(n, k, s))


def _biases(k: int, s: int) -> int:
    return max(1, k // 2) if s >= k else k
