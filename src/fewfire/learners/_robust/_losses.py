"""What training lowers and what its adversary raises: losses of a table of scores, with the labels bound in.

The regression losses are 1-Lipschitz and convex with ℓ(y, y) = 0, as sublinear, Definition 3.2 asks; with labels ±1
"absolute" is also the theorem's loss for classification. "logistic" and "hinge" are the practical ones. For several
classes the logistic loss is cross-entropy, the hinge loss that of the margin to the nearest rival, the absolute loss a
sum over heads, whose labels are 1 for the class and −1 for the others.

An adversary raises the loss itself, except for hinge, which is flat beyond the margin and gives no direction there:
for it, the adversary lowers the margin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from scipy.optimize import minimize_scalar

from fewfire._dense.losses import LOSSES, Loss
from fewfire._errors import DivergenceError
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire.robustness._problem import Criterion, negative_margin

CLASSIFICATION: Final = ("logistic", "hinge", "absolute")
REGRESSION: Final = ("absolute", "huber")
TEMPERATURES: Final = (-3.0, 3.0)  # logarithms of the temperatures that are looked through
EVERY: Final = slice(None)

BLOW_UP: Final = 1e4
"""A robust loss this many times its first value (or 1) is divergence: the losses are Lipschitz, so none comes near."""


def diverged(unit: str, number: int, rate: float, first: float, now: float) -> DivergenceError:
    """What to raise at an epoch or iteration."""
    return DivergenceError(
        f"training diverged at {unit} {number}: the robust loss went from {first:.4g} to {now:.4g} (rate {rate:g}). "
        f"Remedy: lower learning_rate, for example to {rate / 10:g}, or leave it out.",
        step=number,
        learning_rate=rate,
    )


@dataclass(frozen=True, eq=False)
class LabelledLoss(ABC):
    """A loss by name of labels (rows,); methods take scores (chosen, heads) and the numbers of the chosen rows."""

    name: str
    labels: AnyArray

    def rows(self, chosen: IdArray) -> Self:
        """The loss of some rows, which are counted anew."""
        return replace(self, labels=self.labels[chosen])

    def criteria(self) -> tuple[Criterion, Criterion]:
        """What training lowers and what its adversary raises, of all rows at once."""
        lowered = Criterion(
            lambda scores: self.descent(scores, EVERY)[0], lambda scores: self.descent(scores, EVERY)[1]
        )
        return lowered, lowered

    @abstractmethod
    def descent(self, scores: AnyArray, rows: IdArray | slice) -> tuple[AnyArray, AnyArray]:
        """The losses (chosen,) and their slopes (chosen, heads)."""

    def ascent(self, scores: AnyArray, rows: IdArray | slice) -> AnyArray:
        """The slopes (chosen, heads) of what the adversary raises."""
        return self.descent(scores, rows)[1]

    @abstractmethod
    def error(self, scores: AnyArray, rows: IdArray) -> AnyArray:
        """What held-out rows are validated by, shape (chosen,)."""

    def margin(self, scores: AnyArray, rows: IdArray) -> AnyArray:
        """How the margin to the nearest rival weighs the scores, shape (chosen, heads); of classes alone."""
        raise TypeError("a loss of numbers has no margin")

    def temperature(self, scores: Float64Array, chosen: IdArray, weight: Float64Array) -> float:
        """What scores (chosen, heads) of rows not trained on are to be divided by to give probabilities."""
        return 1.0


@dataclass(frozen=True, eq=False)
class RegressionLoss(LabelledLoss):
    """Of standardised labels."""

    def descent(self, scores: AnyArray, rows: IdArray | slice) -> tuple[AnyArray, AnyArray]:
        value, slope = LOSSES[self.name].both(scores, self.labels[rows][:, None])
        return value[:, 0].astype(scores.dtype, copy=False), slope.astype(scores.dtype, copy=False)

    def error(self, scores: AnyArray, rows: IdArray) -> AnyArray:
        """The loss."""
        return self.descent(scores, rows)[0]


@dataclass(frozen=True, eq=False)
class ClassificationLoss(LabelledLoss):
    """Of labels that are signs for one head and class numbers for several."""

    heads: int

    @cached_property
    def _formula(self) -> tuple[Loss, AnyArray]:
        """The loss of the heads and its targets, (rows, 1) or (rows, heads), exact in float32."""
        if self.heads == 1:
            return LOSSES[self.name], self.labels.astype(np.float32)[:, None]
        own = np.arange(self.heads) == self.labels[:, None]
        if self.name == "logistic":
            return LOSSES["cross_entropy"], own.astype(np.float32)
        return LOSSES[self.name], np.where(own, 1, -1).astype(np.float32)

    def _negative_margin(self, rows: IdArray | slice) -> Criterion:
        return negative_margin(self.labels[rows], self.heads)

    def criteria(self) -> tuple[Criterion, Criterion]:
        lowered, _ = super().criteria()
        return lowered, self._negative_margin(EVERY) if self.name == "hinge" else lowered

    def descent(self, scores: AnyArray, rows: IdArray | slice) -> tuple[AnyArray, AnyArray]:
        loss, targets = self._formula
        if self.heads > 1 and self.name == "hinge":
            margin = self._negative_margin(rows)
            value, slope = loss.both(-margin.value(scores), np.ones(1, scores.dtype))
            return value, -slope[:, None] * margin.slope(scores)
        value, slope = loss.both(scores, targets[rows])
        return value if value.ndim == 1 else value.sum(axis=1), slope.astype(scores.dtype, copy=False)

    def ascent(self, scores: AnyArray, rows: IdArray | slice) -> AnyArray:
        if self.name == "hinge":
            return self._negative_margin(rows).slope(scores).astype(scores.dtype)
        loss, targets = self._formula
        return loss.slope(scores, targets[rows]).astype(scores.dtype, copy=False)

    def error(self, scores: AnyArray, rows: IdArray) -> AnyArray:
        """Whether the right class is not ahead of all others."""
        return (self._negative_margin(rows).value(scores) >= 0.0).astype(scores.dtype)

    def margin(self, scores: AnyArray, rows: IdArray) -> AnyArray:
        return -self._negative_margin(rows).slope(scores).astype(scores.dtype)

    def temperature(self, scores: Float64Array, chosen: IdArray, weight: Float64Array) -> float:
        """The one of the least logistic loss (softmax for several heads), of labels that may be wrong.

        Each of n rows counts for another class by 1/(n + 2), as in Platt's scaling: without an error among them the
        best temperature would be 0.
        """
        doubt, labels = 1.0 / (len(chosen) + 2), self.labels[chosen]
        if self.heads == 1:
            loss, targets = LOSSES["log_odds"], np.where(labels > 0, 1.0 - doubt, doubt)[:, None]
        else:
            own = np.arange(self.heads) == labels[:, None]
            loss, targets = LOSSES["cross_entropy"], np.where(own, 1.0 - doubt, doubt / (self.heads - 1))

        def mean(power: float) -> float:
            value: Any = loss.value(scores / np.exp(power), targets)
            return float(np.average(value.reshape(len(scores)), weights=weight))

        return float(np.exp(minimize_scalar(mean, bounds=TEMPERATURES, method="bounded").x))
