"""How f, g and their gradients move with the input and with the weights (sublinear, Lemmas 5.9 and 5.14, Claim 5.19).

Lemma 5.9: f and g at x + μ for every ‖μ‖ ≤ δ, the paper's 1/m. A neuron with |z − τ| > ‖w‖δ stays on its side, and
those that stay on together are one linear function; the others are *open* and can change by their whole output.
`perturbation` adds these up, so no μ does worse. The bound in advance takes ‖w_{r,0}‖ ≤ L for all r, with m·L² the
upper quantile of a chi-square (Lemma 3.14).

Lemma 5.14: ‖∇̂ − ∇‖_{2,1} for ∇ = (1/n)Σ_i ℓ'_i ∂f(x_i)/∂W and ∇̂ with ∂g/∂W, under the same slopes ℓ'_i, those at f
(erratum 28). A neuron on the same side on every example has equal rows, so the distance is at most
max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons that changed on x_i), and the n of the lemma is not needed.

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
from fewfire.papers.sublinear.statements._activity import binomial_quantile, flip_probability
from fewfire.papers.sublinear.statements._pseudo_network import NetworkPair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire.networks import TwoLayer


@dataclass(frozen=True)
class Perturbation:
    """Bounds on |f(x + μ) − f(x)| and |g(x + μ) − g(x)| by any move of at most the reach, each the largest over rows.

    `open_neurons` and `open_at_start` can change side, with the weights as they are and as they were at the start.
    """

    network: float
    pseudo: float
    open_neurons: int
    open_at_start: int


def perturbation(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike, reach: float) -> Perturbation:
    """Lemma 5.9 measured: what no μ with ‖μ‖ ≤ reach exceeds at the rows of X; other arguments as `pseudo_network`.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.perturbation(start, start.hidden, [[0.6, 0.0, 0.8]], reach=0.05).pseudo >= 0
    True
    """
    pair = NetworkPair.of(network, start_hidden, X)
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
    width: int, d: int, radius: float, threshold: float = 0.0, failure: float = 0.01
) -> Perturbation:
    """Lemma 5.9 with every constant: at one x of norm 1, for every W within the radius and every ‖μ‖ ≤ 1/m at once.

    Parameters
    ----------
    width, d : int
        m, and inputs.
    radius : float
        Largest ‖w_r − w_{r,0}‖.
    threshold : float
        τ.
    failure : float
        Probability over the start that the bound fails, at most; a third each for ‖w_{r,0}‖ and for the two counts.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> near = sublinear.perturbation_bound(width=10_000, d=10, radius=1e-4)
    >>> near.network < sublinear.perturbation_bound(width=10_000, d=10, radius=1e-3).network
    True
    """
    width, d = check_integer("width", width, 1), check_integer("d", d, 1)
    radius, tau = check_number("radius", radius, 0.0), check_number("threshold", threshold, 0.0)
    delta = 1 / width  # the paper's
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
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.largest_norm(d=10, count=1000, failure=0.01), 2)
    7.38
    """
    d, count = check_integer("d", d, 1), check_integer("count", count, 1)
    s = math.log(count / check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True))
    return math.sqrt(d + 2 * math.sqrt(d * s) + 2 * s)


@dataclass(frozen=True)
class GradientCoupling:
    """‖∇̂ − ∇‖_{2,1} and the neurons whose gradients differ.

    `bound` is max|a|·max‖x‖·(1/n)Σ_i |ℓ'_i|·(neurons changed on x_i).
    """

    distance: float
    neurons: int
    bound: float


def gradient_coupling(network: TwoLayer, start_hidden: ArrayLike, X: ArrayLike, slopes: ArrayLike) -> GradientCoupling:
    """Lemma 5.14 measured: ‖∇̂ − ∇‖_{2,1} at the rows of X; other arguments as `pseudo_network`.

    Parameters
    ----------
    slopes : array of shape (rows,)
        ℓ'_i, slopes of the loss at f(x_i), in ∇̂ too; with those at g, as in Definition 5.11, the lemma fails.

    Examples
    --------
    >>> from fewfire.networks import init
    >>> from fewfire.papers import sublinear
    >>> start = init.ntk(threshold=0.1)(3, 64, seed=0)
    >>> sublinear.gradient_coupling(start, start.hidden, [[0.6, 0.0, 0.8]], slopes=[-1.0]).distance
    0.0
    """
    pair = NetworkPair.of(network, start_hidden, X)
    rows, factors = len(pair.rows), np.asarray(slopes, dtype=np.float64)
    if factors.shape != (rows,):
        rule = f"must be a vector of {rows} numbers, one per row of X"
        raise invalid("slopes", rule, f"shape {factors.shape}")
    check_finite("slopes", factors)
    now, before = pair.start + pair.moved > pair.threshold, pair.start > pair.threshold
    weights = factors[:, None] * now - factors[:, None] * before
    lengths = np.linalg.norm((weights * pair.output).T @ pair.rows / rows, axis=1)
    changed = (now != before).sum(axis=1)
    return GradientCoupling(
        distance=float(lengths.sum()),
        neurons=int(np.count_nonzero(weights.any(axis=0))),
        bound=float(
            np.abs(pair.output).max() * np.linalg.norm(pair.rows, axis=1).max() * np.mean(np.abs(factors) * changed)
        ),
    )


def coupling_bound(n: int, width: int, radius: float, threshold: float = 0.0, failure: float = 0.01) -> float:
    """Lemma 5.14 with its constant: m^(−1/5)·F for n fixed examples of norm 1, a 1-Lipschitz loss and every W at once.

    Parameters
    ----------
    n, width : int
        Examples, and m.
    radius : float
        Largest ‖w_r − w_{r,0}‖; `claim_radius` is the lemma's.
    threshold : float
        τ.
    failure : float
        Probability over the start that it fails, at most: F is the 1 − failure/n quantile of the neurons that can
        change on one example, of order m^(7/8)/√π at the lemma's radius.

    Examples
    --------
    >>> from fewfire.papers import sublinear
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
        Neurons.
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
    >>> from fewfire.papers import sublinear
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
