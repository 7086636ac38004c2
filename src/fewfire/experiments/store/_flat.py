"""Settings as flat columns, in an order that does not depend on what a store holds.

A key of the spec is a column with its path as its name: `problem.n`, `network.start.name`, `data.samples` (empty for
online runs). What phases of training share has columns too, `training.learning_rate` and so on: `training.steps` is
their sum, and where phases differ in another key its column is empty; `training.phases` has them all, as JSON. A rate
that is given per layer has a column per layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import require
from fewfire.experiments.spec import canonical
from fewfire.experiments.store._row import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire.experiments.store._protocol import Setting, Store

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
    return sorted({name for table in settings for name in table}, key=_place)


def to_frame(store: Store) -> Any:
    """All runs of a store as a pandas DataFrame: a row per run sorted by hash, columns as `export` writes them.

    Histories and environments are left out. Settings that differ from run to run in kind, such as evaluate = 10 and
    evaluate = "log", share a column of objects.
    """
    pandas = require("pandas", "sweep", "to_frame")
    columns, settings = store.columns(), {setting.id: flat_setting(setting) for setting in store.settings()}
    data: dict[str, Any] = {name: columns[name] for name in OWN}
    ids, places = np.unique(columns["setting"], return_inverse=True)
    for name in setting_columns(settings.values()):
        values = pandas.Series([settings[int(id)].get(name) for id in ids]).convert_dtypes()
        data[name] = values.take(places).reset_index(drop=True)
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
    """What all phases have in common, and how many steps they are together."""
    first = phases[0]
    same = {key: first[key] for key in first if all(phase.get(key) == first[key] for phase in phases)}
    return dict.fromkeys(first) | same | {"steps": sum(phase["steps"] for phase in phases)}


def _place(name: str) -> tuple[int, int, bool, str]:
    table, _, key = name.partition(".")
    head, _, rest = key.partition(".")
    place = FIRST.index(head) if head in FIRST else len(FIRST)
    return TABLES.index(table) if table in TABLES else len(TABLES), place, rest not in ("", "name"), key
