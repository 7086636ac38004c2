"""The rows a fit sees, which of them are held out when, and what a family of fits gives for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fewfire._types import AnyArray, Float64Array, IdArray, SignArray
    from fewfire.learners._low_degree._polynomial import Polynomial

FOLDS, MORE_FOLDS = 5, 10
"""Parts of a small sample, each held out once: more of a very small one, whose fits miss every row."""

VERY_SMALL = 300  # samples up to this size are cut into MORE_FOLDS
SMALL = 2000  # samples up to this size are cut into folds; from larger ones a single part is held out


@dataclass(frozen=True, eq=False)
class SignSample:
    """Signs of shape (rows, n), labels and positive weights of shape (rows,)."""

    signs: SignArray
    labels: Float64Array
    weights: Float64Array

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mean(self) -> float:
        """The weighted mean of the labels."""
        return float(np.average(self.labels, weights=self.weights))

    @property
    def effective(self) -> float:
        """How many rows of equal weight hold as much (Kish): (Σ w)² / Σ w²."""
        shares = self.weights / self.weights.max()
        return float(shares.sum() ** 2 / (shares**2).sum())

    def take(self, rows: AnyArray) -> SignSample:
        """Some of the rows."""
        return SignSample(np.ascontiguousarray(self.signs[rows]), self.labels[rows], self.weights[rows])


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit: its family and degree, a few words, its predictions of held-out rows, and the fit to all rows."""

    family: str
    degree: int
    words: str
    held_out: Float64Array
    polynomial: Callable[[], Polynomial]
    alpha: float | None = None


def draw_folds(sample: SignSample, fraction: float, random_state: np.random.RandomState, *, stratify: bool) -> IdArray:
    """The fold in which each row is held out, shape (rows,); of a large sample a fraction is, and −1 for the others."""
    rows = len(sample)
    order = random_state.permutation(rows)
    if stratify:
        order = order[np.argsort(sample.labels[order], kind="stable")]
    folds = np.empty(rows, dtype=np.int64)
    if rows <= SMALL:
        folds[order] = np.arange(rows) % min(MORE_FOLDS if rows <= VERY_SMALL else FOLDS, rows)
        return folds
    # Every row of rank ⌊(i + 1)·f⌋ > ⌊i·f⌋ is held out: a share f of each class.
    steps = np.floor(np.arange(rows + 1) * fraction)
    folds[order] = np.where(np.diff(steps) > 0, 0, -1)
    return folds


def splits(folds: IdArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Masks of the rows to learn from and of those held out, fold by fold."""
    for fold in range(int(folds.max(initial=-1)) + 1):
        held_out = folds == fold
        yield ~held_out, held_out
