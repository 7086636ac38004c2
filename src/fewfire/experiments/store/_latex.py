"""The cells of a store as a LaTeX table (booktabs): settings that differ, and how the runs of each cell ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.experiments.store._flat import flat_setting, setting_columns
from fewfire.experiments.store._success import cells

if TYPE_CHECKING:
    from fewfire.experiments.store._protocol import Store

SUCCESS_ERROR = 0.1
"""What counts as success in a store that no sweep was recorded in."""

ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def latex_table(store: Store) -> list[str]:
    """The lines of a table with a row per cell, in order of the settings; what all cells share is a comment above it.

    Success is what the newest sweep of the store calls so.
    """
    sweeps = store.sweeps()
    error = sweeps[-1].success_error if sweeps else SUCCESS_ERROR
    found = cells(store, error)
    flat = [flat_setting(cell.setting) for cell in found]
    names = [name for name in setting_columns(flat) if name != "training.phases"]
    telling = [name for name in names if len({table.get(name) for table in flat}) > 1]
    shared = [f"{name} = {_text(flat[0][name])}" for name in names if flat and name in flat[0] and name not in telling]
    counts = ("runs", "succeeded", "diverged", "failed")
    lines = [f"% success: a test error of at most {error:g}", *(f"% {line}" for line in shared)]
    lines += [rf"\begin{{tabular}}{{{'r' * (len(telling) + len(counts))}}}", r"\toprule"]
    lines += [_row([*telling, *counts]), r"\midrule"]
    for cell, table in zip(found, flat, strict=True):
        ended = (cell.runs, cell.successes, cell.diverged, cell.failed)
        lines.append(_row([*(_text(table.get(name)) for name in telling), *map(str, ended)]))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _row(texts: list[str]) -> str:
    return " & ".join("".join(ESCAPES.get(character, character) for character in text) for text in texts) + r" \\"


def _text(value: Any) -> str:
    return "--" if value is None else f"{value:g}" if isinstance(value, float) else str(value).replace("\n", " ")
