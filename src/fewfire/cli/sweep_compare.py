"""`fewfire sweep compare`: two stores side by side, cell by cell, and whether they differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from fewfire import experiments
from fewfire._validate import check_number
from fewfire.cli._output import say, wide_console
from fewfire.cli.sweep_store import SUCCESS_ERROR, StoreFile

if TYPE_CHECKING:
    from fewfire._types import AnyArray, IdArray
    from fewfire.experiments import Cell

SHOWN = 20
"""At most so many cells, those that differ most."""

DECIDED = ("status", "stopped", "test_error", "best_test_error", "train_error", "train_loss", "steps", "multiply_adds")
"""Columns in which two trainings of one run agree when they are the same."""


def compare(
    first: StoreFile,
    second: Annotated[Path, typer.Argument(help="The one to compare it with.", show_default=False)],
    success_error: Annotated[
        float | None, typer.Option(help="The test error that counts as success; by default that of the first store.")
    ] = None,
) -> None:
    """Compare the success of the cells that two stores share, and say whether they differ clearly.

    Runs that both stores have are compared as pairs. The others are compared cell by cell.
    """
    from fewfire.report._compare import CLEAR, compared_z, pair_counts, shared_runs

    console = wide_console()
    if success_error is not None:
        check_number("--success-error", success_error, 0, 1, open_low=True, open_high=True, remedy="pass 0.1 for 10%")
    with experiments.SqliteStore(first) as one, experiments.SqliteStore(second) as other:
        sweeps = one.sweeps()
        error = success_error or (sweeps[-1].success_error if sweeps else SUCCESS_ERROR)
        ours, theirs = ({cell.setting.text: cell for cell in experiments.cells(store, error)} for store in (one, other))
        columns, more = one.columns(), other.columns()
    shared = [text for text in ours if text in theirs and ours[text].runs and theirs[text].runs]
    only = len(ours) - len(shared), len(theirs) - len(shared)
    say(f"{len(shared):,} cells in both; {only[0]:,} only in {first}, {only[1]:,} only in {second}", console)
    if not shared:
        return
    cells = [(ours[text], theirs[text]) for text in shared]
    won, runs, other_won, other_runs = (
        np.array([getattr(pair[side], name) for pair in cells]) for side in (0, 1) for name in ("successes", "runs")
    )
    places = shared_runs(columns, more)
    good, bad = (
        experiments.succeeded(table["status"][place], table["best_test_error"][place], error)
        for table, place in zip((columns, more), places, strict=True)
    )
    cell = {pair[0].setting.id: number for number, pair in enumerate(cells)}
    numbers = np.array([cell[id] for id in columns["setting"][places[0]].tolist()], dtype=np.int64)
    pairs = pair_counts(good, bad, numbers, len(cells))
    console.print(_table(shared, cells, (str(first), str(second))))
    if len(cells) > SHOWN:
        say(f"{SHOWN} of {len(cells):,} cells are shown, those that differ most", console)
    say(_shared(pairs, _same(columns, more, places), (str(first), str(second))), console)
    shares = f"{won.sum() / runs.sum():.1%} and {other_won.sum() / other_runs.sum():.1%} succeed"
    opening = f"Test error of at most {error:g}: {shares}"
    alone = int(runs.sum() + other_runs.sum() - 2 * pairs.sum())
    if not alone and not pairs[0, 1].any() and not pairs[1, 0].any():
        say(f"{opening}; the stores hold the same runs, which say nothing about a difference", console)
        return
    z = compared_z(won, runs, other_won, other_runs, pairs)
    verdict = "differ clearly" if abs(z) > CLEAR else "do not differ clearly"
    say(f"{opening}; the stores {verdict} (z = {z:.2f})", console)


def _same(one: dict[str, AnyArray], other: dict[str, AnyArray], places: tuple[IdArray, IdArray]) -> int:
    """How many shared runs agree in every number that training decides."""
    same = np.ones(len(places[0]), dtype=bool)
    for name in DECIDED:
        a, b = one[name][places[0]], other[name][places[1]]
        same &= (a == b) | ((a != a) & (b != b))  # NaN where nothing was measured
    return int(same.sum())


def _shared(pairs: IdArray, same: int, names: tuple[str, str]) -> str:
    """What the runs that both stores have are, in a sentence."""
    count, only, other = int(pairs.sum()), int(pairs[1, 0].sum()), int(pairs[0, 1].sum())
    if not count:
        return "No run is in both stores"
    text = f"{count:,} runs are in both stores: {same:,} of them agree in every number"
    return f"{text}; {only:,} succeed only in {names[0]}, {other:,} only in {names[1]}"


def _table(texts: list[str], pairs: list[tuple[Cell, Cell]], names: tuple[str, str]) -> Table:
    """The cells whose success differs most, by what tells them apart."""
    from fewfire.report._settings import varying

    flat = [_leaves(json.loads(text)) for text in texts]
    telling = varying(flat) if len(flat) > 1 else []
    table = Table(box=None, pad_edge=False)
    for path in telling:
        table.add_column(path.rpartition(".")[2])
    for name in (*names, "difference"):
        table.add_column(name, justify="right")
    apart = [pair[1].success - pair[0].success for pair in pairs]
    for place in sorted(range(len(pairs)), key=lambda place: -abs(apart[place]))[:SHOWN]:
        shares = (f"{cell.successes}/{cell.runs}" for cell in pairs[place])
        table.add_row(*(flat[place].get(path, "–") for path in telling), *shares, f"{apart[place]:+.0%}")
    return table


def _leaves(spec: dict[str, Any]) -> dict[str, str]:
    from fewfire.report._settings import flatten, start_name

    spec["network"]["start"] = start_name(spec["network"]["start"])
    return flatten(spec)
