"""The settings of a store as text: names for problems, starts and schedules, and one table of every setting."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fewfire.report._results import Results, read_results
from fewfire.sweeps.spec._run_spec import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from fewfire.sweeps import Store
    from fewfire.sweeps.store._protocol import Setting

Flat = dict[str, str]
"""A spec as one text per leaf, keyed by its path: {"training.phases.steps": "20000", …}."""

TABLES = ("network", "data", "problem", "training")
SHORT = {"network.start.name": "start", "network.": "", "data.": "", "training.phases.": "training."}


@dataclass(frozen=True)
class SettingsTable:
    """Every key of every spec: those with one value in the whole store, and the others as columns.

    Rows are settings by their ids, those of one map together, by width and samples; "–" where a spec has no such key.
    """

    shared: dict[str, str]
    keys: tuple[str, ...]
    ids: tuple[int, ...]
    values: tuple[tuple[str, ...], ...]


def settings_info(source: Store | Results) -> SettingsTable:
    """The table of every setting."""
    results = read_results(source)
    maps = grouped(results.settings, ("width",)).values()
    settings = [
        setting
        for cells in maps  # cells of one map next to each other
        for setting in sorted(cells, key=lambda cell: (cell.width, cell.samples is None, cell.samples or 0))
    ]
    stores = [{"store": results.sources[one.id]} if one.id in results.sources else {} for one in settings]
    tags = [{"tags": results.tags[one.id]} if one.id in results.tags else {} for one in settings]
    rows = [{**store, **tag, **_leaves(one.text)} for store, tag, one in zip(stores, tags, settings, strict=True)]
    keys = varying(rows)
    apart = set(keys)
    shared = {path: value for path, value in (rows[0] if rows else {}).items() if path not in apart}
    values = tuple(tuple(row.get(key, "–") for key in keys) for row in rows)
    return SettingsTable(shared, tuple(keys), tuple(setting.id for setting in settings), values)


@lru_cache(maxsize=1 << 16)
def _leaves(text: str) -> Flat:
    """A setting as texts by short keys, as in its file; remembered, since a page that follows a sweep asks again."""
    spec, short = json.loads(text), Flat()
    for path, value in flatten({table: spec[table] for table in TABLES}).items():
        long, brief = next(((long, brief) for long, brief in SHORT.items() if path.startswith(long)), ("", ""))
        short[brief + path.removeprefix(long)] = value
    return short


def grouped(settings: Iterable[Setting], without: Collection[str]) -> dict[str, list[Setting]]:
    """Settings, in order of arrival, by what they share as JSON: all but the samples and some keys of the network."""
    groups: dict[str, list[Setting]] = {}
    for setting in settings:
        spec = setting.spec
        network = {name: value for name, value in spec["network"].items() if name not in without}
        key = {**spec, "network": network, "data": {**spec["data"], "samples": None}}
        groups.setdefault(json.dumps(key, sort_keys=True), []).append(setting)
    return groups


def flatten(table: Mapping[str, Any], path: str = "") -> Flat:
    """Every leaf of nested tables; a list of plain values is one leaf, several tables in a list are numbered."""
    leaves: Flat = {}
    for key, value in table.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            leaves |= flatten(value, where)
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for index, item in enumerate(value):
                leaves |= flatten(item, where if len(value) == 1 else f"{where}.{index}")
        else:
            leaves[where] = plain(value)
    return leaves


def varying(tables: Sequence[Flat]) -> list[str]:
    """The paths at which these tables differ, in order of first appearance."""
    paths: dict[str, None] = dict.fromkeys(path for table in tables for path in table)
    return [path for path in paths if len({table.get(path) for table in tables}) > 1]


def schedule(training: Mapping[str, Any]) -> str:
    """A schedule as a short text."""
    phases = training["phases"]
    long = " and ".join(
        f"{total:,} {unit}"
        for unit in ("steps", "epochs")
        if (total := sum(int(phase.get(unit, 0)) for phase in phases))
    )
    if len(phases) > 1:
        return f"{long} in {len(phases)} phases, {training['loss']} loss"
    phase = phases[0]
    batch = phase["batch_size"]
    parts = [
        long,
        f"batch {plain(batch)}" if isinstance(batch, int) else "full batch",
        f"learning rate {_rate(phase['learning_rate'])}",
        f"weight decay {_rate(phase['weight_decay'])}",
        f"{training['loss']} loss",
    ]
    return ", ".join(parts)


def _rate(value: object) -> str:
    if isinstance(value, dict):
        return " and ".join(f"{plain(rate)} ({layer})" for layer, rate in value.items())
    return plain(value)
