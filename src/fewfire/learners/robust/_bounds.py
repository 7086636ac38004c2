"""Sound lower bounds on a two-layer network over an adversary's set; the best of them is a certificate.

With z_r the preactivation at the center and [l_r, u_r] its exact range over the set, a neuron is *silent* when
u_r ≤ τ, *sure* when l_r > τ, and *open* otherwise. The shifted ReLU jumps from 0 to τ at τ, so an open neuron takes
values in {0} ∪ (τ, u_r]: no Lipschitz constant holds for it, and each bound says how it deals with the jump.

interval  every neuron at its own worst: a·l or a·u when sure; 0 or a·u_r when open
pattern   the sure neurons together are linear, ⟨Σ a_r w_r, x⟩ + …, and its exact minimum is taken; open ones as above
relaxed   open neurons too are replaced by lines below a·σ: σ ≤ u(z − l)/(u − l) when l ≤ 0 and σ ≤ z when l > 0 for
          a < 0; σ ≥ u(z − τ)/(u − τ), or 0 where the neuron is silent at the center, for a > 0
floor     as relaxed, with σ ≥ 0 for all open neurons of a > 0

The plain Lipschitz bound f − Σ_r |a_r|(max(u_r − z_r, z_r − l_r) + τ) never beats "interval".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners.robust._threats import Threat
    from fewfire.networks import TwoLayer

BOUNDS: Final = ("interval", "pattern", "relaxed", "floor")

ROUNDING: Final = 1e-12
"""Ranges are widened by this share, far more than what float64 rounding can take away."""


def lower_bounds(net: TwoLayer, points: Float64Array, threat: Threat) -> tuple[Float64Array, AnyArray]:
    """Every bound of BOUNDS on min f over the threat around points (rows, d), and the number of open neurons.

    Returns
    -------
    table : array of shape (4, rows)
    open : int array of shape (rows,)
    """
    tau, a = check_activation(net), net.output
    z = net.preactivations(points)
    low, high = threat.span(np.asarray(net.hidden, dtype=np.float64), points)
    # What rounds are the terms of z, which cancel where columns are far from 0.
    terms = np.outer(np.linalg.norm(points, axis=1), np.linalg.norm(net.hidden, axis=1)) + np.abs(net.bias)
    slack = ROUNDING * (1.0 + terms + np.abs(low) + np.abs(high))
    low, high = z + low - slack, z + high + slack
    sure, silent = low > tau, high <= tau
    undecided = ~sure & ~silent
    ceiling = np.where(silent, 0.0, high)
    worst = np.where(a > 0, np.where(sure, low, 0.0), ceiling)
    interval = worst @ a + net.offset

    def linear(slope: Float64Array, intercept: Float64Array) -> Float64Array:
        """min over the threat of Σ_r a_r(slope_r·z_r(x) + intercept_r)."""
        weights = (slope * a) @ net.hidden
        least = threat.row_span(weights, points)[0]
        value = (slope * z + intercept) @ a + net.offset
        size = (slope * terms + np.abs(intercept)) @ np.abs(a) + abs(net.offset)
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


def lipschitz_bound(net: TwoLayer, points: Float64Array, threat: Threat) -> Float64Array:
    """f − Σ_r |a_r|(max(u_r − z_r, z_r − l_r) + τ), which knows nothing of the active pattern; shape (rows,)."""
    tau = check_activation(net)
    low, high = threat.span(np.asarray(net.hidden, dtype=np.float64), points)
    return np.asarray(net(points) - (np.maximum(high, -low) + tau) @ np.abs(net.output))


def difference(first: TwoLayer, second: TwoLayer) -> TwoLayer:
    """The network first − second, of both their neurons."""
    return first.with_parameters(
        np.vstack([first.hidden, second.hidden]),
        np.concatenate([first.bias, second.bias]),
        np.concatenate([first.output, -second.output]),
        first.offset - second.offset,
    )


def negative(net: TwoLayer) -> TwoLayer:
    """The network −f."""
    return net.with_parameters(output=-net.output, offset=-net.offset)


def check_activation(net: TwoLayer) -> float:
    """The threshold of a ReLU or shifted ReLU; others are refused."""
    if np.isfinite(net.activation.ceiling):
        raise invalid("model", "must have a relu or shifted relu to be certified", str(net.activation))
    return net.activation.threshold
