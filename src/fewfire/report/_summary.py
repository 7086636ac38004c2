"""What a store holds, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from fewfire.experiments import Store

REASONS = 20
"""At most so many different messages are listed."""


@dataclass(frozen=True)
class Summary:
    """Counts of a whole store.

    Parameters
    ----------
    names : tuple of str
        Of its sweeps.
    success_error : float
    cells, runs, successes, diverged, failed : int
        Runs are those that ended (done or diverged); failed ones come on top.
    trials : tuple of int
        The smallest and the largest number of runs a cell.
    engines : dict of str to int
        Runs by engine.
    reasons : tuple of (str, str, int)
        Status, message and number of runs, the commonest first.
    """

    names: tuple[str, ...]
    success_error: float
    cells: int
    runs: int
    successes: int
    diverged: int
    failed: int
    trials: tuple[int, int]
    engines: dict[str, int]
    reasons: tuple[tuple[str, str, int], ...]


def summary_info(source: Store | Results, success_error: float | None = None) -> Summary:
    """Count."""
    results = read_results(source, success_error)
    columns, status = results.columns, results.columns["status"]
    ended = status != "failed"
    ids = [setting.id for setting in results.settings]
    trials = results.total(ended)[ids] if ids else np.zeros(1, dtype=np.int64)
    engines = dict(zip(*(part.tolist() for part in np.unique(columns["engine"], return_counts=True)), strict=True))
    told: dict[tuple[str, str], int] = {}
    for place in np.flatnonzero(status != "done"):
        key = (str(status[place]), str(columns["message"][place]))
        told[key] = told.get(key, 0) + 1
    reasons = sorted(((*key, count) for key, count in told.items()), key=lambda entry: (-entry[2], entry))
    return Summary(
        results.names, results.success_error, len(ids), int(ended.sum()), int(results.success.sum()),
        int((status == "diverged").sum()), int((~ended).sum()), (int(trials.min()), int(trials.max())),
        engines, tuple(reasons[:REASONS]),
    )  # fmt: skip
