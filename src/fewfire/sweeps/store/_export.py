"""Results as one flat table for other tools: a pandas DataFrame, CSV, Parquet (through pyarrow) or LaTeX (booktabs).

A row is one run: its columns, its settings (empty where a setting has no such key) and the environment it was made in;
Parquet has types and the histories as well. A .tex file has a row per cell instead: settings that differ, and how the
runs of the cell ended. The file appears when it is complete.

A key of the spec is a column with its path as its name: `problem.n`, `network.start.name`, `data.samples` (empty for
online runs). The order of columns does not depend on what a store holds. What phases of training share has columns too,
`training.learning_rate` and so on: `training.steps` is their sum, and where phases differ in another key its column is
empty; `training.phases` has them all, as JSON. A rate that is given per layer has a column per layer.
"""

from __future__ import annotations

import csv
from codecs import getwriter
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from fewfire._atomic import replacing, same_file
from fewfire._errors import StoreError, invalid
from fewfire._optional import require
from fewfire.sweeps.spec._run_spec import canonical, start_name
from fewfire.sweeps.store._notes import noted
from fewfire.sweeps.store._protocol import cells, newest_success_error, wilson_interval
from fewfire.sweeps.store._row import COLUMNS, CURVES
from fewfire.sweeps.store._sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from types import ModuleType

    from fewfire.sweeps.store._protocol import Cell, Setting, Store
    from fewfire.sweeps.store._row import Row


OWN = tuple(name for name in COLUMNS if name != "setting")
"""Columns of a run itself; its setting comes as columns of its own."""

TABLES = ("problem", "network", "data", "training", "version")
FIRST = ("name", "n", "k", "start", "width", "samples", "steps", "learning_rate", "weight_decay", "batch_size")
"""Within a table these come first, the others in order of the alphabet; layers and parameters follow their name."""


def flat_setting(setting: Setting) -> dict[str, Any]:
    """The spec of a setting as one table with dotted keys; lists are JSON."""
    flat = _flat(setting.spec) | {"data.samples": setting.samples}
    return flat | _flat(_shared(setting.training["phases"]), "training.")


def setting_columns(settings: Iterable[dict[str, Any]]) -> list[str]:
    """Every key of flat settings, in the order of columns."""
    return sorted({name for table in settings for name in table}, key=_column_order)


def to_frame(store: Store) -> Any:
    """All runs of a store as a pandas DataFrame: a row per run sorted by hash, columns as `export` writes them.

    Histories and environments are left out. Settings that differ from run to run in kind, such as evaluate = 10 and
    evaluate = "log", share a column of objects.
    """
    pandas = require("pandas", "sweep", "to_frame")
    columns, notes = store.columns(), noted(store.settings(), store.sweeps())
    settings = {setting.id: flat_setting(setting) | notes.get(setting.id, {}) for setting in store.settings()}
    data: dict[str, Any] = {name: columns[name] for name in OWN}
    ids, indices = np.unique(columns["setting"], return_inverse=True)
    for name in setting_columns(settings.values()):
        values = pandas.Series([settings[int(id)].get(name) for id in ids]).convert_dtypes()
        data[name] = values.take(indices).reset_index(drop=True)
    return pandas.DataFrame(data)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            result |= _flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = canonical(value) if isinstance(value, list) else value
    return result


def _shared(phases: list[dict[str, Any]]) -> dict[str, Any]:
    """What all phases have in common, and how many steps or epochs they are together."""
    first = phases[0]
    same = {key: first[key] for key in first if all(phase.get(key) == first[key] for phase in phases)}
    units = [unit for unit in ("steps", "epochs") if any(unit in phase for phase in phases)]
    return dict.fromkeys(first) | same | {unit: sum(phase.get(unit, 0) for phase in phases) for unit in units}


def _column_order(name: str) -> tuple[int, int, bool, str]:
    table, _, key = name.partition(".")
    head, _, rest = key.partition(".")
    rank = FIRST.index(head) if head in FIRST else len(FIRST)
    return TABLES.index(table) if table in TABLES else len(TABLES), rank, rest not in ("", "name"), key


ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}


START = "network.start."


def latex_table(store: Store) -> list[str]:
    """The lines of a table with a row per cell, sorted by its columns; what all cells share is a comment above."""
    error = newest_success_error(store.sweeps())
    found = cells(store, error)
    flat = [
        {name: value for name, value in flat_setting(cell.setting).items() if not name.startswith(START)}
        | {f"{START}name": start_name(cell.setting.start)}
        for cell in found
    ]
    names = [name for name in setting_columns(flat) if name != "training.phases"]
    differing = [name for name in names if len({table.get(name) for table in flat}) > 1]
    shared = [
        f"{name} = {_text(flat[0][name])}" for name in names if flat and name in flat[0] and name not in differing
    ]
    ends = [name for name in ("diverged", "failed") if any(getattr(cell, name) for cell in found)]
    titles = [_title(name) for name in differing]
    titles = [name if titles.count(title) > 1 else title for name, title in zip(differing, titles, strict=True)]
    titles += ["runs", "success", "95% interval", *ends]
    notes = [f"{one.name} [{', '.join(one.tags)}] {one.note}" for one in store.sweeps() if one.note or one.tags]
    heads = [f"success: a test error of at most {error:g}", *shared, *"\n".join(notes).splitlines()]
    lines = [f"% {line}" for line in heads]
    lines += [rf"\begin{{tabular}}{{{'r' * len(titles)}}}", r"\toprule", _row(titles), r"\midrule"]

    def order(row: tuple[Cell, dict[str, Any]]) -> list[tuple[bool, bool, Any]]:
        values = (row[1].get(name) for name in differing)
        return [(value is None, isinstance(value, str), 0 if value is None else value) for value in values]

    for cell, table in sorted(zip(found, flat, strict=True), key=order):
        table["data.samples"] = "online" if cell.setting.samples is None else cell.setting.samples
        low, high = wilson_interval(cell.successes, cell.runs)
        share = f"{cell.success:.0%}" if cell.runs else "–"
        texts = [*(_text(table.get(name)) for name in differing), f"{cell.runs}", share, f"{low:.0%}–{high:.0%}"]
        lines.append(_row(texts + [f"{getattr(cell, name)}" for name in ends]))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _title(name: str) -> str:
    """A key in plain words: `network.start.name` is start, `training.learning_rate` learning rate."""
    return "examples" if name == "data.samples" else name.partition(".")[2].removesuffix(".name").replace("_", " ")


def _row(texts: list[str]) -> str:
    return " & ".join("".join(ESCAPES.get(character, character) for character in text) for text in texts) + r" \\"


def _text(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value).replace("\n", " ")


FORMATS = (".csv", ".parquet", ".tex")
CHUNK = 10_000  # rows of a Parquet row group: how many are in memory at once


def export(store: Store, path: str | Path) -> int:
    """Write all runs of a store to a .csv or .parquet file, or its cells to a .tex file; gives the number of rows.

    Where a sweep has a note or tags, the last columns are `note` and `tags`.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, Sweep, export
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
    if isinstance(store, SqliteStore) and same_file(path, store.path):
        raise invalid("path", "must not be the store itself", str(path), "choose another file")
    notes = noted(store.settings(), store.sweeps())
    settings = {one.text: flat_setting(one) | notes.get(one.id, {}) for one in store.settings()}
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
    names = [*OWN, *setting_columns(settings.values()), "environment"]
    writer = csv.DictWriter(getwriter("utf-8")(file), names, restval="")  # no buffer that a full disk leaves for later
    writer.writeheader()
    count = 0
    for values, _ in records:
        writer.writerow(values)
        count += 1
    return count


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
            rows = [
                values | {f"history.{name}": getattr(row.history, name) for name in ("step", *CURVES)}
                for values, row in chunk
            ]
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
        kinds = {type(table.get(name)) for table in settings} - {type(None)}
        numbers = plain[np.float64] if kinds and kinds <= {int, float} else plain[np.str_]
        types[name] = arrow.bool_() if kinds == {bool} else plain[np.int64] if kinds == {int} else numbers
    types |= {"environment": arrow.string(), "history.step": arrow.list_(arrow.int64())}
    types |= {f"history.{name}": arrow.list_(arrow.float32()) for name in CURVES}
    return arrow.schema(list(types.items()))


def _fit(value: Any, field: Any, arrow: ModuleType) -> Any:
    """Settings of several types, such as evaluate = 10 and evaluate = "log", share a column of texts."""
    return str(value) if value is not None and field.type == arrow.string() else value
