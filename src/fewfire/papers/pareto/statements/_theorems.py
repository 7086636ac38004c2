"""What no learner of a parity avoids, and what over- and under-sparse starts need (pareto, Theorems 4, 5, 16, 21).

Sections 2.1 and 3.2: naming one of C(n, k) sets takes log₂ C(n, k) = Θ(k log n) bits, and a label carries at most one,
or 1 − H(η) when it is flipped with probability η. Exhaustive search needs hardly more examples, and C(n, k) set
evaluations.

Theorems 4 and 16: over-sparse starts learn the parity, a trade of width and samples by the sparsity. Theorem 4 gives
the scaling, here with constants 1. Theorem 16 is evaluated with the numbers of its proof,
corrected where they fail:

- r′ is the true expected number of good neurons;
- C_{k,s} and c_{k,s} are exact, so the mix-up of κ_k and 1/κ_k in the choice of τ (docs/errata.md, row 57) does not
  matter;
- the samples have the factor log²(1/δ)/ε² that the proof needs and the theorem leaves out (row 56);
- Lemma 14 is `lemma_14`, whose loss and steps are corrected.

Theorems 5 and 21: one truncated step from an under-sparse start finds a correlated subnetwork. The proof of Theorem 21
asks for the precision |ξ_out|/2 and puts it at (n − s)^(−(k−s−1)/2); but that is the size of ξ_in, the gradient on the
relevant coordinates: ξ_out is smaller by (n − k)/(k − s − 1). Truncating halfway between the two, a precision of
(|ξ_in| − |ξ_out|)/2 suffices, and the sample size of the theorem stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, inf, log, log1p, log2, sqrt

from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import power
from fewfire.papers.pareto.statements._lemmas import (
    LEMMA_14_LOSS,
    check_even,
    good_neuron_probability,
    good_neurons,
    lemma_11,
    lemma_14,
    under_sparse_gap,
    width_for_good_start,
)


@dataclass(frozen=True)
class Requirement:
    """Resources with which a theorem promises success at one sparsity, if that is at least `least_sparsity`."""

    sparsity: int
    width: float
    samples: float
    steps: float
    least_sparsity: float = 0.0

    def short(self, width: float, samples: float, steps: float) -> dict[str, float]:
        """The resources that fall short, with the amount asked for; empty when all suffice."""
        have = {"width": width, "samples": samples, "steps": steps}
        return {name: getattr(self, name) for name, value in have.items() if value < getattr(self, name)}


def theorem_4(n: int, k: int, s: int, error: float = 0.1) -> Requirement:
    """The scaling: s ≥ 1/ε², width (n/s)^k, samples (s/k)^(k−1) n·max(n, 1/ε²) log n, steps 1/ε², for success 0.99.

    Each has a constant that depends on k alone and is not given in the paper; 1 shows the scaling, not a promise.
    n² is printed for n·max(n, 1/ε²): the features must not drift by more than ε, in the mean square over the inputs.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> needs = pareto.theorem_4(50, 2, s=9)
    >>> round(needs.width), round(needs.samples)
    (31, 88021)
    """
    k = check_integer("k", k, 2)
    check_even("k", k, "pareto, Theorem 4")
    n, s = check_integer("n", n, 2), check_integer("s", s, 1)
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    steps = least_sparsity = 1 / error**2
    return Requirement(s, power(n / s, k), power(s / k, k - 1) * n * max(n, steps) * log(n), steps, least_sparsity)


def theorem_16(n: int, k: int, s: int, error: float = 0.1, delta: float = 0.01) -> Requirement:
    """With the proof's numbers, corrected: loss at most `error` but with probability δ; s odd, above 4k.

    The sparsity it needs is 4kr′B_k²/ε² with ε = error/11.1: above 10⁹ already for k = 2 and error 0.1, so the theorem
    with these constants does not reach networks of practical size.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.theorem_16(50, 2, s=9).samples > pareto.samples_needed(50, 2)
    True
    """
    k, n = check_integer("k", k, 2), check_integer("n", n, 2)
    s = check_integer("s", s, 4 * k + 1, n, "pareto, Lemma 8, asks for s > 4k")
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    delta = check_number("delta", delta, 0.0, 0.5, open_low=True, open_high=True)
    # Lemmas 11 and 15 fail with probability δ each, Lemma 14 with 2δ.
    eps, part = error / LEMMA_14_LOSS, delta / 4
    width = width_for_good_start(n, k, s, part)
    expected = good_neurons(n, k, s, width)
    step = lemma_11(n, k, s, expected)
    precision = min(eps / (4 * step.norm * k * expected * n * step.rate), step.precision)
    first_step = 4 * log(4 * n * width / part) / precision**2
    second_layer = lemma_14(step.norm, step.features, eps, part)
    least_sparsity = 4 * k * expected * step.norm**2 / eps**2
    return Requirement(s, width, max(first_step, second_layer.samples), second_layer.steps, least_sparsity)


def theorem_5(n: int, k: int, s: int) -> Requirement:
    """The scaling for success 0.99: width k²(n/k)^s (the k² is the proof's), samples (n/k)^(k−s−1) log n, one step.

    Constants are 1. The paper leaves out log n, the union bound over the n weights of a neuron: without it no constant
    serves all n.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.theorem_5(51, 6, s=2).samples)
    2415
    """
    k = check_integer("k", k, 2)
    n = check_integer("n", n, k)
    s = check_integer("s", s, 0, k - 1, "in the under-sparse case s < k")
    check_even("k", k, "pareto, Theorem 5")
    check_even("s", s, "pareto, Theorem 5")
    return Requirement(s, k**2 * power(n / k, s), power(n / k, k - s - 1) * log(n), 1)


def theorem_21(n: int, k: int, s: int, delta: float = 0.01) -> Requirement:
    """With explicit numbers: but with probability δ every bias has a good neuron whose step singles out the support.

    Width: k biases (the paper's 1/(k + 1) counts one too many), each missed by every good neuron with probability at
    most (1 − p/k)^(width/2), p exact. Samples: Hoeffding at the precision of Lemma 20's gap, for all n·width entries of
    the gradient, which are means of numbers in [−1, 1]. n must be odd. Numbers past the floats are infinite.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.theorem_21(31, 6, s=2).width > 0
    True
    """
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    gap = under_sparse_gap(n, k, s)
    probability = good_neuron_probability(n, k, s) / k
    # log1p: below 1e-16 the difference 1 − p would be 1, and the width a division by 0.
    width = 2 * _whole(log(2 * k / delta), -log1p(-probability))
    samples = _whole(2 * (log(4 * n / delta) + log(width)), gap.precision**2)
    return Requirement(s, width, samples, 1)


def _whole(amount: float, part: float) -> float:
    """The least whole number from amount/part on; infinite where that is past the floats."""
    ratio = amount / part if part > 0 else inf
    return float(ceil(ratio)) if ratio < inf else inf


def set_bits(n: int, k: int) -> float:
    """log₂ C(n, k): the bits that name a set of k among n coordinates."""
    n = check_integer("n", n, 1)
    return log2(comb(n, check_integer("k", k, 0, n)))


def samples_needed(n: int, k: int, noise: float = 0.0, success: float = 1.0) -> int:
    """With fewer examples every learner fails on an average parity with probability above 1 − success.

    Without noise m labels take 2^m values, so at most 2^m of the C(n, k) sets can be answered. With noise η they
    carry m (1 − H(η)) bits, and Fano's inequality asks for success·log₂ C(n, k) − 1 of them.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.samples_needed(50, 3)  # below, several parities agree with all labels
    15
    """
    noise = check_number("noise", noise, 0.0, 0.5, open_high=True)
    success = check_number("success", success, 0.0, 1.0, open_low=True)
    bits = set_bits(n, k)
    if noise == 0:
        return max(0, ceil(bits + log2(success) - 1e-9))
    capacity = 1 + noise * log2(noise) + (1 - noise) * log2(1 - noise)
    return max(0, ceil((success * bits - 1) / capacity))


def samples_sufficient(n: int, k: int, noise: float = 0.0, delta: float = 0.01) -> int:
    """With this many uniform examples the parity of the highest agreement is the true one, but with probability δ.

    A wrong set agrees as well as the true one with probability at most (½ + √(η(1−η)))^m; union over all sets.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.samples_sufficient(50, 3, noise=0.1)
    65
    """
    noise = check_number("noise", noise, 0.0, 0.5, open_high=True)
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    wrong = comb(check_integer("n", n, 1), check_integer("k", k, 0, n)) - 1
    if wrong == 0:
        return 0
    return max(0, ceil((log(wrong) - log(delta)) / -log(0.5 + sqrt(noise * (1 - noise)))))
