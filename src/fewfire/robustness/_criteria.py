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


def difference_of_logits(labels: AnyArray, heads: int) -> Criterion:
    """(max_{j≠y} f_j − f_y)/(f_(1) − f_(3)), which scaling the scores does not change; −margin for one or two heads.

    f_(1) ≥ f_(2) ≥ f_(3) are the largest scores (Croce and Hein, 2020, section 4).
    """
    margin = negative_margin(labels, heads)
    if heads < 3:
        return margin

    def gap(scores: Float64Array) -> tuple[AnyArray, Float64Array]:
        order = np.argsort(-scores, axis=1)
        first, third = (np.take_along_axis(scores, order[:, [place]], axis=1)[:, 0] for place in (0, 2))
        return order, first - third + 1e-12

    def slope(scores: Float64Array) -> Float64Array:
        order, width = gap(scores)
        spread = np.zeros_like(scores)
        np.put_along_axis(spread, order[:, [0]], 1.0, axis=1)
        np.put_along_axis(spread, order[:, [2]], -1.0, axis=1)
        return np.asarray((margin.slope(scores) - (margin.value(scores) / width)[:, None] * spread) / width[:, None])

    return Criterion(lambda scores: margin.value(scores) / gap(scores)[1], slope)


def toward(weights: Float64Array, constants: Float64Array | float = 0.0) -> Criterion:
    """⟨c, f⟩ + constant for weights c (rows, heads): the lead of one rival over the true class, to be raised."""
    return Criterion(
        lambda scores: np.einsum("ij,ij->i", weights, scores) + constants, lambda scores: np.asarray(weights)
    )
