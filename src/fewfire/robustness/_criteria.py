"""What an adversary raises: a function of a table of scores, with the labels bound in.

Scores have shape (rows, heads): one head for two classes (positive for the second) and for regression, one per class
for more. Labels are signs for two classes, class numbers for more, numbers for regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.engines import get_loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines import Loss


@dataclass(frozen=True, eq=False)
class Criterion:
    """A number per row, and its derivative in that row's scores.

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


def encode(classes: AnyArray, labels: AnyArray) -> Any:
    """Labels (rows,) as criteria take them: signs for two classes, class numbers for more."""
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)
    return np.searchsorted(classes, labels)
