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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire._errors import InvalidArgument, invalid
from fewfire.networks import Activation

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._formula import Layers, Scores
    from fewfire.robustness._threats import Threat

BOUNDS: Final = ("interval", "pattern", "relaxed", "floor")

PAIRS: Final = 1 << 13  # preactivations made exact at a time, which bounds the memory
ROUNDING: Final = 1e-12  # ranges are widened by this share, far more than what float64 rounding can take away


def check_certifiable(scores: Scores, name: str = "") -> Layers:
    """The layers that a certificate bounds, one hidden layer with rows of neurons or none; others are refused."""
    rule = "must be linear or have hidden layers of relu neurons to be certified"
    layers = scores.formula
    if layers is None:
        raise invalid("model", rule, f"a {name}", "use attack, whose margins are upper bounds")
    shape = layers.activation
    hidden = len(layers.weights) - 1
    if (hidden and not isinstance(shape, Activation)) or (hidden > 1 and layers.threshold > 0.0):
        raise invalid("model", rule, f"a perceptron of {hidden} hidden layers of {shape}")
    if isinstance(shape, Activation) and np.isfinite(shape.ceiling):
        raise invalid("model", "must have a relu or shifted relu to be certified", str(shape))
    if not all(np.isfinite(part).all() for part in (*layers.weights, *layers.biases)):
        # A bound that is NaN would count as none at all.
        raise invalid("model", "must have finite weights to be certified", "NaN or infinity")
    if len(layers.weights) == 1:
        return layers
    return replace(layers, weights=(np.ascontiguousarray(layers.weights[0].T).T, *layers.weights[1:]))


def certifiable(scores: Scores) -> Layers | None:
    """The layers that a certificate bounds; None where it takes no such model."""
    try:
        return check_certifiable(scores)
    except InvalidArgument:
        return None


def shallow(scores: Scores) -> Layers | None:
    """The layers of a model that is certifiable and has one hidden layer at most; None for any other."""
    layers = certifiable(scores)
    return layers if layers is not None and len(layers.weights) <= 2 else None


@dataclass(frozen=True, eq=False)
class NeuronRanges:
    """Preactivations at the points and their ranges over the threat, arrays of shape (rows, neurons)."""

    centre: Float64Array  # z_r
    low: Float64Array  # l_r and u_r, further apart by more than their rounding
    high: Float64Array
    terms: Float64Array  # of z_r in absolute value, which is what rounds: they cancel where columns are far from 0

    def take(self, rows: AnyArray, neurons: AnyArray) -> NeuronRanges:
        """Some rows and neurons."""
        chosen = np.ix_(rows, neurons)
        return NeuronRanges(self.centre[chosen], self.low[chosen], self.high[chosen], self.terms[chosen])


def neuron_ranges(network: Layers, points: Float64Array, threat: Threat) -> NeuronRanges:
    """Ranges of all preactivations; those that a quick bound leaves undecided are made exact where that gains much."""
    tau, centre = network.threshold, np.asarray(points @ network.hidden.T + network.bias)
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
    network: Layers, points: Float64Array, threat: Threat, ranges: NeuronRanges | None = None
) -> tuple[Float64Array, AnyArray]:
    """Every bound of BOUNDS on min f over the threat around each point, (4, rows), and the number of open neurons."""
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
