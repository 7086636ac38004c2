"""Lemmas 7 to 20 of pareto, corrected where they fail (docs/errata.md, rows 4, 9, 19 to 21, 47, 48, 54 and 58).

- Lemmas 7 and 15: how many neurons start lucky. r′ is the expected number, with the exact probability.
- Lemmas 8, 18, 19 and 20: the population gradient E[∂h_w/∂w_i·χ_S] at the start of one ReLU neuron against a parity. A
  neuron is *good* when its s ones contain the support (over-sparse, s > k) or lie in it (under-sparse, s < k). Its
  gradient then takes one value on the relevant coordinates that are still to be found and another on the irrelevant
  ones; a sample must resolve their gap. Lemmas 18 and 19 take any neuron with weight 1 on s coordinates S′ and less
  than 1/(n − s) on the others, s and k even, s < k. With ties of Maj counted as −1 they are true for even n too, where
  the closed form of Lemma 17 is not.
- Lemma 17: coefficients of Maj(x) = sign(Σ x_i), sign(0) = −1, and of Half(x) = 1 if Σ x_i = 0 else 0, at a set of
  given size. Half at odd length is 0; Maj at even length n is Maj_{n+1} averaged over a further coordinate, minus
  Half_n.
- B.2.2, the separator: output weights that make a parity of the features after one step. Good neurons become
  σ(±z/(2k) + β_i), z = Σ_{j∈S} x_j ∈ {−k, −k+2, …, k}, i = 0 … k/2 − 1.
- Lemmas 10 to 14: the steps of Theorem 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, exp, log, sqrt

import numpy as np

from fewfire._errors import invalid
from fewfire._types import Float64Array
from fewfire._validate import check_integer, check_number
from fewfire.networks.init._sparse import over_sparse_biases


def check_even(name: str, value: int, statement: str, remedy: str = "the theorem does not treat odd ones") -> None:
    """Refuse an odd number that a statement excludes."""
    if value % 2:
        raise invalid(name, f"must be even ({statement})", value, remedy)


def good_neuron_probability(n: int, k: int, s: int) -> float:
    """The probability that s random ones contain the support (s ≥ k), or lie in it (s < k).

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.good_neuron_probability(50, 3, s=10), 4)
    0.0061
    """
    n = check_integer("n", n, 1)
    k, s = check_integer("k", k, 0, n), check_integer("s", s, 0, n)
    return comb(n - k, s - k) / comb(n, s) if s >= k else comb(k, s) / comb(n, s)


def good_neurons(n: int, k: int, s: int, width: int) -> float:
    """r′: the expected number of good neurons of each bias, in a network of `width` neurons in mirrored pairs.

    A bias is drawn from k/2 values where s ≥ k (B.2.2, corrected), from k where s < k (B.3).

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.good_neurons(50, 3, s=10, width=1000), 2)
    3.06
    """
    return check_integer("width", width, 2) / 2 * good_neuron_probability(n, k, s) / _biases(k, s)


def width_for_good_start(n: int, k: int, s: int, delta: float = 0.01) -> int:
    """Lemma 15, corrected: a width that gives every bias between r′/2 and 2r′ good neurons but with probability δ.

    By Chernoff the two tails are at most exp(−r′/8) and exp(−r′/3); r′ solves biases·(their sum) = δ.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.width_for_good_start(50, 3, s=10)
    12050
    """
    delta = check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    choices = _biases(k, s)
    expected = 8 * log(2 * choices / delta)
    while choices * (exp(-expected / 8) + exp(-expected / 3)) < delta:
        expected -= 0.5
    expected += 0.5
    return 2 * ceil(expected * choices / good_neuron_probability(n, k, s))


def _biases(k: int, s: int) -> int:
    return max(1, k // 2) if s >= k else k


def half_coefficient(n: int, size: int) -> float:
    """The coefficient of Half, the indicator of Σ x_i = 0 on {±1}ⁿ, at a set of `size` coordinates.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.half_coefficient(4, 2)
    -0.125
    """
    n = check_integer("n", n, 0)
    size = check_integer("size", size, 0, n)
    if n % 2 or size % 2:
        return 0.0
    m, j = n // 2, size // 2
    # Python divides integers of any length with one rounding.
    magnitude = comb(m, j) * comb(2 * m, m) / (comb(2 * m, 2 * j) << 2 * m)
    return -magnitude if j % 2 else magnitude


def majority_coefficient(n: int, size: int) -> float:
    """The coefficient of Maj = sign(Σ x_i) on {±1}ⁿ, sign(0) = −1, at a set of `size` coordinates.

    For odd n there are no ties, and sets of even size have coefficient 0.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.majority_coefficient(3, 1), pareto.majority_coefficient(3, 3)
    (0.5, -0.5)
    """
    n = check_integer("n", n, 1)
    size = check_integer("size", size, 0, n)
    if size % 2 == 0:
        return -half_coefficient(n, size) if n % 2 == 0 else 0.0
    return half_coefficient(n - 1 if n % 2 else n, size - 1)


@dataclass(frozen=True)
class FourierGap:
    """The gradient of a good neuron on relevant and on irrelevant coordinates."""

    relevant: float
    irrelevant: float

    @property
    def precision(self) -> float:
        """Half the distance of the magnitudes: a gradient of this precision separates the coordinates."""
        return (abs(self.relevant) - abs(self.irrelevant)) / 2


def over_sparse_gap(k: int, s: int) -> FourierGap:
    """Lemma 8: C_{k,s} = ½ Maj_s(k−1) on the support, c_{k,s} = ½ Maj_s(k+1) on the neuron's other s − k ones.

    Coordinates where the neuron has no weight get 0 (the proof has S∖w for w∖S: docs/errata.md, row 47). The ratio
    |c/C| is exactly (k − 1)/(s − k), below the lemma's 4k/s. A bias in (−1, 1) changes nothing, because the sum of s
    signs is odd.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.over_sparse_gap(k=2, s=9)
    FourierGap(relevant=0.13671875, irrelevant=-0.01953125)
    """
    k, s = check_integer("k", k, 2), check_integer("s", s, 3)
    check_even("k", k, "pareto, Lemma 8", "the coefficients of Maj at odd k vanish")
    if s % 2 == 0 or s < k + 1:
        raise invalid("s", f"must be odd and above k = {k} (pareto, Lemma 8)", s, "choose an odd sparsity")
    return FourierGap(majority_coefficient(s, k - 1) / 2, majority_coefficient(s, k + 1) / 2)


def under_sparse_gap(n: int, k: int, s: int) -> FourierGap:
    """Lemma 20: ½ Half_s(s) Maj_{n−s}(k−s−1) on the rest of the support, ½ Half_s(s) Maj_{n−s}(k−s+1) off it.

    The neuron has weight 1 on s coordinates of the support, where its gradient is 0, and less than 1/(n − s)
    elsewhere. The ratio is exactly (n − k)/(k − s − 1).

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> gap = pareto.under_sparse_gap(n=31, k=6, s=2)
    >>> abs(gap.relevant) > abs(gap.irrelevant)
    True
    """
    n, k, s, _ = _under_sparse(n, k, s, s, "pareto, Lemma 20")
    if n % 2 == 0:
        raise invalid("n", "must be odd, so that n − s is (pareto, Lemma 17)", n, "ties break the closed form")
    return FourierGap(lemma_18(n, k, s, s, selected=False), lemma_19(n, k, s, s, selected=False))


def lemma_18(n: int, k: int, s: int, overlap: int, *, selected: bool) -> float:
    """The gradient at a coordinate i of the parity: ½·Half_s(S̄∖{i})·Maj_{n−s}(S∖(S̄ ∪ {i})), S̄ = S ∩ S′.

    k and s are even, s < k; `overlap` is |S̄|, how many of the neuron's ones are in S; `selected` is whether i is one of
    them.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.lemma_18(n=31, k=6, s=2, overlap=2, selected=False), 5)
    0.00138
    """
    n, k, s, overlap = _under_sparse(n, k, s, overlap, "pareto, Lemmas 18 and 19")
    if selected and overlap == 0:
        raise invalid("selected", "must be False where no coordinate of the parity is selected", selected)
    outside = k - overlap - (not selected)
    return half_coefficient(s, overlap - selected) * majority_coefficient(n - s, outside) / 2


def lemma_19(n: int, k: int, s: int, overlap: int, *, selected: bool) -> float:
    """The gradient at a coordinate i off the parity: ½·Half_s(S̄ ∪ (S′ ∩ {i}))·Maj_{n−s}((S ∪ {i})∖S′).

    n, k, s and `overlap` are as in `lemma_18`; `selected` is whether i is one of the neuron's ones.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.lemma_19(n=31, k=6, s=2, overlap=2, selected=False), 5)
    -0.00017
    """
    n, k, s, overlap = _under_sparse(n, k, s, overlap, "pareto, Lemmas 18 and 19")
    if selected and overlap == s:
        raise invalid("selected", "must be False where every one of the neuron is in the parity", selected)
    if not selected and n - s - (k - overlap) < 1:
        raise invalid("selected", "must be True where every other coordinate is in the parity or selected", selected)
    outside = k - overlap + (not selected)
    return half_coefficient(s, overlap + selected) * majority_coefficient(n - s, outside) / 2


def separator_features(k: int, z: Float64Array, offset: float = 0.5) -> Float64Array:
    """1, σ(z/2k + β_i) and σ(−z/2k + β_i) for each value of z, β_i = (−k + 2i + offset)/(2k); shape (len(z), k + 1)."""
    check_even("k", check_integer("k", k, 2), "pareto, Theorem 4")
    biases = over_sparse_biases(k, check_number("offset", offset, 0.0, 1.0, open_low=True, open_high=True))
    slope = np.asarray(z, dtype=np.float64)[:, None] / (2 * k)
    columns = [np.ones_like(slope), np.maximum(slope + biases, 0.0), np.maximum(-slope + biases, 0.0)]
    return np.concatenate(columns, axis=1)


def separator_coefficients(k: int, offset: float = 0.5) -> Float64Array:
    """ν with Σ ν·features = χ_S = (−1)^((k − z)/2) on all values of z; shape (k + 1,).

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.separator_coefficients(2).round(9)  # features 1, σ(z/4 − 3/8) and σ(−z/4 − 3/8)
    array([-1., 16., 16.])
    """
    z = np.arange(-k, k + 1, 2, dtype=np.float64)
    parity = (-1.0) ** ((k - z) / 2)
    return np.asarray(np.linalg.solve(separator_features(k, z, offset), parity))


def separator_norm(k: int, offset: float = 0.5) -> float:
    """B_k = ‖ν‖₂: 23, 231, 1205, 5059 for k = 2, 4, 6, 8; with the printed offset 1/16 1.2·10⁴ at 4, 2.3·10⁷ at 8.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> [round(pareto.separator_norm(k)) for k in (2, 4, 6, 8)]
    [23, 231, 1205, 5059]
    """
    return float(np.linalg.norm(separator_coefficients(k, offset)))


def lemma_10(n: int, width: int, precision: float, delta: float = 0.01) -> int:
    """Samples for which every entry of the first layer's gradient is within τ of its mean: 4·log(4nr/δ)/τ².

    r is the width, τ the precision; δ is the probability of failure.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.lemma_10(n=50, width=100, precision=0.01)
    580347
    """
    delta = check_number("delta", delta, 0.0, 0.5, open_low=True, open_high=True)
    n, width = check_integer("n", n, 1), check_integer("width", width, 1)
    tau = check_number("precision", precision, 0.0, open_low=True)
    return ceil(4 * log(4 * n * width / delta) / tau**2)


LEMMA_14_LOSS = 4 + 5 * sqrt(2)  # what Lemma 14 ends at, in units of ε; printed as 7 (docs/errata.md, row 54)


@dataclass(frozen=True)
class OverSparseStep:
    """What one step of gradient descent leaves of the features (Lemma 11).

    `rate` is η = 1/(2k|C_{k,s}|), `precision` the largest τ that is allowed, 1/(16ηkn), and `norm` is B_k. `features`
    is the bound √(8kr′) of ‖ψ‖_{∞,2}, `loss` that of the best weights of norm B_k on ψ, √(4kr′)·B_k/√s, and `drift` the
    bound 4kr′nητ of ‖ψ − φ⁽¹⁾‖_{∞,2}.
    """

    rate: float
    precision: float
    features: float
    loss: float
    norm: float
    drift: float


def lemma_11(n: int, k: int, s: int, good: float) -> OverSparseStep:
    """The features after the first step of an r′-good start, but for the probability that Lemma 10 fails.

    k is even, s odd and above 4k; `good` is r′, the good neurons per bias.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> step = pareto.lemma_11(n=50, k=2, s=9, good=100)
    >>> round(step.norm, 1)
    22.6
    """
    k = check_integer("k", k, 2)
    s = check_integer("s", s, 4 * k + 1, remedy="pareto, Lemma 8, asks for s > 4k")
    n = check_integer("n", n, s)
    good = check_number("good", good, 0.0, open_low=True)
    rate = 1 / (2 * k * abs(over_sparse_gap(k, s).relevant))
    tau = 1 / (16 * rate * k * n)
    norm = separator_norm(k)
    return OverSparseStep(
        rate=rate,
        precision=tau,
        features=sqrt(8 * k * good),
        loss=sqrt(4 * k * good) * norm / sqrt(s),
        norm=norm,
        drift=4 * k * good * n * rate * tau,
    )


def lemma_13(norm: float, features: float, samples: int, delta: float = 0.01, distance: float = 0.0) -> float:
    """How far the loss can be above that on the sample, for every w of norm B and every map within `distance` of ψ.

    2B‖ψ‖/√m + (1 + B‖ψ‖)·√(2·log(2/δ)/m) + 2B·‖ψ − ψ′‖, as the theorem that the proof cites has it. The paper merges
    the first two terms into (2B‖ψ‖ + 1)·√(2·log(2/δ)/m), which is no less only for δ ≤ 2/e² = 0.27. `norm` is B,
    `features` is ‖ψ‖_{∞,2}, `samples` is m, and δ the probability of failure.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.lemma_13(norm=23.0, features=1.0, samples=1_000_000), 3)
    0.124
    >>> round(pareto.lemma_13(norm=23.0, features=1.0, samples=4_000_000), 3)
    0.062
    """
    delta = check_number("delta", delta, 0.0, 0.5, open_low=True, open_high=True)
    size = check_number("norm", norm, 0.0) * check_number("features", features, 0.0)
    root = sqrt(check_integer("samples", samples, 1))
    spread = 2 * size / root + (1 + size) * sqrt(2 * log(2 / delta)) / root
    return spread + 2 * norm * check_number("distance", distance, 0.0)


@dataclass(frozen=True)
class SecondLayerNeeds:
    """What descent on the second layer needs, and what it reaches (Lemma 14): m samples, T steps, decay λ = ε/B².

    `drift` is the most that ‖φ⁽¹⁾ − ψ‖_{∞,2} may be, ε/B. `loss` is reached but with probability 2δ: (4 + √2 + 4√2)·ε,
    where 7ε is printed.
    """

    samples: float
    steps: float
    drift: float
    loss: float
    weight_decay: float


def lemma_14(norm: float, features: float, epsilon: float, delta: float = 0.01) -> SecondLayerNeeds:
    """Lemma 14, corrected: gradient descent on features near ψ, on which weights of norm B have loss ε.

    The printed number of steps lacks the factor B²: with λ = ε/B² the last term of the bound is
    100 B² (‖ψ‖ + ε/B)² (1 + log T)/(ε T), which is at most ε for T/(1 + log T) ≥ 100 (B‖ψ‖ + ε)²/ε². B (`norm`) times
    ‖ψ‖_{∞,2} (`features`) is at least 1. From δ = 2/e² = 0.27 on the paper's form of Lemma 13 is not what its source
    gives.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> needs = pareto.lemma_14(norm=23.0, features=1.0, epsilon=0.1)
    >>> needs.samples, needs.steps
    (9107392.0, 103831319.0)
    """
    delta = check_number("delta", delta, 0.0, 0.27, open_low=True)
    norm, features = check_number("norm", norm, 0.0, open_low=True), check_number("features", features, 0.0)
    epsilon = check_number("epsilon", epsilon, 0.0, 0.5, open_low=True, open_high=True)
    size = norm * features
    if size < 1:
        raise invalid("norm·features", "must be at least 1 (pareto, Lemma 14, Claim 2)", size, "take a larger norm")
    return SecondLayerNeeds(
        samples=float(ceil((4 * sqrt(2) * size + 1) ** 2 * log(2 / delta) / epsilon**2)),
        steps=_least_steps(100 * (size + epsilon) ** 2 / epsilon**2),
        drift=epsilon / norm,
        loss=LEMMA_14_LOSS * epsilon,
        weight_decay=epsilon / norm**2,
    )


def _under_sparse(n: int, k: int, s: int, overlap: int, statement: str) -> tuple[int, int, int, int]:
    k = check_integer("k", k, 2)
    n = check_integer("n", n, k + 1)
    s = check_integer("s", s, 0, k - 1, "in the under-sparse case s < k")
    if k % 2 or s % 2:
        rule = f"must be even ({statement})"
        raise invalid("k and s", rule, (k, s), "the coefficients of Half at odd sets vanish")
    return n, k, s, check_integer("overlap", overlap, max(0, s + k - n), s)


def _least_steps(ratio: float) -> float:
    """The least T with T/(1 + log T) ≥ ratio."""
    steps = ratio
    for _ in range(100):
        steps = ratio * (1 + log(steps))
    return float(ceil(steps))
