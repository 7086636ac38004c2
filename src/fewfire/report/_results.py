"""The results of a store, or of several side by side, read once: every `*_info` function takes a store or `Results`.

Several stores are given by name. Their settings are numbered through, and each has the store it is from, so that what
is drawn per start is drawn per start and store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.sweeps import succeeded
from fewfire.sweeps.store._notes import noted
from fewfire.sweeps.store._protocol import Setting, newest_success_error
from fewfire.sweeps.store._row import final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines import History
    from fewfire.sweeps import Store
    from fewfire.sweeps.store._protocol import SweepRecord

REASONS = 20
"""At most so many different messages are listed."""


@dataclass(frozen=True, eq=False)
class Results:
    """Rows without histories, with what success means and when it came; arrays have the shape (runs,).

    Histories are read from `stores` when asked for; `settings` are in order of arrival, `columns` as `Store.columns`
    gives them. A run succeeded when it is done and its smallest recorded test error is at most `success_error`;
    `convergence` is the first recorded step at which it was that good, NaN for the others. `names` are those of the
    sweeps, oldest first. Of several stores, `sources` names that of each setting by its id, and `origin` is the index
    in `stores` of each run's. `tags` are those of settings by id.
    """

    stores: tuple[Store, ...]
    settings: tuple[Setting, ...]
    columns: dict[str, AnyArray]
    success_error: float
    success: AnyArray
    convergence: Float64Array
    names: tuple[str, ...]
    sources: dict[int, str] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)
    origin: AnyArray | None = None

    def history(self, index: int) -> History:
        """The history of one run."""
        store = self.stores[0 if self.origin is None else self.origin[index]]
        return store.history(str(self.columns["hash"][index]))

    def total(self, chosen: AnyArray) -> AnyArray:
        """How many of the chosen runs each setting has, by id: shape (largest id + 1,)."""
        size = max((setting.id for setting in self.settings), default=0) + 1
        return np.bincount(self.columns["setting"][chosen], minlength=size)


def read_results(
    source: Store | Results | Mapping[str, Store],
    success_error: float | None = None,
    only: Collection[str] | None = None,
) -> Results:
    """Read a store, or several by name to be shown side by side; results are given back as they are.

    `success_error` is by default that of the newest sweep in the store; of several stores, in the first. `only` are
    canonical texts of the settings to look at; all by default.
    """
    if isinstance(source, Results):
        return source
    if isinstance(source, str | PathLike):
        remedy = f"pass fewfire.sweeps.SqliteStore({str(source)!r})"
        raise invalid("source", "must be an open store", source, remedy)
    if isinstance(source, Mapping):
        if not source:
            raise invalid("source", "must name at least one store", {})
        parts: dict[str, Results] = {}
        for name, store in source.items():
            parts[name] = read_results(store, success_error, only)
            success_error = parts[name].success_error
        return side_by_side(parts)
    sweeps = source.sweeps()
    success_error = newest_success_error(sweeps) if success_error is None else success_error
    check_number("success_error", success_error, 0.0)
    settings = tuple(s for s in source.settings() if only is None or s.text in only)
    columns = source.columns()
    if only is not None:
        kept = np.isin(columns["setting"], [setting.id for setting in settings])
        columns = {name: values[kept] for name, values in columns.items()}
    return one_store(source, settings, columns, sweeps, success_error)


def side_by_side(parts: Mapping[str, Results]) -> Results:
    """Results of several stores as one; of a single one as they are."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    settings: list[Setting] = []
    sources: dict[int, str] = {}
    tags: dict[int, str] = {}
    columns: list[dict[str, AnyArray]] = []
    for name, part in parts.items():
        first = settings[-1].id if settings else 0
        columns.append(part.columns | {"setting": part.columns["setting"] + first})
        settings += [Setting(setting.id + first, setting.text) for setting in part.settings]
        sources |= {setting.id + first: name for setting in part.settings}
        tags |= {id + first: text for id, text in part.tags.items()}
    every = list(parts.values())
    return Results(
        stores=tuple(part.stores[0] for part in every),
        settings=tuple(settings),
        columns={name: np.concatenate([part[name] for part in columns]) for name in columns[0]},
        success_error=every[0].success_error,
        success=np.concatenate([part.success for part in every]),
        convergence=np.concatenate([part.convergence for part in every]),
        names=tuple(dict.fromkeys(name for part in every for name in part.names)),
        sources=sources,
        tags=tags,
        origin=np.repeat(np.arange(len(every)), [len(part.success) for part in every]),
    )


def one_store(
    store: Store,
    settings: tuple[Setting, ...],
    columns: dict[str, AnyArray],
    sweeps: Sequence[SweepRecord],
    error: float,
    before: dict[str, float] | None = None,
) -> Results:
    """The results of these cells, runs and sweeps of a store; success is a test error of at most `error`.

    Of a run that stopped at this very error convergence is its number of steps; of the others the history is read.
    `before` keeps what was read, by hash, for repeated calls.
    """
    before = {} if before is None else before
    success = succeeded(columns["status"], columns["best_test_error"], error)
    steps = np.full(len(success), np.nan)
    stopping = {setting.id for setting in settings if setting.training["stop_error"] == error}
    known = success & (columns["stopped"] == "test_error") & np.isin(columns["setting"], list(stopping))
    steps[known] = columns["steps"][known]
    for index in np.flatnonzero(success & ~known):
        hash = str(columns["hash"][index])
        if hash not in before:
            first = store.history(hash).first_step(error)
            before[hash] = columns["steps"][index] if first is None else first
        steps[index] = before[hash]
    names = tuple(dict.fromkeys(record.name for record in sweeps))
    tags = {id: texts["tags"] for id, texts in noted(settings, sweeps).items() if "tags" in texts}
    return Results((store,), settings, columns, error, success, steps, names, tags=tags)


@dataclass(frozen=True)
class StoreSummary:
    """Counts of a whole store.

    `runs` are those that ended (done or diverged); failed ones come on top. `trials` are the smallest and the largest
    number of runs per cell, `engines` runs by engine, `reasons` status, message and number of runs, the commonest
    first.
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
    """Count.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> report.summary_info(store).cells
    30
    """
    results = read_results(source, success_error)
    columns, status = results.columns, results.columns["status"]
    ended = final(status)
    ids = [setting.id for setting in results.settings]
    trials = results.total(ended)[ids] if ids else np.zeros(1, dtype=np.int64)
    engines = dict(zip(*(part.tolist() for part in np.unique(columns["engine"], return_counts=True)), strict=True))
    counts: dict[tuple[str, str], int] = {}
    for index in np.flatnonzero(status != "done"):
        key = (str(status[index]), str(columns["message"][index]))
        counts[key] = counts.get(key, 0) + 1
    reasons = sorted(((*key, count) for key, count in counts.items()), key=lambda entry: (-entry[2], entry))
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
