"""Data frames and arrays as tables of numbers: numbers as they are, categories encoded, dates refused.

Columns of text, of mixed objects and of pandas' or polars' categorical types are categories, and so is any column that
`categorical_features` names; objects that are all numbers, Python's decimals among them, are numbers. The values seen
in a first fit are numbered 0, 1, …; a missing value is NaN, and a value that was not in that fit is UNSEEN.

Codes of categories become numbers: indicators where there are few, target statistics where there are many. A column of
at most ten categories becomes an indicator of each. One of more becomes, per output, the mean target of a row's
category, drawn towards the overall mean as if ten more rows of that mean had been seen (Micci-Barreca 2001). A mean
that counts a row's own target would give it away, so training rows get means of the other folds; rows that come later
get those of all. Missing is a category of its own; a category that training did not see has no indicator, and the
overall mean. Two categories share one indicator, where 0 would mean the first of them: there a category that training
did not see is between them, at the share of the second. scikit-learn's TargetEncoder takes no weights of rows.

A mean does not distinguish categories in which the target depends on another column in opposite ways. So a column of
many categories gets slopes as well: per output the covariance, within the row's category, of the target with another
column's rank or its square, drawn towards the overall one and taken from other folds as means are. Slopes are kept for
the few columns for which they differ between categories by more than chance (an F test); usually there are none.

Nor does it show what two columns of categories do together. So a few pairs of columns get a number per output: of what
the two means leave, the product of one number per category of either column, by alternating regressions. A pair is kept
where products learned on half of the rows predict the other half by more than chance; usually none is.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import f as f_distribution
from scipy.stats import norm
from sklearn.utils import check_array

from fewfire._dense.network import Rows, held_out_folds
from fewfire._errors import FewfireWarning, invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire._validate import refuse_masked
from fewfire.tabular._encodings import column_ranks

UNSEEN = -1.0
DENSE = 2**30  # bytes that a sparse table may take when it is dense
NUMBER = (numbers.Real, decimal.Decimal)
DATE = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
ODD = ("NAType", "NaTType", "Timestamp", "Timedelta", "Period", "datetime.datetime", "datetime.date")
"""Types that float() names when it meets them in an array of objects."""
DATED = re.compile(
    r"\s*((19|20)\d\d([-/.]\d{1,2}){1,2}|(\d{1,2}[-/.]){2}(\d{2}|\d{4})"
    r"|\d{1,2}[-. ]{1,2}[A-Za-z]{3,9}[ -](\d{2}|\d{4})|[A-Za-z]{3,9} \d{1,2},? \d{4})([T ]+\d{1,2}:\d{2}.*)?\s*$"
)
NEARLY = 0.9  # categories per row from which on they are nearly unique
FEW = 10  # categories of a column that get an indicator each, at most
SHRINK = 10.0  # rows of the overall mean that every category is given in addition to its own
SLOPES = 3  # numbers that slopes add to a column of many categories, at most; or one per output, where outputs are more
LEVEL = 0.01  # probability that a column of categories gets a slope although none differs
PAIRS = 3  # pairs of columns of categories that get a number per output, at most
PAIRED = 15  # columns of categories whose pairs are looked at, of the fewest categories: time grows with the square
ROUNDS = 10  # alternating regressions of a pair; ten bring even 100 by 100 categories with 1500 rows to where they end
CENTRED = 3  # times that the effects of either column of a pair are taken off; rarely anything is left after two
MOST_OUTPUTS = 32  # outputs that have numbers of their own; more become so many sums of them with random signs
TINY = 1e-300
DISTINCT = 20  # rows that differ, from which on copies are in one fold; as many as early stopping needs
CATEGORY_FOLDS = 4  # parts of the rows, each of which gets statistics of the others

CategoricalFeatures = Literal["auto"] | None | list[int] | list[str] | list[bool]


@dataclass(frozen=True)
class CategoryReader:
    """Which columns of a table are categories, by index, and the code of each value they took."""

    codes: dict[int, dict[Any, int]]

    def read(self, X: object) -> AnyArray:
        """A table (rows, columns) of numbers with codes of categories; numbers are not checked further."""
        read = [
            self._coded(column, self.codes[index]) if index in self.codes else column.numbers()
            for index, column in enumerate(_columns(X))
        ]
        return np.column_stack(read)

    def _coded(self, column: _Column, codes: dict[Any, int]) -> Float64Array:
        found = (np.nan if _missing(value) else codes.get(value, UNSEEN) for value in column.values())
        try:
            return np.fromiter(found, np.float64)
        except TypeError:
            raise _incomparable(column) from None


@contextmanager
def readable(X: object) -> Iterator[None]:
    """Raise with a remedy for a table that the block cannot read, and for one that it should not."""
    if hasattr(X, "collect_schema") and not hasattr(X, "get_columns"):
        raise invalid("X", "must hold its rows", f"a {type(X).__name__}", "pass X.collect()")
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise _date(_Column(X, "all"))
    whole = getattr(getattr(X, "dtype", None), "kind", "f") not in "fO"
    remedy = f"pass X.{'astype(float).' if whole else ''}filled(numpy.nan), which marks them as missing"
    refuse_masked("X", X, remedy)
    try:
        yield
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        text = str(error).partition(": ")[2]
        remedy = "name columns of categories in categorical_features, or pass a data frame with 'auto'"
        raise invalid("X", "must hold numbers in columns that are no categories", f"a text {text}", remedy) from None
    except TypeError as error:
        dated = next((column for column in _columns(X) if column.kind() == "date"), None) if _is_frame(X) else None
        if dated is not None:
            raise _date(dated) from None
        odd = next((kind for kind in ODD if f"'{kind}'" in str(error)), None)
        if odd is None:
            raise
        remedy = "put NaN where a value is missing, and numbers in the place of dates; or pass a data frame"
        raise invalid("X", "must hold numbers", f"a {odd}", remedy) from None
    except OverflowError:
        remedy = "divide the column by a power of ten, or name it in categorical_features"
        raise invalid("X", "must hold numbers below 1.8e308", "an integer beyond", remedy) from None


def refuse_infinite(table: Float64Array, names: Sequence[object] | None) -> Float64Array:
    """The table (rows, columns) itself, if it has no infinite number; NaN is a missing value."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(table.sum()):  # quick, and true of most tables
            return table
    infinite = np.isinf(table)
    if infinite.any():
        row, index = np.argwhere(infinite)[0]
        column = repr(str(names[index])) if names is not None else str(index)
        got = f"an infinite value in row {row} of column {column}"
        raise invalid("X", "must hold finite numbers, or NaN where a value is missing", got, "put NaN in its place")
    return table


def plain_numbers(X: Any, names: AnyArray | None) -> Float64Array | None:
    """The values (rows, columns) of a pandas frame of float64 under these names; None of any other table.

    scikit-learn takes longer to read a row than the networks to predict it.
    """
    if names is None or not (hasattr(X, "iloc") and hasattr(X, "columns")) or len(X) == 0:
        return None
    expected = X.columns.tolist() == names.tolist() and set(X.dtypes) == {np.dtype(np.float64)}
    return np.asarray(X.to_numpy()) if expected else None


def dense(X: Any) -> Any:
    """X itself, or, of a sparse matrix or a frame of sparse columns alone, a dense one of `DENSE` bytes at most."""
    kinds = [str(kind) for kind in X.dtypes] if hasattr(X, "iloc") and hasattr(X, "columns") else []
    framed = bool(kinds) and all(kind.startswith("Sparse") for kind in kinds)
    if not framed and not issparse(X):
        return X
    if (size := 8 * math.prod(X.shape)) > DENSE:
        remedy = "pass columns of categories as they are, or OneHotEncoder(sparse_output=False) where there is memory"
        rule = f"may be sparse where it takes {DENSE >> 30} GiB at most when dense"
        raise invalid("X", rule, f"a table of {size / 2**30:.1f} GiB", remedy)
    return X.sparse.to_dense() if framed else X.toarray()


def learn_reader(X: object, categorical_features: object) -> CategoryReader | None:
    """How to read tables like X; None if all its columns are of numeric types, which scikit-learn reads."""
    if isinstance(categorical_features, str) and categorical_features != "auto":
        raise _wrong_choice(categorical_features)
    framed = _is_frame(X)
    if framed and not len(X.columns):  # type: ignore[attr-defined]  # scikit-learn would look for a type of the columns
        shape = f"shape {X.shape}"  # type: ignore[attr-defined]
        raise invalid("X", "must have at least one column", shape, "pass the columns to learn from")
    if not framed and (categorical_features is None or isinstance(categorical_features, str)):
        return None
    columns = _columns(X)
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = [name for name in names if names.count(name) > 1]
        got = f"{twice[0]!r} {names.count(twice[0])} times"
        raise invalid("X", "must have columns of different names", got, "rename a column, or pass X.to_numpy()")
    indices = set() if categorical_features is None else _named(categorical_features, columns)
    objects, named = False, set(indices)
    if framed:
        for index, column in enumerate(columns):
            kind = column.kind()
            if kind == "date":
                raise _date(column)
            if categorical_features is not None and kind == "category":
                indices.add(index)
            objects |= kind == "number" and column.holds_objects()
    if not indices and not objects:
        return None
    codes = {index: _learn_codes(columns[index]) for index in sorted(indices)}
    for index in sorted(codes.keys() - named):
        _warn_of_categories(columns[index], [*codes[index]])
    return CategoryReader(codes)


def _learn_codes(column: _Column) -> dict[Any, int]:
    try:
        distinct = {value for value in column.values() if not _missing(value)}
    except TypeError:
        raise _incomparable(column) from None
    if any(_dated(value) for value in distinct):
        raise _date(column)
    ordered = sorted(distinct, key=lambda value: (type(value).__name__, str(value)))
    return {value: code for code, value in enumerate(ordered)}


def _warn_of_categories(column: _Column, categories: list[Any]) -> None:
    """Warn of text that is dates, and of values that hardly occur twice."""
    known = sum(not _missing(value) for value in column.values())
    if known >= DISTINCT and all(isinstance(value, str) and DATED.match(value) for value in categories):
        what, remedy = "text that is dates", "put numbers in its place: days since a fixed date; year, month, weekday"
    elif len(categories) > max(DISTINCT, NEARLY * known):
        what = f"{len(categories)} different values in {known} rows, as ids have"
        remedy = "drop the column, keep the part of it that repeats, or name it in categorical_features"
    else:
        return
    text = f"column {column.name!r} of X holds {what} ({categories[0]!r}), and is taken as categories"
    warnings.warn(f"{text}. Remedy: {remedy}.", FewfireWarning, stacklevel=5)


def _missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA, which is equal to nothing and not even unequal."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    if isinstance(value, decimal.Decimal):
        return value.is_nan()  # a signalling one refuses to be compared
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, numbers.Real) and value != value)


def _dated(value: Any) -> bool:
    """Whether a value is a date, a time or a span of time; pandas' periods are classes of their own."""
    return isinstance(value, DATE) or type(value).__name__ == "Period"


class _Column:
    """One column of an array; frames have their own kinds."""

    def __init__(self, column: Any, name: object) -> None:
        self.column, self.name = column, name

    def kind(self) -> Literal["number", "category", "date"]:
        """The kind of values by the column's type; objects that are all numbers, or missing, are numbers."""
        letter = getattr(self.column.dtype, "kind", "O")
        if letter in "mM" or "period" in str(self.column.dtype):
            return "date"
        if letter in "biufc":
            return "number"
        return _kind_of_objects(self.values()) if letter == "O" else "category"

    def holds_objects(self) -> bool:
        """Whether scikit-learn may fail to read the column's numbers: objects, decimals of Arrow."""
        return getattr(self.column.dtype, "kind", "O") not in "biufc"

    def values(self) -> Sequence[Any]:
        """The values as Python's objects."""
        return self.column.tolist()  # type: ignore[no-any-return]

    def numbers(self) -> AnyArray:
        """The values as numbers, NaN where missing."""
        try:
            if getattr(self.column.dtype, "kind", "O") in "biuf":
                return np.asarray(self.column, dtype=np.float64)
            return np.array([np.nan if _missing(value) else float(value) for value in self.values()])
        except (TypeError, ValueError):
            got = f"{self.column.dtype} in column {self.name!r}"
            remedy = "name the column in categorical_features, or turn it into numbers"
            raise invalid("X", "must hold numbers where it did in the first fit", got, remedy) from None


class _PandasColumn(_Column):
    def kind(self) -> Literal["number", "category", "date"]:
        return "category" if str(self.column.dtype) == "category" else super().kind()


class _PolarsColumn(_Column):
    def kind(self) -> Literal["number", "category", "date"]:
        dtype = self.column.dtype
        if dtype.is_temporal():
            return "date"
        if str(dtype) == "Object":
            return _kind_of_objects(self.values())
        return "number" if dtype.is_numeric() or str(dtype) in ("Boolean", "Null") else "category"

    def holds_objects(self) -> bool:
        return str(self.column.dtype) == "Object"

    def values(self) -> Sequence[Any]:
        return self.column.to_list()  # type: ignore[no-any-return]


def _kind_of_objects(values: Sequence[Any]) -> Literal["number", "category", "date"]:
    """Objects that are all numbers, or missing, are numbers; dates among objects that are missing or dates, dates."""
    known = [value for value in values if not _missing(value)]
    if known and all(_dated(value) for value in known):
        return "date"
    return "number" if all(isinstance(value, NUMBER) and not _dated(value) for value in known) else "category"


def _is_frame(X: Any) -> bool:
    return (hasattr(X, "iloc") and hasattr(X, "columns")) or hasattr(X, "get_columns")


def _columns(X: Any) -> list[_Column]:
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [_PandasColumn(X.iloc[:, index], name) for index, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):
        return [_PolarsColumn(column, column.name) for column in X.get_columns()]
    table = check_array(X, dtype=None, ensure_all_finite=False)
    return [_Column(column, index) for index, column in enumerate(table.T)]


def _named(given: object, columns: list[_Column]) -> set[int]:
    """The indices of columns given by name, index or mask."""
    if isinstance(given, str):  # "auto"
        return set()
    try:
        listed = list(given)  # type: ignore[call-overload]
    except TypeError:
        raise _wrong_choice(given) from None
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        if len(listed) != len(columns):
            rule = f"must have {len(columns)} entries where it is a mask, one per column of X"
            raise invalid("categorical_features", rule, f"{len(listed)} entries")
        return set(np.flatnonzero(listed).tolist())
    names = [column.name for column in columns]
    indices: set[int] = set()
    for entry in listed:
        if isinstance(entry, str):
            if entry not in names:
                shown = ", ".join(map(str, names[:8])) + (", …" if len(names) > 8 else "")
                rule = f"must name columns of X, which are {shown}"
                remedy = "pass a data frame to name columns, or their indices"
                raise invalid("categorical_features", rule, entry, remedy)
            indices.add(names.index(entry))
        elif isinstance(entry, int | np.integer) and -len(columns) <= entry < len(columns):
            indices.add(int(entry) % len(columns))
        else:
            rule = f"must give indices from 0 to {len(columns) - 1}, names of columns or a mask"
            raise invalid("categorical_features", rule, entry)
    return indices


def _wrong_choice(given: object) -> Exception:
    return invalid(
        "categorical_features", "must be 'auto', None or a list of columns", given, "pass ['name'] or [0, 3]"
    )


def _incomparable(column: _Column) -> Exception:
    kinds = sorted({type(value).__name__ for value in column.values()})
    rule = "must hold numbers, or categories that can be compared"
    got = f"{', '.join(kinds)} in column {column.name!r}"
    return invalid("X", rule, got, "turn the values into numbers or text first")


def _date(column: _Column) -> Exception:
    got = f"{column.column.dtype} in column {column.name!r}"
    remedy = "put numbers in its place: days since a fixed date; year, month and weekday"
    return invalid("X", "must hold numbers or categories, not dates", got, remedy)


@dataclass(frozen=True)
class CategoryColumns:
    """Columns of codes in a table, by index, and what their categories become.

    `slots` (codes,) has the number of each code's category; of codes that no training row had, the number of what was
    never seen. `counts` is how many categories training rows had. `statistics` (categories + 2, outputs · (1 + slopes))
    has, of columns of many categories, mean targets, then slopes: of each, of missing values, and of what was never
    seen. `slopes` lists the columns of `_others` whose ranks, to a power of 1 or 2, the slopes go along. `seconds` (4,)
    is, of columns of two categories, the indicator of the second: of the first, the second, of missing values, and of
    what was never seen. `pairs` has, of two columns, factors (categories + 2, outputs) whose product is their number.
    """

    slots: dict[int, IdArray]
    counts: dict[int, int]
    statistics: dict[int, Float64Array] = field(default_factory=dict)
    slopes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    seconds: dict[int, Float64Array] = field(default_factory=dict)
    pairs: dict[tuple[int, int], tuple[Float64Array, Float64Array]] = field(default_factory=dict)

    def transform(self, table: Float64Array) -> Float64Array:
        """The numbers of a table (rows, columns), then what each column of codes becomes."""
        slots = {index: self._slots(table, index) for index in self.counts}
        shown = {index: self.statistics[index][slots[index]] for index in self.statistics}
        together = [one[slots[a]] * other[slots[b]] for (a, b), (one, other) in self.pairs.items()]
        return self._stacked(table, shown, together)

    def crossed(self, rows: Rows, folds: list[IdArray]) -> Float64Array:
        """As `transform`, with the statistics of each fold from the rows of the others."""
        table, target, weight = rows.X, _few_outputs(rows.target), rows.weight
        shown, others = {}, self._others(table)
        masses = []
        for fold in folds:
            masses.append(weight.astype(np.float64))
            masses[-1][fold] = 0.0
        for index, statistics in self.statistics.items():
            slots = self._slots(table, index)
            along = _along(others, weight, self.slopes[index])
            shown[index] = np.empty((len(table), statistics.shape[1]))
            for fold, mass in zip(folds, masses, strict=True):
                shown[index][fold] = _statistics(slots, target, along, mass, self.counts[index])[slots[fold]]
        together = []
        for pair in self.pairs:
            first, second = (self._slots(table, index) for index in pair)
            together.append(np.empty(target.shape))
            for fold, mass in zip(folds, masses, strict=True):
                one, other = _factors(first, second, target, mass, [self.counts[index] for index in pair])
                together[-1][fold] = one[first[fold]] * other[second[fold]]
        return self._stacked(table, shown, together)

    def _slots(self, table: Float64Array, index: int) -> IdArray:
        """Of each row its category, or the numbers after the last: missing, unseen."""
        codes, count = table[:, index], self.counts[index]
        slots = np.append(self.slots[index], [count, count + 1])
        return np.asarray(slots[np.where(np.isnan(codes), -2, np.where(codes < 0, -1, codes)).astype(np.int64)])

    def _others(self, table: Float64Array) -> Float64Array:
        """Numbers, then indicators: what slopes may go along."""
        few = [self.indicators(index, self._slots(table, index)) for index in self.counts if self.counts[index] <= FEW]
        return np.hstack([np.delete(table, list(self.counts), axis=1), *few])

    def _stacked(
        self, table: Float64Array, shown: dict[int, Float64Array], together: list[Float64Array]
    ) -> Float64Array:
        parts = [np.delete(table, list(self.counts), axis=1)]
        for index in self.counts:
            parts.append(shown[index] if index in shown else self.indicators(index, self._slots(table, index)))
        return np.hstack(parts + together)

    def indicators(self, index: int, slots: IdArray) -> Float64Array:
        """Of each category of a column and of missing values; two categories need one."""
        count = self.counts[index]
        if index in self.seconds:
            return np.column_stack([self.seconds[index][slots], slots == count])
        return np.asarray(slots[:, None] == np.arange(count + 1), dtype=np.float64)


def learn_categories(codes: dict[int, int], rows: Rows) -> CategoryColumns:
    """Learn from rows with so many codes by column.

    Only codes that occur in them count: rows that were left out may have had others.
    """
    table, target, mass = rows.X, _few_outputs(rows.target), rows.weight.astype(np.float64)
    learned = CategoryColumns({}, {})
    for index, number in codes.items():
        known = np.unique(table[:, index][table[:, index] >= 0]).astype(np.int64)
        count = learned.counts[index] = len(known)
        learned.slots[index] = np.full(number, count + 1)
        learned.slots[index][known] = np.arange(count)
        slots = learned._slots(table, index)
        if count == 2:
            first, second, missing = np.bincount(slots, mass, 3)[:3]
            between = second / (first + second)
            learned.seconds[index] = np.array([0.0, 1.0, 0.0 if missing else between, between])
    many = [index for index, count in learned.counts.items() if count > FEW]
    others = learned._others(table) if many else table
    for index in many:
        slots, count = learned._slots(table, index), learned.counts[index]
        chosen = learned.slopes[index] = _chosen_slopes(slots, target, others, mass, count)
        learned.statistics[index] = _statistics(slots, target, _along(others, mass, chosen), mass, count)
    paired = sorted((index for index, count in learned.counts.items() if count > 2), key=learned.counts.__getitem__)
    candidates = {
        pair: tuple((learned._slots(table, index), learned.counts[index]) for index in pair)
        for pair in combinations(paired[:PAIRED], 2)
        if pair[0] in many or pair[1] in many
    }
    sides = (np.arange(len(table)) if rows.groups is None else rows.groups) % 2
    for pair in _chosen_pairs(candidates, target, mass, sides):
        (first, one), (second, other) = candidates[pair]
        learned.pairs[pair] = _factors(first, second, target, mass, [one, other])
    return learned


def category_folds(rows: Rows, stream: Stream) -> list[IdArray]:
    """Parts of the rows, each of which gets statistics of the others; a single row is alone and gets the mean."""
    assert rows.strata is not None
    return held_out_folds(rows.strata, CATEGORY_FOLDS, CATEGORY_FOLDS, stream, rows.groups)


def check_groups(groups: object, rows: int) -> IdArray:
    """Numbers (rows,) of the labels of groups; a row without a label is a group of its own."""
    refuse_masked("groups", groups, "pass None where a row has no label, in an array of objects")
    labels = np.asarray(groups, dtype=object if isinstance(groups, list | tuple) else None)
    if labels.shape != (rows,):
        raise invalid("groups", f"must have one label for each of the {rows} rows", f"shape {labels.shape}")
    numbers: dict[Any, int] = {}
    named = ((row,) if _missing(label) else label for row, label in enumerate(labels.tolist()))
    return np.array([numbers.setdefault(label, len(numbers)) for label in named])


def row_groups(table: Float64Array, given: IdArray | None) -> IdArray | None:
    """Numbers (rows,), the same for rows that folds keep together: copies, and rows of one group; None if none are.

    Fewer distinct rows than `DISTINCT` are cells of a small design, and may be in several folds.
    """
    numbers: dict[bytes, int] = {}
    rows = (row.tobytes() for row in np.where(np.isnan(table), np.nan, table) + 0.0)
    found = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
    if given is not None:
        copies = found if len(numbers) >= DISTINCT else np.arange(len(table))
        first = int(copies.max()) + 1
        size = first + int(given.max()) + 1
        ends = copies.astype(np.int32), (first + given).astype(np.int32)  # SciPy 1.11 knows no other numbers of nodes
        edges = coo_array((np.ones(len(table)), ends), (size, size))
        found = np.asarray(connected_components(edges, directed=False)[1][copies], np.int64)
        least = min(10, len(table) // 4 + 2)
        if (largest := np.bincount(found).max()) > len(table) - least:
            rule = f"must leave {least} rows or more outside of each (those with copies of a row in common are one)"
            got, remedy = f"a group of {largest} of the {len(table)} rows", "pass validation_data in place of groups"
            raise invalid("groups", rule, got, remedy)
    elif len(numbers) < DISTINCT:
        return None
    return None if len(np.unique(found)) == len(found) else found


def _few_outputs(target: AnyArray) -> AnyArray:
    """Targets (rows, outputs), or sums of them: a hundred numbers per column take minutes to learn."""
    if (outputs := target.shape[1]) <= MOST_OUTPUTS:
        return target
    return np.asarray(np.einsum("ro,on->rn", target, Stream(0, "categories").signs((outputs, MOST_OUTPUTS))))


def _sums(slots: IdArray, values: AnyArray, mass: Float64Array, count: int) -> Float64Array:
    """Weighted sums over categories of values (rows, columns): (categories + 2, columns)."""
    sums = np.zeros((count + 2, values.shape[1]))
    for index, column in enumerate(values.T):
        sums[:, index] = np.bincount(slots, mass * column, count + 2)
    return sums


def _means(slots: IdArray, values: AnyArray, mass: Float64Array, count: int) -> Float64Array:
    """Means (categories + 2, columns) of values (rows, columns), drawn towards the overall ones."""
    if not mass.any():
        return np.zeros((count + 2, values.shape[1]))
    overall = np.average(values, axis=0, weights=mass)
    filled = np.bincount(slots, mass, count + 2)[:, None]
    return np.asarray((_sums(slots, values, mass, count) + SHRINK * overall) / (filled + SHRINK))


def _statistics(slots: IdArray, target: AnyArray, along: Float64Array, mass: Float64Array, count: int) -> Float64Array:
    """Mean targets, then slopes along columns (rows, columns): (categories + 2, outputs · (1 + columns))."""
    means = _means(slots, target, mass, count)
    return np.hstack([means, _means(slots, _products(slots, target - means[slots], along, mass, count), mass, count)])


def _products(slots: IdArray, errors: AnyArray, along: Float64Array, mass: Float64Array, count: int) -> Float64Array:
    """Errors (rows, outputs) times columns less their category's mean: (rows, outputs · columns).

    Their mean over a category is the covariance within it.
    """
    filled = np.maximum(np.bincount(slots, mass, count + 2), TINY)[:, None]
    within = along - (_sums(slots, along, mass, count) / filled)[slots]
    return np.asarray((errors[:, :, None] * within[:, None]).reshape(len(errors), -1))


def _along(others: Float64Array, weight: AnyArray, chosen: list[tuple[int, int]]) -> Float64Array:
    """Ranks of columns, from −½ to ½, to their powers: (rows, chosen); 0 where a value is missing."""
    along = np.zeros((len(others), len(chosen)))
    for index, (column, power) in enumerate(chosen):
        known = ~np.isnan(others[:, column])
        if known.any():
            found = column_ranks(others[known, column], weight[known].astype(np.float64))
            along[known, index] = (found.middle[found.of_row] - 0.5) ** power
    return along


def _chosen_slopes(
    slots: IdArray, target: AnyArray, others: Float64Array, mass: Float64Array, count: int
) -> list[tuple[int, int]]:
    """Columns and powers whose slopes differ most between categories, if by more than chance."""
    filled = np.bincount(slots, mass, count + 2)
    categories, rows = np.count_nonzero(filled), len(slots)
    if rows <= categories:
        return []
    errors, found = target - _means(slots, target, mass, count)[slots], []
    two = [len(np.unique(column[~np.isnan(column)])) <= 2 for column in others.T]  # a square adds nothing
    for candidate in [
        (column, power) for column in range(len(two)) for power in (1, 2) if power == 1 or not two[column]
    ]:
        products = _products(slots, errors, _along(others, mass, [candidate]), mass, count)
        products -= np.average(products, axis=0, weights=mass)
        between = (_sums(slots, products, mass, count) ** 2 / np.maximum(filled, TINY)[:, None]).sum()
        inside = max(float((mass[:, None] * products**2).sum() - between), TINY)
        ratio = between / (categories - 1) / (inside / (rows - categories))
        found.append((float(f_distribution.sf(ratio, categories - 1, rows - categories)), candidate))
    most = max(1, SLOPES // target.shape[1])
    return [candidate for probability, candidate in sorted(found)[:most] if probability < LEVEL / len(found)]


def _left(first: IdArray, second: IdArray, target: AnyArray, mass: Float64Array, counts: Sequence[int]) -> Float64Array:
    """Targets (rows, outputs) less the effects of both categories, in full: what is drawn towards 0 is left."""
    rest = np.asarray(target, dtype=np.float64)
    for _ in range(CENTRED):
        for slots, count in zip((first, second), counts, strict=True):
            filled = np.maximum(np.bincount(slots, mass, count + 2), TINY)[:, None]
            rest = rest - (_sums(slots, rest, mass, count) / filled)[slots]
    return rest


def _factors(
    first: IdArray, second: IdArray, target: AnyArray, mass: Float64Array, counts: Sequence[int]
) -> tuple[Float64Array, Float64Array]:
    """Numbers (categories + 2, outputs) of either column whose product is nearest to what both means leave.

    Each is a ridge regression on the other, as if every category had ten more rows of which nothing is left. The start
    is what the category leaves, of those of the other column, of which most is left.
    """
    sizes = [count + 2 for count in counts]
    factors = [np.zeros((size, target.shape[1])) for size in sizes]
    cells, cell = np.unique(first * sizes[1] + second, return_inverse=True)
    of_first, of_second = np.divmod(cells, sizes[1])
    for output, errors in enumerate((_left(first, second, target, mass, counts) * mass[:, None]).T):
        sums = np.bincount(cell, errors, len(cells))
        most = of_first == np.argmax(np.bincount(of_first, sums**2, sizes[0]))
        theirs: Float64Array = np.bincount(of_second[most], sums[most], sizes[1]).astype(np.float64)
        for _ in range(ROUNDS):
            ours = _regressed(first, errors, theirs[second], mass, sizes[0])
            theirs = _regressed(second, errors, ours[first], mass, sizes[1])
        factors[0][:, output], factors[1][:, output] = ours, theirs
    return factors[0], factors[1]


def _regressed(
    slots: IdArray, errors: Float64Array, along: Float64Array, mass: Float64Array, size: int
) -> Float64Array:
    """Slopes of weighted errors along a number (rows,), category by category, drawn towards 0."""
    squares = mass * along**2
    drawn = SHRINK * squares.sum() / max(mass.sum(), TINY)
    return np.asarray(np.bincount(slots, errors * along, size) / (np.bincount(slots, squares, size) + drawn + TINY))


def _chosen_pairs(
    candidates: dict[tuple[int, int], Any], target: AnyArray, mass: Float64Array, sides: IdArray
) -> list[tuple[int, int]]:
    """Pairs whose products, learned on half of the rows, predict the other half best, if by more than chance."""
    found = []
    for pair, ((first, one), (second, other)) in candidates.items():
        gains = np.zeros(target.shape)
        for half in (0, 1):
            shown, kept = mass.copy(), np.flatnonzero(sides == half)
            shown[kept] = 0.0
            ours, theirs = _factors(first, second, target, shown, [one, other])
            left = _left(first, second, target, shown, [one, other])
            gains[kept] = (mass[:, None] * ours[first] * theirs[second] * left)[kept]
        gain = gains.sum(axis=1)
        deviation = np.sqrt(2.0 * np.sum(gain**2))  # the two halves see much the same, so twice the variance of a sum
        found.append((float(norm.sf(gain.sum() / max(deviation, TINY))), pair))
    return [pair for probability, pair in sorted(found)[:PAIRS] if probability < LEVEL / len(found)]
