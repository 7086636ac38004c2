"""From whatever holds a table to an array of numbers: numbers as they are, categories by code, dates refused.

Columns of text, of mixed objects and of pandas' or polars' categorical types are categories, and so is any column that
`categorical_features` names; objects that are all numbers, Python's decimals among them, are numbers. The values seen
in a first fit are numbered 0, 1, …; a missing value is NaN, and a value that was not there in that fit is UNSEEN. What
the codes become is the business of _categories.py.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import check_array

from fewfire._errors import invalid
from fewfire._validate import refuse_masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._types import AnyArray, Float64Array

UNSEEN = -1.0
NUMBER = (numbers.Real, decimal.Decimal)
DATE = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
ODD = ("NAType", "NaTType", "Timestamp", "Timedelta", "Period", "datetime.datetime", "datetime.date")
"""Types that float() names when it meets them in an array of objects."""

CategoricalFeatures = Literal["auto"] | None | list[int] | list[str] | list[bool]


@dataclass(frozen=True)
class CategoryReader:
    """Which columns of a table are categories, by place, and the code of each value they took."""

    codes: dict[int, dict[Any, int]]

    def read(self, X: object) -> AnyArray:
        """A table (rows, columns) of numbers with codes of categories; numbers are not checked further."""
        read = [
            self._coded(column, self.codes[place]) if place in self.codes else column.numbers()
            for place, column in enumerate(_columns(X))
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
    """Say what to do about a table that the block cannot read, and about one that it should not."""
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
    if np.isfinite(table.sum()):  # quick, and true of most tables
        return table
    infinite = np.isinf(table)
    if infinite.any():
        row, place = np.argwhere(infinite)[0]
        column = repr(str(names[place])) if names is not None else str(place)
        got = f"an infinite value in row {row} of column {column}"
        raise invalid("X", "must hold finite numbers, or NaN where a value is missing", got, "put NaN in its place")
    return table


def refuse_sparse_frame(X: Any) -> None:
    """Refuse a frame of sparse columns alone: scikit-learn takes it for a matrix, and advises a method of those."""
    kinds = [str(kind) for kind in X.dtypes] if hasattr(X, "iloc") and hasattr(X, "columns") else []
    if kinds and all(kind.startswith("Sparse") for kind in kinds):
        raise invalid("X", "must be dense", "a frame of sparse columns", "pass X.sparse.to_dense()")


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
    places = set() if categorical_features is None else _named(categorical_features, columns)
    objects = False
    if framed:
        for place, column in enumerate(columns):
            kind = column.kind()
            if kind == "date":
                raise _date(column)
            if categorical_features is not None and kind == "category":
                places.add(place)
            objects |= kind == "number" and column.holds_objects()
    if not places and not objects:
        return None
    return CategoryReader({place: _learn_codes(columns[place]) for place in sorted(places)})


def _learn_codes(column: _Column) -> dict[Any, int]:
    try:
        distinct = {value for value in column.values() if not _missing(value)}
    except TypeError:
        raise _incomparable(column) from None
    if any(_dated(value) for value in distinct):
        raise _date(column)
    ordered = sorted(distinct, key=lambda value: (type(value).__name__, str(value)))
    return {value: code for code, value in enumerate(ordered)}


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
        """What the column's type says it holds; objects that are all numbers, or missing, are numbers."""
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

    def numbers(self) -> AnyArray:
        return np.array([np.nan if _missing(value) else float(value) for value in self.values()])


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
        return [_PandasColumn(X.iloc[:, place], name) for place, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):
        return [_PolarsColumn(column, column.name) for column in X.get_columns()]
    table = check_array(X, dtype=None, ensure_all_finite=False)
    return [_Column(column, place) for place, column in enumerate(table.T)]


def _named(given: object, columns: list[_Column]) -> set[int]:
    """The places of columns given by name, place or mask."""
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
    places: set[int] = set()
    for entry in listed:
        if isinstance(entry, str):
            if entry not in names:
                shown = ", ".join(map(str, names[:8])) + (", …" if len(names) > 8 else "")
                rule = f"must name columns of X, which are {shown}"
                raise invalid("categorical_features", rule, entry, "pass a data frame to name columns, or their places")
            places.add(names.index(entry))
        elif isinstance(entry, int | np.integer) and -len(columns) <= entry < len(columns):
            places.add(int(entry) % len(columns))
        else:
            rule = f"must give places from 0 to {len(columns) - 1}, names of columns or a mask"
            raise invalid("categorical_features", rule, entry)
    return places


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
