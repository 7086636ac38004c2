"""Learning under the uniform distribution by the low-degree algorithm (sparse-activations, Lemma 7 and Theorem 8)."""

from __future__ import annotations

import math

from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import check_accuracy, check_class, from_log10, log10, power, product
from fewfire.papers.sparse_activations.statements._sensitivity import (
    average_sensitivity_mostly_sparse,
    average_sensitivity_sharp,
)


def output_bound(n: int, k: int, W: float, B: float) -> float:
    """C_H = k(W√n + B): no network of the class exceeds it in absolute value on the cube (proof of Theorem 8).

    Section 2.1 defines C_H as sup h(x); sup |h(x)| is meant and used. The two agree on this class, which holds −h
    with every h.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.output_bound(n=100, k=3, W=1.0, B=2.0)
    36.0
    """
    check_class(n, k, k, W, B)
    return k * (W * math.sqrt(n) + B)


def _log10_low_degree(n: int, degree: float, output: float, epsilon: float, delta: float) -> float:
    """The decimal logarithm of `low_degree_samples`, finite where that is infinite."""
    check_integer("n", n, 1)
    check_number("degree", degree, 0.0)
    check_number("output", output, 0.0)
    check_accuracy(epsilon, delta)
    scale = 2 * log10(output) + log10(math.log(1 / delta)) - log10(epsilon)
    return degree * log10(n) + scale


def low_degree_samples(n: int, degree: float, output: float, epsilon: float, delta: float) -> float:
    """Lemma 7: n^degree · output² · log(1/delta)/epsilon samples suffice for the low-degree algorithm.

    Parameters
    ----------
    n : int
    degree : float
        d, such that every function of the class has Σ_{|T| > d} ĥ(T)² ≤ epsilon.
    output : float
        C_H, the largest |h(x)| of the class.
    epsilon, delta : float
        The learner is off by O(epsilon) with probability 1 − delta.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.low_degree_samples(20, 2.0, 1.0, epsilon=0.1, delta=0.01))
    18421
    >>> sparse_activations.low_degree_samples(1000, 200.0, 1.0, epsilon=0.1, delta=0.01)
    inf
    """
    return from_log10(_log10_low_degree(n, degree, output, epsilon, delta))


def degree(n: int, s: int, k: int, W: float, B: float, epsilon: float) -> float:
    """Theorem 8: d = ⌈(k⁸ W⁴ log(ns)⁴ + k⁶ B⁴ log s)/epsilon²⌉ leaves a tail of at most epsilon.

    A value above n is of no use: degree n always suffices. The derivation from Lemma 10 as printed loses a power of
    log(kW/epsilon); the statement is safe because `degree_sharp` implies it.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.degree(n=100, s=1000, k=2, W=1.0, B=1.0, epsilon=0.5), 1)
    17992248.0
    """
    check_class(n, s, k, W, B)
    check_accuracy(epsilon)
    weights = product(power(k, 8), power(W, 4), math.log(n * s) ** 4)
    biases = product(power(k, 6), power(B, 4), math.log(s))
    value = (weights + biases) / epsilon / epsilon
    return float(math.ceil(value)) if math.isfinite(value) else value


def degree_sharp(k: int, W: float, epsilon: float) -> float:
    """The smallest d with 4 k² W²/(d + 1) ≤ epsilon: the tail above it is at most epsilon, whatever n, s and B.

    Proof. (d + 1) Σ_{|T| > d} ĥ(T)² ≤ Σ_T |T| ĥ(T)² = AS(h) ≤ 4 k² W² (`average_sensitivity_sharp`). With the
    W = √log₂ s of Theorem 13 this is O(log s) at fixed k and epsilon, the exponent that is needed by that theorem.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.degree_sharp(k=3, W=1.0, epsilon=1.0)
    35.0
    """
    check_accuracy(epsilon)
    return _least_degree(average_sensitivity_sharp(k, W) / epsilon)


def degree_mostly_sparse(s: int, k: int, W: float, p: float, epsilon: float) -> float:
    """The smallest d with (4 k² + 2 p s²) W²/(d + 1) ≤ epsilon, so a tail of at most epsilon; see `degree_sharp`.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.degree_mostly_sparse(s=100, k=3, W=1.0, p=0.001, epsilon=1.0)
    55.0
    """
    check_accuracy(epsilon)
    return _least_degree(average_sensitivity_mostly_sparse(s, k, W, p) / epsilon)


def _least_degree(value: float) -> float:
    """The smallest d ≥ 0 with value/(d + 1) ≤ 1."""
    return float(max(0, math.ceil(value) - 1)) if math.isfinite(value) else value


def log10_samples(
    n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float, *, d: float | None = None
) -> float:
    """The decimal logarithm of `samples`, finite where that is infinite.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.log10_samples(n=20, s=100, k=3, W=1.0, B=1.0, epsilon=0.1, delta=0.01), 1)
    2849604301.7
    """
    used = degree(n, s, k, W, B, epsilon) if d is None else d
    if math.isinf(used):
        return math.inf
    return _log10_low_degree(n, used, output_bound(n, k, W, B), epsilon, delta)


def samples(
    n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float, *, d: float | None = None
) -> float:
    """Theorem 8: n^d k² (W√n + B)² log(1/delta)/epsilon samples and time suffice under uniform inputs.

    Parameters
    ----------
    n, s, k, W, B : the class
    epsilon, delta : float
    d : float, optional
        The degree; that of Theorem 8 unless given (`degree_sharp` is far smaller).

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.samples(n=20, s=100, k=2, W=1.0, B=1.0, epsilon=0.1, delta=0.01, d=3) > 1000
    True
    """
    return from_log10(log10_samples(n, s, k, W, B, epsilon, delta, d=d))
