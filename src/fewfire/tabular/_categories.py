"""Categories as numbers: indicators where there are few, target statistics where there are many.

A column of at most ten categories becomes an indicator of each. One of more becomes, per output, the mean target of a
row's category, drawn towards the overall mean as if ten rows of that mean had been seen besides (Micci-Barreca 2001).
A mean that counts a row's own target would give it away, so training rows get means of the other folds; rows that come
later get those of all. Missing is a category of its own; a category that training did not see has no indicator, and the
overall mean. Two categories share one indicator, where 0 would mean the first of them: there what training did not see
stands between them, at the share of the second. scikit-learn's TargetEncoder does much the same, but knows no weights
of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._held_out import held_out_folds
from fewfire.tabular._settings import FOLDS

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray

FEW = 10
"""Categories of a column that get an indicator each, at most."""
SHRINK = 10.0
"""Rows of the overall mean that every category is given besides its own."""


@dataclass(frozen=True)
class CategoryColumns:
    """Columns of codes in a table, and what their categories become.

    Parameters
    ----------
    slots : dict of int arrays (codes,)
        Of each column of codes, by place, the number of each code's category; of codes that no training row had, the
        number of what was never seen.
    counts : dict of int
        How many categories training rows had.
    statistics : dict of arrays (categories + 2, outputs)
        Mean targets by place, of columns of many categories: of each, of missing values, and of what was never seen.
    seconds : dict of arrays (4,)
        Of columns of two categories the indicator of the second: of the first, the second, of missing values, and of
        what was never seen.
    """

    slots: dict[int, IdArray]
    counts: dict[int, int]
    statistics: dict[int, Float64Array] = field(default_factory=dict)
    seconds: dict[int, Float64Array] = field(default_factory=dict)

    def transform(self, table: Float64Array) -> Float64Array:
        """The numbers of a table (rows, columns), then what each column of codes becomes."""
        return self._stacked(
            table, {place: self.statistics[place][self._slots(table, place)] for place in self.statistics}
        )

    def crossed(self, table: Float64Array, target: AnyArray, weight: AnyArray, folds: list[IdArray]) -> Float64Array:
        """As `transform`, with the statistics of each fold from the rows of the others."""
        shown = {}
        for place in self.statistics:
            slots = self._slots(table, place)
            shown[place] = np.empty((len(table), target.shape[1]))
            for fold in folds:
                mass = weight.astype(np.float64)
                mass[fold] = 0.0
                shown[place][fold] = _means(slots, target, mass, self.counts[place])[slots[fold]]
        return self._stacked(table, shown)

    def _slots(self, table: Float64Array, place: int) -> IdArray:
        """Of each row its category, or the places after the last: missing, unseen."""
        codes, count = table[:, place], self.counts[place]
        slots = np.append(self.slots[place], [count, count + 1])
        return np.asarray(slots[np.where(np.isnan(codes), -2, np.where(codes < 0, -1, codes)).astype(np.int64)])

    def _stacked(self, table: Float64Array, shown: dict[int, Float64Array]) -> Float64Array:
        parts = [np.delete(table, list(self.counts), axis=1)]
        for place in self.counts:
            parts.append(shown[place] if place in shown else self._indicators(table, place))
        return np.hstack(parts)

    def _indicators(self, table: Float64Array, place: int) -> Float64Array:
        """Of each category and of missing values; two categories need one."""
        slots, count = self._slots(table, place), self.counts[place]
        if place in self.seconds:
            return np.column_stack([self.seconds[place][slots], slots == count])
        return np.asarray(slots[:, None] == np.arange(count + 1), dtype=np.float64)


def learn_categories(codes: dict[int, int], table: Float64Array, target: AnyArray, weight: AnyArray) -> CategoryColumns:
    """Learn from a table (rows, columns) with so many codes by place, targets (rows, outputs), weights (rows,).

    Only codes that occur in it count: rows that were left out may have had others.
    """
    learned, mass = CategoryColumns({}, {}), weight.astype(np.float64)
    for place, number in codes.items():
        known = np.unique(table[:, place][table[:, place] >= 0]).astype(np.int64)
        count = learned.counts[place] = len(known)
        learned.slots[place] = np.full(number, count + 1)
        learned.slots[place][known] = np.arange(count)
        slots = learned._slots(table, place)
        if count > FEW:
            learned.statistics[place] = _means(slots, target, mass, count)
        elif count == 2:
            first, second, missing = np.bincount(slots, mass, 3)[:3]
            between = second / (first + second)
            learned.seconds[place] = np.array([0.0, 1.0, 0.0 if missing else between, between])
    return learned


def category_folds(strata: AnyArray, stream: Stream) -> list[IdArray]:
    """Parts of the rows, each of which gets statistics of the others; a single row is alone and gets the mean."""
    return held_out_folds(strata, FOLDS, FOLDS, stream)


def _means(slots: IdArray, target: AnyArray, mass: Float64Array, count: int) -> Float64Array:
    """Mean targets (categories + 2, outputs), drawn towards the overall one."""
    if not mass.any():
        return np.zeros((count + 2, target.shape[1]))
    overall = np.average(target, axis=0, weights=mass)
    total = np.column_stack([np.bincount(slots, mass * values, count + 2) for values in target.T])
    filled = np.bincount(slots, mass, count + 2)[:, None]
    return np.asarray((total + SHRINK * overall) / (filled + SHRINK))
