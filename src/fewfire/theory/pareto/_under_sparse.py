"""Theorems 5 and 21 of pareto: one truncated step from an under-sparse start finds a correlated subnetwork.

The proof of Theorem 21 asks for the precision |ξ_out|/2 and puts it at (n − s)^(−(k−s−1)/2); but that is the size of
ξ_in, the gradient on the relevant coordinates: ξ_out is smaller by (n − k)/(k − s − 1). Truncating halfway between the
two, a precision of (|ξ_in| − |ξ_out|)/2 suffices, and the sample size of the theorem stands.
"""

from __future__ import annotations

from math import ceil, log

from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import power
from fewfire.theory.pareto._gradients import under_sparse_gap
from fewfire.theory.pareto._luck import good_neuron_probability
from fewfire.theory.pareto._requirement import Requirement, check_even


def theorem_5(n: int, k: int, s: int, *, width_constant: float = 1.0, sample_constant: float = 1.0) -> Requirement:
    """The scaling: width c·k²(n/k)^s (the k² is the proof's), samples c·(n/k)^(k−s−1), one step, for success 0.99."""
    k = check_integer("k", k, 2)
    n = check_integer("n", n, k)
    s = check_integer("s", s, 0, k - 1, "in the under-sparse case s < k")
    check_even("k", k, "pareto, Theorem 5")
    check_even("s", s, "pareto, Theorem 5")
    width = width_constant * k**2 * power(n / k, s)
    return Requirement("Theorem 5", n, s, width, sample_constant * power(n / k, k - s - 1), 1)


def theorem_21(n: int, k: int, s: int, delta: float = 0.01) -> Requirement:
    """With explicit numbers: but with probability δ every bias has a good neuron whose step singles out the support.

    Width: k biases, each missed by every good neuron with probability at most (1 − p/k)^(width/2), p exact. Samples:
    Hoeffding at the precision of Lemma 20's gap, for all n·width entries of the gradient, which are means of numbers
    in [−1, 1]. n must be odd.
    """
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    gap = under_sparse_gap(n, k, s)
    probability = good_neuron_probability(n, k, s) / k
    width = 2 * ceil(log(2 * k / delta) / -log(1 - probability))
    samples = ceil(2 * log(4 * n * width / delta) / gap.precision**2)
    return Requirement("Theorem 21", n, s, float(width), float(samples), 1)
