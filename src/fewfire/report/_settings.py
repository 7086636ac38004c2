"""The settings of a store as one table: what all cells share, and what tells them apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewfire.report._labels import Flat, flatten, varying
from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from fewfire.experiments import Setting, Store

TABLES = ("network", "data", "problem", "training")
SHORT = {"network.start.name": "start", "network.": "", "data.": "", "training.phases.": "training."}


@dataclass(frozen=True)
class SettingsTable:
    """Every key of every spec.

    Parameters
    ----------
    shared : dict of str to str
        Keys that have one value in the whole store.
    keys : tuple of str
        The others: the columns of the table.
    ids : tuple of int
        The settings: its rows, those of one map together, by width and samples.
    values : tuple of tuple of str
        One a row, one text a key; "–" where a spec has no such key.
    """

    shared: dict[str, str]
    keys: tuple[str, ...]
    ids: tuple[int, ...]
    values: tuple[tuple[str, ...], ...]


def settings_info(source: Store | Results) -> SettingsTable:
    """The table of every setting."""
    results = read_results(source)
    settings = _side_by_side(results.settings)
    rows = [_named(flatten({table: setting.spec[table] for table in TABLES})) for setting in settings]
    keys = varying(rows)
    apart = set(keys)
    shared = {path: value for path, value in (rows[0] if rows else {}).items() if path not in apart}
    values = tuple(tuple(row.get(key, "–") for key in keys) for row in rows)
    return SettingsTable(shared, tuple(keys), tuple(setting.id for setting in settings), values)


def _side_by_side(settings: tuple[Setting, ...]) -> list[Setting]:
    """Cells of one map next to each other, maps in order of arrival."""
    maps: dict[str, list[Setting]] = {}
    for setting in settings:
        spec = setting.spec
        key = {**spec, "network": spec["network"]["start"], "data": spec["data"]["test_samples"]}
        maps.setdefault(json.dumps(key, sort_keys=True), []).append(setting)
    return [
        setting
        for cells in maps.values()
        for setting in sorted(cells, key=lambda cell: (cell.width, cell.samples is None, cell.samples or 0))
    ]


def _named(leaves: Flat) -> Flat:
    """Short keys, as the spec file has them within its tables."""
    short: Flat = {}
    for path, value in leaves.items():
        long, brief = next(((long, brief) for long, brief in SHORT.items() if path.startswith(long)), ("", ""))
        short[brief + path.removeprefix(long)] = value
    return short
