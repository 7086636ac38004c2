"""W*, the network near the start that withstands the adversary (sublinear, Lemmas 5.18 and 4.7, Theorem 4.8).

f*(x) = Σ_i y_i q(⟨x_i, x⟩) fits the examples wherever the adversary moves them (Lemma 4.2). With h of Lemma 3.17 for q,

w*_r = w_{r,0} + (2/(k·a_r))·Σ_i y_i h(√m⟨w_{r,0}, x_i⟩, √m·b_r)·ê,   ê the last unit vector,

where k = m and every neuron serves every example, or, as Lemma 4.7 has it, k = ⌊m/n⌋ and the sum over the one example
that the neuron's block serves. x_d = 1/2 on the slice, so g(x; W*) has the mean f*(x), and |g − f*| falls as 1/√m.

With the polynomial of Lemma 4.2, of coefficients of 2^(6M), no width that exists serves; with that of
`small_step_polynomial`, which has the least h, W* can be built at m of 10⁴ to 10⁶.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_integer, check_labels, check_number
from fewfire.papers.sublinear.statements._features import LARGEST_DEGREE, FeatureFunction, feature_function

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array
    from fewfire.networks import TwoLayer

_ON_BAND = 200


@dataclass(frozen=True, eq=False)
class GoodNetwork:
    """W* and how far it is from the start.

    Attributes
    ----------
    network : TwoLayer
        The start with w*_r in float64.
    radius : float
        Largest ‖w*_r − w_{r,0}‖.
    radius_bound : float
        2·C·Σ|y_i|/(k·min|a_r|), Lemma 5.18's O(𝓒·m^(1/5)/k) with its constant; infinite where h is not clipped.
    """

    network: TwoLayer
    radius: float
    radius_bound: float


def good_network(
    start: TwoLayer, points: ArrayLike, labels: ArrayLike, features: FeatureFunction, *, blocks: bool = False
) -> GoodNetwork:
    """W* of Lemmas 5.18 and 4.7: its pseudo-network has the mean Σ_i y_i q(⟨x_i, x⟩) at every x of the slice.

    Parameters
    ----------
    start : TwoLayer
        Drawn as Definition 3.1 has it, as by `networks.init.ntk`.
    points : array of shape (n, inputs)
        x_i, of norm 1 and with last coordinate 1/2.
    labels : array of shape (n,)
        y_i.
    features : FeatureFunction
        h for q, with the threshold of the network times √m.
    blocks : bool
        As Lemma 4.7 has it, a block of ⌊m/n⌋ neurons per example (the last one has the rest), instead of every neuron
        for every example.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.0)(3, 64, seed=0)
    >>> points = [[0.75**0.5, 0.0, 0.5], [0.0, 0.75**0.5, 0.5]]
    >>> good = sublinear.good_network(start, points, [1.0, -1.0], sublinear.feature_function([0.0, 1.0]))
    >>> good.radius <= good.radius_bound
    True
    """
    width = start.width
    X = check_inputs("points", points, start.inputs, np.dtype(np.float64)).astype(np.float64)
    y = check_labels("labels", labels, len(X)).astype(np.float64)
    off = max(float(np.abs(np.linalg.norm(X, axis=1) - 1).max()), float(np.abs(X[:, -1] - 0.5).max()))
    if off > 1e-5:
        rule = "must have norm 1 and last coordinate 1/2 (to 1e-5)"
        raise invalid("points", rule, f"a point off by {off:.2g}", "place them by problems.SphereSlice")
    hidden, b, a = (part.astype(np.float64) for part in (start.hidden, start.bias, start.output))
    if not a.all():
        raise invalid("start", "must have no output weight of 0", "a 0", "draw it by networks.init.ntk")
    if blocks and width < len(X):
        raise invalid("blocks", f"can be True from a width of {len(X)} on, one neuron per example", width)
    scale = math.sqrt(width)
    moves = np.zeros(width)
    share = width // len(X) if blocks else width
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        last = width if i == len(X) - 1 else (i + 1) * share
        mine = slice(i * share, last) if blocks else slice(None)
        size = len(moves[mine])
        moves[mine] += 2 * label * features(scale * (hidden[mine] @ x), scale * b[mine]) / (size * a[mine])
    hidden[:, -1] += moves
    total = float(np.abs(y).max() if blocks else np.abs(y).sum())
    bound = 2 * features.limit * total / (share * float(np.abs(a).min()))
    return GoodNetwork(start.with_parameters(hidden=hidden), float(np.abs(moves).max()), bound)


def small_step_polynomial(
    low: float, high: float, error: float, *, threshold: float = 0.0, max_degree: int = 12
) -> Float64Array:
    """Coefficients of a step within `error` of 0 on [−1/2, low] and of 1 on [high, 1], made for small h.

    Inner products of points of the slice are at least 1/4 − 3/4, so the lower band begins at −1/2. Of the least degree
    that serves, the polynomial with the least Σ_j √(j!/N_j)·|c_j|, a bound on √(E h²), by linear programming over 200
    points per band.

    Parameters
    ----------
    low, high : float in (−1/2, 1]
        Where the lower band ends and the upper one begins: `inner_product_bands`, or what the points have.
    error : float in (0, 1/2)
    threshold : float
        τ in units of 1/√m, which the weights of the coefficients depend on.
    max_degree : int
        At most 60.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> import numpy as np
    >>> step = sublinear.small_step_polynomial(0.2, 0.8, error=0.1)
    >>> np.polynomial.polynomial.polyval([0.1, 0.9], step).round()
    array([0., 1.])
    """
    from scipy.optimize import linprog  # here: importing it takes longer than the rest of this package

    high = check_number("high", high, -0.5, 1.0, open_low=True)
    low = check_number("low", low, -0.5, high, open_low=True, open_high=True)
    error = check_number("error", error, 0.0, 0.5, open_low=True, open_high=True)
    for degree in range(1, check_integer("max_degree", max_degree, 1, LARGEST_DEGREE) + 1):
        norms = feature_function(np.ones(degree + 1), threshold).norms
        weights = np.sqrt([math.factorial(j) / norm for j, norm in enumerate(norms)])
        off, on = (
            np.vander(np.linspace(*band, _ON_BAND), degree + 1, increasing=True) for band in ((-0.5, low), (high, 1.0))
        )
        sides = np.vstack([off, -off, on, -on])
        limits = np.repeat([error, error, 1 + error, error - 1], _ON_BAND)
        # c = p − q with p, q ≥ 0: then Σ weights·(p + q) is the sum of absolute values at the optimum.
        found = linprog(np.r_[weights, weights], np.hstack([sides, -sides]), limits, bounds=(0, None))
        if found.success and found.x is not None:
            return np.asarray(found.x[: degree + 1] - found.x[degree + 1 :])
    rule = f"must leave room for a polynomial of degree {max_degree} between low = {low:g} and high = {high:g}"
    raise invalid("error", rule, error, "take a larger error, points further apart or a larger max_degree")
