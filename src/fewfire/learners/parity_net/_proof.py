"""The proof of parities, Theorem 2, as instruments: what its lemmas speak of, on networks that were trained.

The good neurons of a start (Lemma 7), how far a sample's first step moves their biases, the separator u* that the first
step makes possible (Lemmas 9 and 10), and how far descent carries a network from where the first step left it
(Lemma 13).

A neuron after the first step is looked at on the 2^k patterns of the bits of A. The other inputs can move its value by
at most the sum of its weights there, on good neurons next to nothing; margins have that subtracted, so a positive one
separates the whole of {±1}ⁿ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._validate import check_choice, check_number, check_support
from fewfire.engines import sample_correlations
from fewfire.theory import parities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners.parity_net._correlated import BestIterate
    from fewfire.networks import TwoLayer

SeparatorMethod: TypeAlias = Literal["lemma", "least"]
"""Lemma 10's choice of weights, or those of least norm."""

MOST_BITS = 12


@dataclass(frozen=True, eq=False)
class Separator:
    """Output weights that make the parity of features after the first step.

    Attributes
    ----------
    output : array of shape (width,)
        u*.
    norm : float
        ‖u*‖.
    neurons : int
        ‖u*‖₀.
    margin : float
        g*f_A is at least this on every input; not positive where the network is too narrow. u* is not scaled:
        norm/margin is the norm at margin 1.
    deviation : float
        Under "lemma" the largest distance of a chosen neuron from its feature φ_r.
    """

    output: Float64Array
    norm: float
    neurons: int
    margin: float
    deviation: float


def good_mask(initial: TwoLayer, support: Sequence[int]) -> NDArray[np.bool_]:
    """The good neurons of a start of `init.symmetric` (Lemma 7), shape (width,)."""
    signs = np.rint(initial.hidden.astype(np.float64) * sqrt(initial.inputs))
    return np.asarray(parities.good_start(signs, support, float(initial.bias[0])), dtype=bool)


def bias_movement(initial: TwoLayer, X: AnyArray, y: AnyArray, support: Sequence[int]) -> float:
    """How far the first step on a sample moves the biases of good neurons, root mean square; to compare with 1/(8k).

    Parameters
    ----------
    initial : TwoLayer
        A start of `init.symmetric`.
    X, y : arrays of shape (examples, n) and (examples,)
        A sample of D_A. Over the whole of D_A the movement is next to nothing.
    support : sequence of int
        A.
    """
    good = good_mask(initial, support)
    moved = initial.output * sample_correlations(initial, X, y).bias
    return float(np.sqrt(np.mean(moved[good] ** 2))) if good.any() else 0.0


def separator(
    initial: TwoLayer,
    first: TwoLayer,
    support: Sequence[int],
    method: SeparatorMethod = "lemma",
    tolerance: float | None = None,
) -> Separator:
    """u* on the good neurons of a network after its first step, with norm, support and margin (Lemma 10).

    Parameters
    ----------
    initial, first : TwoLayer
        Before and after the first step.
    support : sequence of int
        A, of at most 12 inputs.
    method : "lemma" or "least"
        "lemma": the neurons within `tolerance` of each φ_r share the coefficient v_r; where there are none, the closest
        takes it. "least": the weights of least norm that give the parity on the 2^k patterns.
    tolerance : float, optional
        1/(5k) unless given, the 2ε of Lemma 9.
    """
    members = list(check_support("support", support, first.inputs))
    check_choice("method", method, get_args(SeparatorMethod))
    k = len(members)
    if k > MOST_BITS:
        raise invalid("support", f"must have at most {MOST_BITS} inputs to visit all their patterns", k)
    allowed = 1 / (5 * k) if tolerance is None else check_number("tolerance", tolerance, 0.0)
    good = np.flatnonzero(good_mask(initial, members))
    if not len(good):
        return Separator(np.zeros(first.width), 0.0, 0, -np.inf, np.inf)
    bits = cube(k).astype(np.float64)
    hidden = first.hidden[good].astype(np.float64)
    values = np.clip(bits @ hidden[:, members].T + first.bias[good], 0.0, first.activation.ceiling)
    rest = np.abs(np.delete(hidden, members, axis=1)).sum(axis=1)
    labels, weights, deviation = bits.prod(axis=1), np.zeros(len(good)), 0.0
    if method == "least":
        weights = np.linalg.lstsq(values, labels, rcond=1e-10)[0]
    else:
        deviation = _lemma_10(weights, values, rest, bits.sum(axis=1), 1 / (8 * k), allowed)
    margin = float((labels * (values @ weights)).min() - np.abs(weights) @ rest)
    output = np.zeros(first.width)
    output[good] = weights
    return Separator(output, float(np.linalg.norm(weights)), int(np.count_nonzero(weights)), margin, deviation)


def measured_drift(best: BestIterate) -> parities.Drift:
    """Largest |u_i|, ‖w_i − w_i⁽¹⁾‖ and |b_i − b_i⁽¹⁾| of the best iterate, in the units of Lemma 13."""
    net, first = best.network, best.first
    moved = np.linalg.norm((net.hidden - first.hidden).astype(np.float64), axis=1)
    return parities.Drift(
        float(np.abs(net.output).max()),
        float(sqrt(net.inputs) * moved.max()),
        float(np.abs(net.bias - first.bias).max()),
    )


def drift_bound(best: BestIterate, k: int, regularisation: float = 0.0) -> parities.Drift:
    """Lemma 13 for the steps taken: rates enter by their sum, so that they may fall."""
    later = best.step - 1
    mean = float(best.rates[:later].mean()) if later else 0.0
    return parities.lemma_13(best.network.inputs, k, mean, regularisation, max(later, 1))


def _lemma_10(
    weights: Float64Array, values: Float64Array, rest: Float64Array, z: Float64Array, bias: float, allowed: float
) -> float:
    """Fill in the weights of the neurons chosen for each φ_r; the largest distance of one from its feature."""
    k = int(z.max())
    thresholds, coefficients = parities.separator_thresholds(k), parities.separator_coefficients(k)
    features = parities.separator_features(k, z)
    largest = 0.0
    for place, r in enumerate(thresholds):
        scale = abs(r) / bias
        distance = np.abs(scale * values - features[:, place : place + 1]).max(axis=0) + scale * rest
        chosen = np.flatnonzero(distance <= allowed)
        if not len(chosen):
            chosen = np.array([np.argmin(distance)])
        weights[chosen] += coefficients[place] * scale / len(chosen)
        largest = max(largest, float(distance[chosen].max()))
    return largest
