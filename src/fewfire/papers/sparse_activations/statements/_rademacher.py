"""Learning under any distribution (sparse-activations, section 5): Rademacher complexity and sample counts.

R ≥ ‖x‖ is the √n of the cube unless given; eq. (15) takes another, for erratum 18.
"""

from __future__ import annotations

import math

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import check_accuracy, check_class, power, product

MAX_SAMPLES = 2**200  # where the search for a sample count gives up and returns infinity


def rademacher(n: int, s: int, k: int, W: float, B: float, m: int, *, R: float | None = None) -> float:
    """Eq. (15), with k = 1 Theorem 19: (WR + B) √(s n k log(km(R + B)))/√m.

    The proof has a constant above 4, the statement none. The logarithm needs km(R + B) > 1, which is not a matter of
    the class: dividing inputs by c and multiplying W by c leaves every network as it is, but moves R. What the proof
    supports is log m; `rademacher_explicit` has it, and its constants.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.rademacher(n=100, s=1000, k=2, W=1.0, B=1.0, m=10_000), 2)
    172.54
    """
    radius = _check(n, s, k, W, B, m, R)
    inside = k * m * (radius + B)
    if inside <= 1:
        raise invalid("k·m·(R + B)", "must be above 1 for the logarithm of the bound", inside, "scale the inputs up")
    return (W * radius + B) * math.sqrt(s * n * k * math.log(inside) / m)


def rademacher_conjectured(n: int, s: int, k: int, W: float, B: float, m: int) -> float:
    """Conjecture 20: (WR + B) √(sk)/√m; n enters only through R.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.rademacher_conjectured(n=100, s=64, k=4, W=1.0, B=2.0, m=10_000)
    1.92
    """
    radius = _check(n, s, k, W, B, m)
    return (W * radius + B) * math.sqrt(s * k / m)


def rademacher_classical(n: int, s: int, W: float, B: float, m: int) -> float:
    """The classical bound without activation sparsity: (WR + B) s/√m.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.rademacher_classical(n=100, s=64, W=1.0, B=2.0, m=10_000)
    7.68
    """
    radius = _check(n, s, s, W, B, m)
    return (W * radius + B) * s / math.sqrt(m)


def rademacher_explicit(n: int, s: int, k: int, W: float, B: float, m: int, *, R: float | None = None) -> float:
    """Eq. (15) with every constant: (WR + B) √(2 s k log(2nN)/m), N = 2 Σ_{i ≤ n} C(m − 1, i), capped at k(WR + B).

    Proof. The samples I_j that activate neuron j are one of at most N sets (Cover's count of what a halfspace cuts
    off m points). For a set I and a coordinate p, ±Σ_{i∈I} ζ_i x_ip/√(Σ_I x_ip²) is sub-Gaussian of variance 1, so the
    largest M of these 2nN numbers has mean at most √(2 log(2nN)), and ‖Σ_{I_j} ζ_i x_i‖ ≤ M R √|I_j| for all j at
    once; in the same way |Σ_{I_j} ζ_i| ≤ M' √|I_j| with M' the largest of 2N numbers. Finally
    Σ_j √|I_j| ≤ √(s Σ_j |I_j|) ≤ √(s k m), and |h(x)| ≤ k(WR + B) always.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.rademacher_explicit(n=10, s=64, k=1, W=1.0, B=2.0, m=1_000_000), 3)
    0.658
    """
    radius = _check(n, s, k, W, B, m, R)
    cuts = 2 * sum(math.comb(m - 1, i) for i in range(min(n, m - 1) + 1))
    return (W * radius + B) * min(k, math.sqrt(2 * s * k * math.log(2 * n * cuts) / m))


def general_samples(n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float) -> float:
    """Theorem 17: ((WR + B)² k s n log(k(R + B)/epsilon) + log(1/delta))/epsilon² samples, any distribution.

    It does not follow from Lemma 18, which multiplies the Rademacher complexity by C_H = k(WR + B): solving that
    lemma gives (WR + B)⁴ k³ instead of (WR + B)² k, and a logarithm that also grows with s, n and W
    (`rademacher_samples`).

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.general_samples(n=20, s=100, k=3, W=1.0, B=1.0, epsilon=0.1, delta=0.01) / 1e6)
    92
    """
    radius = _check(n, s, k, W, B, 1)
    check_accuracy(epsilon, delta)
    inside = k * (radius + B) / epsilon
    if inside <= 1:
        raise invalid(
            "epsilon", "must be below k(R + B) for the logarithm of the bound", epsilon, "ask for a smaller epsilon"
        )
    main = product(power(W * radius + B, 2), k * s * n, math.log(inside))
    return (main + math.log(1 / delta)) / epsilon / epsilon


def rademacher_samples(n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float) -> float:
    """Lemma 18 with eq. (15): the smallest m with C_H 𝓡 + √(log(1/delta)/m) ≤ epsilon, C_H = k(WR + B).

    Returns infinity past 2²⁰⁰ samples.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.rademacher_samples(100, 1000, 2, 1.0, 1.0, epsilon=0.1, delta=0.01) > 0
    True
    """
    radius = _check(n, s, k, W, B, 1)
    check_accuracy(epsilon, delta)
    scale = W * radius + B

    def enough(m: int) -> bool:
        # log(e + ·) is the logarithm of eq. (15) kept positive, so that the bound falls with m from the start.
        complexity = scale * math.sqrt(s * n * k * math.log(math.e + k * m * (radius + B)) / m)
        return k * scale * complexity + math.sqrt(math.log(1 / delta) / m) <= epsilon

    high = 1
    while not enough(high):
        high *= 2
        if high > MAX_SAMPLES:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def _check(n: int, s: int, k: int, W: float, B: float, m: int, R: float | None = None) -> float:
    check_class(n, s, k, W, B)
    check_integer("m", m, 1)
    return math.sqrt(n) if R is None else check_number("R", R, 0.0)
