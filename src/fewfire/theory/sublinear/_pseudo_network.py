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

Theorem 5.1 takes R = K/m^(3/5) and says m^(−1/5)·R = K/m, which is K/m^(4/5): with F of order K·m^(9/10) the terms
grow as K²·m^(1/10) where K²·m^(−1/10) is printed. For R = K/m^(4/5), the radius that Lemma 4.7 in fact reaches, F is
of order K·m^(7/10), the terms of order K²·m^(−3/10), and the theorem holds with K²·m^(−3/10) + m^(−1/10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_finite, check_inputs, check_integer, check_number
from fewfire.theory._numbers import check_constant, power
from fewfire.theory.sublinear._activity import binomial_quantile, deviation, flip_probability

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

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> start = rng.normal(size=(64, 3)) / 8
    >>> bias, output = rng.normal(size=64) / 8, rng.choice([-1.0, 1.0], size=64) / 64**0.2
    >>> hidden = start + rng.uniform(-1, 1, size=start.shape) / 100
    >>> X = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    >>> sublinear.pseudo_network(start, start, bias, output, 0.1, X)
    array([0., 0.])
    >>> sublinear.pseudo_network(hidden, start, bias, output, 0.1, X).shape
    (2,)
    """
    pair = network_pair(hidden, start_hidden, bias, output, threshold, X)
    return np.where(pair.start > pair.threshold, pair.moved, 0.0) @ pair.output


def pseudo_distance(
    hidden: ArrayLike, start_hidden: ArrayLike, bias: ArrayLike, output: ArrayLike, threshold: float, X: ArrayLike
) -> PseudoDistance:
    """The largest |f − g| over the rows of X, with the three terms of Definition 5.4; arguments as `pseudo_network`.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> start = rng.normal(size=(64, 3)) / 8
    >>> bias, output = rng.normal(size=64) / 8, rng.choice([-1.0, 1.0], size=64) / 64**0.2
    >>> hidden = start + rng.uniform(-1, 1, size=start.shape) / 100
    >>> X = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    >>> found = sublinear.pseudo_distance(hidden, start, bias, output, 0.1, X)
    >>> found.distance <= found.gradient_term + found.start_term + found.flip_term
    True
    """
    pair = network_pair(hidden, start_hidden, bias, output, threshold, X)
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


@dataclass(frozen=True)
class DistanceBound:
    """Bounds on the three terms of |f − g| at one input, for every network within the radius.

    Attributes
    ----------
    gradient_term, start_term, flip_term : float
        On |A − g|, |B| and |C|.
    flips : int
        On the neurons that can change side.
    """

    gradient_term: float
    start_term: float
    flip_term: float
    flips: int

    @property
    def total(self) -> float:
        """The bound on |f − g|."""
        return self.gradient_term + self.start_term + self.flip_term


def distance_bound(
    width: int, radius: float, threshold: float = 0.0, failure: float = 0.01, input_norm: float = 1.0
) -> DistanceBound:
    """Lemma 5.8 with every constant, for one fixed input and all networks with ‖w_r − w_{r,0}‖ ≤ radius at once.

    Parameters
    ----------
    width : int
        m, below 2^31.
    radius : float
        R.
    threshold : float
        τ.
    failure : float
        Probability over the start that the bound fails, at most; a third each for F, for Σ z² (Lemma 3.14) and for the
        signs of the outputs (Hoeffding).
    input_norm : float
        ‖x‖.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> bound = sublinear.distance_bound(width=10_000, radius=1e-4)
    >>> bound.total > bound.gradient_term + bound.start_term
    True
    """
    third = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / 3
    flips = binomial_quantile(width, flip_probability(width, radius, threshold, input_norm), 1 - third)
    log = math.log(1 / third)
    squares = deviation(width, input_norm) ** 2 * (width + 2 * math.sqrt(width * log) + 2 * log)
    output, reach = width**-0.2, radius * input_norm
    return DistanceBound(
        gradient_term=output * reach * flips,
        start_term=output * math.sqrt(2 * squares * (log + math.log(2))),
        flip_term=output * (reach + threshold) * flips,
        flips=flips,
    )


def theorem_5_1(width: int, K: float, exponent: float = 0.8, constant: float = 1.0) -> float:
    """Theorem 5.1, corrected: constant·(K²·m^(13/10 − 2e) + m^(−1/10)) for weights within K/m^e of the start.

    e = 4/5 gives K²·m^(−3/10) + m^(−1/10), which vanishes; the printed e = 3/5 gives K²·m^(1/10), which does not.
    τ = O(m^(−e)) is taken for granted, as in the paper; `distance_bound` has the threshold in it.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.theorem_5_1(width=10_000, K=1.0), 3)
    0.461
    """
    width, K = check_integer("width", width, 1), check_number("K", K, 0.0)
    exponent = check_number("exponent", exponent, 0.0)
    check_constant(constant)
    return constant * (K**2 * power(width, 1.3 - 2 * exponent) + power(width, -0.1))


def theorem_5_1_printed(width: int, K: float, constant: float = 1.0) -> float:
    """Theorem 5.1 as printed: constant·K²·m^(−1/10) for weights within K/m^(3/5), which no constant makes true.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.theorem_5_1_printed(width=10_000, K=1.0), 3)
    0.398
    """
    check_constant(constant)
    return constant * check_number("K", K, 0.0) ** 2 * power(check_integer("width", width, 1), -0.1)


@dataclass(frozen=True, eq=False)
class NetworkPair:
    """The network, its start and the inputs, as float64."""

    hidden: Float64Array  # w, of shape (width, inputs)
    start_hidden: Float64Array  # w₀, of shape (width, inputs)
    rows: Float64Array  # x, of shape (rows, inputs)
    moved: Float64Array  # ⟨w − w₀, x⟩, of shape (rows, width)
    start: Float64Array  # z₀, of shape (rows, width)
    output: Float64Array  # a, of shape (width,)
    threshold: float
    radius: float


def network_pair(
    hidden: ArrayLike, start_hidden: ArrayLike, bias: ArrayLike, output: ArrayLike, threshold: float, X: ArrayLike
) -> NetworkPair:
    """The arguments of `pseudo_network`, checked, with their preactivations."""
    start = check_inputs("start_hidden", start_hidden, None, np.dtype(np.float64)).astype(np.float64)
    width, inputs = start.shape
    now = check_inputs("hidden", hidden, inputs, np.dtype(np.float64)).astype(np.float64)
    if now.shape != start.shape:
        raise invalid("hidden", f"must have the shape {start.shape} of start_hidden", f"shape {now.shape}")
    rows = check_inputs("X", X, inputs, np.dtype(np.float64)).astype(np.float64)
    change = now - start
    return NetworkPair(
        now,
        start,
        rows,
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
