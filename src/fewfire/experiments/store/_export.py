"""Results as one flat table, for other tools: CSV, or Parquet (through pyarrow) with types and the histories.

A row is one run: its columns, its settings in the order of `_flat` (empty where a setting has no such key) and the
environment it was made in. A .tex file has a row per cell instead: see `_latex`. The file appears when it is complete.
"""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from fewfire._atomic import replacing, same_file
from fewfire._errors import StoreError, invalid
from fewfire._optional import require
from fewfire.experiments.store._flat import OWN, flat_setting, setting_columns
from fewfire.experiments.store._latex import latex_table
from fewfire.experiments.store._row import COLUMNS, CURVES
from fewfire.experiments.store._sqlite_file import SqliteFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import ModuleType

    from fewfire.experiments.store._protocol import Store
    from fewfire.experiments.store._row import Row

FORMATS = (".csv", ".parquet", ".tex")
CHUNK = 10_000
"""Rows of a Parquet row group: how many are in memory at once."""


def export(store: Store, path: str | Path) -> int:
    """Write all runs of a store to a .csv or .parquet file, or its cells to a .tex file; gives the number of rows.

    Examples
    --------
    >>> from fewfire.experiments import MemoryStore, Sweep, export
    >>> spec = {"problem": {"name": "parity", "n": 10, "k": 2}, "network": {"start": "dense", "width": 10}}
    >>> spec |= {"data": {"samples": 50}, "training": {"steps": 100}, "trials": 3}
    >>> store = MemoryStore()
    >>> done = Sweep.from_dict(spec).run(store, executor="inline")
    >>> export(store, "runs.csv")
    3
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise invalid("path", f"must end in one of {', '.join(FORMATS)}", str(path), "the ending names the format")
    if isinstance(store, SqliteFile) and same_file(path, store.path):
        raise invalid("path", "must not be the store itself", str(path), "choose another file")
    settings = {setting.text: flat_setting(setting) for setting in store.settings()}
    table = latex_table(store) if path.suffix == ".tex" else []
    write = _write_csv if path.suffix == ".csv" else _write_parquet
    try:
        with replacing(path) as file:
            if path.suffix == ".tex":
                file.write("".join(f"{line}\n" for line in table).encode())
                return len(settings)
            return write(file, settings, _records(store, settings))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}. The store is as it was.") from None


def _records(store: Store, settings: dict[str, dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Row]]:
    """For each run its values by column, and the row they came from."""
    for row in store.rows():
        own = {name: getattr(row, name) for name in OWN}
        yield own | settings[row.setting] | {"environment": row.environment}, row


def _write_csv(
    file: IO[bytes], settings: dict[str, dict[str, Any]], records: Iterator[tuple[dict[str, Any], Row]]
) -> int:
    """Write the records; gives their number."""
    writer = csv.DictWriter(_Encoded(file), [*OWN, *setting_columns(settings.values()), "environment"], restval="")
    writer.writeheader()
    count = 0
    for values, _ in records:
        writer.writerow(values)
        count += 1
    return count


class _Encoded:
    """Text to bytes, without a buffer that a full disk would leave for later."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _write_parquet(
    file: IO[bytes], settings: dict[str, dict[str, Any]], records: Iterator[tuple[dict[str, Any], Row]]
) -> int:
    """Write the records; gives their number."""
    arrow = require("pyarrow", "sweep", "writing Parquet")
    parquet = require("pyarrow.parquet", "sweep", "writing Parquet")
    schema = _schema(arrow, settings.values())
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        while chunk := list(islice(records, CHUNK)):
            rows = [values | _history(row) for values, row in chunk]
            columns = [
                arrow.array([_fit(row.get(field.name), field, arrow) for row in rows], field.type) for field in schema
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))
            count += len(chunk)
    return count


def _schema(arrow: ModuleType, settings: Collection[dict[str, Any]]) -> Any:
    plain = {np.str_: arrow.string(), np.int64: arrow.int64(), np.float64: arrow.float64()}
    types = {name: plain[COLUMNS[name]] for name in OWN}
    for name in setting_columns(settings):
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
