"""Columns of a table as ±1: which of a column's two values is which, learned on the training table.

±1 columns stay as they are. Any other column with two values has the smaller one mapped to +1 and the larger one to
−1, so 0/1 and False/True follow the rule that −1 is a set bit. A constant column carries nothing and is left out.
A column with more values is refused, or, with binarize="median", cut in two there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._types import AnyArray, IdArray, SignArray
from fewfire._validate import check_choice

Mapping: TypeAlias = list[tuple[object, object]]
"""For each column, what is mapped to +1 and what to −1; None where nothing is."""

Binarize: TypeAlias = Literal["median"]
"""How a column with more than two values is cut in two, unless it is refused."""

COLUMN_BLOCK = 16  # columns transposed at once: enough to read memory in order, few enough to need little more of it


@dataclass(frozen=True, eq=False)
class SignMap:
    """How columns become signs: their ends, and where they are cut in two or NaN, of shape (columns,)."""

    low: AnyArray
    high: AnyArray
    cut: NDArray[np.float64]
    names: list[str]

    @property
    def active(self) -> IdArray:
        """The columns that are not constant."""
        return np.flatnonzero(self.low != self.high)

    def indices(self, columns: tuple[int, ...]) -> IdArray:
        """Where some of the active columns, ascending, are among the signs."""
        return np.searchsorted(self.active, np.array(columns, dtype=np.int64))

    @property
    def mapping(self) -> Mapping:
        """What is mapped to +1 and what to −1, for each column."""
        identity = self._identity
        return [self._describe(column, bool(identity[column])) for column in range(len(self.low))]

    def transform(self, table: AnyArray) -> SignArray:
        """The active columns as signs, shape (rows, active); values not seen in training are refused."""
        _refuse_text(table, self.names)
        active = self.active
        signs = np.empty((len(active), table.shape[0]), dtype=np.int8)
        identity, cuts = self._identity, ~np.isnan(self.cut)
        for position, (column, values) in enumerate(_columns(table, active)):
            upper = values > self.cut[column] if cuts[column] else values == self.high[column]
            lower = ~upper if cuts[column] else values == self.low[column]
            known = lower | upper
            if not known.all():
                ends = f"{self.low[column].item()!r} and {self.high[column].item()!r}"
                rule = f"may hold only {ends} in column {self.names[column]!r}, as when fitted"
                value = values[~known][0].item()
                raise invalid("X", rule, value, "map the value to one of the two, or fit again with it")
            negative = lower if identity[column] else upper
            np.subtract(1, negative.view(np.int8) << 1, out=signs[position])
        return np.ascontiguousarray(signs.T)

    @property
    def _identity(self) -> NDArray[np.bool_]:
        """Columns that are ±1 already."""
        return np.asarray(np.isnan(self.cut) & (self.low == -1) & (self.high == 1))

    def _describe(self, column: int, identity: bool) -> tuple[object, object]:
        low, high, cut = self.low[column].item(), self.high[column].item(), self.cut[column].item()
        if low == high:
            return low, None
        if not np.isnan(cut):
            return f"<= {cut:g}", f"> {cut:g}"
        return (high, low) if identity else (low, high)


def learn_signs(
    table: AnyArray,
    names: list[str],
    binarize: Binarize | None,
    *,
    keep_constant_signs: bool = False,
    weights: NDArray[np.float64] | None = None,
) -> SignMap:
    """The map for a table of numbers, shape (rows, columns), or one of SciPy's sparse tables.

    With `keep_constant_signs`, a table that holds nothing but ±1 stays as it is, constant columns included. Weights of
    the rows, all above 0, move the median.
    """
    if binarize is not None:
        check_choice("binarize", binarize, get_args(Binarize))
    _refuse_text(table, names)
    count = table.shape[1]
    if keep_constant_signs and np.all((table == 1) | (table == -1)):
        one = np.ones(count, dtype=np.int8)
        return SignMap(-one, one, np.full(count, np.nan), names)
    low = np.empty(count, dtype=table.dtype)
    high, cut = low.copy(), np.full(count, np.nan)
    for column, values in _columns(table, np.arange(count)):
        low[column], high[column] = values.min(), values.max()
        if ((values != low[column]) & (values != high[column])).any():
            distinct = np.unique(values)
            if binarize is None:
                shown = ", ".join(str(value.item()) for value in distinct[:4]) + (", …" if len(distinct) > 4 else "")
                got = f"a column {names[column]!r} with {len(distinct)} values ({shown})"
                remedy = "threshold it (binarize='median' does so at the median), or one-hot encode it"
                raise invalid("X", "must have at most two distinct values in every column", got, remedy)
            cut[column] = _median_cut(values, distinct, weights)
    return SignMap(low, high, cut, names)


def column_names(estimator: Any) -> list[str]:
    """The names of the columns of the table an estimator was fitted to, or x0, x1, … where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{column}" for column in range(estimator.n_features_in_)] if names is None else [str(n) for n in names]


def _refuse_text(table: AnyArray, names: list[str]) -> None:
    """Refuse columns of text; those of a data frame's categories come through scikit-learn's own checks."""
    if table.dtype.kind not in "OSU":
        return
    for column, values in enumerate(table.T):
        for value in values:
            if not isinstance(value, int | float | np.number | np.bool_):
                got = f"a {type(value).__name__}, {str(value)[:80]!r}, in column {names[column]!r}"
                raise invalid("X", "must hold numbers", got, "encode its two values as 0 and 1")


def _median_cut(values: AnyArray, distinct: AnyArray, weights: NDArray[np.float64] | None) -> float:
    """The median, lowered to the next value where nothing lies above it, so that both sides are filled.

    With weights, of every value repeated as often as its weight says; halfway between the two in the middle.
    """
    if weights is None:
        median = float(np.median(values))
    else:
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weights[order])
        lower, upper = (np.searchsorted(reached, reached[-1] / 2, side) for side in ("left", "right"))
        median = float((values[order[lower]] + values[order[min(upper, len(order) - 1)]]) / 2)
    return median if median < distinct[-1] else float(distinct[-2])


def _columns(table: AnyArray, wanted: IdArray) -> Iterator[tuple[int, AnyArray]]:
    """Some columns of a table, each contiguous: numbers and values, transposed a few columns at a time."""
    for start in range(0, len(wanted), COLUMN_BLOCK):
        block = wanted[start : start + COLUMN_BLOCK]
        first, last = int(block[0]), int(block[-1]) + 1
        part = table[:, first:last] if last - first == len(block) else table[:, block]  # a view where it can be one
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        yield from zip(block.tolist(), np.ascontiguousarray(dense.T), strict=True)
