"""The bounds of sparse-activations on sensitivities, degrees, samples and time, in the order of the paper.

Under the uniform distribution (Lemmas 6, 7, 9, 10, Theorem 8). Conventions of section 2.1:
AS(f) = E[Σ_i ¼(f(x) − f(x^⊕i))²] = Σ_T |T| f̂(T)² and NS_ρ(f) = E[¼(f(x) − f(y))²] = Σ_T ½(1 − ρ^|T|) f̂(T)², y being
x with each sign flipped with probability (1 − ρ)/2. Remark 11 extends Theorem 8 to networks of which more than k
neurons fire with probability at most 1/poly(n, s), by a third term of the average sensitivity, and names no polynomial.
Here it is (s/k)², whatever n: a probability of (k/s)² costs half as much again as none.

What cannot be learned fast: Theorems 13 and 14.

Under any distribution (section 5): Rademacher complexity and sample counts. R ≥ ‖x‖ is the √n of the cube unless
given; eq. (15) takes another, for erratum 18.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import check_accuracy, check_class, log10, power, product


def halfspace_sensitivity(n: int, p: float) -> float:
    """Lemma 6: AS(g) ≤ p √(n log(1/p)) for the indicator g of a halfspace with E[g] = p.

    A constant of 1/√2 suffices: AS(g) = ½ E[g(x) Σ_i ±x_i] for a halfspace, and the mean of the sub-Gaussian Σ_i ±x_i
    on a set of measure p is at most √(2n log(1/p)). (The proof prints ¼ E[g(x) Σ_i x_i], half of the true value.)

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.halfspace_sensitivity(n=100, p=0.01), 3)
    0.215
    """
    check_integer("n", n, 1)
    check_number("p", p, 0.0, 1.0)
    return p * math.sqrt(n * math.log(1 / p)) if p else 0.0


def average_sensitivity(n: int, s: int, k: int, W: float, B: float) -> float:
    """Lemma 9: AS(h) ≤ k⁴ W² √n log(ns) + k³ B² √log s for h in the class, ns ≥ 2.

    The statement holds, but not by the printed proof, whose last step drops a factor √log(s/k) of the first term
    and √n of the second; `average_sensitivity_sharp` proves it with constant 4/log 2 < 5.8.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.average_sensitivity(n=100, s=1000, k=2, W=1.0, B=1.0), 2)
    1863.09
    """
    check_class(n, s, k, W, B)
    weights = product(power(k, 4), power(W, 2), math.sqrt(n), math.log(n * s))
    biases = product(power(k, 3), power(B, 2), math.sqrt(math.log(s)))
    return weights + biases


def average_sensitivity_sharp(k: int, W: float) -> float:
    """AS(h) ≤ 4 k² W² for h in the class, whatever n, s and B: Lemma 9 without its logarithms, and best possible.

    Proof. Let R_x be the neurons active at x, and y = x^⊕i. Only the at most 2k neurons of R_x ∪ R_y contribute to
    h(x) − h(y), and each by at most 2|u_j w_ji| since σ is 1-Lipschitz. By Cauchy–Schwarz ¼(h(x) − h(y))² is at most
    2k Σ_j (u_j w_ji)² (1[j ∈ R_x] + 1[j ∈ R_y]). Sum over i and take the mean over x, under which x and y are alike:
    4k E Σ_{j ∈ R_x} u_j² ‖w_j‖² ≤ 4 k² W².

    It is attained: Σ_α χ(α) σ(⟨α, x⟩ − p + 2) over the patterns α of p ≥ 2 inputs is twice their parity, with one
    active neuron, W² = p and AS = 4p; k copies of it attain 4 k² W².

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.average_sensitivity_sharp(k=2, W=1.0)
    16.0
    """
    check_integer("k", k, 1)
    check_number("W", W, 0.0)
    return product(4.0, power(k, 2), power(W, 2))


def average_sensitivity_mostly_sparse(s: int, k: int, W: float, p: float) -> float:
    """Remark 11: AS(h) ≤ (4 k² + 2 p s²) W² where more than k of the s neurons fire with probability at most p.

    Proof. Let V be the inputs on which more than k fire. Pairs x, y = x^⊕i of which neither is in V give at most
    4 k² W², as in `average_sensitivity_sharp`. For x in V, ¼(h(x) − h(y))² ≤ (Σ_j |u_j w_ji|)² ≤ s Σ_j (u_j w_ji)²,
    which over all i is at most s² W²: p s² W² in the mean, and as much again for y in V.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.average_sensitivity_mostly_sparse(s=100, k=3, W=1.0, p=0.001)
    56.0
    """
    s = check_integer("s", s, 1)
    check_integer("k", k, 1, s, "no more neurons can fire than there are")
    check_number("p", p, 0.0, 1.0)
    return average_sensitivity_sharp(k, W) + product(2.0, p, power(s, 2), power(W, 2))


def exceedance_allowed(s: int, k: int) -> float:
    """The 1/poly(n, s) of Remark 11: at Pr[more than k fire] ≤ (k/s)² the bound on AS is at most 1.5 times 4 k² W².

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> 0 < sparse_activations.exceedance_allowed(s=1000, k=2) < 1
    True
    """
    s = check_integer("s", s, 1)
    return (check_integer("k", k, 1, s, "no more neurons can fire than there are") / s) ** 2


def noise_sensitivity(rho: float, n: int, s: int, k: int, W: float, B: float) -> float:
    """Lemma 10: NS_ρ(h) ≤ √(1 − ρ) (k⁴ W² log²(ns/(1 − ρ)) + k³ B² √log s), for ρ in [0, 1).

    The paper writes ρ ∈ [−1, 1], but the reduction of its proof to average sensitivity needs ρ ≥ 0: at ρ < 0 it
    flips one bucket of all inputs, under which an even function such as x_1 x_2 never changes.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.noise_sensitivity(0.9, n=100, s=1000, k=2, W=1.0, B=1.0), 2)
    972.37
    """
    check_number("rho", rho, 0.0, 1.0, open_high=True)
    check_class(n, s, k, W, B)
    weights = product(power(k, 4), power(W, 2), math.log(n * s / (1 - rho)) ** 2)
    biases = product(power(k, 3), power(B, 2), math.sqrt(math.log(s)))
    return math.sqrt(1 - rho) * (weights + biases)


def noise_sensitivity_sharp(rho: float, k: int, W: float) -> float:
    """NS_ρ(h) ≤ 2 (1 − ρ) k² W² for h in the class and ρ in [−1, 1].

    Proof. 1 − ρ^t ≤ t(1 − ρ), so NS_ρ(h) ≤ ½(1 − ρ) Σ_T |T| ĥ(T)² = ½(1 − ρ) AS(h); then `average_sensitivity_sharp`.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.noise_sensitivity_sharp(rho=0.9, k=3, W=1.0), 3)
    1.8
    """
    check_number("rho", rho, -1.0, 1.0)
    return product((1 - rho) / 2, average_sensitivity_sharp(k, W))


def tail(noise_sensitivity: float, rho: float, degree: int) -> float:
    """Claim 2.1: Σ_{|T| > degree} f̂(T)² ≤ 2 NS_ρ(f)/(1 − ρ^degree), for ρ in [0, 1) and degree ≥ 1.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.tail(noise_sensitivity=0.1, rho=0.9, degree=10), 3)
    0.307
    """
    check_number("noise_sensitivity", noise_sensitivity, 0.0)
    check_number("rho", rho, 0.0, 1.0, open_high=True)
    check_integer("degree", degree, 1)
    return 2 * noise_sensitivity / -math.expm1(degree * math.log(rho)) if rho else 2 * noise_sensitivity


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
    check_integer("n", n, 1)
    check_number("degree", degree, 0.0)
    check_number("output", output, 0.0)
    check_accuracy(epsilon, delta)
    scale = 2 * log10(output) + log10(math.log(1 / delta)) - log10(epsilon)
    return degree * log10(n) + scale


def low_degree_samples(n: int, degree: float, output: float, epsilon: float, delta: float) -> float:
    """Lemma 7: n^degree · output² · log(1/delta)/epsilon samples suffice for the low-degree algorithm.

    Every function of the class has Σ_{|T| > degree} ĥ(T)² ≤ epsilon, and |h(x)| ≤ output = C_H everywhere.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.low_degree_samples(20, 2.0, 1.0, epsilon=0.1, delta=0.01))
    18421
    >>> sparse_activations.low_degree_samples(1000, 200.0, 1.0, epsilon=0.1, delta=0.01)
    inf
    """
    return power(10.0, _log10_low_degree(n, degree, output, epsilon, delta))


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

    The degree d is that of Theorem 8 unless given (`degree_sharp` is far smaller).

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.samples(n=20, s=100, k=2, W=1.0, B=1.0, epsilon=0.1, delta=0.01, d=3) > 1000
    True
    """
    return power(10.0, log10_samples(n, s, k, W, B, epsilon, delta, d=d))


class JuntaClass(NamedTuple):
    """The class H(n, s, 1) with scales W and B that holds every junta of p variables with values ±1."""

    s: int
    W: float
    B: float


def junta_class(p: int) -> JuntaClass:
    """Theorem 13: what a 1-sparse network needs to hold every ±1 function of p variables: 2^p neurons, √p and p − 1.

    The theorem prints B = p; its construction, of bias p − 1, shows a little more.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.junta_class(4)
    JuntaClass(s=16, W=2.0, B=3.0)
    """
    p = check_integer("p", p, 1)
    return JuntaClass(2**p, math.sqrt(p), float(p - 1))


def junta_size(s: int) -> int:
    """Theorem 13: the largest p = ⌊log₂ s⌋ for which s neurons hold every junta of p variables.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.junta_size(1000)
    9
    """
    return check_integer("s", s, 1).bit_length() - 1


def log10_junta_time(n: int, s: int) -> float:
    """Theorem 13: log10 of n^(log₂ s), below which no learner of the class can run for a small constant.

    It assumes Conjecture 12 (juntas of p variables take time n^Ω(p)), and W ≥ √log₂ s, B ≥ log₂ s.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.log10_junta_time(n=100, s=1024), 3)
    20.0
    """
    check_integer("n", n, 1)
    check_integer("s", s, 1)
    return math.log2(s) * log10(n)


def parity_queries(m: int, tolerance: float) -> float:
    """Theorem 14: learning parities of m variables to error 1/3 takes 2^m τ² statistical queries, τ the tolerance.

    The parity is of an unknown subset of the variables, inputs are uniform, an answer may be off by τ.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_queries(20, tolerance=0.1))
    10486
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0)
    return product(power(2.0, m), tolerance * tolerance)


def parity_queries_explicit(m: int, tolerance: float) -> float:
    """Theorem 14 with its constant: (2^m − 9) τ² queries at least, when every parity must be learned to error 1/3.

    Proof. A query φ(x, y) = φ₀(x) + y φ₁(x), |φ₁| ≤ 1, has mean E φ₀ + φ̂₁(S) for the parity of S. By Parseval fewer
    than 1/τ² sets have |φ̂₁(S)| > τ, so the answer E φ₀ is admissible for all the others: q queries rule out fewer
    than q/τ² parities. A hypothesis of error at most 1/3 has correlation at least 1/3 with the target,
    and by Parseval with at most 9 parities. So 2^m − q/τ² > 9 leaves a parity that is not learned.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_queries_explicit(m=20, tolerance=0.1))
    10486
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0)
    return product(max(0.0, power(2.0, m) - 9), tolerance * tolerance)


def parity_success_explicit(m: int, tolerance: float, queries: int) -> float:
    """The largest probability of learning a uniformly random parity: (q/τ² + 9)/2^m, at most 1.

    For an oracle that answers E φ₀ whenever it may (see `parity_queries_explicit`): until one of the queries rules
    the target in, all targets not ruled out see the same answers and get the same hypothesis.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_success_explicit(m=20, tolerance=0.1, queries=1000), 3)
    0.095
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0, open_low=True)
    check_integer("queries", queries, 0)
    return min(1.0, (queries / tolerance**2 + 9) * power(2.0, -m))


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
