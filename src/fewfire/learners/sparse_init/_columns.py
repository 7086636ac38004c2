"""Columns of a table as inputs of a network: filled, scaled, constant ones dropped. Part of the fitted model.

A missing value becomes the column's median, and a column that missed any in training gets a second input that says so.
Three scalings, all learned from weighted rows:

standard    (x − mean)/deviation
robust      z = (x − median)/(interquartile range/1.349), bent to z/√(1 + (z/4)²), which never exceeds 4
quantile    the normal quantile of the value's rank, interpolated between at most 256 knots
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

SCALINGS = ("standard", "robust", "quantile")
KNOTS = 256
BEND = 4.0
NORMAL_RANGE = 1.349  # interquartile range of a standard normal variable


@dataclass(frozen=True)
class Column:
    """What is learned of one column: its place in the table, median, mean, deviation, range and knots."""

    place: int
    median: float
    mean: float
    deviation: float
    range: float
    knots: tuple[Float64Array, Float64Array]
    flagged: bool

    def scale(self, values: Float64Array, scaling: str) -> Float64Array:
        """Scaled values (rows,) without NaN."""
        if scaling == "quantile":
            return np.interp(values, *self.knots)
        # A column whose middle half is one value has no interquartile range.
        robust = scaling == "robust" and self.range > 0
        z = (values - self.median) / self.range if robust else (values - self.mean) / self.deviation
        return np.asarray(z / np.sqrt(1.0 + (z / BEND) ** 2)) if scaling == "robust" else z


@dataclass(frozen=True)
class Columns:
    """The map from a table (rows, columns) to inputs (rows, inputs) float32."""

    columns: list[Column]

    @property
    def inputs(self) -> int:
        """Inputs of the network, at least one."""
        return max(1, len(self.columns) + sum(column.flagged for column in self.columns))

    def transform(self, table: Float64Array, scaling: str) -> AnyArray:
        """Inputs (rows, inputs), float32: the scaled columns, then the flags of missing values."""
        inputs = np.zeros((len(table), self.inputs), dtype=np.float32)
        flag = len(self.columns)
        for position, column in enumerate(self.columns):
            values = table[:, column.place]
            missing = np.isnan(values)
            inputs[:, position] = column.scale(np.where(missing, column.median, values), scaling)
            if column.flagged:
                inputs[:, flag] = missing
                flag += 1
        return inputs


def learn_columns(table: Float64Array, weight: Float64Array) -> Columns:
    """Fit `Columns` to a table (rows, columns) with NaN where values are missing, and weights (rows,)."""
    columns = []
    for place, values in enumerate(table.T):
        known = ~np.isnan(values)
        if known.any() and values[known].min() < values[known].max():
            columns.append(_learn(place, values[known], weight[known], flagged=not known.all()))
    return Columns(columns)


def _learn(place: int, values: Float64Array, weight: Float64Array, *, flagged: bool) -> Column:
    distinct, of_row = np.unique(values, return_inverse=True)
    mass = np.bincount(of_row, weights=weight)
    mean = float(np.average(distinct, weights=mass))
    deviation = float(np.sqrt(np.average((distinct - mean) ** 2, weights=mass)))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()  # rank of a value: the share below it and half its own
    low, median, high = (float(level) for level in np.interp([0.25, 0.5, 0.75], middle, distinct))
    if len(distinct) > KNOTS:
        levels = np.linspace(middle[0], middle[-1], KNOTS)
        distinct, middle = np.interp(levels, middle, distinct), levels
    knots = (distinct, ndtri(middle))
    tiny = float(np.finfo(float).tiny)
    return Column(place, median, mean, max(deviation, tiny), (high - low) / NORMAL_RANGE, knots, flagged)
