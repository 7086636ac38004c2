"""A store's results, read once, and in a few numbers: every `*_info` function takes a store or `Results`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._validate import check_number
from fewfire.experiments.store import final, succeeded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fewfire._types import AnyArray, Float64Array
    from fewfire.experiments import Setting, Store

REASONS = 20
"""At most so many different messages are listed."""

SUCCESS_ERROR = 0.1
"""What counts as success in a store that no sweep was recorded in."""


@dataclass(frozen=True, eq=False)
class Results:
    """Rows without histories, with what success means and when it came.

    Parameters
    ----------
    store : Store
        Where they came from; histories are read from it when asked for.
    settings : tuple of Setting
        The cells, in order of arrival.
    columns : dict of arrays of shape (runs,)
        As `Store.columns` gives them.
    success_error : float
        A run succeeded when it is done and its smallest recorded test error is at most this.
    success : bool array of shape (runs,)
    convergence : float array of shape (runs,)
        The first recorded step at which a successful run was that good; NaN for the others.
    names : tuple of str
        Of the sweeps that were run into the store, oldest first.
    """

    store: Store
    settings: tuple[Setting, ...]
    columns: dict[str, AnyArray]
    success_error: float
    success: AnyArray
    convergence: Float64Array
    names: tuple[str, ...]

    def total(self, chosen: AnyArray) -> AnyArray:
        """How many of the chosen runs each setting has, by id: shape (largest id + 1,)."""
        size = max((setting.id for setting in self.settings), default=0) + 1
        return np.bincount(self.columns["setting"][chosen], minlength=size)


def read_results(
    source: Store | Results, success_error: float | None = None, only: Collection[str] | None = None
) -> Results:
    """Read a store.

    Parameters
    ----------
    source : Store or Results
        Results are given back as they are.
    success_error : float, optional
        By default that of the newest sweep in the store.
    only : collection of str, optional
        Canonical texts of the settings to look at; all by default.
    """
    if isinstance(source, Results):
        return source
    sweeps = source.sweeps()
    if success_error is None:
        success_error = sweeps[-1].success_error if sweeps else SUCCESS_ERROR
    check_number("success_error", success_error, 0.0)
    settings = tuple(s for s in source.settings() if only is None or s.text in only)
    columns = source.columns()
    if only is not None:
        kept = np.isin(columns["setting"], [setting.id for setting in settings])
        columns = {name: values[kept] for name, values in columns.items()}
    success = succeeded(columns["status"], columns["best_test_error"], success_error)
    convergence = _convergence(source, settings, columns, success, success_error)
    names = tuple(dict.fromkeys(record.name for record in sweeps))
    return Results(source, settings, columns, success_error, success, convergence, names)


def by_setting(ids: AnyArray, places: AnyArray) -> Iterator[tuple[int, AnyArray]]:
    """The places that belong to each id, for ids in ascending order; `ids` and `places` have one shape."""
    order = np.argsort(ids, kind="stable")
    present, firsts = np.unique(ids[order], return_index=True)
    for id, members in zip(present, np.split(places[order], firsts[1:]), strict=False):
        yield int(id), members


def _convergence(
    store: Store, settings: tuple[Setting, ...], columns: dict[str, AnyArray], success: AnyArray, error: float
) -> Float64Array:
    """A run that stopped itself at this very error says when in its counter; of the others the history is read."""
    steps = np.full(len(success), np.nan)
    told = {setting.id for setting in settings if _stops_at(setting.spec, error)}
    known = success & (columns["stopped"] == "test_error") & np.isin(columns["setting"], list(told))
    steps[known] = columns["steps"][known]
    for place in np.flatnonzero(success & ~known):
        first = store.history(str(columns["hash"][place])).first_step(error)
        steps[place] = columns["steps"][place] if first is None else first
    return steps


def _stops_at(spec: dict[str, Any], error: float) -> bool:
    stop = spec["training"]["stop_error"]
    return stop is not None and float(stop) == error


@dataclass(frozen=True)
class StoreSummary:
    """Counts of a whole store.

    Parameters
    ----------
    names : tuple of str
        Of its sweeps.
    success_error : float
    cells, runs, successes, diverged, failed : int
        Runs are those that ended (done or diverged); failed ones come on top.
    trials : tuple of int
        The smallest and the largest number of runs per cell.
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


def summary_info(source: Store | Results, success_error: float | None = None) -> StoreSummary:
    """Count."""
    results = read_results(source, success_error)
    columns, status = results.columns, results.columns["status"]
    ended = final(status)
    ids = [setting.id for setting in results.settings]
    trials = results.total(ended)[ids] if ids else np.zeros(1, dtype=np.int64)
    engines = dict(zip(*(part.tolist() for part in np.unique(columns["engine"], return_counts=True)), strict=True))
    told: dict[tuple[str, str], int] = {}
    for place in np.flatnonzero(status != "done"):
        key = (str(status[place]), str(columns["message"][place]))
        told[key] = told.get(key, 0) + 1
    reasons = sorted(((*key, count) for key, count in told.items()), key=lambda entry: (-entry[2], entry))
    return StoreSummary(
        names=results.names,
        success_error=results.success_error,
        cells=len(ids),
        runs=int(ended.sum()),
        successes=int(results.success.sum()),
        diverged=int((status == "diverged").sum()),
        failed=int((~ended).sum()),
        trials=(int(trials.min()), int(trials.max())),
        engines=engines,
        reasons=tuple(reasons[:REASONS]),
    )
