"""The tables of OpenML: ARFF, a header of `@ATTRIBUTE name type` lines, then rows of values with commas between them.

Types are numbers (NUMERIC, REAL, INTEGER) and categories in braces; a `?` is a missing value. Categories are texts
whatever they look like: `{0,1}` has the classes "0" and "1". Texts may be quoted. Sparse rows, dates and free text are
refused, since no set of Table 1 has them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import FileFormatError
from fewfire._types import AnyArray

ROWS_AT_ONCE = 20_000
MISSING = "?"

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)(\s*\{{.*\}}|\s+\w+)\s*$", re.IGNORECASE)


class Attribute(NamedTuple):
    """A column: its name, and its categories in the order listed, or None where it holds numbers."""

    name: str
    categories: tuple[str, ...] | None


class Table(NamedTuple):
    """Columns of numbers (missing ones NaN) and of texts (missing ones "?"), each of shape (rows,)."""

    attributes: tuple[Attribute, ...]
    columns: tuple[AnyArray, ...]


def read_arff(lines: Iterator[str]) -> Table:
    """The table of a file's lines; `FileFormatError` says where it is none."""
    attributes = tuple(_header(lines))
    if not attributes:
        raise FileFormatError("it is no ARFF file: it has no @ATTRIBUTE lines before @DATA.")
    rows_of_text = (line for line in lines if line.strip() and not line.startswith("%"))
    values = csv.reader(rows_of_text, quotechar="'", escapechar="\\", skipinitialspace=True)
    parts: list[list[AnyArray]] = [[] for _ in attributes]
    done = 0
    try:
        while rows := list(islice(values, ROWS_AT_ONCE)):
            for number, row in enumerate(rows, done + 1):
                if len(row) != len(attributes):
                    raise FileFormatError(f"row {number} has {len(row)} values for {len(attributes)} columns.")
            for part, attribute, column in zip(parts, attributes, zip(*rows, strict=True), strict=True):
                part.append(_column(attribute, column, done))
            done += len(rows)
    except csv.Error as error:
        raise FileFormatError(f"its rows cannot be read after row {done}: {error}.") from None
    return Table(attributes, tuple(np.concatenate(part) if part else np.empty(0) for part in parts))


def _header(lines: Iterator[str]) -> Iterator[Attribute]:
    for line in lines:
        text = line.strip()
        if text.lower().startswith("@data"):
            return
        if not text.lower().startswith("@attribute"):
            continue
        found = _ATTRIBUTE.match(text)
        if found is None:
            raise FileFormatError(f"the line {text[:80]!r} describes no column.")
        name, kind = _unquoted(found[1]), found[2].strip()
        if kind.startswith("{"):
            listed = next(csv.reader([kind[1:-1]], quotechar="'", escapechar="\\", skipinitialspace=True), [])
            yield Attribute(name, tuple(_unquoted(category.strip()) for category in listed))
        elif kind.lower() in ("numeric", "real", "integer"):
            yield Attribute(name, None)
        else:
            raise FileFormatError(f"the column {name!r} is of type {kind}; columns must be numbers or categories.")


def _column(attribute: Attribute, values: Sequence[str], done: int) -> AnyArray:
    if attribute.categories is not None:
        known = {category: category for category in attribute.categories} | {MISSING: MISSING}
        texts = [known.get(value) or known.get(_unquoted(value.strip())) for value in values]
        if None in texts:
            index = texts.index(None)
            raise FileFormatError(
                f"row {done + index + 1} has {values[index][:80]!r} in the column {attribute.name!r}, "
                "which is none of its categories."
            )
        return np.array(texts, dtype=np.str_)
    try:
        return np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        return _numbers(attribute.name, values, done)


def _numbers(name: str, values: Sequence[str], done: int) -> NDArray[np.float64]:
    """The same one by one: some are missing, or no numbers."""
    numbers = np.full(len(values), np.nan)
    for index, value in enumerate(values):
        if value.strip() != MISSING:
            try:
                numbers[index] = float(value)
            except ValueError:
                raise FileFormatError(
                    f"row {done + index + 1} has {value[:80]!r} in the column {name!r}, which is no number."
                ) from None
    return numbers


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
