"""What held-out rows say: weights of the networks' variants, a temperature, and the share of trees beside them.

Weights of variants, none negative and 1 together, are those whose weighted mean of outputs has the lowest loss, drawn a
little towards even ones, which counts where rows are few; a variant that says nothing new gets none. Smoothed labels
and means of many networks leave classifiers timid, so a temperature makes probabilities of their outputs and leaves the
likeliest class.

Trees are mixed with what the networks then say: chances with chances, numbers with numbers. Held-out rows flatter the
networks, which stopped and were weighed by them; so the shares that predict these rows best are drawn towards a half
for the networks and a half for the trees, of which boosting has the less the fewer rows there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_expit, log_softmax, softmax

from fewfire.tabular._network import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.tabular._network import TabularLoss

    Judge = Callable[[Float64Array], tuple[float, Float64Array]]

LEAST_WEIGHT = 0.03  # a variant of less weight is dropped
HOTTEST = 3.0  # and 1/HOTTEST the coldest: rows that are all predicted right would ask for a temperature of 0
DOUBT = 2.0  # a temperature e^t costs DOUBT · t² over all rows together: thirty rows do not say much about it
EVEN = 5.0  # what weights of variants cost: −EVEN · mean of log(weight) over all rows together
DOUBTED = 20.0  # what shares of trees cost: −DOUBTED · Σ prior · log(share) over all rows together
DOUBTED_NUMBERS = 2.0  # the same where numbers are predicted: squared errors tell members apart in fewer rows
BOOSTED_ROWS = 200  # at so many rows boosting has half the prior it has at any number
TINY = 1e-12  # of a chance, or of a mean squared error of standardised targets


def mixing_weights(loss: TabularLoss, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> Float64Array:
    """Weights (groups,) of outputs (groups, rows, outputs) at rows with targets and weights, the least cut off."""
    even, doubt = np.full(len(outputs), 1.0 / len(outputs)), EVEN / _effective(weight)

    def cost(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        losses, errors = LOSSES[loss](np.tensordot(shares, outputs, 1), target)
        slopes = np.einsum("vro,ro,r->v", outputs, errors, weight) / weight.sum()
        value = float(np.average(losses, weights=weight)) - doubt * float(even @ log_softmax(logits))
        return value, shares * (slopes - shares @ slopes) + doubt * (shares - even)

    found = softmax(minimize(cost, np.zeros(len(outputs)), jac=True, method="L-BFGS-B").x)
    found[found < LEAST_WEIGHT] = 0.0
    return np.asarray(found / found.sum())


def best_temperature(loss: TabularLoss, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> float:
    """The number in [1/3, 3] over which outputs (rows, outputs) predict classes best, nearer to 1 for few rows."""

    def mean_loss(logarithm: float) -> float:
        losses, _ = LOSSES[loss](np.exp(logarithm) * outputs, target)
        return float(np.average(losses, weights=weight)) + DOUBT * logarithm**2 / len(target)

    bound = np.log(HOTTEST)
    return float(np.exp(-minimize_scalar(mean_loss, bounds=(-bound, bound), method="bounded").x))


def log_chances(loss: TabularLoss, outputs: Float64Array) -> Float64Array:
    """Logarithms of the chances of all classes (rows, classes) that outputs (rows, outputs) stand for."""
    if loss == "logistic":
        return np.hstack([log_expit(-outputs), log_expit(outputs)])
    return np.asarray(log_softmax(outputs, axis=1))


def mix(loss: TabularLoss, shares: Float64Array, outputs: Float64Array, trees: list[Float64Array]) -> Float64Array:
    """Outputs (rows, outputs) of networks and predictions of trees, chances (rows, classes) or numbers, as outputs."""
    if loss == "squared":
        return np.asarray(shares[0] * outputs + sum(share * of for share, of in zip(shares[1:], trees, strict=True)))
    beside = np.asarray(sum(share * of for share, of in zip(shares[1:], trees, strict=True)))
    with np.errstate(divide="ignore"):  # a class that no tree expects; the networks never say 0
        mixed = np.logaddexp(np.log(shares[0]) + log_chances(loss, outputs), np.log(beside))
    return np.asarray(mixed[:, 1:] - mixed[:, :1] if loss == "logistic" else mixed)


def tree_shares(
    loss: TabularLoss, outputs: Float64Array, trees: list[Float64Array], target: AnyArray, weight: AnyArray
) -> Float64Array:
    """Shares of networks, extra trees and boosting by which `mix` predicts rows with targets and weights best.

    Errors of numbers count as those of a normal distribution of unknown deviation.
    """
    rows = _effective(weight)
    boosted = 0.25 * rows / (rows + BOOSTED_ROWS)
    prior = np.array([0.5, 0.5 - boosted, boosted])
    networks = outputs if loss == "squared" else np.exp(log_chances(loss, outputs))
    judge = likelihood(loss, np.stack([networks, *trees]), target, weight)
    doubt = (DOUBTED_NUMBERS if loss == "squared" else DOUBTED) / rows

    def cost(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        value, slopes = judge(shares)
        # The prior's slope by the logits: d log softmax.
        pull = doubt * (shares - prior)
        return value - doubt * float(prior @ log_softmax(logits)), shares * (slopes - shares @ slopes) + pull

    return np.asarray(softmax(minimize(cost, np.log(prior), jac=True, method="L-BFGS-B").x))


def _effective(weight: AnyArray) -> float:
    """How many rows of equal weight say as much as rows of these weights (Kish 1965)."""
    relative = np.asarray(weight, dtype=np.float64) / weight.max()
    return float(relative.sum() ** 2 / (relative @ relative))


def likelihood(loss: TabularLoss, members: Float64Array, target: AnyArray, weight: AnyArray) -> Judge:
    """How badly shares (members,) of predictions (members, rows, classes or targets) do, and its slopes by them."""
    judge = _squared_likelihood if loss == "squared" else _class_likelihood
    return judge(members, target, weight / weight.sum())


def _class_likelihood(members: Float64Array, target: AnyArray, weight: AnyArray) -> Judge:
    """The mean −log of the chance given to each row's class, by shares."""
    places = target.argmax(axis=1) if target.shape[1] > 1 else (target[:, 0] > 0.5).astype(np.int64)
    given = np.maximum(members[:, np.arange(len(target)), places], TINY)

    def judge(shares: Float64Array) -> tuple[float, Float64Array]:
        mixed = shares @ given
        return -float(weight @ np.log(mixed)), -(given / mixed) @ weight

    return judge


def _squared_likelihood(members: Float64Array, target: AnyArray, weight: AnyArray) -> Judge:
    """Half the logarithm of the mean squared error, by shares."""
    errors = members - target
    products = np.einsum("iro,jro,r->ij", errors, errors, weight) / target.shape[1]

    def judge(shares: Float64Array) -> tuple[float, Float64Array]:
        mean = max(float(shares @ products @ shares), TINY)
        return 0.5 * np.log(mean), products @ shares / mean

    return judge
