"""The steps of pareto's proofs, each callable by itself: Lemmas 10 to 14 (over-sparse), 18 and 19 (under-sparse).

`theorem_16` and `theorem_21` put them together. Lemmas 18 and 19, the population gradient E[∂h_w/∂w_i·χ_S] of one ReLU
neuron with weight 1 on s coordinates S′ and less than 1/(n − s) on the others, s and k even, s < k: a product of a
coefficient of Half on S′ and one of Maj off it, which depend only on how many coordinates of S are in S′ (`overlap`)
and where i is. With ties of Maj counted as −1 they hold for even n too, where the closed form of Lemma 17 does not.

Lemma 14, corrected. Claim 1 of its proof bounds the hinge loss by |h|, which is 0 where the loss is 1; 1 + B‖ψ‖ it is,
and Claim 2 survives for B‖ψ‖ ≥ 1. The weights end within 2√2·B, and not B, so that the features' drift costs
2·2√2·B·ε/B: the sum of the bounds is 4ε + √2·ε + 4√2·ε, below 11.1 ε, where 7ε is printed (and the printed terms add up
to 7.41 ε).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.theory.pareto._majority import half_coefficient, majority_coefficient, over_sparse_gap
from fewfire.theory.pareto._separator import separator_norm


def lemma_10(n: int, width: int, precision: float, delta: float = 0.01) -> int:
    """Samples for which every entry of the first layer's gradient is within τ of its mean: 4·log(4nr/δ)/τ².

    Parameters
    ----------
    n, width : int
        Bits and r neurons; n·r weights and r biases.
    precision : float
        τ.
    delta : float
        Probability of failure.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> pareto.lemma_10(n=50, width=100, precision=0.01)
    580347
    """
    n, width = check_integer("n", n, 1), check_integer("width", width, 1)
    tau = check_number("precision", precision, 0.0, open_low=True)
    return ceil(4 * log(4 * n * width / _delta(delta)) / tau**2)


LEMMA_14_LOSS = 4 + 5 * sqrt(2)
"""What Lemma 14 ends at, in units of ε; printed as 7 (docs/errata.md, row 54)."""


@dataclass(frozen=True)
class OverSparseStep:
    """What one step of gradient descent leaves of the features (Lemma 11).

    Attributes
    ----------
    rate : float
        η = 1/(2k|C_{k,s}|).
    precision : float
        The τ that is used, at most 1/(16ηkn).
    features : float
        ‖ψ‖_{∞,2} ≤ √(8kr′).
    loss : float
        Of the best weights of norm B_k on ψ: √(4kr′)·B_k/√s.
    norm : float
        B_k.
    drift : float
        ‖ψ − φ⁽¹⁾‖_{∞,2} ≤ 4kr′nητ.
    """

    rate: float
    precision: float
    features: float
    loss: float
    norm: float
    drift: float


def lemma_11(
    n: int, k: int, s: int, good: float, precision: float | None = None, *, offset: float = 0.5
) -> OverSparseStep:
    """The features after the first step of an r′-good start, but for the probability that Lemma 10 fails.

    Parameters
    ----------
    n, k, s : int
        Bits, degree and ones per neuron, k even, s odd and above 4k.
    good : float
        r′, good neurons per bias.
    precision : float
        τ; the largest that is allowed, 1/(16ηkn), unless given.
    offset : float
        Of the biases, as in `over_sparse_biases`.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> step = pareto.lemma_11(n=50, k=2, s=9, good=100)
    >>> round(step.norm, 1)
    22.6
    """
    k = check_integer("k", k, 2)
    s = check_integer("s", s, 4 * k + 1, remedy="pareto, Lemma 8, asks for s > 4k")
    n = check_integer("n", n, s)
    good = check_number("good", good, 0.0, open_low=True)
    rate = 1 / (2 * k * abs(over_sparse_gap(k, s).relevant))
    most = 1 / (16 * rate * k * n)
    tau = most if precision is None else check_number("precision", precision, 0.0, most, open_low=True)
    norm = separator_norm(k, offset)
    return OverSparseStep(
        rate=rate,
        precision=tau,
        features=sqrt(8 * k * good),
        loss=sqrt(4 * k * good) * norm / sqrt(s),
        norm=norm,
        drift=4 * k * good * n * rate * tau,
    )


def lemma_12(norm: float, distance: float) -> float:
    """How far the hinge losses of one w on two feature maps can be apart: ‖w‖·‖ψ − ψ′‖_{∞,2}.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> pareto.lemma_12(norm=23.0, distance=0.01)
    0.23
    """
    return check_number("norm", norm, 0.0) * check_number("distance", distance, 0.0)


def lemma_13(norm: float, features: float, samples: int, delta: float = 0.01, distance: float = 0.0) -> float:
    """How far the loss can be above that on the sample, for every w of norm B and every map within `distance` of ψ.

    2B‖ψ‖/√m + (1 + B‖ψ‖)·√(2·log(2/δ)/m) + 2B·‖ψ − ψ′‖, as the theorem that the proof cites has it. The paper merges
    the first two terms into (2B‖ψ‖ + 1)·√(2·log(2/δ)/m), which is no less only for δ ≤ 2/e² = 0.27.

    Parameters
    ----------
    norm, features : float
        B and ‖ψ‖_{∞,2}.
    samples : int
        m.
    delta : float
        Probability of failure.
    distance : float
        ‖ψ − ψ′‖_{∞,2}.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.lemma_13(norm=23.0, features=1.0, samples=1_000_000), 3)
    0.124
    >>> round(pareto.lemma_13(norm=23.0, features=1.0, samples=4_000_000), 3)
    0.062
    """
    size = check_number("norm", norm, 0.0) * check_number("features", features, 0.0)
    root = sqrt(check_integer("samples", samples, 1))
    spread = 2 * size / root + (1 + size) * sqrt(2 * log(2 / _delta(delta))) / root
    return spread + 2 * lemma_12(norm, distance)


@dataclass(frozen=True)
class SecondLayerNeeds:
    """What descent on the second layer needs, and what it reaches (Lemma 14).

    Attributes
    ----------
    samples, steps : float
        m and T.
    drift : float
        The most that ‖φ⁽¹⁾ − ψ‖_{∞,2} may be: ε/B.
    loss : float
        The loss that is reached but with probability 2δ: (4 + √2 + 4√2)·ε, where 7ε is printed.
    weight_decay : float
        λ = ε/B².
    """

    samples: float
    steps: float
    drift: float
    loss: float
    weight_decay: float


def lemma_14(norm: float, features: float, epsilon: float, delta: float = 0.01) -> SecondLayerNeeds:
    """Lemma 14, corrected: gradient descent on features near ψ, on which weights of norm B have loss ε.

    The printed number of steps lacks the factor B²: with λ = ε/B² the last term of the bound is
    100 B² (‖ψ‖ + ε/B)² (1 + log T)/(ε T), which is at most ε for T/(1 + log T) ≥ 100 (B‖ψ‖ + ε)²/ε².

    Parameters
    ----------
    norm, features : float
        B and ‖ψ‖_{∞,2}; their product is at least 1.
    epsilon : float in (0, 1/2)
    delta : float in (0, 0.27]
        From 2/e² on the paper's form of Lemma 13 is not what its source gives.

    Examples
    --------
    >>> from fewfire.theory import pareto
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


def lemma_18(n: int, k: int, s: int, overlap: int, *, selected: bool) -> float:
    """The gradient at a coordinate i of the parity: ½·Half_s(S̄∖{i})·Maj_{n−s}(S∖(S̄ ∪ {i})), S̄ = S ∩ S′.

    Parameters
    ----------
    n, k, s : int
        Bits, degree and ones of the neuron; k and s even, s < k.
    overlap : int
        |S̄|, how many of the ones are in S.
    selected : bool
        Whether i is one of them.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.lemma_18(n=31, k=6, s=2, overlap=2, selected=False), 5)
    0.00138
    """
    n, k, s, overlap = _under_sparse(n, k, s, overlap)
    if selected and overlap == 0:
        raise invalid("selected", "must be False where no coordinate of the parity is selected", selected)
    outside = k - overlap - (not selected)
    return half_coefficient(s, overlap - selected) * majority_coefficient(n - s, outside) / 2


def lemma_19(n: int, k: int, s: int, overlap: int, *, selected: bool) -> float:
    """The gradient at a coordinate i off the parity: ½·Half_s(S̄ ∪ (S′ ∩ {i}))·Maj_{n−s}((S ∪ {i})∖S′).

    Parameters
    ----------
    n, k, s, overlap : int
        As in `lemma_18`.
    selected : bool
        Whether i is one of the neuron's ones.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.lemma_19(n=31, k=6, s=2, overlap=2, selected=False), 5)
    -0.00017
    """
    n, k, s, overlap = _under_sparse(n, k, s, overlap)
    if selected and overlap == s:
        raise invalid("selected", "must be False where every one of the neuron is in the parity", selected)
    if not selected and n - s - (k - overlap) < 1:
        raise invalid("selected", "must be True where every other coordinate is in the parity or selected", selected)
    outside = k - overlap + (not selected)
    return half_coefficient(s, overlap + selected) * majority_coefficient(n - s, outside) / 2


def _under_sparse(n: int, k: int, s: int, overlap: int) -> tuple[int, int, int, int]:
    k = check_integer("k", k, 2)
    n = check_integer("n", n, k + 1)
    s = check_integer("s", s, 0, k - 1, "in the under-sparse case s < k")
    if k % 2 or s % 2:
        raise invalid("k and s", "must be even (pareto, Lemmas 18 and 19)", (k, s))
    least = max(0, s + k - n)
    return n, k, s, check_integer("overlap", overlap, least, s)


def _least_steps(ratio: float) -> float:
    """The least T with T/(1 + log T) ≥ ratio."""
    steps = ratio
    for _ in range(100):
        steps = ratio * (1 + log(steps))
    return float(ceil(steps))


def _delta(delta: float) -> float:
    return check_number("delta", delta, 0.0, 0.5, open_low=True, open_high=True)
