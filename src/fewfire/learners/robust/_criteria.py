"""Losses of a table of scores, with the labels bound in: what training lowers and what an adversary raises.

Scores have shape (rows, heads): one head for two classes (positive for the second) and for regression, one a class for
more. The regression losses are 1-Lipschitz and convex with ℓ(y, y) = 0, as sublinear, Definition 3.2 asks; with labels
±1 "absolute" is also the theorem's loss for classification. "logistic" and "hinge" are the practical ones.

An adversary raises the loss itself, except for hinge, which is flat beyond the margin and gives no direction there:
for it, the adversary lowers the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import log_softmax, softmax

from fewfire._validate import check_choice
from fewfire.engines import Loss, get_loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array

HUBER: Final = Loss(
    "huber",
    lambda f, y: np.where(np.abs(f - y) <= 1, (f - y) ** 2 / 2, np.abs(f - y) - 0.5),
    lambda f, y: np.clip(f - y, -1, 1),
)
CLASSIFICATION: Final = ("logistic", "hinge", "absolute")
REGRESSION: Final = ("absolute", "huber")


@dataclass(frozen=True, eq=False)
class Criterion:
    """A number a row, and its derivative in that row's scores.

    Parameters
    ----------
    value : function from scores (rows, heads) to (rows,)
    slope : function from scores (rows, heads) to (rows, heads)
    """

    value: Callable[[Float64Array], Float64Array]
    slope: Callable[[Float64Array], Float64Array]


def one_head(loss: Loss, labels: Float64Array) -> Criterion:
    """A loss ℓ(f, y) of the only head."""
    return Criterion(
        lambda scores: np.asarray(loss.value(scores[:, 0], labels), dtype=np.float64),
        lambda scores: np.asarray(loss.slope(scores[:, 0], labels), dtype=np.float64)[:, None],
    )


def negative_margin(labels: AnyArray, heads: int) -> Criterion:
    """−y·f for signs y and one head; max_{j≠y} f_j − f_y for class numbers y and several heads."""
    if heads == 1:
        return Criterion(lambda scores: -labels * scores[:, 0], lambda scores: -labels[:, None] * np.ones_like(scores))
    row = np.arange(len(labels))

    def rival(scores: Float64Array) -> AnyArray:
        others = scores.copy()
        others[row, labels] = -np.inf
        return np.asarray(others.argmax(axis=1))

    def value(scores: Float64Array) -> Float64Array:
        return np.asarray(scores[row, rival(scores)] - scores[row, labels])

    def slope(scores: Float64Array) -> Float64Array:
        table = np.zeros_like(scores)
        table[row, rival(scores)] = 1.0
        table[row, labels] = -1.0
        return table

    return Criterion(value, slope)


def error(labels: Float64Array) -> Criterion:
    """|f − y|, the one to attack a regressor with."""
    return one_head(get_loss("absolute"), labels)


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
