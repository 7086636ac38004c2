"""Parquet files of runs, through pyarrow: columns as in CSV, with types, and histories as lists."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import require
from fewfire.experiments._row import CURVES
from fewfire.experiments._store import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path
    from types import ModuleType

    from fewfire.experiments._row import Row

CHUNK = 10_000
"""Rows of a row group: how many are in memory at once."""


def write_parquet(
    path: Path, settings: Collection[dict[str, Any]], records: Iterator[tuple[dict[str, Any], Row]]
) -> int:
    """Write the records; gives their number."""
    arrow = require("pyarrow", "sweep", "writing Parquet")
    parquet = require("pyarrow.parquet", "sweep", "writing Parquet")
    schema = _schema(arrow, settings)
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(records, CHUNK)):
            rows = [values | _history(row) for values, row in chunk]
            columns = [arrow.array([_fit(row.get(field.name), field, arrow) for row in rows], field.type)
                       for field in schema]  # fmt: skip
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))
            count += len(chunk)
    return count


def _schema(arrow: ModuleType, settings: Collection[dict[str, Any]]) -> Any:
    plain = {np.str_: arrow.string(), np.int64: arrow.int64(), np.float64: arrow.float64()}
    types = {name: plain[kind] for name, kind in COLUMNS.items() if name != "setting"}
    for name in dict.fromkeys(name for table in settings for name in table):
        types[name] = _type(arrow, {type(table.get(name)) for table in settings} - {type(None)})
    types |= {"environment": arrow.string(), "history.step": arrow.list_(arrow.int64())}
    types |= {f"history.{name}": arrow.list_(arrow.float32()) for name in CURVES}
    return arrow.schema(list(types.items()))


def _type(arrow: ModuleType, kinds: set[type[Any]]) -> Any:
    if kinds == {bool}:
        return arrow.bool_()
    if kinds == {int}:
        return arrow.int64()
    return arrow.float64() if kinds and kinds <= {int, float} else arrow.string()


def _fit(value: Any, field: Any, arrow: ModuleType) -> Any:
    """Settings of several types, such as evaluate = 10 and evaluate = "log", share a column of texts."""
    return str(value) if value is not None and field.type == arrow.string() else value


def _history(row: Row) -> dict[str, Any]:
    return {f"history.{name}": getattr(row.history, name) for name in ("step", *CURVES)}
