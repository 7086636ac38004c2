"""What linear classifiers cannot do, and gradient descent can: Theorems 1 and 2 of parities.

Theorem 1, made explicit. Forster: if signs M_{xA} = sign⟨w_A, Ψ(x)⟩ for a matrix M of ±1 with a rows and b columns, the
dimension of Ψ is at least √(ab)/‖M‖. The columns χ_A, |A| = k, of the parity matrix are orthogonal of squared length
2ⁿ, so the dimension is at least √C(n, k). A random embedding that serves each A with probability at least 1/N serves
C(n, k)/N of the columns in some draw, so N ≥ √(C(n, k)/N) and N ≥ C(n, k)^{1/3}.

Theorem 2: gradient descent on D_A learns the parity, with
error ≤ O(k¹⁰/q + k⁸/√q + qk/√n + k²√q/T) for 7 ≤ k ≤ O(n^{1/10}) and q ≥ Ω(k⁷ log(k/δ)) pairs of neurons: below 1
only for q well above k¹⁶ and n well above (qk)². In practice far smaller networks learn.

Of its proof `_first_step.py` has Lemmas 3 to 7 and 12. Here is the separator, Lemmas 8 to 10: output weights that make
a parity of the features after one step. Symbols: k bits in the parity, odd; z = Σ_{j∈A} √n x_j ∈ {−k, −k+2, …, k};
φ_r(z) = relu(−sign(r) z + |r|). After the first step a good neuron is σ(αuz/n + b), b = 1/(8k), u uniform in ±n/k.
Lemma 7 prints α = φ(w, b) between 1/4 and 1; it is half of that, because E[√n x_j f_A] is ½ on D_A (and not 1): between
1/8 and 1/2. And here is the descent after the first step: θ* competes with online gradient descent (Theorem 11); the
first layer hardly moves (Lemma 13), so the separator u* of Lemma 10 keeps its loss (Lemma 14).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, islice
from math import comb, exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._types import Float64Array
from fewfire._validate import check_integer, check_number


def check_odd(k: int, low: int = 1) -> int:
    """A number of bits that parities treats."""
    k = check_integer("k", k, low)
    if k % 2 == 0:
        raise invalid("k", "must be odd", k, "parities treats odd k only")
    return k


def feature_probability(k: int, epsilon: float) -> float:
    """Lemma 8: u is such that a good neuron is φ_r within ε with probability at least ε/(8k²).

    φ_r must be the plain ReLU of −sign(r) z + |r|, which reaches 2k; printed, it is cut at 6. It holds for α in
    [1/8, 1] and ε of at most k|r|: at α = 1/8 and |r| = 1 half of the interval of u lies outside the range of u, and
    the other half is as long as the lemma asks for.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> 0 < parities.feature_probability(3, epsilon=0.1) < 1
    True
    """
    k = check_integer("k", k, 1)
    return check_number("epsilon", epsilon, 0.0, k * k, open_low=True) / (8 * k * k)


def lemma_9(k: int, epsilon: float) -> float:
    """ε/(112k^{2.5}): a neuron is, after one step, within 2ε of ψ_r with at least this probability over w and u.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(1 / parities.lemma_9(k=3, epsilon=0.1))
    17459
    """
    k = check_integer("k", k, 1)
    return check_number("epsilon", epsilon, 0.0, k * k, open_low=True) / (112 * k * k * sqrt(k))


def separator_margin(k: int, epsilon: float) -> float:
    """1 − 2ε Σ_r |v_r|: the margin of Lemma 10's separator on features that are within 2ε of φ_r.

    Lemma 9 leaves 2ε, where the proof of Lemma 10 goes on with ε = 1/(10k), and the margin is then above 1/2 and not
    above 1, as printed: u* has to be doubled.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_margin(3, epsilon=0.0)
    1.0
    """
    return float(1 - 2 * check_number("epsilon", epsilon, 0.0) * np.abs(separator_coefficients(k)).sum())


def separator_norm(k: int, pairs: int) -> float:
    """64k²√((k + 1)/(2pq)), p = 1/(1120k^{3.5}): the bound of Lemma 10 on ‖u*‖, of order k^{4.25}/√q.

    Each of the k + 1 values of r has pq/2 neurons with weights |v_r||r|·2/(pqb) of at most 32k²/(pq), all doubled for a
    margin of 1.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.separator_norm(3, pairs=1_000_000))
    186
    """
    k, q = check_integer("k", k, 1), check_integer("pairs", pairs, 1)
    p = 1 / (1120 * k**3 * sqrt(k))
    return sqrt((k + 1) * p * q / 2) * 64 * k**2 / (p * q)


def separator_thresholds(k: int) -> Float64Array:
    """The values r ∈ {−k, −k+2, …, k} of Lemma 8, shape (k + 1,).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_thresholds(3)
    array([-3., -1.,  1.,  3.])
    """
    return np.arange(-check_odd(k), k + 1, 2, dtype=np.float64)


def separator_features(k: int, z: Float64Array) -> Float64Array:
    """φ_r(z) for every threshold r, shape (len(z), k + 1).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_features(3, parities.separator_thresholds(3)).shape
    (4, 4)
    """
    r = separator_thresholds(k)
    return np.maximum(-np.sign(r) * np.asarray(z, dtype=np.float64)[:, None] + np.abs(r), 0.0)


def separator_coefficients(k: int) -> Float64Array:
    """Lemma 10, corrected: the v_r with Σ_r v_r φ_r(z) = f_A, in the order of `separator_thresholds`.

    The coefficients printed in the lemma do not give the parity (docs/errata.md, row 3). The k + 1 features
    are independent on the k + 1 values of z, so solving for them is exact: |v_r| = 2 inside, and 1.5
    (k ≡ 3 mod 4) or 0.5 (k ≡ 1 mod 4) at |r| = k, alternating and odd in r.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> z = parities.separator_thresholds(3)
    >>> (parities.separator_features(3, z) @ parities.separator_coefficients(3)).round(9)
    array([-1.,  1., -1.,  1.])
    """
    z = separator_thresholds(k)
    parity = (-1.0) ** ((k - z) / 2)
    return np.asarray(np.linalg.solve(separator_features(k, z), parity), dtype=np.float64)


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


def forster_bound(rows: float, columns: float, spectral_norm: float) -> float:
    """√(rows·columns)/‖M‖: the least dimension in which a matrix of signs is realised by half-spaces.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.forster_bound(1024, 1024, spectral_norm=32.0)
    32.0
    """
    check_number("spectral_norm", spectral_norm, 0.0, open_low=True)
    return sqrt(check_number("rows", rows, 1.0)) * sqrt(check_number("columns", columns, 1.0)) / spectral_norm


def embedding_dimension(n: int, k: int, randomised: bool = False) -> float:
    """The least dimension of an embedding on which linear classifiers give all (n, k)-parities: √C(n, k).

    With `randomised` the embedding may be drawn and need serve each parity with probability 1/N only (Theorem 1):
    C(n, k)^{1/3}.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.embedding_dimension(20, 3), 2)
    33.76
    """
    n = check_integer("n", n, 1)
    # By the logarithm: C(n, k) itself may be past the floats.
    exponent = log(comb(n, check_integer("k", k, 0, n))) / (3 if randomised else 2)
    return exp(exponent) if exponent < 709 else inf


def halfspace_accuracy(k: int) -> float:
    """The highest accuracy on D_A of sign(⟨w, x_A⟩ − t) with integer weights |w_j| ≤ 5.

    0.875 for k = 3, 0.84375 for k = 5, 0.828125 for k = 7. Every threshold function of five bits or fewer has weights
    of at most 5, so for k ≤ 5 this is the best half-space of all; for larger k it is found among small weights.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.halfspace_accuracy(3)
    0.875
    """
    k = check_odd(check_integer("k", k, 3, 9, "the half-spaces of more bits are too many to try"))
    X = cube(k).astype(np.int64)
    mass = np.full(2**k, 2.0 ** -(k + 1))
    mass[[0, -1]] += 0.25
    signed = mass * X.prod(axis=1)
    best = 0.0
    # Mass and label do not change when coordinates are permuted, so ascending weights suffice.
    candidates = combinations_with_replacement(range(-5, 6), k)
    while block := list(islice(candidates, 2000)):
        scores = X @ np.array(block).T
        order = np.argsort(scores, axis=0)
        ranked = np.take_along_axis(scores, order, axis=0)
        below = np.cumsum(signed[order], axis=0)
        # A threshold fits only between different scores; the label sum is 0 by symmetry.
        correlation = np.where(ranked[1:] != ranked[:-1], np.abs(2 * below[:-1]), 0.0)
        best = max(best, float(correlation.max()))
    return (1 + best) / 2
