"""Theorems 4 and 16 of pareto: over-sparse starts learn the parity, width bought by sparsity against samples.

Theorem 4 gives the scaling; its constants, which depend on k, are arguments. Theorem 16 is evaluated with the numbers
of its proof, corrected where they fail:

- r′ is the true expected number of good neurons (`_luck.py`);
- C_{k,s} and c_{k,s} are exact (`_gradients.py`), so the mix-up of κ_k and 1/κ_k in the choice of τ does not matter;
- the step condition of Lemma 14 lacks the factor B²: with λ = ε/B² the last term of its bound is
  100 B² (‖ψ‖ + ε/B)² (1 + log T)/(ε T), which is at most ε for T/(1 + log T) ≥ 100 (B‖ψ‖ + ε)²/ε².
"""

from __future__ import annotations

from math import ceil, log, sqrt

from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import power
from fewfire.theory.pareto._gradients import over_sparse_gap
from fewfire.theory.pareto._luck import good_neurons, width_for_good_start
from fewfire.theory.pareto._requirement import Requirement, check_even
from fewfire.theory.pareto._separator import separator_norm


def theorem_4(
    n: int, k: int, s: int, error: float = 0.1, *, sparsity_constant: float = 1.0, width_constant: float = 1.0,
    sample_constant: float = 1.0, step_constant: float = 1.0,
) -> Requirement:  # fmt: skip
    """The scaling: s ≥ c₁/ε², width c₂(n/s)^k, samples c₃(s/k)^(k−1) n² log n, steps c₄/ε², for success 0.99.

    The constants depend on k alone and are not given in the paper; 1 shows the scaling, not a promise.
    """
    k = check_integer("k", k, 2)
    check_even("k", k, "pareto, Theorem 4")
    n, s = check_integer("n", n, 2), check_integer("s", s, 1)
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    return Requirement(
        "Theorem 4",
        n,
        s,
        width=width_constant * power(n / s, k),
        samples=sample_constant * power(s / k, k - 1) * n**2 * log(n),
        steps=step_constant / error**2,
        least_sparsity=sparsity_constant / error**2,
    )


def theorem_16(n: int, k: int, s: int, error: float = 0.1, delta: float = 0.01, *, offset: float = 0.5) -> Requirement:
    """With the proof's numbers, corrected: loss at most `error` but with probability δ; s odd, above 4k.

    The sparsity it needs is 4kr′B_k²/ε² with ε = error/7: about 10⁹ already for k = 2 and error 0.1, so the theorem
    with these constants says nothing about networks of practical size.
    """
    k, n = check_integer("k", k, 2), check_integer("n", n, 2)
    s = check_integer("s", s, 4 * k + 1, n, "pareto, Lemma 8, asks for s > 4k")
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    delta = check_number("delta", delta, 0.0, 0.5, open_low=True, open_high=True)
    # Lemma 14 ends at 7ε; Lemmas 11 and 15 fail with probability δ each, Lemma 14 with 2δ.
    eps, part = error / 7, delta / 4
    width = width_for_good_start(n, k, s, part)
    expected = good_neurons(n, k, s, width)
    norm, relevant = separator_norm(k, offset), abs(over_sparse_gap(k, s).relevant)
    rate = 1 / (2 * k * relevant)
    precision = min(eps / (4 * norm * k * expected * n * rate), 1 / (16 * rate * k * n))
    features = sqrt(8 * k * expected)
    first_step = 4 * log(4 * n * width / part) / precision**2
    second_layer = (4 * sqrt(2) * norm * features + 1) ** 2 * log(2 / part) / eps**2
    return Requirement(
        "Theorem 16",
        n,
        s,
        width=width,
        samples=max(first_step, second_layer),
        steps=_steps(100 * (norm * features + eps) ** 2 / eps**2),
        least_sparsity=4 * k * expected * norm**2 / eps**2,
    )


def _steps(ratio: float) -> float:
    """The least T with T/(1 + log T) ≥ ratio."""
    steps = ratio
    for _ in range(100):
        steps = ratio * (1 + log(steps))
    return float(ceil(steps))
