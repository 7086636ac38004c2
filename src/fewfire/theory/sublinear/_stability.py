"""How f, g and their gradients move with the input and with the weights (sublinear, Lemmas 5.9 and 5.14, Claim 5.19).

Lemma 5.9: f and g at x + μ for every ‖μ‖ ≤ δ, the paper's 1/m. A neuron with |z − τ| > ‖w‖δ stays on its side, and
those that stay on together are one linear function; the others are *open* and can change by their whole output.
`perturbation` adds these up, so no μ does worse. The bound in advance takes ‖w_{r,0}‖ ≤ L for all r, with m·L² the
upper quantile of a chi-square (Lemma 3.14), not the O(1) of eq. (14): at δ = 1/m, τ = O(1/m) and weights within
K/m^(4/5) of the start, |f(x + μ) − f(x)| is of order √(d + log m)·m^(−7/10) + K·m^(−1/2), where m^(−1/5) is printed,
and |g(x + μ) − g(x)| of order K·√(d + log m)/m, where K·m^(−1/2) is.

Lemma 5.14: ‖∇̂ − ∇‖_{2,1} for ∇ = (1/n)Σ_i ℓ'_i ∂f(x_i)/∂W and ∇̂ with ∂g/∂W, under the same slopes ℓ'_i, those at f
(erratum 28). A neuron on the same side on every example has equal rows, so the distance is at most
max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons that changed on x_i): the mean over the examples, where the paper has n times the
neurons that change on some example. So the bound is m^(27/40)/√π and the n of the lemma is not needed.

Claim 5.19: the same for the k neurons of Lemma 5.18, in units where w and b are standard normal; S₁ is the sum's move,
S₂ the mean's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_finite, check_integer, check_number
from fewfire.theory.sublinear._activity import binomial_quantile, flip_probability
from fewfire.theory.sublinear._pseudo_network import network_pair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array


@dataclass(frozen=True)
class Perturbation:
    """Bounds on the changes at one of the given rows, by any move of at most the reach; each the largest over rows.

    Attributes
    ----------
    network, pseudo : float
        On |f(x + μ) − f(x)| and |g(x + μ) − g(x)|.
    open_neurons, open_at_start : int
        Neurons that can change side, with the weights as they are and as they were at the start.
    """

    network: float
    pseudo: float
    open_neurons: int
    open_at_start: int


def perturbation(
    hidden: ArrayLike,
    start_hidden: ArrayLike,
    bias: ArrayLike,
    output: ArrayLike,
    threshold: float,
    X: ArrayLike,
    reach: float,
) -> Perturbation:
    """Lemma 5.9 measured: what no μ with ‖μ‖ ≤ reach exceeds at the rows of X; other arguments as `pseudo_network`.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> start = rng.normal(size=(64, 3)) / 8
    >>> bias, output = rng.normal(size=64) / 8, rng.choice([-1.0, 1.0], size=64) / 64**0.2
    >>> hidden = start + rng.uniform(-1, 1, size=start.shape) / 100
    >>> X = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    >>> found = sublinear.perturbation(hidden, start, bias, output, 0.1, X, reach=0.05)
    >>> 0 < found.open_neurons <= 64
    True
    """
    pair = network_pair(hidden, start_hidden, bias, output, threshold, X)
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
    width: int, d: int, radius: float, threshold: float = 0.0, reach: float | None = None, failure: float = 0.01
) -> Perturbation:
    """Lemma 5.9 with every constant: at one fixed x of norm 1, for every W within the radius and every μ at once.

    Parameters
    ----------
    width, d : int
        m, below 2^31, and inputs.
    radius : float
        Largest ‖w_r − w_{r,0}‖.
    threshold : float
        τ.
    reach : float
        Largest ‖μ‖; 1/m unless given.
    failure : float
        Probability over the start that the bound fails, at most; a third each for ‖w_{r,0}‖ and for the two counts.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> near = sublinear.perturbation_bound(width=10_000, d=10, radius=1e-4)
    >>> near.network < sublinear.perturbation_bound(width=10_000, d=10, radius=1e-3).network
    True
    """
    width, d = check_integer("width", width, 1), check_integer("d", d, 1)
    radius, tau = check_number("radius", radius, 0.0), check_number("threshold", threshold, 0.0)
    delta = 1 / width if reach is None else check_number("reach", reach, 0.0)
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
    >>> from fewfire.theory import sublinear
    >>> round(sublinear.largest_norm(d=10, count=1000, failure=0.01), 2)
    7.38
    """
    d, count = check_integer("d", d, 1), check_integer("count", count, 1)
    s = math.log(count / check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True))
    return math.sqrt(d + 2 * math.sqrt(d * s) + 2 * s)


@dataclass(frozen=True)
class GradientCoupling:
    """How far the gradients of the network and of its pseudo-network are apart.

    Attributes
    ----------
    distance : float
        ‖∇̂ − ∇‖_{2,1}, the sum over neurons of the norms of what differs.
    neurons : int
        Neurons whose gradients differ.
    changed : float
        Mean over the examples of the neurons on another side of the threshold than at the start.
    bound : float
        max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons changed on x_i), where the slopes are the same.
    """

    distance: float
    neurons: int
    changed: float
    bound: float


def gradient_coupling(
    hidden: ArrayLike,
    start_hidden: ArrayLike,
    bias: ArrayLike,
    output: ArrayLike,
    threshold: float,
    X: ArrayLike,
    slopes: ArrayLike,
    pseudo_slopes: ArrayLike | None = None,
) -> GradientCoupling:
    """Lemma 5.14 measured: ‖∇̂ − ∇‖_{2,1} at the rows of X; other arguments as `pseudo_network`.

    Parameters
    ----------
    slopes : array of shape (rows,)
        ℓ'_i, slopes of the loss at f(x_i).
    pseudo_slopes : array of shape (rows,)
        Those in ∇̂: the same unless given. Definition 5.11 takes them at g, for which the lemma fails.

    Examples
    --------
    >>> from fewfire.theory import sublinear
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> start = rng.normal(size=(64, 3)) / 8
    >>> bias, output = rng.normal(size=64) / 8, rng.choice([-1.0, 1.0], size=64) / 64**0.2
    >>> hidden = start + rng.uniform(-1, 1, size=start.shape) / 100
    >>> X = np.array([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    >>> found = sublinear.gradient_coupling(hidden, start, bias, output, 0.1, X, slopes=[-1.0, 1.0])
    >>> found.distance <= found.bound
    True
    """
    pair = network_pair(hidden, start_hidden, bias, output, threshold, X)
    rows = len(pair.rows)
    first = _slopes("slopes", slopes, rows)
    second = first if pseudo_slopes is None else _slopes("pseudo_slopes", pseudo_slopes, rows)
    now, before = pair.start + pair.moved > pair.threshold, pair.start > pair.threshold
    weights = first[:, None] * now - second[:, None] * before
    lengths = np.linalg.norm((weights * pair.output).T @ pair.rows / rows, axis=1)
    changed = (now != before).sum(axis=1)
    return GradientCoupling(
        distance=float(lengths.sum()),
        neurons=int(np.count_nonzero(weights.any(axis=0))),
        changed=float(changed.mean()),
        bound=float(
            np.abs(pair.output).max() * np.linalg.norm(pair.rows, axis=1).max() * np.mean(np.abs(first) * changed)
        ),
    )


def coupling_bound(n: int, width: int, radius: float, threshold: float = 0.0, failure: float = 0.01) -> float:
    """Lemma 5.14 with its constant: m^(−1/5)·F for n fixed examples of norm 1, a 1-Lipschitz loss and every W at once.

    Parameters
    ----------
    n, width : int
        Examples, and m below 2^31.
    radius : float
        Largest ‖w_r − w_{r,0}‖; `claim_radius` is the lemma's.
    threshold : float
        τ.
    failure : float
        Probability over the start that it fails, at most: F is the 1 − failure/n quantile of the neurons that can
        change on one example, of order m^(7/8)/√π at the lemma's radius.

    Examples
    --------
    >>> from fewfire.theory import sublinear
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
        Neurons, below 2^31.
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
    >>> from fewfire.theory import sublinear
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


def _slopes(name: str, values: ArrayLike, rows: int) -> Float64Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (rows,):
        raise invalid(name, f"must be a vector of {rows} numbers, one per row of X", f"shape {array.shape}")
    check_finite(name, array)
    return array
