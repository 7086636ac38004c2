"""The pseudo-network g and its distance from the network f: measured, and bounded (sublinear, sections 2 and 5.4).

f(x) = Σ_r a_r z_r 1[z_r > τ] with z_r = ⟨w_r, x⟩ + b_r; g(x) = Σ_r a_r ⟨w_r − w_{r,0}, x⟩ 1[z_{r,0} > τ], linear in the
weights. Definition 5.4 splits f = A + B + C with Φ_r = 1[z_r > τ]:

A = Σ a_r ⟨w_r − w_{r,0}, x⟩ Φ_r
B = Σ a_r z_{r,0} Φ_{r,0}                 the output at the start
C = Σ a_r z_{r,0} (Φ_r − Φ_{r,0})

Only neurons that changed side count in A − g and in C. The paper writes Φ with ≥ and σ_τ with >; here > stands in both.

How far they can be apart (Claims 5.5 to 5.7, Lemma 5.8, Theorem 5.1): with outputs ±m^(−1/5) and
‖w_r − w_{r,0}‖ ≤ R, at most F neurons change on an input of norm 1, each worth R in A − g and R + τ in C (the paper
drops the τ). So |A − g| ≤ m^(−1/5)·R·F and |C| ≤ m^(−1/5)·(R + τ)·F; |B| is a sum of random signs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_integer, check_number
from fewfire.papers._numbers import power
from fewfire.papers.sublinear.statements._activity import binomial_quantile, deviation, flip_probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array
    from fewfire.networks import TwoLayer


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


def theorem_5_1(width: int, K: float, constant: float = 1.0, *, printed: bool = False) -> float:
    """Theorem 5.1: constant·(K²·m^(−3/10) + m^(−1/10)) for weights within K/m^(4/5) of the start, and τ = O(m^(−4/5)).

    `printed` has constant·K²·m^(−1/10) for weights within K/m^(3/5), which no constant makes true (erratum 24).

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.theorem_5_1(width=10_000, K=1.0), 3)
    0.461
    """
    width, K = check_integer("width", width, 1), check_number("K", K, 0.0)
    check_number("constant", constant, 0.0, open_low=True)
    if printed:
        return constant * K**2 * power(width, -0.1)
    return constant * (K**2 * power(width, -0.3) + power(width, -0.1))


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
