"""The pseudo-network g and its distance from the network f (sublinear, sections 2 and 5.4).

f(x) = Σ_r a_r z_r 1[z_r > τ] with z_r = ⟨w_r, x⟩ + b_r; g(x) = Σ_r a_r ⟨w_r − w_{r,0}, x⟩ 1[z_{r,0} > τ], linear in the
weights. Definition 5.4 splits f = A + B + C with Φ_r = 1[z_r > τ]:

A = Σ a_r ⟨w_r − w_{r,0}, x⟩ Φ_r
B = Σ a_r z_{r,0} Φ_{r,0}                 the output at the start
C = Σ a_r z_{r,0} (Φ_r − Φ_{r,0})

Only neurons that changed side count in A − g and in C. The paper writes Φ with ≥ and σ_τ with >; here > stands in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_finite, check_inputs, check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


@dataclass(frozen=True)
class PseudoDistance:
    """What was measured over the given rows; each number is the largest over the rows.

    Attributes
    ----------
    distance : float
        |f − g|.
    gradient_term, start_term, flip_term : float
        |A − g|, |B| and |C|; their sum is at least the distance.
    flips : int
        Neurons on another side of the threshold than at the start.
    radius : float
        Largest ‖w_r − w_{r,0}‖.
    """

    distance: float
    gradient_term: float
    start_term: float
    flip_term: float
    flips: int
    radius: float


@dataclass(frozen=True)
class _Pair:
    """The network, its start and the inputs, as float64."""

    moved: Float64Array  # ⟨w − w₀, x⟩, of shape (rows, width)
    start: Float64Array  # z₀, of shape (rows, width)
    output: Float64Array  # a, of shape (width,)
    threshold: float
    radius: float


def pseudo_network(
    hidden: ArrayLike, start_hidden: ArrayLike, bias: ArrayLike, output: ArrayLike, threshold: float, X: ArrayLike
) -> Float64Array:
    """g(x) = Σ_r a_r ⟨w_r − w_{r,0}, x⟩ 1[⟨w_{r,0}, x⟩ + b_r > τ] at each row of X, of shape (rows,).

    Parameters
    ----------
    hidden, start_hidden : array of shape (width, inputs)
        w_r and w_{r,0}.
    bias, output : array of shape (width,)
        b_r and a_r, which training leaves as they are.
    threshold : float of at least 0
        τ.
    X : array of shape (rows, inputs)
    """
    pair = _pair(hidden, start_hidden, bias, output, threshold, X)
    return np.where(pair.start > pair.threshold, pair.moved, 0.0) @ pair.output


def pseudo_distance(
    hidden: ArrayLike, start_hidden: ArrayLike, bias: ArrayLike, output: ArrayLike, threshold: float, X: ArrayLike
) -> PseudoDistance:
    """The largest |f − g| over the rows of X, with the three terms of Definition 5.4; arguments as `pseudo_network`."""
    pair = _pair(hidden, start_hidden, bias, output, threshold, X)
    before = pair.start > pair.threshold
    change = (pair.start + pair.moved > pair.threshold).astype(np.float64) - before
    gradient = (pair.moved * change) @ pair.output
    start = np.where(before, pair.start, 0.0) @ pair.output
    flip = (pair.start * change) @ pair.output
    return PseudoDistance(
        distance=_largest(gradient + start + flip),
        gradient_term=_largest(gradient),
        start_term=_largest(start),
        flip_term=_largest(flip),
        flips=int(np.count_nonzero(change, axis=1).max()),
        radius=pair.radius,
    )


def _pair(
    hidden: ArrayLike, start_hidden: ArrayLike, bias: ArrayLike, output: ArrayLike, threshold: float, X: ArrayLike
) -> _Pair:
    start = check_inputs("start_hidden", start_hidden, None, np.dtype(np.float64)).astype(np.float64)
    width, inputs = start.shape
    now = check_inputs("hidden", hidden, inputs, np.dtype(np.float64)).astype(np.float64)
    if now.shape != start.shape:
        raise invalid("hidden", f"must have the shape {start.shape} of start_hidden", f"shape {now.shape}")
    rows = check_inputs("X", X, inputs, np.dtype(np.float64)).astype(np.float64)
    change = now - start
    return _Pair(
        rows @ change.T,
        rows @ start.T + _vector("bias", bias, width),
        _vector("output", output, width),
        check_number("threshold", threshold, 0.0),
        float(np.linalg.norm(change, axis=1).max()),
    )


def _vector(name: str, values: ArrayLike, width: int) -> Float64Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (width,):
        raise invalid(name, f"must be a vector of {width} numbers, one per neuron", f"shape {array.shape}")
    check_finite(name, array)
    return array


def _largest(values: Float64Array) -> float:
    return float(np.abs(values).max())
