"""Networks that are k-sparse on a sample and correlate with signs there as much as few neurons can.

sparse-activations, section 5, allows any input space; here it is the sample. On points whose directions are independent
a neuron can be silent on all but a chosen set: w is then μ·P(heights on the set) − b·P(1), with P the pseudo-inverse of
the distinct points, and scores are heights·μ + b on the set and 0 off it. Sets are made of points whose signs add up to
one sign, so all of a neuron's sum counts.

For m orthogonal points of length R, s neurons at k = 1 reach WR √(s/m) without a bias, which is Conjecture 20 with
constant 1 and B = 0, and √(s/(s − 1)) times that with b = WR/√(m(s − 1)): at s = 2 the conjecture's constant must be
at least 2/(√2 (1 + 1/√m)), which tends to √2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._random import Stream
from fewfire._validate import check_integer, check_number, check_signs
from fewfire.networks import TwoLayer
from fewfire.papers import sparse_activations as bounds
from fewfire.papers.sparse_activations.rademacher_table import mean_with_error

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, SignArray

SLACK = 1e-9  # scores off a neuron's set lie below 0 by this share of those on it, so that rounding cannot make it fire
BIASES = 65  # biases tried for each neuron, from 0 to B


def sample_member(X: AnyArray, zeta: AnyArray, s: int, W: float, B: float) -> TwoLayer:
    """A network of s neurons, at most one active on any row of X, with a large Σ_i ζ_i h(x_i).

    The distinct rows of X should be linearly independent; otherwise neurons fire where they should not, and those that
    do are silenced.
    """
    signs = check_signs("X", X)
    s = check_integer("s", s, 1)
    W, B = check_number("W", W, 0.0, open_low=True), check_number("B", B, 0.0)
    points, place = np.unique(signs, axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=zeta).astype(np.float64)
    inverse = np.linalg.pinv(points.astype(np.float64))  # (n, points)
    cancel = inverse.sum(axis=1)
    hidden, bias, output = np.zeros((s, signs.shape[1])), np.zeros(s), np.zeros(s)
    for neuron, (chosen, sign) in enumerate(_sets(sums, s)):
        heights = np.where(chosen, np.abs(sums), 0.0)
        w, b = _best_neuron(inverse @ heights, cancel, heights, W, B)
        fires = points @ w + b > 0
        if not (fires & ~chosen).any():
            hidden[neuron], bias[neuron], output[neuron] = w, b, sign
    return TwoLayer(hidden, bias, output)


def sample_row(X: SignArray, s: int, k: int, W: float, B: float, *, draws: int) -> dict[str, Any]:
    """The mean correlation of k copies of such networks of s/k neurons with random signs, next to Conjecture 20."""
    m, n = X.shape
    zeta = Stream(0, "rademacher").child("zeta").sign_rows(draws, m)
    values = np.array([k * float(row @ sample_member(X, row, s // k, W, B)(X)) / m for row in zeta])
    bound = {"explicit": bounds.rademacher_explicit, "conjecture_20": bounds.rademacher_conjectured}
    found = {"n": n, "m": m, "s": s, "k": k, "W": W, "B": B, **mean_with_error(values)}
    return found | {name: value(n, s, k, W, B, m) for name, value in bound.items()}


def _sets(sums: Float64Array, s: int) -> list[tuple[AnyArray, float]]:
    """At most s sets of points of one sign, with shares of each sign's weight, dealt out by size; and their signs."""
    weight = {sign: float(np.sum(np.maximum(sign * sums, 0) ** 2)) for sign in (1.0, -1.0)}
    if s == 1:
        sign = max(weight, key=lambda sign: weight[sign])
        return [(sign * sums > 0, sign)]
    positive = min(max(round(s * weight[1.0] / max(sum(weight.values()), 1e-300)), 1), s - 1)
    found = []
    for sign, count in ((1.0, positive), (-1.0, s - positive)):
        order = np.argsort(-sign * sums, kind="stable")
        order = order[sign * sums[order] > 0]
        for part in range(count):
            chosen = np.zeros(len(sums), dtype=bool)
            chosen[order[part::count]] = True
            if chosen.any():
                found.append((chosen, sign))
    return found


def _best_neuron(
    direction: Float64Array, cancel: Float64Array, heights: Float64Array, W: float, B: float
) -> tuple[Float64Array, float]:
    """The (w, b), w = μ·direction − b·cancel of norm W, for which Σ heights·(μ·heights + b) is largest."""
    square, cross, other = direction @ direction, direction @ cancel, cancel @ cancel
    biases = np.linspace(0.0, B, BIASES)
    with np.errstate(invalid="ignore"):  # a root below 0: there is no such w
        mus = (biases * cross + np.sqrt((biases * cross) ** 2 - square * (biases**2 * other - W * W))) / square
    values = np.where(mus > 0, mus * float(heights @ heights) + biases * float(heights.sum()), 0.0)
    choice = int(values.argmax())
    mu, b = (mus[choice], biases[choice]) if values[choice] > 0 else (0.0, 0.0)
    # Cancel a little more than the bias, so that off the set scores are below 0, and stay inside the scales.
    w = mu * direction - (b + SLACK * (mu * float(heights.max(initial=0.0)) + b)) * cancel
    shrink = (1 - SLACK) * min(1.0, W / max(float(np.linalg.norm(w)), 1e-300))
    return shrink * w, shrink * b
