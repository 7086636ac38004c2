"""Columns of a table as inputs of a network: filled, scaled, constant ones dropped. Part of the fitted model.

A missing value becomes the column's median, and a column that missed any in training gets a second input that says so.
All is learned from weighted rows:

standard    z = (x − mean)/deviation
bent        z/√(1 + (z/4)²), which never exceeds 4: a network goes on in straight lines beyond the rows it has seen, and
            a value a hundred deviations out would make it a hundred times too sure
quantile    the normal quantile of the value's rank, interpolated between at most 256 knots
bins        bent, and beside it how far x has come through each of up to 16 equally full bins of the column, from −¼
            below the bin to ¼ above it: weights on these are slopes, so a network can bend or jump anywhere at once
            (the piecewise linear encoding of Gorishniy, Rubachev and Babenko, 2022)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array

BEND = 4.0
KNOTS = 256
BINS = 16
MOST = 256  # inputs that bins may add; a wide table gets fewer bins a column, two at least
SWING = 0.25  # a bin's input goes from −SWING to SWING


@dataclass(frozen=True)
class Column:
    """What is learned of one column: its place in the table, median, mean, deviation, knots and edges of bins."""

    place: int
    median: float
    mean: float
    deviation: float
    knots: tuple[Float64Array, Float64Array]
    edges: Float64Array
    flagged: bool

    def scale(self, values: Float64Array, scaling: str) -> Float64Array:
        """Scaled values (rows,) without NaN."""
        if scaling == "quantile":
            return np.interp(values, *self.knots)
        z = (values - self.mean) / self.deviation
        return np.asarray(z if scaling == "standard" else z / np.sqrt(1.0 + (z / BEND) ** 2))

    def bins(self, values: Float64Array) -> Float64Array:
        """Progress through each bin (rows, bins)."""
        low, high = self.edges[:-1], self.edges[1:]
        return np.asarray(SWING * (2 * np.clip((values[:, None] - low) / (high - low), 0.0, 1.0) - 1))


@dataclass(frozen=True)
class Columns:
    """The map from a table (rows, columns) to inputs (rows, inputs) float32."""

    columns: list[Column]

    def sources(self, scaling: str) -> NDArray[np.int64]:
        """Of each input the column or flag it comes from: columns, flags, then the bins of each column."""
        base = max(1, len(self.columns) + sum(column.flagged for column in self.columns))
        bins = [len(column.edges) - 1 for column in self.columns] if scaling == "bins" else []
        return np.concatenate([np.arange(base), np.repeat(np.arange(len(bins)), bins)])

    def transform(self, table: Float64Array, scaling: str) -> AnyArray:
        """Inputs (rows, inputs), float32: the scaled columns, the flags of missing values, then the bins."""
        inputs = np.zeros((len(table), len(self.sources(scaling))), dtype=np.float32)
        flag, bin_ = len(self.columns), len(self.sources("standard"))
        for position, column in enumerate(self.columns):
            values = table[:, column.place]
            missing = np.isnan(values)
            filled = np.where(missing, column.median, values)
            inputs[:, position] = column.scale(filled, scaling)
            if column.flagged:
                inputs[:, flag] = missing
                flag += 1
            if scaling == "bins":
                after = bin_ + len(column.edges) - 1
                inputs[:, bin_:after] = column.bins(filled)
                bin_ = after
        return inputs


def learn_columns(table: Float64Array, weight: Float64Array) -> Columns:
    """Fit `Columns` to a table (rows, columns) with NaN where values are missing, and weights (rows,)."""
    known = ~np.isnan(table)
    ranges = [values[seen] for values, seen in zip(table.T, known.T, strict=True)]
    used = [place for place, values in enumerate(ranges) if len(values) and values.min() < values.max()]
    bins = min(BINS, max(2, MOST // max(len(used), 1)))
    return Columns(
        [_learn(place, ranges[place], weight[known[:, place]], bins, not known[:, place].all()) for place in used]
    )


def _learn(place: int, values: Float64Array, weight: Float64Array, bins: int, flagged: bool) -> Column:
    distinct, of_row = np.unique(values, return_inverse=True)
    mass = np.bincount(of_row, weights=weight)
    mean = float(np.average(distinct, weights=mass))
    deviation = float(np.sqrt(np.average((distinct - mean) ** 2, weights=mass)))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()  # rank of a value: the share below it and half its own
    median = float(np.interp(0.5, middle, distinct))
    # Edges are values of the column, each once: one taken nine times of ten is the edge of one bin, not of many.
    share = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(share, np.linspace(0, 1, bins + 1)[1:-1])
    edges = np.unique(distinct[[0, *at.tolist(), -1]])
    if len(distinct) > KNOTS:
        levels = np.linspace(middle[0], middle[-1], KNOTS)
        distinct, middle = np.interp(levels, middle, distinct), levels
    knots = (distinct, ndtri(middle))
    return Column(place, median, mean, max(deviation, float(np.finfo(float).tiny)), knots, edges, flagged)
