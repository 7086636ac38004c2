"""What training lowers and what its adversary raises: losses of a table of scores, with the labels bound in.

The regression losses are 1-Lipschitz and convex with ℓ(y, y) = 0, as sublinear, Definition 3.2 asks; with labels ±1
"absolute" is also the theorem's loss for classification. "logistic" and "hinge" are the practical ones.

An adversary raises the loss itself, except for hinge, which is flat beyond the margin and gives no direction there:
for it, the adversary lowers the margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import log_softmax, softmax

from fewfire._validate import check_choice
from fewfire.engines import Loss, get_loss
from fewfire.robustness import Criterion
from fewfire.robustness._criteria import negative_margin, one_head

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

HUBER: Final = Loss(
    "huber",
    lambda f, y: np.where(np.abs(f - y) <= 1, (f - y) ** 2 / 2, np.abs(f - y) - 0.5),
    lambda f, y: np.clip(f - y, -1, 1),
)
CLASSIFICATION: Final = ("logistic", "hinge", "absolute")
REGRESSION: Final = ("absolute", "huber")


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
