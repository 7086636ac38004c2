"""One attack to be made: rows, their labels, where they may go, and what an adversary raises.

A criterion is a function of a table of scores, shape (rows, heads), with the labels bound in: signs for two classes,
class numbers for more, numbers for regression. A classifier is fooled when one rival's score passes the true one, a
regressor moved when its number rises or falls: either way some ⟨c, s(x)⟩ + constant, linear in the scores, is to be
raised. These *directions* are what targeted searches follow; the criterion, the largest over all directions, is what
counts in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._formula import Scores
    from fewfire.robustness._threats import Threat


@dataclass(frozen=True, eq=False)
class Criterion:
    """A number per row of scores (rows, heads), and its derivative in that row's scores."""

    value: Callable[[Float64Array], Float64Array]
    slope: Callable[[Float64Array], Float64Array]


def criterion(adapter: ModelAdapter, labels: AnyArray, targeted: bool = False, ratio: bool = False) -> Criterion:
    """What an attack raises: −margin, its `ratio` to the spread of the scores, or the error |f − y| of a regressor.

    `targeted` labels are those to be reached: their margin is raised.
    """
    if adapter.classes is not None:
        heads = 1 if len(adapter.classes) == 2 else len(adapter.classes)
        fall = difference_of_logits(labels, heads) if ratio else negative_margin(labels, heads)
        return Criterion(lambda scores: -fall.value(scores), lambda scores: -fall.slope(scores)) if targeted else fall
    return Criterion(
        lambda scores: np.asarray(np.abs(scores[:, 0] - labels), dtype=np.float64),
        lambda scores: np.asarray(np.sign(scores[:, 0] - labels), dtype=np.float64)[:, None],
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


def difference_of_logits(labels: AnyArray, heads: int) -> Criterion:
    """(max_{j≠y} f_j − f_y)/(f_(1) − f_(3)), which scaling the scores does not change; −margin for one or two heads.

    f_(1) ≥ f_(2) ≥ f_(3) are the largest scores (Croce and Hein, 2020, section 4).
    """
    margin = negative_margin(labels, heads)
    if heads < 3:
        return margin

    def gap(scores: Float64Array) -> tuple[AnyArray, Float64Array]:
        order = np.argsort(-scores, axis=1)
        first, third = (np.take_along_axis(scores, order[:, [index]], axis=1)[:, 0] for index in (0, 2))
        return order, first - third + 1e-12

    def slope(scores: Float64Array) -> Float64Array:
        order, width = gap(scores)
        spread = np.zeros_like(scores)
        np.put_along_axis(spread, order[:, [0]], 1.0, axis=1)
        np.put_along_axis(spread, order[:, [2]], -1.0, axis=1)
        return np.asarray((margin.slope(scores) - (margin.value(scores) / width)[:, None] * spread) / width[:, None])

    return Criterion(lambda scores: margin.value(scores) / gap(scores)[1], slope)


@dataclass(frozen=True, eq=False)
class AttackProblem:
    """Rows to attack, in the precision that searches work in."""

    adapter: ModelAdapter
    scores: Scores  # to search on; may be of lower precision than the adapter's
    threat: Threat
    centres: Float64Array  # (rows, d)
    labels: AnyArray  # (rows,), as criteria take them
    starts: Float64Array  # (rows, d): the worst points known so far
    floor: Float64Array  # (rows,): a climb whose criterion is not above this after its first steps is ended
    targeted: bool = False  # the labels are those to be reached

    def __len__(self) -> int:
        return len(self.centres)

    def take(self, rows: AnyArray) -> AttackProblem:
        """The same for some rows, given by numbers or a mask."""
        arrays = {name: getattr(self, name)[rows] for name in ("centres", "labels", "starts", "floor")}
        return replace(self, threat=self.threat.take(rows), **arrays)

    @property
    def criterion(self) -> Criterion:
        """−margin of a classifier, the error of a regressor."""
        return self.raised(slice(None))

    def raised(self, rows: AnyArray | slice, ratio: bool = False) -> Criterion:
        """The criterion of some rows."""
        return criterion(self.adapter, self.labels[rows], self.targeted, ratio)

    @property
    def is_classifier(self) -> bool:
        """Whether a row is done with once its criterion is above 0; a regressor can always be moved further."""
        return self.adapter.classes is not None

    def directions(self, scores: Float64Array, most: int) -> tuple[Float64Array, Float64Array]:
        """Weights (rows, k, heads) and constants (rows, k) of k directions: of many classes, to the `most` nearest."""
        rows, heads = scores.shape
        if self.adapter.classes is None:
            weights = np.broadcast_to(np.array([1.0, -1.0])[None, :, None], (rows, 2, 1))
            return weights, -self.labels[:, None] * weights[:, :, 0]
        toward = 1.0 if self.targeted else -1.0
        if heads == 1:
            return toward * self.labels[:, None, None].astype(np.float64), np.zeros((rows, 1))
        rivals = np.array(scores, dtype=np.float64)
        row = np.arange(rows)
        rivals[row, self.labels] = -np.inf
        order = np.argsort(-rivals, axis=1)[:, : min(most, heads - 1)]
        weights = np.zeros((rows, order.shape[1], heads))
        weights[row[:, None], np.arange(order.shape[1]), order] = -toward
        weights[row, :, self.labels] = toward
        return weights, np.zeros(order.shape)


class Worst:
    """The worst points met so far, row by row: `points` (rows, d) and `value` (rows,) of the criterion."""

    def __init__(self, points: Float64Array, value: Float64Array) -> None:
        self.points, self.value = points.copy(), value.copy()

    def add(self, rows: AnyArray, points: Float64Array, value: Float64Array) -> None:
        """Take in findings about some rows (numbers, each once)."""
        worse = value > self.value[rows]
        chosen = rows[worse]
        self.points[chosen], self.value[chosen] = points[worse], value[worse]

    def open_rows(self, problem: AttackProblem) -> AnyArray:
        """Rows that are still to be attacked."""
        return np.flatnonzero(self.value <= 0.0) if problem.is_classifier else np.arange(len(self.value))
