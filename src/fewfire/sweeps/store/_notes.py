"""Notes and tags of the sweeps of a store: they are no part of a spec, and change no hash and no row.

The cells of a sweep are found by its recorded spec, which has every table that a cell can have, so that those of
problems which are not registered here are found too.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fewfire._errors import FewfireError, invalid
from fewfire.sweeps.spec._grid import expand
from fewfire.sweeps.spec._run_spec import canonical
from fewfire.sweeps.spec._search import FrontierSearch
from fewfire.sweeps.spec._tables import parse_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fewfire.sweeps.store._protocol import Setting, SweepRecord

TABLES = ("problem", "network", "training", "data")


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in order; each one word, so that it can be typed into a filter."""
    found = [tags] if isinstance(tags, str) else list(tags)
    for tag in found:
        if not isinstance(tag, str) or not tag or any(one in ' ,"' or not one.isprintable() for one in tag):
            raise invalid("tags", "must be words without spaces, commas and quotes", tag, "write learning-rate")
    return tuple(sorted({*found}))


def noted(settings: Iterable[Setting], records: Sequence[SweepRecord]) -> dict[int, dict[str, str]]:
    """The `note` and the `tags` of each cell that a sweep with any has, as texts by the cell's id."""
    found: dict[int, dict[str, str]] = {}
    marked = [record for record in records if record.note or record.tags]
    for setting in settings if marked else ():
        ours = [record for record in marked if _has(record.key, setting.text)]
        notes = dict.fromkeys(record.note for record in ours if record.note)
        tags = sorted({tag for record in ours for tag in record.tags})
        texts = {"note": "\n".join(notes), "tags": ", ".join(tags)}
        found[setting.id] = {name: text for name, text in texts.items() if text}
    return found


@lru_cache(maxsize=1 << 16)  # a page that follows a sweep asks again
def _has(key: str, setting: str) -> bool:
    """Whether the sweep with this key has the cell with this text."""
    grid, cell = _grid(key), json.loads(setting)
    data: dict[str, Any] = cell["data"]
    labels: list[dict[str, str]] = [{}]
    if "test_labels" not in data:  # they are noisy, or nothing is
        labels += [{"test_labels": one} for one in ("noisy", *([] if cell["problem"].get("noise") else ["clean"]))]
    return all(canonical(cell[name]) in grid.get(name, ()) for name in TABLES[:-1]) and any(
        canonical(data | one) in grid["data"] for one in labels
    )


@lru_cache(maxsize=256)
def _grid(key: str) -> dict[str, frozenset[str]]:
    """The tables of a recorded spec as canonical texts; none of one that this version cannot read."""
    with suppress(FewfireError, TypeError, KeyError):
        spec = json.loads(key)
        filled = FrontierSearch.from_dict(spec["search"]).fill(spec) if "search" in spec else spec
        tables: dict[str, list[Any]] = {name: expand(filled[name], name) for name in TABLES}
        for table in [one for one in tables["data"] if isinstance(one["samples"], float)]:  # a share of a file's rows
            for problem in tables["problem"]:
                with suppress(FewfireError):  # the file is not here: its cells are not found
                    known: Any = parse_problem(problem)
                    tables["data"].append({**table, "samples": known.training_rows(table["samples"])})
        return {name: frozenset(map(canonical, tables[name])) for name in TABLES}
    return {}
