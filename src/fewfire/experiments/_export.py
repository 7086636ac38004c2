"""Results as one flat table, for other tools: CSV, or Parquet with the histories.

A row is one run: its columns, its settings as `problem.n`, `network.start.name`, … (empty where a setting has no such
key; `data.samples` is empty for online runs) and the environment it was made in. Lists and phases are written as JSON.
The file appears when it is complete.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._errors import StoreError, invalid
from fewfire.experiments._parquet import write_parquet
from fewfire.experiments._store import COLUMNS
from fewfire.experiments.spec import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.experiments._row import Row
    from fewfire.experiments._store import Setting, Store

FORMATS = (".csv", ".parquet")


def export(store: Store, path: str | Path) -> int:
    """Write all runs of a store to a .csv or .parquet file; gives their number."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise invalid("path", f"must end in one of {', '.join(FORMATS)}", str(path), "the ending names the format")
    settings = {setting.text: flat_setting(setting) for setting in store.settings()}
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        if path.suffix == ".csv":
            count = _write_csv(unfinished, settings, _records(store, settings))
        else:
            count = write_parquet(unfinished, settings.values(), _records(store, settings))
        unfinished.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}. The store is as it was.") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def flat_setting(setting: Setting) -> dict[str, Any]:
    """The spec of a setting as one table with dotted keys."""
    return _flat(setting.spec) | {"data.samples": setting.samples}


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            result |= _flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = canonical(value) if isinstance(value, list) else value
    return result


def _records(store: Store, settings: dict[str, dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Row]]:
    """For each run its values by column, and the row they came from."""
    names = [name for name in COLUMNS if name != "setting"]
    for row in store.rows():
        own = {name: getattr(row, name) for name in names}
        yield own | settings[row.setting] | {"environment": row.environment}, row


def _write_csv(path: Path, settings: dict[str, dict[str, Any]], records: Iterator[tuple[dict[str, Any], Row]]) -> int:
    own = [name for name in COLUMNS if name != "setting"]
    shared = dict.fromkeys(name for table in settings.values() for name in table)
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*own, *shared, "environment"], restval="")
        writer.writeheader()
        for values, _ in records:
            writer.writerow(values)
            count += 1
    return count
