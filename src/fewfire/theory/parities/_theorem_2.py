"""Theorem 2 of parities: gradient descent on D_A learns the parity; its error, its conditions, its learning rates.

error ≤ O(k¹⁰/q + k⁸/√q + qk/√n + k²√q/T) for 7 ≤ k ≤ O(n^{1/10}) and q ≥ Ω(k⁷ log(k/δ)) pairs of neurons. The bound
is below 1 only for q well above k¹⁶ and n well above (qk)²: 10¹³ pairs and 10²⁸ inputs at k = 7. In practice far
smaller networks learn; the rates, not the numbers, are what one takes from it.

The steps of its proof are in `_first_step.py` (Lemmas 3 to 7 and 12), `_separator.py` (8 to 10) and `_descent.py`
(11, 13 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number


@dataclass(frozen=True)
class ErrorBound:
    """The four terms of the bound, constants included, and the conditions that fail."""

    separator_norm: float
    drift: float
    initial_output: float
    step_size: float
    violated: tuple[str, ...]

    @property
    def error(self) -> float:
        """The sum of the terms; no bound at all when a condition fails or it is above 1."""
        return self.separator_norm + self.drift + self.initial_output + self.step_size

    @property
    def promises(self) -> bool:
        """Whether the theorem says anything here."""
        return not self.violated and self.error < 1


@dataclass(frozen=True)
class LearningRates:
    """η and the regularisation λ (of λ‖θ‖²) of the first step and of all later ones, for inputs ±1/√n."""

    first: float
    first_regularisation: float
    later: float
    later_regularisation: float


def theorem_2(
    n: int,
    k: int,
    pairs: int,
    steps: int,
    delta: float = 0.01,
    *,
    norm_constant: float = 1.0,
    drift_constant: float = 1.0,
    output_constant: float = 1.0,
    step_constant: float = 1.0,
    degree_constant: float = 1.0,
    width_constant: float = 2 * 1120.0**2,
) -> ErrorBound:
    """The error terms k¹⁰/q, k⁸/√q, qk/√n, k²√q/T for q pairs of neurons, and the conditions on k and q.

    `width_constant` is the proof's (Lemma 10); the other constants are not given and are 1. The proof's own last two
    are 12 and 72: it prints 6√2 and 36, taking q neurons where there are 2q.

    Examples
    --------
    >>> from fewfire.theory import parities
    >>> parities.theorem_2(50, 3, pairs=1000, steps=1000).violated[0]
    'k ≥ 7; k is 3'
    """
    n, k = check_integer("n", n, 1), _odd(k)
    q, steps = check_integer("pairs", pairs, 1), check_integer("steps", steps, 1)
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    wanted = width_constant * k**7 * log((k + 1) / delta)
    conditions = {
        f"k ≥ 7; k is {k}": k >= 7,
        f"k ≤ {degree_constant:g}·n^(1/10) = {degree_constant * n**0.1:.2f}; k is {k}": k <= degree_constant * n**0.1,
        f"q ≥ {width_constant:g}·k⁷·log((k+1)/δ) = {wanted:.2g}; q is {q}": q >= wanted,
    }
    return ErrorBound(
        norm_constant * k**10 / q,
        drift_constant * k**8 / sqrt(q),
        output_constant * q * k / sqrt(n),
        step_constant * k**2 * sqrt(q) / steps,
        tuple(text for text, holds in conditions.items() if not holds),
    )


def learning_rates(n: int, k: int, pairs: int, steps: int) -> LearningRates:
    """η₁ = 1, λ₁ = ½, then η = k²/(T√q) and λ at most k/n, for q pairs of neurons and T steps.

    Examples
    --------
    >>> from fewfire.theory import parities
    >>> round(parities.learning_rates(50, 3, pairs=1000, steps=1000).later, 6)
    0.000285
    """
    n, k = check_integer("n", n, 1), _odd(k)
    q, steps = check_integer("pairs", pairs, 1), check_integer("steps", steps, 1)
    return LearningRates(1.0, 0.5, k**2 / (steps * sqrt(q)), k / n)


def _odd(k: int) -> int:
    k = check_integer("k", k, 3)
    if k % 2 == 0:
        raise invalid("k", "must be odd", k, "parities treats odd k only")
    return k
