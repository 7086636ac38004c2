"""Neurons that fire and that change side, and how far that puts f from its pseudo-network g (sublinear, section 5).

m is `width`, τ is `threshold`. At the start of Definition 3.1 a preactivation z = ⟨w, x⟩ + b is N(0, (‖x‖² + 1)/m),
independent by neuron, so all counts are binomial and known exactly. The inverse of `expected_active` is
`fewfire.networks.init.activity_threshold`.

Lemma 5.15 bounds the neurons that fire by Q₀ = 2m·exp(−K²/(4m^(1/5))) at τ = K/m^(3/5). For a fixed K that tends to
2m: it is sublinear only when K grows like m^(1/10)·√log m (`activity_scale`), which Theorem 5.12 excludes.

Claims 5.2 and 5.16: a neuron that moves by ‖Δw‖ ≤ R can change on x when |z − τ| ≤ R‖x‖. The density at 0 bounds the
probability by R‖x‖·√(2m/(π(‖x‖² + 1))), the constant that the paper leaves open.

How f and g move with inputs and weights, measured and bounded.

f(x) = Σ_r a_r z_r 1[z_r > τ] with z_r = ⟨w_r, x⟩ + b_r; g(x) = Σ_r a_r ⟨w_r − w_{r,0}, x⟩ 1[z_{r,0} > τ], linear in the
weights. Definition 5.4 splits f = A + B + C with Φ_r = 1[z_r > τ]:

A = Σ a_r ⟨w_r − w_{r,0}, x⟩ Φ_r
B = Σ a_r z_{r,0} Φ_{r,0}                 the output at the start
C = Σ a_r z_{r,0} (Φ_r − Φ_{r,0})

Only neurons that changed side count in A − g and in C. The paper writes Φ with ≥ and σ_τ with >; here > stands in both.

How far they can be apart (Claims 5.5 to 5.7, Lemma 5.8, Theorem 5.1): with outputs ±m^(−1/5) and
‖w_r − w_{r,0}‖ ≤ R, at most F neurons change on an input of norm 1, each worth R in A − g and R + τ in C (the paper
drops the τ). So |A − g| ≤ m^(−1/5)·R·F and |C| ≤ m^(−1/5)·(R + τ)·F; |B| is a sum of random signs.

Lemma 5.9: f and g at x + μ for every ‖μ‖ ≤ δ, the paper's 1/m. A neuron with |z − τ| > ‖w‖δ stays on its side, and
those that stay on together are one linear function; the others are *open* and can change by their whole output.
`perturbation` adds these up, so no μ does worse. The bound in advance takes ‖w_{r,0}‖ ≤ L for all r, with m·L² the
upper quantile of a chi-square (Lemma 3.14).

Lemma 5.14: ‖∇̂ − ∇‖_{2,1} for ∇ = (1/n)Σ_i ℓ'_i ∂f(x_i)/∂W and ∇̂ with ∂g/∂W, under the same slopes ℓ'_i, those at f
(erratum 28). A neuron on the same side on every example has equal rows, so the distance is at most
max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons that changed on x_i), and the n of the lemma is not needed.

Claim 5.19: the same for the k neurons of Lemma 5.18, in units where w and b are standard normal; S₁ is the sum's move,
S₂ the mean's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewfire._errors import invalid
from fewfire._types import Float64Array
from fewfire._validate import check_finite, check_inputs, check_integer, check_number
from fewfire.networks import TwoLayer
from fewfire.papers._numbers import power


def active_probability(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact probability 1 − Φ(τ√(m/(‖x‖² + 1))) that a neuron fires at the start on an input of norm ‖x‖.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.active_probability(10_000, threshold=0.0329), 3)
    0.01
    """
    return tail(check_number("threshold", threshold, 0.0) / deviation(width, input_norm))


def expected_active(width: int, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire at the start: m·(1 − Φ(τ√(m/(‖x‖² + 1)))).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> from fewfire.networks.init import activity_threshold
    >>> round(sublinear.expected_active(10_000, activity_threshold(10_000, active=100)))
    100
    """
    return width * active_probability(width, threshold, input_norm)


def active_interval(width: int, threshold: float, confidence: float = 0.95, input_norm: float = 1.0) -> tuple[int, int]:
    """Counts between which the number of firing neurons lies with probability of at least `confidence`, exactly.

    At most (1 − confidence)/2 is left out on either side.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> low, high = sublinear.active_interval(10_000, threshold=0.0329)
    >>> low < sublinear.expected_active(10_000, 0.0329) < high
    True
    """
    outside = (1 - check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)) / 2
    share = active_probability(width, threshold, input_norm)
    return binomial_quantile(width, share, outside), binomial_quantile(width, share, 1 - outside)


def lemma_threshold(width: int, K: float) -> float:
    """τ = K/m^(3/5), the threshold of Lemma 5.15.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.lemma_threshold(width=10_000, K=10.0), 4)
    0.0398
    """
    return check_number("K", K, 0.0) * power(check_integer("width", width, 1), -0.6)


def activity_bound(width: int, K: float) -> float:
    """Lemma 5.15: Q₀ = 2m·exp(−K²/(4m^(1/5))), a bound on the neurons that fire with threshold K/m^(3/5).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.activity_bound(width=10_000, K=10.0))
    380
    """
    width = check_integer("width", width, 1)
    return 2 * width * math.exp(-(check_number("K", K, 0.0) ** 2) / (4 * width**0.2))


def activity_failure(width: int, K: float, n: int) -> float:
    """Lemma 5.15: n·exp(−3Q₀/16), a bound on the probability that one of n inputs has more than Q₀ firing neurons.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.activity_failure(width=10_000, K=10.0, n=100) < 1e-3
    True
    """
    return min(1.0, check_integer("n", n, 1) * math.exp(-3 * activity_bound(width, K) / 16))


def activity_scale(width: int, active: float) -> float:
    """The least K for which Q₀ of Lemma 5.15 is at most `active`: K² = 4m^(1/5)·log(2m/active).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> K = sublinear.activity_scale(width=10_000, active=100.0)
    >>> round(sublinear.activity_bound(width=10_000, K=K), 6)
    100.0
    """
    width = check_integer("width", width, 1)
    active = check_number("active", active, 0.0, 2 * width, open_low=True, remedy="Q₀ is never above twice the width")
    return math.sqrt(4 * width**0.2 * math.log(2 * width / active))


def binomial_quantile(count: int, share: float, level: float) -> int:
    """The least c with Pr[Binomial(count, share) ≤ c] ≥ level."""
    from scipy.stats import binom  # here: importing it takes longer than the rest of this package

    return int(binom.ppf(level, count, share))


@dataclass(frozen=True)
class FlipBound:
    """Claim 5.16: the probability that one neuron can change on one of the n examples, and how many can in `total`.

    `total` is twice the bound on the mean, at most the width; `failure` is Chernoff's bound on the probability of more.
    """

    per_neuron: float
    total: float
    failure: float


def claim_radius(width: int) -> float:
    """m^(−15/24), the distance ‖Δw‖ of Claim 5.16.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.claim_radius(10_000), 6)
    0.003162
    """
    return float(check_integer("width", width, 1) ** (-15 / 24))


def flip_probability(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact probability Pr[|z − τ| ≤ R‖x‖] that a neuron can change on one input while it moves by at most R.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.flip_probability(10_000, radius=0.001, threshold=0.0329), 4)
    0.0038
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    low, high = (tau - reach) / spread, (tau + reach) / spread
    # On the side where no digits cancel.
    return tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low)


def flip_probability_bound(width: int, radius: float, input_norm: float = 1.0) -> float:
    """Claim 3.18 with its constant: Pr[|z − τ| ≤ R‖x‖] ≤ R‖x‖·√(2m/(π(‖x‖² + 1))) for every τ, at most 1.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.flip_probability_bound(width=10_000, radius=1e-3), 4)
    0.0564
    """
    spread, reach, _ = _scale(width, radius, 0.0, input_norm)
    return min(1.0, reach / spread * math.sqrt(2 / math.pi))


def reachable_active(width: int, radius: float, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire on one input after some move by at most R: m·Pr[z > τ − R‖x‖].

    Remark 5.17 without its bounds: no training that stays within R of the start can have more, on average.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.reachable_active(width=10_000, radius=1e-3, threshold=0.02), 1)
    895.5
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return width * tail((tau - reach) / spread)


def claim_5_16(n: int, width: int, radius: float | None = None) -> FlipBound:
    """Claim 5.16 with explicit constants: how many of m neurons can change on one of n fixed examples of norm 1.

    Parameters
    ----------
    n : int
        Examples.
    width : int
        m.
    radius : float
        Largest ‖Δw‖; m^(−15/24) unless given.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> bound = sublinear.claim_5_16(n=2, width=10_000, radius=1e-5)
    >>> round(bound.per_neuron, 4), round(bound.total, 1)
    (0.0011, 22.6)
    """
    n = check_integer("n", n, 1)
    distance = claim_radius(width) if radius is None else radius
    mean = n * width * flip_probability_bound(width, distance)
    return FlipBound(min(1.0, mean / width), min(float(width), 2 * mean), math.exp(-mean / 3))


def deviation(width: int, input_norm: float) -> float:
    """√((‖x‖² + 1)/m), the standard deviation of one preactivation."""
    width = check_integer("width", width, 1)
    norm = check_number("input_norm", input_norm, 0.0)
    return math.sqrt((norm**2 + 1) / width)


def tail(z: float) -> float:
    """1 − Φ(z), with all digits of a small tail."""
    return math.erfc(z / math.sqrt(2)) / 2


def _scale(width: int, radius: float, threshold: float, input_norm: float) -> tuple[float, float, float]:
    """The deviation of z, the reach R‖x‖ and τ."""
    spread = deviation(width, input_norm)
    reach = check_number("radius", radius, 0.0) * input_norm
    return spread, reach, check_number("threshold", threshold, 0.0)


@dataclass(frozen=True)
class PseudoDistance:
    """|f − g|, |A − g|, |B|, |C| and the neurons that changed side, largest over rows, and max ‖w_r − w_{r,0}‖."""

    distance: float
    gradient_term: float
    start_term: float
    flip_term: float
    flips: int
    radius: float


def pseudo_network(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike) -> Float64Array:
    """g(x) = Σ_r a_r ⟨w_r − w_{r,0}, x⟩ 1[⟨w_{r,0}, x⟩ + b_r > τ] at each row of X, of shape (rows,).

    Parameters
    ----------
    network : TwoLayer
        w_r, b_r, a_r and τ; training leaves all but the w_r as they are.
    start_hidden : array of shape (width, inputs)
        w_{r,0}.
    X : array of shape (rows, inputs)

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.pseudo_network(start, start.hidden, [[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    array([0., 0.])
    """
    pair = NetworkPair.of(network, start_hidden, X)
    return np.where(pair.start > pair.threshold, pair.moved, 0.0) @ pair.output


def pseudo_distance(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike) -> PseudoDistance:
    """The largest |f − g| over the rows of X, with the three terms of Definition 5.4; arguments as `pseudo_network`.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.pseudo_distance(start, start.hidden, [[0.6, 0.0, 0.8]]).gradient_term
    0.0
    """
    pair = NetworkPair.of(network, start_hidden, X)
    before = pair.start > pair.threshold
    change = (pair.start + pair.moved > pair.threshold).astype(np.float64) - before
    gradient = (pair.moved * change) @ pair.output
    start = np.where(before, pair.start, 0.0) @ pair.output
    flip = (pair.start * change) @ pair.output
    return PseudoDistance(
        distance=float(np.abs(gradient + start + flip).max()),
        gradient_term=float(np.abs(gradient).max()),
        start_term=float(np.abs(start).max()),
        flip_term=float(np.abs(flip).max()),
        flips=int(np.count_nonzero(change, axis=1).max()),
        radius=float(np.linalg.norm(pair.hidden - pair.start_hidden, axis=1).max()),
    )


@dataclass(frozen=True)
class DistanceBound:
    """Bounds on |A − g|, |B| and |C| at one input and the neurons that change, for all networks within the radius."""

    gradient_term: float
    start_term: float
    flip_term: float
    flips: int

    @property
    def total(self) -> float:
        """The bound on |f − g|."""
        return self.gradient_term + self.start_term + self.flip_term


def distance_bound(width: int, radius: float, threshold: float = 0.0, failure: float = 0.01) -> DistanceBound:
    """Lemma 5.8 with every constant, for one input of norm 1 and all networks with ‖w_r − w_{r,0}‖ ≤ radius at once.

    Parameters
    ----------
    width : int
        m.
    radius : float
        R.
    threshold : float
        τ.
    failure : float
        Probability over the start that the bound fails, at most; a third each for F, for Σ z² (Lemma 3.14) and for the
        signs of the outputs (Hoeffding).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> bound = sublinear.distance_bound(width=10_000, radius=1e-4)
    >>> bound.total > bound.gradient_term + bound.start_term
    True
    """
    third = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / 3
    flips = binomial_quantile(width, flip_probability(width, radius, threshold), 1 - third)
    log = math.log(1 / third)
    squares = deviation(width, 1.0) ** 2 * (width + 2 * math.sqrt(width * log) + 2 * log)
    output = width**-0.2
    return DistanceBound(
        gradient_term=output * radius * flips,
        start_term=output * math.sqrt(2 * squares * (log + math.log(2))),
        flip_term=output * (radius + threshold) * flips,
        flips=flips,
    )


def theorem_5_1(width: int, K: float) -> float:
    """Theorem 5.1: K²·m^(−3/10) + m^(−1/10), up to a constant, for weights within K/m^(4/5) and τ = O(m^(−4/5)).

    Printed is K²·m^(−1/10) for weights within K/m^(3/5), which no constant makes true (erratum 24).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.theorem_5_1(width=10_000, K=1.0), 3)
    0.461
    """
    width, K = check_integer("width", width, 1), check_number("K", K, 0.0)
    return K**2 * power(width, -0.3) + power(width, -0.1)


@dataclass(frozen=True, eq=False)
class NetworkPair:
    """The arguments of `pseudo_network` as float64, with their preactivations."""

    hidden: Float64Array  # w, of shape (width, inputs)
    start_hidden: Float64Array  # w₀, of shape (width, inputs)
    rows: Float64Array  # x, of shape (rows, inputs)
    moved: Float64Array  # ⟨w − w₀, x⟩, of shape (rows, width)
    start: Float64Array  # z₀, of shape (rows, width)
    output: Float64Array  # a, of shape (width,)
    threshold: float

    @classmethod
    def of(cls, network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike) -> NetworkPair:
        """Checked and multiplied."""
        hidden, bias, output = (part.astype(np.float64) for part in (network.hidden, network.bias, network.output))
        double, inputs = np.dtype(np.float64), network.inputs
        start = check_inputs("start_hidden", start_hidden, inputs, double).astype(np.float64)
        if start.shape != hidden.shape:
            raise invalid("start_hidden", f"must have the network's shape {hidden.shape}", f"shape {start.shape}")
        rows = check_inputs("X", X, inputs, double).astype(np.float64)
        threshold = network.activation.threshold
        return cls(hidden, start, rows, rows @ (hidden - start).T, rows @ start.T + bias, output, threshold)


@dataclass(frozen=True)
class Perturbation:
    """Bounds on |f(x + μ) − f(x)| and |g(x + μ) − g(x)| by any move of at most the reach, each the largest over rows.

    `open_neurons` and `open_at_start` can change side, with the weights as they are and as they were at the start.
    """

    network: float
    pseudo: float
    open_neurons: int
    open_at_start: int


def perturbation(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike, reach: float) -> Perturbation:
    """Lemma 5.9 measured: what no μ with ‖μ‖ ≤ reach exceeds at the rows of X; other arguments as `pseudo_network`.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.perturbation(start, start.hidden, [[0.6, 0.0, 0.8]], reach=0.05).pseudo >= 0
    True
    """
    pair = NetworkPair.of(network, start_hidden, X)
    reach = check_number("reach", reach, 0.0)
    sizes = np.abs(pair.output)
    z, spread = pair.start + pair.moved, reach * np.linalg.norm(pair.hidden, axis=1)
    opens, fires = np.abs(z - pair.threshold) <= spread, z > pair.threshold
    # Off, the output can become z + spread; on, it can become 0 or grow by the spread.
    jump = np.maximum(np.where(fires, np.maximum(z, spread), z + spread), 0.0)
    linear = reach * np.linalg.norm((fires & ~opens) * pair.output @ pair.hidden, axis=1)
    change = pair.hidden - pair.start_hidden
    start_opens = np.abs(pair.start - pair.threshold) <= reach * np.linalg.norm(pair.start_hidden, axis=1)
    start_fires = (pair.start > pair.threshold) & ~start_opens
    pseudo_jump = np.abs(pair.moved) + reach * np.linalg.norm(change, axis=1)
    pseudo_linear = reach * np.linalg.norm(start_fires * pair.output @ change, axis=1)
    return Perturbation(
        network=float((linear + (opens * jump) @ sizes).max()),
        pseudo=float((pseudo_linear + (start_opens * pseudo_jump) @ sizes).max()),
        open_neurons=int(opens.sum(axis=1).max()),
        open_at_start=int(start_opens.sum(axis=1).max()),
    )


def perturbation_bound(
    width: int, d: int, radius: float, threshold: float = 0.0, failure: float = 0.01
) -> Perturbation:
    """Lemma 5.9 with every constant: at one x of norm 1, for every W within the radius and every ‖μ‖ ≤ 1/m at once.

    Parameters
    ----------
    width, d : int
        m, and inputs.
    radius : float
        Largest ‖w_r − w_{r,0}‖.
    threshold : float
        τ.
    failure : float
        Probability over the start that the bound fails, at most; a third each for ‖w_{r,0}‖ and for the two counts.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> near = sublinear.perturbation_bound(width=10_000, d=10, radius=1e-4)
    >>> near.network < sublinear.perturbation_bound(width=10_000, d=10, radius=1e-3).network
    True
    """
    width, d = check_integer("width", width, 1), check_integer("d", d, 1)
    radius, tau = check_number("radius", radius, 0.0), check_number("threshold", threshold, 0.0)
    delta = 1 / width  # the paper's
    third = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / 3
    length = largest_norm(d, width, third) / math.sqrt(width)
    spread = (length + radius) * delta
    opens = binomial_quantile(width, flip_probability(width, radius + spread, tau), 1 - third)
    start = binomial_quantile(width, flip_probability(width, length * delta, tau), 1 - third)
    return Perturbation(
        network=width**-0.2 * (width * spread + opens * tau),
        pseudo=width**-0.2 * radius * (width * delta + start),
        open_neurons=opens,
        open_at_start=start,
    )


def largest_norm(d: int, count: int, failure: float) -> float:
    """√(d + 2√(d·s) + 2s), s = log(count/failure): Lemma 3.14 for the norms of `count` standard normal vectors.

    All are below it but for the probability `failure`. The paper's Pr[‖w‖² ≥ O(k)] ≤ exp(−Ω(k²/d)) is too small: the
    tail of a chi-square is exp(−Ω(k)) for k above d.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.largest_norm(d=10, count=1000, failure=0.01), 2)
    7.38
    """
    d, count = check_integer("d", d, 1), check_integer("count", count, 1)
    s = math.log(count / check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True))
    return math.sqrt(d + 2 * math.sqrt(d * s) + 2 * s)


@dataclass(frozen=True)
class GradientCoupling:
    """‖∇̂ − ∇‖_{2,1} and the neurons whose gradients differ.

    `bound` is max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons changed on x_i).
    """

    distance: float
    neurons: int
    bound: float


def gradient_coupling(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike, slopes: ArrayLike) -> GradientCoupling:
    """Lemma 5.14 measured: ‖∇̂ − ∇‖_{2,1} at the rows of X; other arguments as `pseudo_network`.

    Parameters
    ----------
    slopes : array of shape (rows,)
        ℓ'_i, slopes of the loss at f(x_i), in ∇̂ too; with those at g, as in Definition 5.11, the lemma fails.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.gradient_coupling(start, start.hidden, [[0.6, 0.0, 0.8]], slopes=[-1.0]).distance
    0.0
    """
    pair = NetworkPair.of(network, start_hidden, X)
    rows, factors = len(pair.rows), np.asarray(slopes, dtype=np.float64)
    if factors.shape != (rows,):
        rule = f"must be a vector of {rows} numbers, one per row of X"
        raise invalid("slopes", rule, f"shape {factors.shape}")
    check_finite("slopes", factors)
    now, before = pair.start + pair.moved > pair.threshold, pair.start > pair.threshold
    weights = factors[:, None] * now - factors[:, None] * before
    lengths = np.linalg.norm((weights * pair.output).T @ pair.rows / rows, axis=1)
    changed = (now != before).sum(axis=1)
    return GradientCoupling(
        distance=float(lengths.sum()),
        neurons=int(np.count_nonzero(weights.any(axis=0))),
        bound=float(
            np.abs(pair.output).max() * np.linalg.norm(pair.rows, axis=1).max() * np.mean(np.abs(factors) * changed)
        ),
    )


def coupling_bound(n: int, width: int, radius: float, threshold: float = 0.0, failure: float = 0.01) -> float:
    """Lemma 5.14 with its constant: m^(−1/5)·F for n fixed examples of norm 1, a 1-Lipschitz loss and every W at once.

    Parameters
    ----------
    n, width : int
        Examples, and m.
    radius : float
        Largest ‖w_r − w_{r,0}‖; `claim_radius` is the lemma's.
    threshold : float
        τ.
    failure : float
        Probability over the start that it fails, at most: F is the 1 − failure/n quantile of the neurons that can
        change on one example, of order m^(7/8)/√π at the lemma's radius.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> near = sublinear.coupling_bound(n=100, width=10_000, radius=1e-4)
    >>> near < sublinear.coupling_bound(n=100, width=10_000, radius=1e-3)
    True
    """
    level = 1 - check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / check_integer("n", n, 1)
    flips = binomial_quantile(check_integer("width", width, 1), flip_probability(width, radius, threshold), level)
    return float(width**-0.2 * flips)


@dataclass(frozen=True)
class FeatureStability:
    """Claim 5.19 with its constants: bounds on S₁ and S₂, and the neurons that can change side."""

    sum: float
    mean: float
    flips: int


def claim_5_19(
    k: int, limit: float, d: int, threshold: float = 0.0, reach: float | None = None, failure: float = 0.01
) -> FeatureStability:
    """Claim 5.19: how far the sum of Lemma 5.18 over k neurons, S₁, and its mean, S₂, move with the input.

    Parameters
    ----------
    k : int
        Neurons.
    limit : float
        C ≥ |h|.
    d : int
        Inputs.
    threshold : float
        τ, in the units in which weights are standard normal.
    reach : float
        Largest ‖μ‖; 1/k unless given.
    failure : float
        Probability that the bound on S₁ fails, at most, at one fixed input; that on S₂ is certain.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> stability = sublinear.claim_5_19(k=10_000, limit=1.0, d=10)
    >>> stability.flips > 0
    True
    """
    k, limit = check_integer("k", k, 1), check_number("limit", limit, 0.0)
    half = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / 2
    delta = 1 / k if reach is None else check_number("reach", reach, 0.0)
    share = flip_probability(1, largest_norm(d, k, half) * delta, threshold)
    flips = binomial_quantile(k, share, 1 - half)
    # One neuron is longer than that with probability half/k at most.
    return FeatureStability(limit / k * flips, limit * (share + half / k), flips)
