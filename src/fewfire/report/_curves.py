"""Training curves of each cell: train and test error against steps, few enough that a page stays small.

Of each cell the first trials are shown, which is a fair sample because trials differ in nothing but their number.
Recorded steps are thinned evenly on a logarithmic axis; what is shown is as recorded, and the last record always is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._results import Results, read_results
from fewfire.sweeps.store._row import final

if TYPE_CHECKING:
    from fewfire._types import Float64Array, IdArray
    from fewfire.sweeps import Store

CURVES, POINTS = 10, 60
"""At most so many runs per cell and recorded steps per run."""

VALUES = 1_000_000
"""At most about so many errors in all: of large stores fewer steps are shown, then fewer runs."""


@dataclass(frozen=True, eq=False)
class CellCurves:
    """The curves of one cell: errors (trials, steps) at ascending steps, NaN where a run has no record of that step."""

    setting: int
    trials: tuple[int, ...]
    success: tuple[bool, ...]
    step: IdArray
    test_error: Float64Array
    train_error: Float64Array


def curves_info(
    source: Store | Results,
    success_error: float | None = None,
    *,
    curves: int = CURVES,
    points: int = POINTS,
    known: dict[tuple[Any, ...], CellCurves] | None = None,
) -> list[CellCurves]:
    """The training curves of every cell that has any, in order of the settings' ids; failed runs have none.

    Parameters
    ----------
    source, success_error
        See `read_results`.
    curves, points : int
        At most so many runs per cell and recorded steps per run.
    known : dict, optional
        Cells of an earlier call, for repeated calls: those without new runs to draw are taken from it.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> curves = report.curves_info(store)
    >>> len(curves), curves[0].step[:3].tolist()
    (30, [0, 250, 500])
    """
    results = read_results(source, success_error)
    columns = results.columns
    trained = np.flatnonzero(final(columns["status"]))
    trained = trained[np.lexsort((columns["trial"][trained], columns["setting"][trained]))]
    ids, firsts = np.unique(columns["setting"][trained], return_index=True)
    curves, points = fit_budget(len(ids), curves, points)
    found: dict[tuple[Any, ...], CellCurves] = {}
    before = {} if known is None else known
    for setting, indices in zip(ids.tolist(), np.split(trained, firsts[1:]), strict=False):
        chosen = indices[:curves]
        key = (setting, points, results.success_error, *columns["hash"][chosen].tolist())
        if key in before:
            found[key] = before[key]
            continue
        histories = [results.history(int(index)) for index in chosen]
        # Evenly spread in logarithm, and the last one of each run.
        recorded = np.unique(np.concatenate([history.step for history in histories]))
        if len(recorded) > points:
            wanted = np.geomspace(1, recorded[-1] + 1, points)
            recorded = recorded[np.unique(np.searchsorted(recorded + 1, wanted, side="left"))]
        lasts = [history.step[-1] for history in histories if len(history.step)]
        steps = np.unique(np.concatenate([recorded, lasts])).astype(np.int64)
        tables = [np.full((len(histories), len(steps)), np.nan) for _ in range(2)]  # NaN where there is no record
        for run, history in enumerate(histories):
            seen = np.isin(steps, history.step)
            places = np.searchsorted(history.step, steps[seen])
            for table, values in zip(tables, (history.test_error, history.train_error), strict=True):
                table[run, seen] = values[places]
        trials = tuple(int(trial) for trial in columns["trial"][chosen])
        won = tuple(bool(good) for good in results.success[chosen])
        found[key] = CellCurves(setting, trials, won, steps, *tables)
    if known is not None:
        known.clear()
        known.update(found)
    return list(found.values())


def fit_budget(cells: int, curves: int = CURVES, points: int = POINTS) -> tuple[int, int]:
    """How many runs per cell and steps per run keep all cells within `VALUES`; at least one run of ten steps."""
    room = VALUES // max(cells, 1)
    curves = int(np.clip(room // (2 * min(points, 16)), 1, curves))
    points = int(np.clip(room // (2 * curves), min(points, 10), points))
    return curves, points
