"""Data sets in local parquet files: numeric feature columns, and the class in a column named `target`.

A dictionary-encoded column is categorical. Reading needs pyarrow (extra `tabular`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import FileFormatError
from fewfire._optional import require
from fewfire.problems.tabular._dataset import Dataset, encode_classes

if TYPE_CHECKING:
    from pathlib import Path

    from fewfire._types import AnyArray

TARGET = "target"


def read_parquet(path: Path, name: str, task: str) -> Dataset:
    """The data set of one file."""
    arrow = require("pyarrow", "tabular", "reading Parquet")
    parquet = require("pyarrow.parquet", "tabular", "reading Parquet")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} is not a Parquet file that can be read ({error}).") from None
    names = [column for column in table.column_names if column != TARGET]
    if TARGET not in table.column_names or not names or not table.num_rows:
        found = ", ".join(table.column_names) or "none"
        raise FileFormatError(
            f"{path} must have rows, feature columns and a column {TARGET!r}; it has {table.num_rows} rows and the "
            f"columns {found}."
        )
    columns = [_column(arrow, table.column(column), column, path) for column in names]
    labels = table.column(TARGET).to_numpy()
    return Dataset(
        name,
        np.stack([values for values, _ in columns], axis=1),
        encode_classes(labels) if task == "classification" else labels.astype(np.float64),
        task,
        tuple(names),
        np.array([categorical for _, categorical in columns]),
        str(path),
    )


def _column(arrow: Any, column: Any, name: str, path: Path) -> tuple[AnyArray, bool]:
    kind = column.type
    if arrow.types.is_dictionary(kind):
        codes = column.unify_dictionaries().combine_chunks().indices
        return codes.to_numpy(zero_copy_only=False).astype(np.float32), True
    if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind) or arrow.types.is_boolean(kind)):
        raise FileFormatError(
            f"{path} has the column {name!r} of type {kind}; columns must be numbers, or dictionary-encoded categories."
        )
    return column.to_numpy().astype(np.float32), False
