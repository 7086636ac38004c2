"""Theorem 2 of parities: gradient descent on D_A learns the parity; its error, its conditions, its learning rates.

error ≤ O(k¹⁰/q + k⁸/√q + qk/√n + k²√q/T) for 7 ≤ k ≤ O(n^{1/10}) and q ≥ Ω(k⁷ log(k/δ)) pairs of neurons: below 1
only for q well above k¹⁶ and n well above (qk)². In practice far smaller networks learn.

Of its proof `_first_step.py` has Lemmas 3 to 7 and 12, `_separator.py` 8 to 10. Here is the descent after the first
step: θ* competes with online gradient descent (Theorem 11); the first layer hardly moves (Lemma 13), so the separator
u* of Lemma 10 keeps its loss (Lemma 14).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire._validate import check_integer, check_number
from fewfire.papers.parities.statements._separator import check_odd

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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


class LearningRates(NamedTuple):
    """η and the regularisation λ (of λ‖θ‖²) of the first step and of all later ones, for inputs ±1/√n."""

    first: float
    first_regularisation: float
    later: float
    later_regularisation: float


def theorem_2(n: int, k: int, pairs: int, steps: int, delta: float = 0.01) -> ErrorBound:
    """The error terms k¹⁰/q, k⁸/√q, qk/√n, k²√q/T for q pairs of neurons, and the conditions on k and q.

    The constant of q, 2·1120², is the proof's (Lemma 10); the others are not given and are 1.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.theorem_2(50, 3, pairs=1000, steps=1000).violated[0]
    'k ≥ 7; k is 3'
    """
    n, k = check_integer("n", n, 1), check_odd(k, 3)
    q, steps = check_integer("pairs", pairs, 1), check_integer("steps", steps, 1)
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    constant = 2 * 1120.0**2
    wanted = constant * k**7 * log((k + 1) / delta)
    conditions = {
        f"k ≥ 7; k is {k}": k >= 7,
        f"k ≤ 1·n^(1/10) = {n**0.1:.2f}; k is {k}": k <= n**0.1,
        f"q ≥ {constant:g}·k⁷·log((k+1)/δ) = {wanted:.2g}; q is {q}": q >= wanted,
    }
    violated = tuple(text for text, holds in conditions.items() if not holds)
    return ErrorBound(k**10 / q, k**8 / sqrt(q), q * k / sqrt(n), k**2 * sqrt(q) / steps, violated)


def learning_rates(n: int, k: int, pairs: int, steps: int) -> LearningRates:
    """η₁ = 1, λ₁ = ½, then η = k²/(T√q) and λ at most k/n, for q pairs of neurons and T steps.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.learning_rates(50, 3, pairs=1000, steps=1000).later, 6)
    0.000285
    """
    n, k = check_integer("n", n, 1), check_odd(k, 3)
    q, steps = check_integer("pairs", pairs, 1), check_integer("steps", steps, 1)
    return LearningRates(1.0, 0.5, k**2 / (steps * sqrt(q)), k / n)


class Drift(NamedTuple):
    """Bounds of Lemma 13 after step t: |u_i|, and how far w_i and b_i are from where the first step left them."""

    output: float
    hidden: float
    bias: float


def theorem_11(rate: float, optimum: float, start: float, gradients: ArrayLike) -> float:
    """Online gradient descent: by how much the mean of f_t(θ_t) may exceed the mean of f_t(θ*), at most.

    ‖θ*‖²/(2ηT) + ‖θ₁‖·mean ‖∇_t‖ + η·mean ‖∇_t‖², for convex f_t.

    Parameters
    ----------
    rate : float
        η.
    optimum, start : float
        ‖θ*‖ and ‖θ₁‖.
    gradients : array of shape (T,)
        The norms ‖∇f_t(θ_t)‖.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.theorem_11(rate=0.1, optimum=1.0, start=0.0, gradients=[1.0] * 100), 3)
    0.15
    """
    rate = check_number("rate", rate, 0.0, open_low=True)
    optimum, start = check_number("optimum", optimum, 0.0), check_number("start", start, 0.0)
    norms = np.asarray(gradients, dtype=np.float64)
    return float(optimum**2 / (2 * rate * len(norms)) + start * norms.mean() + rate * np.mean(norms**2))


def lemma_13(n: int, k: int, rate: float, regularisation: float, step: int) -> Drift:
    """|u| ≤ 6ηt + k/√n; ‖Δw‖ ≤ 6η²t² + ηtk/√n + 2ηtλn/k; |Δb| ≤ 6η²t² + ηtk/√n, for η and λ of at most ½.

    A plus and a factor are misprinted in the second bound. Weights are the paper's, for inputs ±1/√n.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> drift = parities.lemma_13(n=100, k=3, rate=0.001, regularisation=0.01, step=10)
    >>> round(drift.output, 3), round(drift.hidden, 4)
    (0.36, 0.0103)
    """
    n, k, t = check_integer("n", n, 1), check_integer("k", k, 1), check_integer("step", step, 1)
    eta = check_number("rate", rate, 0.0, 0.5)
    decay = check_number("regularisation", regularisation, 0.0, 0.5)
    bias = 6 * (eta * t) ** 2 + eta * t * k / sqrt(n)
    return Drift(6 * eta * t + k / sqrt(n), bias + 2 * eta * t * decay * n / k, bias)


def lemma_14(norm: float, neurons: int, drift: Drift) -> float:
    """‖u*‖√|I|·(‖Δw‖ + |Δb|): how far the loss of u*, which has |I| neurons, can move while the first layer does.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> drift = parities.lemma_13(n=100, k=3, rate=1e-6, regularisation=0.01, step=10)
    >>> round(parities.lemma_14(norm=10.0, neurons=100, drift=drift), 5)
    0.00127
    """
    norm, neurons = check_number("norm", norm, 0.0), check_integer("neurons", neurons, 0)
    return norm * sqrt(neurons) * (drift.hidden + drift.bias)
