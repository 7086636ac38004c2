"""Finding one of the 16 data sets of pareto, Table 1: a local file first, then OpenML.

The sets are those of OpenML's benchmark suite 337: numerical features, two classes of equal size. The paper prints
their names and the suite; the numbers of the data sets are the suite's. Its column "# features" counts the target too
(docs/errata.md), so `features` here is one less.

Local files are Parquet: numeric feature columns, and the class in a column named `target`; a dictionary-encoded column
is categorical. Reading them needs pyarrow (extra `tabular`). What OpenML gives is kept where scikit-learn keeps its own
fetched. Features may be missing (NaN); infinite ones, and rows without a class, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import DataUnavailable, FileFormatError, invalid
from fewfire._optional import require
from fewfire._types import AnyArray
from fewfire._validate import check_choice
from fewfire.problems.tabular._arff import MISSING, Attribute, read_arff
from fewfire.problems.tabular._dataset import Dataset, encode_classes
from fewfire.problems.tabular._openml import fetch_table

_ROWS = (
    ("credit", 10, 16_714, 44089),
    ("electricity", 7, 38_474, 44120),
    ("covertype", 10, 566_602, 44121),
    ("pol", 26, 10_082, 44122),
    ("house_16H", 16, 13_488, 44123),
    ("MagicTelescope", 10, 13_376, 44125),
    ("bank-marketing", 7, 10_578, 44126),
    ("MiniBooNE", 50, 72_998, 44128),
    ("Higgs", 24, 940_160, 44129),
    ("eye_movements", 20, 7_608, 44130),
    ("Diabetes130US", 7, 71_090, 45022),
    ("jannis", 54, 57_580, 45021),
    ("default-of-credit-card-clients", 20, 13_272, 45020),
    ("Bioresponse", 419, 3_434, 45019),
    ("california", 8, 20_634, 45028),
    ("heloc", 22, 10_000, 45026),
)

VARIABLE = "FEWFIRE_DATA"
"""The environment variable that names the folder of local files."""

TARGET = "target"


@dataclass(frozen=True)
class DatasetInfo:
    """A row of Table 1, by its task number there; a local file may hold fewer rows, and the target is no feature."""

    number: int
    name: str
    features: int
    rows: int
    openml_id: int
    task: str = "classification"


DATASETS = {row[0]: DatasetInfo(number, *row) for number, row in enumerate(_ROWS, start=1)}
"""The data sets by name, in the order of Table 1."""


def load(name: str, directory: str | Path | None = None, *, download: bool = True) -> Dataset:
    """One of the 16 data sets of pareto, Table 1, by name.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
    directory : path, optional
        Folder with `NAME.parquet`: numeric feature columns, and the class in a column `target`. By default the folder
        named by the environment variable FEWFIRE_DATA, if it is set.
    download : bool
        Whether a set that is not there is fetched from OpenML; it is kept in scikit-learn's data folder.

    Returns
    -------
    Dataset
        Rows in the order of the source; `split` shuffles them.
    """
    info = DATASETS[check_choice("name", name, DATASETS)]
    folder = _folder(directory)
    if folder is not None and (path := folder / f"{name}.parquet").is_file():
        return read_file(path, name, info.task)
    where = f"no {name}.parquet in {folder}" if folder is not None else f"no folder given and {VARIABLE} not set"
    if not download:
        raise _unavailable(name, where, "nothing is to be downloaded")
    try:
        return fetch(info)
    except OSError as error:  # URLError, HTTPError, timeouts, a folder that cannot be written
        raise _unavailable(name, where, f"OpenML could not be asked ({error})") from error
    except FileFormatError as error:
        raise FileFormatError(f"OpenML's answer for {name!r} cannot be used: {error}") from None


def read_file(path: Path, name: str, task: str, target: str = TARGET) -> Dataset:
    """The data set of one file: CSV by its suffix, else Parquet."""
    kind = "CSV" if path.suffix.lower() == ".csv" else "Parquet"
    arrow = require("pyarrow", "tabular", f"reading {kind}")
    reader = require(f"pyarrow.{kind.lower()}", "tabular", f"reading {kind}")
    try:
        if kind == "CSV":
            table = reader.read_csv(path, convert_options=reader.ConvertOptions(auto_dict_encode=True))
        else:
            table = reader.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} is not a {kind} file that can be read ({error}).") from None
    names = [column for column in table.column_names if column != target]
    if target not in table.column_names or not names or not table.num_rows:
        found = ", ".join(table.column_names) or "none"
        raise FileFormatError(
            f"{path} must have rows, feature columns and a column {target!r}; it has {table.num_rows} rows and the "
            f"columns {found}."
        )
    columns = [_column(arrow, table.column(column), column, path) for column in names]
    if arrow.types.is_nested(table.column(target).type):
        raise FileFormatError(
            f"{path} has the column {target!r} of type {table.column(target).type}; classes are single."
        )
    labels = table.column(target).to_numpy()
    missing = np.array([label is None or label != label for label in labels])
    return _dataset(name, str(path), task, target, labels, missing, names, columns)


def fetch(info: DatasetInfo) -> Dataset:
    """The data set from OpenML, or from the folder that earlier downloads are kept in.

    Raises `OSError` where the network does not answer.
    """
    description, lines = fetch_table(info.openml_id, info.rows, info.features + 1)
    table, target = read_arff(lines), description["default_target_attribute"]
    left_out = {target, *_texts(description.get("ignore_attribute")), *_texts(description.get("row_id_attribute"))}
    labels = [values for (name, _), values in zip(*table, strict=True) if name == target]
    kept = [pair for pair in zip(*table, strict=True) if pair[0].name not in left_out]
    rows = len(table.columns[0])
    if not labels or (rows, len(kept)) != (info.rows, info.features):
        found = f"{rows} and {len(kept)}" + ("" if labels else f", and no column {target!r}")
        raise FileFormatError(
            f"data set {info.openml_id} should have {info.rows} rows and {info.features} features; it has {found}."
        )
    missing = labels[0] == MISSING if labels[0].dtype.kind == "U" else np.isnan(labels[0])
    columns = [(_numbers(attribute, values), attribute.categories is not None) for attribute, values in kept]
    names = [attribute.name for attribute, _ in kept]
    return _dataset(info.name, f"OpenML {info.openml_id}", info.task, target, labels[0], missing, names, columns)


def _folder(directory: str | Path | None) -> Path | None:
    if directory is None:
        named = os.environ.get(VARIABLE)
        return Path(named) if named else None
    folder = Path(directory)
    if not folder.is_dir():
        raise invalid("directory", "must be a folder", str(directory), f"leave it out to use {VARIABLE} or OpenML")
    return folder


def _unavailable(name: str, local: str, remote: str) -> DataUnavailable:
    return DataUnavailable(
        f"the data set {name!r} is not at hand: {local}; {remote}. Remedy: put {name}.parquet (numeric feature columns "
        f"and a column {TARGET!r}) into a folder and name it in directory or in {VARIABLE}, or connect to openml.org."
    )


def _column(arrow: Any, column: Any, name: str, path: Path) -> tuple[AnyArray, bool]:
    kind = column.type
    if arrow.types.is_dictionary(kind):
        codes = column.unify_dictionaries().combine_chunks().indices
        return codes.to_numpy(zero_copy_only=False), True
    if not (arrow.types.is_floating(kind) or arrow.types.is_integer(kind) or arrow.types.is_boolean(kind)):
        raise FileFormatError(
            f"{path} has the column {name!r} of type {kind}; columns must be numbers, or dictionary-encoded categories."
        )
    return column.to_numpy(), False


def _texts(value: object) -> list[str]:
    """A text, or a list of them, or nothing."""
    if isinstance(value, list):
        return [str(part) for part in value]
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else []


def _numbers(attribute: Attribute, values: AnyArray) -> NDArray[np.float64]:
    """A column as numbers; categories are numbered in sorted order, missing ones NaN."""
    if attribute.categories is None:
        return values
    numbers: dict[str, float] = {name: index for index, name in enumerate(sorted(attribute.categories))}
    return np.array([numbers.get(value, np.nan) for value in values.tolist()])


def _dataset(
    name: str,
    where: str,
    task: str,
    target: str,
    labels: AnyArray,
    missing: AnyArray,
    names: Sequence[str],
    columns: Sequence[tuple[AnyArray, bool]],
) -> Dataset:
    """The data set of labels, some of which may be missing, and of columns, each with whether it is categorical."""
    if missing.any():
        rows = np.flatnonzero(missing)
        raise FileFormatError(
            f"{where} has no class (column {target!r}) in {len(rows)} rows, the first being row {rows[0] + 1}. "
            "Remedy: leave out the rows without one."
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        table = np.stack([values.astype(np.float32) for values, _ in columns], axis=1)
    infinite = np.isinf(table)
    if infinite.any():
        row, column = (int(index) for index in np.argwhere(infinite)[0])
        raise FileFormatError(
            f"{where} has {columns[column][0][row]} in row {row + 1} of the column {names[column]!r}; features must be "
            "finite numbers of float32."
        )
    y = encode_classes(labels) if task == "classification" else labels.astype(np.float64)
    return Dataset(name, table, y, task, tuple(names), np.array([flag for _, flag in columns]), where)
