"""The data a page embeds: what the `*_info` functions found, as compact JSON.

Cells are short lists in the order that `page/2-data.js` names; errors of curves are integers in units of 1e-3.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._curves import curves_info, fit_budget
from fewfire.report._findings import findings_info
from fewfire.report._frontier import frontier_info
from fewfire.report._settings import settings_info
from fewfire.report._summary import summary_info
from fewfire.report._theory import theory_info

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.report._curves import CellCurves
    from fewfire.report._frontier import Frontier, Group
    from fewfire.report._results import Results
    from fewfire.report._settings import SettingsTable

UNIT = 1e-3
LARGEST = 1e6
"""Errors of runs that are on their way to infinity are cut here."""


def page_data(results: Results) -> dict[str, Any]:
    """Everything the page shows, in plain lists, dictionaries, texts and numbers."""
    curves = curves_info(results)
    return {
        "summary": asdict(summary_info(results)),
        "groups": [_group(group) for group in frontier_info(results)],
        "curves": _curves(curves),
        "settings": _settings(settings_info(results)),
    }


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
        "theory": theory and {
            "needed": theory.needed,
            "smallest": theory.smallest,
            "lines": [[_samples(value) for value in line] for line in theory.equal_cost],
        },
    }  # fmt: skip


def _start(frontier: Frontier) -> dict[str, Any]:
    counts = [frontier.setting, frontier.runs, frontier.successes]
    troubles = [frontier.diverged, frontier.failed]
    columns = [
        *(part.ravel().tolist() for part in counts),
        *(part.ravel().round(4).tolist() for part in (frontier.low, frontier.high)),
        *(part.ravel().tolist() for part in troubles),
        *(_whole(part.ravel()) for part in frontier.steps),
    ]
    cells = [list(row) if row[0] else None for row in zip(*columns, strict=True)]
    return {"name": frontier.start, "half": [_samples(value) for value in frontier.half], "cells": cells}


def _curves(found: list[CellCurves]) -> dict[str, Any]:
    """By setting: the place of its steps in the list of all that occur, trials, successes, test and train errors."""
    steps: dict[tuple[int, ...], int] = {}
    cells = {}
    for cell in found:
        place = steps.setdefault(tuple(cell.step.tolist()), len(steps))
        train = [] if np.isnan(cell.train_error).all() else [_errors(run) for run in cell.train_error]
        test = [_errors(run) for run in cell.test_error]
        cells[str(cell.setting)] = [place, cell.trials, [int(good) for good in cell.success], test, train]
    return {"limit": fit_budget(len(found)), "unit": UNIT, "steps": list(steps), "cells": cells}


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
