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

from fewfire.learners.sparse_init._ranks import ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array

BEND = 4.0
FARTHEST = 1e30  # deviations; float32 holds it
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
        with np.errstate(over="ignore"):
            z = np.clip((values - self.mean) / self.deviation, -FARTHEST, FARTHEST)
        return np.asarray(z if scaling == "standard" else z / np.hypot(1.0, z / BEND))

    def bins(self, values: Float64Array) -> Float64Array:
        """Progress through each bin (rows, bins)."""
        low, high = self.edges[:-1] / 2, self.edges[1:] / 2  # halves, whose differences do not overflow
        return np.asarray(SWING * (2 * np.clip((values[:, None] / 2 - low) / (high - low), 0.0, 1.0) - 1))


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
    values = [column[seen] for column, seen in zip(table.T, known.T, strict=True)]
    gaps = [len(column) < len(table) for column in values]
    # A column of one value and gaps is kept for its flag.
    used = [place for place, column in enumerate(values) if len(column) and (gaps[place] or np.ptp(column) > 0)]
    bins = min(BINS, max(2, MOST // max(len(used), 1)))
    return Columns([_learn(place, values[place], weight[known[:, place]], bins, gaps[place]) for place in used])


def _learn(place: int, values: Float64Array, weight: Float64Array, bins: int, flagged: bool) -> Column:
    distinct, mass, middle, _ = ranks(values, weight)
    size = float(np.abs(distinct).max()) or 1.0  # squares of huge and of tiny numbers leave the range of floats
    mean = float(np.average(distinct / size, weights=mass))
    deviation = float(np.sqrt(np.average((distinct / size - mean) ** 2, weights=mass)))
    median = float(np.interp(0.5, middle, distinct))
    # Edges are values of the column, each once: one taken nine times of ten is the edge of one bin, not of many.
    share = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(share, np.linspace(0, 1, bins + 1)[1:-1])
    edges = np.unique(distinct[[0, *at.tolist(), -1]])
    if len(distinct) > KNOTS:
        levels = np.linspace(middle[0], middle[-1], KNOTS)
        distinct, middle = np.interp(levels, middle, distinct), levels
    scale = size * deviation if deviation > 0 else np.inf  # one value says nothing
    return Column(place, median, size * mean, max(scale, float(np.finfo(float).tiny)), (distinct, ndtri(middle)), edges,
                  flagged)  # fmt: skip
