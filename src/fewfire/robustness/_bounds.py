"""Sound lower bounds by fixed lines on a two-layer network over an adversary's set: the first step of a certificate.

The network is f(x) = ⟨v, x⟩ + Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) + c with σ_τ(z) = z·1[z > τ]; v is 0 but for linear models.
With z_r the preactivation at the centre and [l_r, u_r] its exact range over the set, a neuron is *silent* when
u_r ≤ τ, *sure* when l_r > τ, and *open* otherwise. The shifted ReLU jumps from 0 to τ at τ, so an open neuron takes
values in {0} ∪ (τ, u_r]: no Lipschitz constant holds for it, and each bound says how it deals with the jump.

interval  every neuron at its own worst: a·l or a·u when sure; 0 or a·u_r when open
pattern   the sure neurons together are linear, ⟨Σ a_r w_r, x⟩ + …, and its exact minimum is taken; open ones as above
relaxed   open neurons too are replaced by lines below a·σ: σ ≤ u(z − l)/(u − l) when l ≤ 0 and σ ≤ z when l > 0 for
          a < 0; σ ≥ u(z − τ)/(u − τ), or 0 where the neuron is silent at the centre, for a > 0
floor     as relaxed, with σ ≥ 0 for all open neurons of a > 0

⟨v, x⟩ is at its exact minimum in "interval" and part of the linear function in the others. `_relaxation` chooses the
lines by optimisation, and parabolas in their place.

The plain Lipschitz bound f − Σ_r |a_r|(max(u_r − z_r, z_r − l_r) + τ) never beats "interval".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.networks import TwoLayer
    from fewfire.robustness._threats import Threat

BOUNDS: Final = ("interval", "pattern", "relaxed", "floor")

PAIRS: Final = 1 << 13
"""Preactivations made exact at a time, which bounds the memory."""

ROUNDING: Final = 1e-12
"""Ranges are widened by this share, far more than what float64 rounding can take away."""


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """f(x) = ⟨v, x⟩ + Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) + c in float64, the formula that a certificate bounds.

    Parameters
    ----------
    hidden : array of shape (neurons, inputs)
        The w_r, as rows; there may be none.
    bias, output : arrays of shape (neurons,)
        The b_r and a_r.
    offset : float
        c.
    threshold : float
        τ; 0 is the ReLU.
    linear : array of shape (inputs,), optional
        v.
    """

    hidden: Float64Array
    bias: Float64Array
    output: Float64Array
    offset: float = 0.0
    threshold: float = 0.0
    linear: Float64Array | None = None

    def __post_init__(self) -> None:
        parts = (self.hidden, self.bias, self.output, self.offset, 0.0 if self.linear is None else self.linear)
        if not all(np.isfinite(part).all() for part in parts):  # a bound that is NaN would count as none at all
            raise invalid("model", "must have finite weights to be certified", "NaN or infinity")

    @classmethod
    def of(cls, network: TwoLayer) -> ReluNetwork:
        """A two-layer network in float64; its activation must be a ReLU or shifted ReLU."""
        if np.isfinite(network.activation.ceiling):
            raise invalid("model", "must have a relu or shifted relu to be certified", str(network.activation))
        hidden, bias, output = (
            np.asarray(part, dtype=np.float64) for part in (network.hidden, network.bias, network.output)
        )
        return cls(hidden, bias, output, float(network.offset), network.activation.threshold)

    @classmethod
    def linear_function(cls, weights: Float64Array, offset: float) -> ReluNetwork:
        """⟨weights, x⟩ + offset."""
        return cls(np.zeros((0, len(weights))), np.zeros(0), np.zeros(0), offset, linear=np.asarray(weights))

    def __call__(self, points: Float64Array) -> Float64Array:
        """f at points (rows, inputs): shape (rows,)."""
        z = self.preactivations(points)
        total = (np.maximum(z, 0.0) * (z > self.threshold)) @ self.output + self.offset
        return np.asarray(total if self.linear is None else total + points @ self.linear)

    def preactivations(self, points: Float64Array) -> Float64Array:
        """⟨w_r, x⟩ + b_r at points (rows, inputs): shape (rows, neurons)."""
        return np.asarray(points @ self.hidden.T + self.bias)

    def after(self, scale: Float64Array, shift: Float64Array) -> ReluNetwork:
        """f(scale·x + shift) as a network of x; both arrays of shape (inputs,)."""
        inner = replace(self, hidden=self.hidden * scale, bias=self.bias + self.hidden @ shift)
        if self.linear is None:
            return inner
        return replace(inner, linear=self.linear * scale, offset=self.offset + float(self.linear @ shift))

    def of_neurons(self, neurons: AnyArray) -> ReluNetwork:
        """The part that some neurons make, ⟨v, x⟩ and c included."""
        return replace(self, hidden=self.hidden[neurons], bias=self.bias[neurons], output=self.output[neurons])

    def __neg__(self) -> ReluNetwork:
        linear = None if self.linear is None else -self.linear
        return replace(self, output=-self.output, offset=-self.offset, linear=linear)

    def __sub__(self, other: ReluNetwork) -> ReluNetwork:
        """The difference, of the neurons they share or of both their neurons; thresholds must be equal."""
        if self.threshold != other.threshold:
            rule = "must have one threshold in all its scores to be certified"
            raise invalid("model", rule, (self.threshold, other.threshold))
        parts = [part for part in (self.linear, None if other.linear is None else -other.linear) if part is not None]
        offset, linear = self.offset - other.offset, np.sum(parts, axis=0) if parts else None
        if self.hidden is other.hidden and self.bias is other.bias:
            return replace(self, output=self.output - other.output, offset=offset, linear=linear)
        return ReluNetwork(
            np.vstack([self.hidden, other.hidden]),
            np.concatenate([self.bias, other.bias]),
            np.concatenate([self.output, -other.output]),
            offset,
            self.threshold,
            linear,
        )


def on_shared_neurons(networks: tuple[ReluNetwork, ...]) -> tuple[ReluNetwork, ...]:
    """The same functions, written on one array of neurons: what they share already, or all of theirs together.

    Differences of such networks have every neuron once, so that a bound sees that a neuron which raises both scores
    hardly moves their difference.
    """
    first, *others = networks
    if all(np.array_equal(net.hidden, first.hidden) and np.array_equal(net.bias, first.bias) for net in others):
        return (first, *(replace(net, hidden=first.hidden, bias=first.bias) for net in others))
    hidden, bias = np.vstack([net.hidden for net in networks]), np.concatenate([net.bias for net in networks])
    ends = np.cumsum([0, *(len(net.bias) for net in networks)])
    outputs = np.zeros((len(networks), len(bias)))
    for net, row, start, end in zip(networks, outputs, ends[:-1], ends[1:], strict=True):
        row[start:end] = net.output
    return tuple(replace(net, hidden=hidden, bias=bias, output=row) for net, row in zip(networks, outputs, strict=True))


@dataclass(frozen=True, eq=False)
class NeuronRanges:
    """Preactivations at the points and their ranges over the threat, arrays of shape (rows, neurons).

    Parameters
    ----------
    centre, low, high
        z_r, l_r and u_r; the range is widened by more than its rounding.
    terms
        The terms of z_r in absolute value, which is what rounds: they cancel where columns are far from 0.
    """

    centre: Float64Array
    low: Float64Array
    high: Float64Array
    terms: Float64Array

    def take(self, rows: AnyArray, neurons: AnyArray) -> NeuronRanges:
        """Some rows and neurons."""
        chosen = np.ix_(rows, neurons)
        return NeuronRanges(self.centre[chosen], self.low[chosen], self.high[chosen], self.terms[chosen])


def neuron_ranges(network: ReluNetwork, points: Float64Array, threat: Threat) -> NeuronRanges:
    """Ranges of all preactivations; those that a quick bound leaves undecided are made exact where that gains anything.

    `Threat.span` takes all neurons at once, for a 2-norm ball cut by a box with ball and box apart; `Threat.row_span`
    is exact and slower.
    """
    tau, centre = network.threshold, network.preactivations(points)
    low, high = (np.array(end) for end in threat.span(network.hidden, points))
    row, neuron = np.nonzero((centre + low <= tau) & (centre + high > tau))
    for start in range(0, len(row), PAIRS):
        i, r = row[start : start + PAIRS], neuron[start : start + PAIRS]
        exact_low, exact_high = threat.take(i).row_span(network.hidden[r], points[i])
        gain = (exact_low - low[i, r]) + (high[i, r] - exact_high)
        if not start and gain.sum() <= 1e-6 * (high[i, r] - low[i, r]).sum():
            break
        low[i, r], high[i, r] = np.maximum(low[i, r], exact_low), np.minimum(high[i, r], exact_high)
    terms = np.outer(np.linalg.norm(points, axis=1), np.linalg.norm(network.hidden, axis=1)) + np.abs(network.bias)
    slack = ROUNDING * (1.0 + terms + np.abs(low) + np.abs(high))
    return NeuronRanges(centre, centre + low - slack, centre + high + slack, terms)


def lower_bounds(
    network: ReluNetwork, points: Float64Array, threat: Threat, ranges: NeuronRanges | None = None
) -> tuple[Float64Array, AnyArray]:
    """Every bound of BOUNDS on min f over the threat around points (rows, d), and the number of open neurons.

    Returns
    -------
    table : array of shape (4, rows)
    open : int array of shape (rows,)
    """
    known = neuron_ranges(network, points, threat) if ranges is None else ranges
    z, low, high, terms = known.centre, known.low, known.high, known.terms
    tau, a = network.threshold, network.output
    sure, silent = low > tau, high <= tau
    undecided = ~sure & ~silent & (a != 0.0)
    ceiling = np.where(silent, 0.0, high)
    worst = np.where(a > 0, np.where(sure, low, 0.0), ceiling)
    interval = worst @ a + network.offset
    straight: Float64Array | float = 0.0  # ⟨v, x⟩ at the points, and the terms that round in it
    straight_size: Float64Array | float = 0.0
    if network.linear is not None:
        straight, straight_size = points @ network.linear, np.abs(points) @ np.abs(network.linear)
        fall = threat.row_span(np.broadcast_to(network.linear, points.shape), points)[0]
        interval = interval + straight + fall - ROUNDING * (1.0 + straight_size + abs(network.offset) + np.abs(fall))

    def linear(slope: Float64Array, intercept: Float64Array) -> Float64Array:
        """min over the threat of ⟨v, x⟩ + Σ_r a_r(slope_r·z_r(x) + intercept_r)."""
        weights = (slope * a) @ network.hidden
        if network.linear is not None:
            weights = weights + network.linear
        least = threat.row_span(weights, points)[0]
        value = (slope * z + intercept) @ a + network.offset + straight
        size = (slope * terms + np.abs(intercept)) @ np.abs(a) + abs(network.offset) + straight_size
        return np.asarray(value + least - ROUNDING * (1.0 + size + np.abs(least)))

    certain = sure.astype(np.float64)
    pattern = linear(certain, np.where(undecided & (a < 0), ceiling, 0.0))
    chord = np.where(low > 0.0, 1.0, high / np.where(high > low, high - low, 1.0))
    steep = np.where(z > tau, high / np.where(high > tau, high - tau, 1.0), 0.0)
    above, below = undecided & (a < 0), undecided & (a > 0)
    floor_slope = np.where(above, chord, certain)
    floor_intercept = np.where(above & (low <= 0.0), -chord * low, 0.0)
    floor = linear(floor_slope, floor_intercept)
    relaxed = linear(np.where(below, steep, floor_slope), np.where(below, -steep * tau, floor_intercept))
    return np.stack([interval, pattern, relaxed, floor]), np.count_nonzero(undecided, axis=1)


def lipschitz_bound(network: ReluNetwork, points: Float64Array, threat: Threat) -> Float64Array:
    """f − Σ_r |a_r|(max(u_r − z_r, z_r − l_r) + τ), which knows nothing of the active pattern; shape (rows,)."""
    low, high = threat.span(network.hidden, points)
    lowest = network(points) - (np.maximum(high, -low) + network.threshold) @ np.abs(network.output)
    if network.linear is None:
        return np.asarray(lowest)
    return np.asarray(lowest + threat.row_span(np.broadcast_to(network.linear, points.shape), points)[0])
