"""The losses of members: squared for numbers, logistic for two classes, cross-entropy for more.

Scores have shape (networks, rows, outputs); a loss knows the labels of its table and is asked about some of its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_softmax, softmax

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray

RARE = 0.01
"""Added to the share of a class, so that the start stays finite."""


class MemberLoss(ABC):
    """A loss of the labels of a table."""

    outputs: int

    @abstractmethod
    def start(self, weights: Float64Array) -> Float64Array:
        """The constant scores (outputs,) at which the weighted loss is least, or nearly."""

    @abstractmethod
    def slope(self, scores: FloatArray, rows: Any) -> FloatArray:
        """The derivative by the scores of some rows, of the same shape."""

    @abstractmethod
    def value(self, scores: AnyArray) -> Float64Array:
        """The loss of every row of the table, shape (networks, rows)."""


class SquaredLoss(MemberLoss):
    """(f − y)² of numbers y, shape (rows,)."""

    outputs = 1

    def __init__(self, labels: Float64Array) -> None:
        self.labels = labels.astype(np.float32)[:, None]

    def start(self, weights: Float64Array) -> Float64Array:
        """The mean."""
        return np.average(self.labels, axis=0, weights=weights).astype(np.float64)

    def slope(self, scores: FloatArray, rows: Any) -> FloatArray:
        """2(f − y)."""
        return np.asarray(2 * (scores - self.labels[rows]))

    def value(self, scores: AnyArray) -> Float64Array:
        """(f − y)²."""
        return np.asarray((scores - self.labels) ** 2)[..., 0].astype(np.float64)


class LogisticLoss(MemberLoss):
    """log(1 + exp(−y f)) of signs y, shape (rows,)."""

    outputs = 1

    def __init__(self, signs: Float64Array) -> None:
        self.signs = signs.astype(np.float32)[:, None]

    def start(self, weights: Float64Array) -> Float64Array:
        """The logarithm of the odds, a little towards 0."""
        share = float(weights[self.signs[:, 0] > 0].sum() / weights.sum())
        return np.array([np.log((share + RARE) / (1 - share + RARE))])

    def slope(self, scores: FloatArray, rows: Any) -> FloatArray:
        """−y/(1 + exp(y f))."""
        y = self.signs[rows]
        return np.asarray(-y * expit(-y * scores))

    def value(self, scores: AnyArray) -> Float64Array:
        """log(1 + exp(−y f)), without overflow."""
        return np.asarray(np.logaddexp(0.0, -self.signs * scores))[..., 0].astype(np.float64)


class CrossEntropy(MemberLoss):
    """−log of the softmax probability of the class at `places`, shape (rows,)."""

    def __init__(self, places: IdArray, classes: int) -> None:
        self.places, self.outputs = places, classes
        self.one_hot = np.eye(classes, dtype=np.float32)[places]

    def start(self, weights: Float64Array) -> Float64Array:
        """The logarithms of the shares, a little towards each other."""
        return np.asarray(np.log(weights @ self.one_hot / weights.sum() + RARE))

    def slope(self, scores: FloatArray, rows: Any) -> FloatArray:
        """softmax(f) less the class."""
        return np.asarray(softmax(scores, axis=-1) - self.one_hot[rows])

    def value(self, scores: AnyArray) -> Float64Array:
        """−log softmax(f) at the class."""
        return np.asarray(-(log_softmax(scores, axis=-1) * self.one_hot).sum(axis=-1), dtype=np.float64)
