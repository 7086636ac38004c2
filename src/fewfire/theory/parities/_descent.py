"""Gradient descent after the first step: parities, Theorem 11 and Lemmas 13 and 14, and with them Theorem 2.

θ* competes with online gradient descent (Theorem 11); the first layer hardly moves (Lemma 13), so the separator u* of
Lemma 10 keeps its loss (Lemma 14); some iterate is therefore as good as u* up to four terms (Theorem 2).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
    >>> from fewfire.theory import parities
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
    >>> from fewfire.theory import parities
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
    >>> from fewfire.theory import parities
    >>> drift = parities.lemma_13(n=100, k=3, rate=1e-6, regularisation=0.01, step=10)
    >>> round(parities.lemma_14(norm=10.0, neurons=100, drift=drift), 5)
    0.00127
    """
    norm, neurons = check_number("norm", norm, 0.0), check_integer("neurons", neurons, 0)
    return norm * sqrt(neurons) * (drift.hidden + drift.bias)
