"""One attack to be made: rows, what they are called, where they may go, and the scores to search on.

A classifier is fooled when one rival's score passes the true one, a regressor moved when its number rises or falls:
either way some ⟨c, s(x)⟩ + constant, linear in the scores, is to be raised. These *directions* are what targeted
searches follow; the criterion, the largest over all directions, is what counts in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._criteria import Criterion
    from fewfire.robustness._score_function import Scores
    from fewfire.robustness._threats import Threat


@dataclass(frozen=True, eq=False)
class AttackProblem:
    """Rows to attack, in the precision that searches work in.

    Parameters
    ----------
    adapter : ModelAdapter
        Says what the labels mean.
    scores : Scores
        To search on; may be of lower precision than the adapter's.
    threat : Threat
    centres : array of shape (rows, d)
    labels : array of shape (rows,)
        As criteria take them.
    starts : array of shape (rows, d)
        The worst points known so far.
    floor : array of shape (rows,)
        A climb whose criterion is not above this after its first steps is ended.
    """

    adapter: ModelAdapter
    scores: Scores
    threat: Threat
    centres: Float64Array
    labels: AnyArray
    starts: Float64Array
    floor: Float64Array

    def __len__(self) -> int:
        return len(self.centres)

    def take(self, rows: AnyArray) -> AttackProblem:
        """The same for some rows, given by numbers or a mask."""
        return replace(
            self,
            threat=self.threat.take(rows),
            centres=self.centres[rows],
            labels=self.labels[rows],
            starts=self.starts[rows],
            floor=self.floor[rows],
        )

    @property
    def criterion(self) -> Criterion:
        """−margin of a classifier, the error of a regressor."""
        return self.adapter.criterion(self.labels)

    def criterion_of(self, rows: AnyArray) -> Criterion:
        """The same of some rows."""
        return self.adapter.criterion(self.labels[rows])

    @property
    def can_fall(self) -> bool:
        """Whether a row is done with once its criterion is above 0; a regressor can always be moved further."""
        return self.adapter.classes is not None

    def directions(self, scores: Float64Array, most: int) -> Directions:
        """The directions to follow; of many classes the `most` that score highest besides the true one."""
        rows, heads = scores.shape
        if self.adapter.classes is None:
            weights = np.broadcast_to(np.array([1.0, -1.0])[None, :, None], (rows, 2, 1))
            return Directions(weights, -self.labels[:, None] * weights[:, :, 0])
        if heads == 1:
            return Directions(-self.labels[:, None, None].astype(np.float64), np.zeros((rows, 1)))
        rivals = np.array(scores, dtype=np.float64)
        row = np.arange(rows)
        rivals[row, self.labels] = -np.inf
        order = np.argsort(-rivals, axis=1)[:, : min(most, heads - 1)]
        weights = np.zeros((rows, order.shape[1], heads))
        weights[row[:, None], np.arange(order.shape[1]), order] = 1.0
        weights[row, :, self.labels] = -1.0
        return Directions(weights, np.zeros(order.shape))


@dataclass(frozen=True, eq=False)
class Directions:
    """Linear functions of scores, ⟨c, s⟩ + constant: k per row.

    Parameters
    ----------
    weights : array of shape (rows, k, heads)
    constants : array of shape (rows, k)
    """

    weights: Float64Array
    constants: Float64Array

    def __len__(self) -> int:
        return int(self.weights.shape[1])

    def one(self, rows: AnyArray, which: AnyArray) -> tuple[Float64Array, Float64Array]:
        """Weights (rows, heads) and constants (rows,) of one direction of some rows."""
        return self.weights[rows, which], self.constants[rows, which]


class Worst:
    """The worst points met so far, row by row: `points` (rows, d) and `value` (rows,) of the criterion."""

    def __init__(self, points: Float64Array, value: Float64Array) -> None:
        self.points, self.value = points.copy(), value.copy()

    def add(self, rows: AnyArray, points: Float64Array, value: Float64Array) -> None:
        """Take in findings about some rows (numbers, each once)."""
        worse = value > self.value[rows]
        chosen = rows[worse]
        self.points[chosen], self.value[chosen] = points[worse], value[worse]

    def standing(self, problem: AttackProblem) -> AnyArray:
        """Rows that are still to be attacked."""
        return np.flatnonzero(self.value <= 0.0) if problem.can_fall else np.arange(len(self.value))
