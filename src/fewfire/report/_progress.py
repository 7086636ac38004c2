"""How far a sweep has come, seen from its store: what is done, how fast, what is left and for how long.

The sweep under way is the last recorded one that the newest run belongs to. Time left is reckoned by cost, as `sweep
run` does it: dense multiply-adds of the runs that are missing, at the pace of the latest ones. A search decides as it
goes how many runs it takes, so that nothing is said of what is left of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import FewfireError
from fewfire.experiments import Sweep, make_plan
from fewfire.experiments.store import final, succeeded
from fewfire.report._results import success_error_of

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.experiments import SweepRecord
    from fewfire.experiments.store import StoreFollower

WINDOW = 120.0
"""The pace is that of the runs of the last so many seconds, if they are at least `LATEST`."""

LATEST = 32
PAUSE = 60.0, 10.0
"""A gap of so many seconds that is also so many times the usual one is a pause: what was before it says nothing."""


@dataclass(frozen=True)
class SweepProgress:
    """One store at one moment.

    Parameters
    ----------
    store : str
    sweep : str
        The name of the sweep under way; empty where none was recorded.
    runs, successes, diverged, failed : int
        In the whole store; runs are those that ended, failed ones come on top.
    done, total : int
        Of the sweep under way; the total is None where it is not known.
    rate : float
        Runs per second, lately; 0 before there is a pace.
    remaining : float or None
        Seconds, counted from `newest`; None where it cannot be said.
    newest : float or None
        When the newest run finished, in seconds since 1970.
    """

    store: str
    sweep: str
    runs: int
    successes: int
    diverged: int
    failed: int
    done: int
    total: int | None
    rate: float
    remaining: float | None
    newest: float | None


class ProgressReader:
    """The progress of the sweeps of one store, whatever comes."""

    def __init__(self, name: str, follower: StoreFollower, success_error: float | None = None) -> None:
        self._name, self._follower, self._success_error = name, follower, success_error
        self._wanted: dict[str, _Wanted | None] = {}

    def read(self) -> SweepProgress:
        """The progress by what the follower knows now."""
        follower = self._follower
        status, finished = follower.column("status"), follower.column("finished")
        error = success_error_of(follower.sweeps) if self._success_error is None else self._success_error
        won = succeeded(status, follower.column("best_test_error"), error)
        ended = final(status)
        record, wanted = self._under_way()
        costs, trials = self._by_setting(wanted)
        setting = follower.column("setting")
        ours = ended & (follower.column("trial") < trials[setting])
        spent = np.where(ours, costs[setting], 0.0)
        done = int(ours.sum()) if wanted else int(ended.sum())
        rate, pace = _pace(finished, ended, spent)
        total = wanted.runs if wanted else None
        left = 0.0 if wanted is None or done == total else wanted.cost - float(spent.sum())
        return SweepProgress(
            store=self._name,
            sweep="" if record is None else record.name,
            runs=int(ended.sum()),
            successes=int(won.sum()),
            diverged=int((status == "diverged").sum()),
            failed=int((~ended).sum()),
            done=done,
            total=total,
            rate=rate,
            remaining=None if total is None or (left and not pace) else left / (pace or 1.0),
            newest=float(finished.max()) if len(finished) else None,
        )

    def _under_way(self) -> tuple[SweepRecord | None, _Wanted | None]:
        """The last sweep that has the newest run, or the last one of all, and what it asks for."""
        sweeps, follower = self._follower.sweeps, self._follower
        newest = follower.column("setting")[np.argmax(follower.column("id"))] if len(follower) else 0
        text = follower.settings[newest - 1].text if newest else ""
        for record in reversed(sweeps):
            wanted = self._wanted_by(record)
            if wanted is not None and text in wanted.settings:
                return record, wanted
        return (sweeps[-1], self._wanted_by(sweeps[-1])) if sweeps else (None, None)

    def _wanted_by(self, record: SweepRecord) -> _Wanted | None:
        key = repr(record.spec)
        if key not in self._wanted:
            self._wanted[key] = _Wanted.of(record)
        return self._wanted[key]

    def _by_setting(self, wanted: _Wanted | None) -> tuple[Float64Array, AnyArray]:
        """Cost and number of trials of the wanted settings by id; 0 for the others."""
        size = len(self._follower.settings) + 1
        costs, trials = np.zeros(size), np.zeros(size, dtype=np.int64)
        if wanted is not None:
            for setting in self._follower.settings:
                cost = wanted.settings.get(setting.text)
                if cost is not None:
                    costs[setting.id], trials[setting.id] = cost, wanted.trials
        return costs, trials


@dataclass(frozen=True)
class _Wanted:
    """What a sweep asks for: the cost of a run by setting, and how many runs each has; a search perhaps fewer."""

    settings: dict[str, float]
    trials: int
    search: bool

    @property
    def runs(self) -> int | None:
        return None if self.search else len(self.settings) * self.trials

    @property
    def cost(self) -> float:
        return sum(self.settings.values()) * self.trials

    @classmethod
    def of(cls, record: SweepRecord) -> _Wanted | None:
        """Nothing of a spec that this version cannot read."""
        try:
            sweep = Sweep.from_dict(record.spec)
        except (FewfireError, TypeError, KeyError):
            return None
        search = sweep.search is not None
        costs = [0.0] * sweep.settings if search else make_plan(sweep).costs[: sweep.settings].tolist()
        settings = {sweep.run_at(cell).setting: cost for cell, cost in enumerate(costs)}
        return cls(settings, sweep.trials, search)


def _pace(finished: Float64Array, ended: AnyArray, spent: Float64Array) -> tuple[float, float]:
    """Runs and cost per second, lately; 0 where all runs finished in the same second."""
    if not ended.any():
        return 0.0, 0.0
    order = np.argsort(finished, kind="stable")
    order = order[ended[order]]
    times = finished[order]
    first = min(int(np.searchsorted(times, times[-1] - WINDOW)), max(0, len(times) - LATEST))
    gaps = np.diff(times[first:])
    real = gaps[gaps > 0]
    if not len(real):
        return 0.0, 0.0
    pauses = np.flatnonzero(gaps > max(PAUSE[0], PAUSE[1] * float(np.median(real))))
    first += int(pauses[-1]) + 1 if len(pauses) else 0
    seconds = float(times[-1] - times[first])
    later = order[times > times[first]]
    return (len(later) / seconds, float(spent[later].sum()) / seconds) if seconds > 0 else (0.0, 0.0)
