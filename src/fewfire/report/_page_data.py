"""What the page shows, as plain lists, dictionaries, texts and numbers.

Cells are short lists in the order that `page/2-data.js` names; errors of curves are integers in units of 1e-3. A page
that follows a sweep asks again and again: `PageData` remembers what was read and rounded before.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._curves import CellCurves, curves_info, fit_budget
from fewfire.report._findings import findings_info
from fewfire.report._frontier import frontier_info
from fewfire.report._results import summary_info
from fewfire.report._settings import settings_info
from fewfire.report._theory import theory_info

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.report._frontier import Group, SuccessFrontier
    from fewfire.report._results import Results, StoreSummary
    from fewfire.report._settings import SettingsTable
    from fewfire.report._theory import TheoryOverlay

UNIT = 1e-3
LARGEST = 1e6
"""Errors of runs that are on their way to infinity are cut here."""


class PageData:
    """The data of one page, as often as they are asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], CellCurves] = {}
        self._rounded: dict[CellCurves, list[Any]] = {}

    def of(self, results: Results, title: str | None = None) -> dict[str, Any]:
        """Everything the page shows of these results."""
        summary = summary_info(results)
        return {
            "title": title or " · ".join(results.names),
            "lede": lede(summary),
            "summary": asdict(summary),
            "groups": [_group(group) for group in frontier_info(results)],
            "curves": self._curves(curves_info(results, known=self._known)),
            "settings": _settings(settings_info(results)),
        }

    def _curves(self, found: list[CellCurves]) -> dict[str, Any]:
        """By setting: the place of its steps among all that occur, trials, successes, test and train errors."""
        steps: dict[tuple[int, ...], int] = {}
        before, self._rounded = self._rounded, {}
        cells = {}
        for cell in found:
            place = steps.setdefault(tuple(cell.step.tolist()), len(steps))
            self._rounded[cell] = before.get(cell) or _rounded(cell)
            cells[str(cell.setting)] = [place, *self._rounded[cell]]
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
    return f"{summary.runs:,} training runs in {summary.cells:,} cells, {each} per cell: {share}{end}."


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
        "theory": theory and _theory(theory),
    }


def _theory(theory: TheoryOverlay) -> dict[str, Any]:
    lines = [[_samples(value) for value in line] for line in theory.equal_cost]
    return {"needed": theory.needed, "smallest": theory.smallest, "lines": lines}


def _start(frontier: SuccessFrontier) -> dict[str, Any]:
    counts = [frontier.setting, frontier.runs, frontier.successes]
    troubles = [frontier.diverged, frontier.failed]
    columns = [
        *(part.ravel().tolist() for part in counts),
        *(part.ravel().round(4).tolist() for part in (frontier.low, frontier.high)),
        *(part.ravel().tolist() for part in troubles),
        *(_whole(part.ravel()) for part in frontier.steps),
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
    for place in range(len(table.keys)):
        texts = [row[place] for row in table.values]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        columns.append({"values": list(numbers), "index": [numbers[text] for text in texts]})
    return {"shared": table.shared, "keys": table.keys, "ids": table.ids, "columns": columns}


def _samples(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    if value == 0:
        return "below"
    return "above" if np.isinf(value) else round(float(value), 1)


def _whole(values: AnyArray) -> list[int | None]:
    return [None if np.isnan(value) else round(float(value)) for value in values]


def _errors(values: Float64Array) -> list[int | None]:
    """In units of `UNIT`, without the missing ones at the end."""
    whole = [round(min(value, LARGEST) / UNIT) if value == value else None for value in values.tolist()]
    while whole and whole[-1] is None:
        whole.pop()
    return whole
