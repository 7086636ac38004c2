"""What no learner avoids, and what suffices for enumeration (pareto, sections 2.1 and 3.2).

Naming one of C(n, k) sets takes log₂ C(n, k) = Θ(k log n) bits, and a label carries at most one,
or 1 − H(η) when it is flipped with probability η. Exhaustive search needs hardly more examples, and C(n, k) set
evaluations.
"""

from __future__ import annotations

from math import ceil, comb, log, log2, sqrt

from fewfire._validate import check_integer, check_number


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
