"""The HTML report: one file that needs nothing else and loads nothing, with its data inside.

The page's own files lie in `page/`; here they are put together. Texts from specs come into the page as escaped JSON and
are shown as text. A content security policy names the one script and style that may run, by hash, and forbids requests;
a page that follows a sweep (`live.js` is in that one only) may ask the server that it came from.

The data are plain lists, dictionaries, texts and numbers. Cells are short lists in the order that `page/2-data.js`
names; errors of curves are integers in units of 1e-3.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from dataclasses import asdict
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire import __version__
from fewfire._atomic import write_bytes
from fewfire._errors import invalid
from fewfire._validate import counted
from fewfire.report._curves import CellCurves, curves_info, fit_budget
from fewfire.report._findings import findings_info
from fewfire.report._frontier import frontier_info, theory_info
from fewfire.report._profile import profile_info
from fewfire.report._results import Results, read_results, summary_info
from fewfire.report._settings import settings_info
from fewfire.sweeps import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fewfire._types import Float64Array
    from fewfire.report._frontier import Group, SuccessFrontier
    from fewfire.report._results import Results, StoreSummary
    from fewfire.report._settings import SettingsTable
    from fewfire.sweeps import Store
    from fewfire.torch._profile import ModelProfile


UNIT = 1e-3
LARGEST = 1e6
"""Errors of runs that are on their way to infinity are cut here."""


class PageData:
    """The data of one page; what was read and rounded is kept for the next time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], CellCurves] = {}
        self._rounded: dict[CellCurves, list[Any]] = {}

    def of(self, results: Results, title: str | None = None) -> dict[str, Any]:
        """Everything the page shows of these results."""
        summary = summary_info(results)
        return {
            "title": title or " · ".join(results.names),
            "lede": lede(summary),
            "notes": [
                {"name": one.name, "note": one.note, "tags": one.tags}
                for store in results.stores
                for one in store.sweeps()
                if one.note or one.tags
            ],
            "summary": asdict(summary),
            "groups": [_group(group) for group in frontier_info(results)],
            "curves": self._curves(curves_info(results, known=self._known)),
            "settings": _settings(settings_info(results)),
        }

    def _curves(self, found: list[CellCurves]) -> dict[str, Any]:
        """By setting: the index of its steps among all that occur, trials, successes, test and train errors."""
        steps: dict[tuple[int, ...], int] = {}
        before, self._rounded = self._rounded, {}
        cells = {}
        for cell in found:
            index = steps.setdefault(tuple(cell.step.tolist()), len(steps))
            self._rounded[cell] = before.get(cell) or _rounded(cell)
            cells[str(cell.setting)] = [index, *self._rounded[cell]]
        return {"limit": fit_budget(len(found)), "unit": UNIT, "steps": list(steps), "cells": cells}


def lede(summary: StoreSummary) -> str:
    """What the store holds, in a sentence or two."""
    few, many = summary.trials
    each = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    if not summary.runs:
        return "No finished runs yet." + (f" {summary.failed:,} failed." if summary.failed else "")
    goal = f"{summary.success_error * 100:.3g}%"
    share = f"{summary.successes / summary.runs:.0%} of them get down to a test error of {goal}"
    counts = {"diverged": summary.diverged, "failed": summary.failed}
    trouble = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    end = f"; {' and '.join(trouble)}" if trouble else ""
    return (
        f"{counted(summary.runs, 'training run')} in {counted(summary.cells, 'cell')}, {each} per cell: {share}{end}."
    )


def _group(group: Group) -> dict[str, Any]:
    theory = theory_info(group)
    return {
        "label": group.label,
        "problem": group.problem,
        "training": group.training,
        "widths": group.widths,
        "samples": group.samples,
        "starts": [_start(frontier) for frontier in group.frontiers],
        "findings": [{"holds": finding.holds, "text": finding.text} for finding in findings_info(group)],
        "theory": theory
        and {
            "needed": theory.needed,
            "smallest": theory.smallest,
            "lines": [[_samples(value) for value in line] for line in theory.equal_cost],
        },
    }


def _start(frontier: SuccessFrontier) -> dict[str, Any]:
    counts = [frontier.setting, frontier.runs, frontier.successes]
    troubles = [frontier.diverged, frontier.failed]
    columns = [
        *(part.ravel().tolist() for part in counts),
        *(part.ravel().round(4).tolist() for part in (frontier.low, frontier.high)),
        *(part.ravel().tolist() for part in troubles),
        *([None if np.isnan(value) else round(float(value)) for value in part.ravel()] for part in frontier.steps),
    ]
    cells = [list(row) if row[0] else None for row in zip(*columns, strict=True)]
    half = [_samples(value) for value in frontier.half]
    interval = [[_samples(value) for value in ends] for ends in frontier.interval.T]
    return {"name": frontier.name, "title": frontier.title, "half": half, "interval": interval, "cells": cells}


def _rounded(cell: CellCurves) -> list[Any]:
    train = [] if np.isnan(cell.train_error).all() else [_errors(run) for run in cell.train_error]
    test = [_errors(run) for run in cell.test_error]
    return [cell.trials, [int(good) for good in cell.success], test, train]


def _settings(table: SettingsTable) -> dict[str, Any]:
    """Columns hold their distinct values once."""
    columns = []
    for index in range(len(table.keys)):
        texts = [row[index] for row in table.values]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        columns.append({"values": list(numbers), "index": [numbers[text] for text in texts]})
    return {"shared": table.shared, "keys": table.keys, "ids": table.ids, "columns": columns}


def _samples(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    if value == 0:
        return "below"
    return "above" if np.isinf(value) else round(float(value), 1)


def _errors(values: Float64Array) -> list[int | None]:
    """In units of `UNIT`, without the missing ones at the end."""
    whole = [round(min(value, LARGEST) / UNIT) if value == value else None for value in values.tolist()]
    while whole and whole[-1] is None:
        whole.pop()
    return whole


TITLE = "Success frontier"
KEPT = "One file, no network: keep it, mail it, print it."
LIVE = "It follows its store for as long as fewfire report --watch runs."


def render_page(
    source: Store | Results | Mapping[str, Store] | None,
    success_error: float | None = None,
    *,
    title: str | None = None,
    profile: ModelProfile | Mapping[str, Any] | None = None,
) -> str:
    """The report of a store as HTML; the same store gives the same text. Arguments are those of `write_page`."""
    if source is None and profile is None:
        raise invalid("source", "must be a store where there is no profile", source, "pass a store, a profile or both")
    seen = None if profile is None else profile_info(profile)
    results = read_results(MemoryStore() if source is None else source, success_error)
    data = PageData().of(results, title) | {"profile": seen}
    if seen and source is None:
        blocks = seen["blocks"]
        fire = sum(one["fire"] * one["width"] for one in blocks) / sum(one["width"] for one in blocks)
        some = counted(len(blocks), "MLP block")
        text = f"{some}, up to {seen['tokens']:,} tokens each: {fire:.1%} of the neurons fire on a token."
        data |= {"title": title or seen["model"], "lede": text}
    return compose(data)


def compose(data: dict[str, Any], *, live: bool = False) -> str:
    """The page of these data; `live` for one that is served and asks for newer ones."""
    style, script = _joined(".css"), _joined(".js", live=live)
    requests = "connect-src 'self'; " if live else ""
    parts = {
        "title": html.escape(data["title"] or TITLE),
        "lede": html.escape(data["lede"]),
        "version": html.escape(__version__),
        "policy": html.escape(
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            f"{requests}base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "script": script,
        "data": embedded_json(data),
        "kept": LIVE if live else KEPT,
    }
    page = (files(__package__) / "page" / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def write_page(
    source: Store | Results | Mapping[str, Store] | None,
    path: str | Path,
    success_error: float | None = None,
    *,
    title: str | None = None,
    profile: ModelProfile | Mapping[str, Any] | None = None,
) -> int:
    """Write the report of a store to a file, whole or not at all; gives its size in bytes.

    Parameters
    ----------
    source : Store, mapping of names to stores, or Results; None for a page of the profile alone
        Several stores are shown side by side.
    path : path of the file
    success_error : float, optional
        By default that of the newest sweep in the store.
    title : str, optional
        By default the names of the sweeps, or of the profiled model.
    profile : what `fewfire.torch.profile` gives, or its plain data, optional
        Adds a section about the neurons of a PyTorch model that fire.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> size = report.write_page(store, "report.html")
    """
    page = render_page(source, success_error, title=title, profile=profile).encode()
    try:
        write_bytes(path, page)
    except OSError as error:
        raise invalid("output", f"must be a file that can be written ({error.strerror})", str(path)) from None
    return len(page)


def embedded_json(data: Any) -> str:
    """JSON that stays inside its script element, whatever its texts hold."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _joined(suffix: str, *, live: bool = False) -> str:
    """The page's files of one kind, one after the other in order of their names."""
    folder = sorted((files(__package__) / "page").iterdir(), key=lambda file: file.name)
    chosen = [file for file in folder if file.name.endswith(suffix) and (live or not file.name.startswith("live"))]
    return "\n" + "\n".join(file.read_text(encoding="utf-8") for file in chosen)


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
