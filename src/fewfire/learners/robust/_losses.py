"""What training lowers and what its adversary raises: losses of a table of scores, with the labels bound in.

The regression losses are 1-Lipschitz and convex with ℓ(y, y) = 0, as sublinear, Definition 3.2 asks; with labels ±1
"absolute" is also the theorem's loss for classification. "logistic" and "hinge" are the practical ones.

An adversary raises the loss itself, except for hinge, which is flat beyond the margin and gives no direction there:
for it, the adversary lowers the margin.

Minibatches need losses of some rows only: `RowLoss` gives any of these for chosen rows, the logistic ones in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

from fewfire._validate import check_choice
from fewfire.engines import Loss, get_loss
from fewfire.robustness import Criterion
from fewfire.robustness._criteria import negative_margin, one_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray

HUBER: Final = Loss(
    "huber",
    lambda f, y: np.where(np.abs(f - y) <= 1, (f - y) ** 2 / 2, np.abs(f - y) - 0.5),
    lambda f, y: np.clip(f - y, -1, 1),
)
CLASSIFICATION: Final = ("logistic", "hinge", "absolute")
REGRESSION: Final = ("absolute", "huber")
TEMPERATURES: Final = (-3.0, 3.0)
"""Logarithms of the temperatures that are looked through."""


def classification(name: str, labels: AnyArray, heads: int) -> tuple[Criterion, Criterion]:
    """What training lowers and what its adversary raises; labels as for `negative_margin`."""
    check_choice("loss", name, CLASSIFICATION)
    margin = negative_margin(labels, heads)
    if heads == 1:
        loss = one_head(get_loss(name), labels)
    elif name == "logistic":
        loss = _cross_entropy(labels)
    elif name == "hinge":
        loss = Criterion(
            lambda scores: np.maximum(0.0, 1.0 + margin.value(scores)),
            lambda scores: margin.slope(scores) * (margin.value(scores) > -1.0)[:, None],
        )
    else:
        signs = np.where(np.arange(heads) == labels[:, None], 1.0, -1.0)
        loss = Criterion(
            lambda scores: np.abs(scores - signs).sum(axis=1), lambda scores: np.asarray(np.sign(scores - signs))
        )
    return loss, margin if name == "hinge" else loss


def regression(name: str, labels: Float64Array) -> tuple[Criterion, Criterion]:
    """What training lowers and what its adversary raises: the same loss."""
    loss = one_head(HUBER if check_choice("loss", name, REGRESSION) == "huber" else get_loss(name), labels)
    return loss, loss


def _cross_entropy(labels: AnyArray) -> Criterion:
    row = np.arange(len(labels))

    def slope(scores: Float64Array) -> Float64Array:
        table = np.asarray(softmax(scores, axis=1))
        table[row, labels] -= 1.0
        return table

    return Criterion(lambda scores: -np.asarray(log_softmax(scores, axis=1))[row, labels], slope)


@dataclass(frozen=True, eq=False)
class RowLoss:
    """A loss of chosen rows, given scores (chosen, heads) and the rows' numbers (chosen,); slopes are float32.

    Parameters
    ----------
    descent : function to the losses (chosen,) and their slopes (chosen, heads)
    ascent : function to the slopes of what the adversary raises
    error : function to what held-out rows are judged by, shape (chosen,)
    margin : function to how the margin to the nearest rival weighs the scores, (chosen, heads); of classifiers only
    """

    descent: Callable[[FloatArray, IdArray], tuple[FloatArray, FloatArray]]
    ascent: Callable[[FloatArray, IdArray], FloatArray]
    error: Callable[[FloatArray, IdArray], FloatArray]
    margin: Callable[[FloatArray, IdArray], FloatArray] | None = None


def classification_rows(name: str, labels: AnyArray, heads: int) -> RowLoss:
    """`classification` for minibatches: labels (rows,) as there."""

    def error(scores: FloatArray, rows: IdArray) -> FloatArray:
        margin = -negative_margin(labels[rows], heads).value(scores.astype(np.float64))
        return (margin <= 0.0).astype(np.float32)

    def margin(scores: FloatArray, rows: IdArray) -> FloatArray:
        return np.asarray(-negative_margin(labels[rows], heads).slope(scores.astype(np.float64)), dtype=np.float32)

    if name != "logistic":
        return _chosen(lambda chosen: classification(name, chosen, heads), labels, error, margin)
    if heads == 1:
        signs = labels.astype(np.float32)[:, None]

        def logistic(scores: FloatArray, rows: IdArray) -> FloatArray:
            here = signs[rows]
            return np.asarray(-here * expit(-here * scores))

        return RowLoss(
            lambda scores, rows: (np.logaddexp(0.0, -signs[rows] * scores)[:, 0], logistic(scores, rows)),
            logistic,
            error,
            margin,
        )
    truth = np.eye(heads, dtype=np.float32)[labels]

    def cross_entropy(scores: FloatArray, rows: IdArray) -> tuple[FloatArray, FloatArray]:
        shifted = scores - scores.max(axis=1, keepdims=True)
        powers = np.exp(shifted)
        sums = powers.sum(axis=1, keepdims=True)
        here = truth[rows]
        losses = np.log(sums[:, 0]) - np.einsum("ij,ij->i", shifted, here)
        powers /= sums
        powers -= here
        return losses, powers

    return RowLoss(cross_entropy, lambda scores, rows: cross_entropy(scores, rows)[1], error, margin)


def regression_rows(name: str, labels: Float64Array) -> RowLoss:
    """`regression` for minibatches: labels (rows,) as there."""

    def error(scores: FloatArray, rows: IdArray) -> FloatArray:
        return regression(name, labels[rows])[0].value(scores.astype(np.float64)).astype(np.float32)

    return _chosen(lambda chosen: regression(name, chosen), labels, error)


class LossOfRows(Protocol):
    """The loss of a training, with the labels of all its rows."""

    @property
    def name(self) -> str:
        """Which loss."""

    @property
    def strata(self) -> AnyArray:
        """What held-out parts are balanced by: shape (rows,)."""

    def criteria(self) -> tuple[Criterion, Criterion]:
        """What training lowers and what its adversary raises, of all rows at once."""

    def rows(self, chosen: IdArray) -> RowLoss:
        """The loss of some rows, which are counted anew."""

    def temperature(self, scores: Float64Array, chosen: IdArray, weight: Float64Array) -> float:
        """What scores (chosen, heads) of rows not trained on are to be divided by to give probabilities."""


@dataclass(frozen=True, eq=False)
class ClassificationLoss:
    """A loss by name of labels (rows,), signs for one head and class numbers for several."""

    name: str
    labels: AnyArray
    heads: int

    @property
    def strata(self) -> AnyArray:
        """The classes."""
        return self.labels

    def criteria(self) -> tuple[Criterion, Criterion]:
        """As of `classification`."""
        return classification(self.name, self.labels, self.heads)

    def rows(self, chosen: IdArray) -> RowLoss:
        """As of `classification_rows`."""
        return classification_rows(self.name, self.labels[chosen], self.heads)

    def temperature(self, scores: Float64Array, chosen: IdArray, weight: Float64Array) -> float:
        """The one of the least logistic loss (softmax for several heads), of labels that are doubted a little.

        Each of n rows counts for another class by 1/(n + 2), as in Platt's scaling: without an error among them the
        best temperature would be 0.
        """
        doubt, labels = 1.0 / (len(chosen) + 2), self.labels[chosen]

        def loss(power: float) -> float:
            divided = scores / np.exp(power)
            if self.heads == 1:
                margin = labels * divided[:, 0]
                losses = (1.0 - doubt) * np.logaddexp(0.0, -margin) + doubt * np.logaddexp(0.0, margin)
            else:
                table = -np.asarray(log_softmax(divided, axis=1))
                own = table[np.arange(len(table)), labels]
                losses = (1.0 - doubt) * own + doubt / (self.heads - 1) * (table.sum(axis=1) - own)
            return float(np.average(losses, weights=weight))

        return float(np.exp(minimize_scalar(loss, bounds=TEMPERATURES, method="bounded").x))


@dataclass(frozen=True, eq=False)
class RegressionLoss:
    """A loss by name of standardised labels (rows,)."""

    name: str
    labels: Float64Array

    @property
    def strata(self) -> AnyArray:
        """The labels themselves: parts get their share of small and of large ones."""
        return self.labels

    def criteria(self) -> tuple[Criterion, Criterion]:
        """As of `regression`."""
        return regression(self.name, self.labels)

    def rows(self, chosen: IdArray) -> RowLoss:
        """As of `regression_rows`."""
        return regression_rows(self.name, self.labels[chosen])

    def temperature(self, scores: Float64Array, chosen: IdArray, weight: Float64Array) -> float:
        """1: there are no probabilities."""
        return 1.0


def _chosen(
    criteria: Callable[[AnyArray], tuple[Criterion, Criterion]],
    labels: AnyArray,
    error: Callable[[FloatArray, IdArray], FloatArray],
    margin: Callable[[FloatArray, IdArray], FloatArray] | None = None,
) -> RowLoss:
    """Criteria bound to the labels of the chosen rows, minibatch by minibatch."""

    def descent(scores: FloatArray, rows: IdArray) -> tuple[FloatArray, FloatArray]:
        loss, _ = criteria(labels[rows])
        double = scores.astype(np.float64)
        return loss.value(double).astype(np.float32), loss.slope(double).astype(np.float32)

    def ascent(scores: FloatArray, rows: IdArray) -> FloatArray:
        return criteria(labels[rows])[1].slope(scores.astype(np.float64)).astype(np.float32)

    return RowLoss(descent, ascent, error, margin)
