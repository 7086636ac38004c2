"""The page of stores that are being written: its data and the progress of their sweeps, as new as they may be.

Nothing is done without a request. A request gets what was made last until a pause is over that is so long that all
reading together takes at most `SHARE` of one processor: a sweep is not slowed down.

The sweep under way is the last recorded one that the newest run belongs to. Time left is estimated by cost, as `sweep
run` does it: dense multiply-adds of the missing runs, at the speed of the latest ones. A search decides as it goes how
many runs it takes, so nothing is reported about what is left of one.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire._errors import FewfireError
from fewfire._validate import check_number
from fewfire.report._page import PageData, compose
from fewfire.report._results import Results, one_store, side_by_side
from fewfire.sweeps import SqliteStore, Sweep, make_plan, succeeded
from fewfire.sweeps.store._follow import StoreFollower
from fewfire.sweeps.store._protocol import newest_success_error
from fewfire.sweeps.store._row import COLUMNS, final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fewfire._types import AnyArray, Float64Array
    from fewfire.sweeps.store._protocol import SweepRecord


WINDOW = 120.0
"""The speed is that of the runs of the last so many seconds, if they are at least `LATEST`."""

LATEST = 32
PAUSE = 60.0, 10.0
"""A gap of so many seconds that is also so many times the usual one is a pause: what was before it says nothing."""


@dataclass(frozen=True)
class SweepProgress:
    """One store at one moment: counts of the whole store, and of the sweep under way what is done and left.

    Runs are those that ended, failed ones come on top. `remaining` seconds are counted from `newest`, when the newest
    run finished (seconds since 1970); `rate` is in runs per second. What is not known is None.
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
    """The progress of the sweeps of one store."""

    def __init__(self, name: str, follower: StoreFollower, success_error: float | None = None) -> None:
        self._name, self._follower, self._success_error = name, follower, success_error
        self._wanted: dict[str, _Wanted | None] = {}

    def read(self) -> SweepProgress:
        """The progress at the last look of the follower."""
        follower = self._follower
        status, finished = follower.column("status"), follower.column("finished")
        error = newest_success_error(follower.sweeps) if self._success_error is None else self._success_error
        won = succeeded(status, follower.column("best_test_error"), error)
        ended = final(status)
        record, wanted = self._running()
        size = len(follower.settings) + 1
        costs, trials = np.zeros(size), np.zeros(size, dtype=np.int64)  # by id; 0 where it is not wanted
        for known in follower.settings if wanted else ():
            if wanted and known.text in wanted.settings:
                costs[known.id], trials[known.id] = wanted.settings[known.text], wanted.trials
        setting = follower.column("setting")
        ours = ended & (follower.column("trial") < trials[setting])
        spent = np.where(ours, costs[setting], 0.0)
        done = int(ours.sum()) if wanted else int(ended.sum())
        rate, speed = _speed(finished, ended, spent)
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
            remaining=None if total is None or (left and not speed) else left / (speed or 1.0),
            newest=float(finished.max()) if len(finished) else None,
        )

    def _running(self) -> tuple[SweepRecord | None, _Wanted | None]:
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


def _speed(finished: Float64Array, ended: AnyArray, spent: Float64Array) -> tuple[float, float]:
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


SHARE = 0.004, 0.006
"""Of one processor: for progress, for the data of the page."""

REST = 1.0, 5.0
"""Seconds between two looks at least: for progress, for the data of the page."""


class Answer(NamedTuple):
    """What a request gets: the bytes, and a name for them that changes when they do."""

    body: bytes
    tag: str


class LivePage:
    """The page that follows one store, or several side by side.

    Parameters
    ----------
    stores : mapping of names to paths
        Of files; those that do not exist yet are waited for, and until then requests fail with a `StoreError`.
    success_error : float, optional
        By default that of the newest sweep in the first store.
    title : str, optional
        By default the names of the sweeps.
    clock : callable, optional
        Seconds that pass; for tests.
    """

    def __init__(
        self,
        stores: Mapping[str, str | Path],
        success_error: float | None = None,
        *,
        title: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if success_error is not None:
            check_number("success_error", success_error, 0.0)
        self._success_error, self._title = success_error, title
        self._followers = {name: StoreFollower(path) for name, path in stores.items()}
        self._readers = [ProgressReader(name, store, success_error) for name, store in self._followers.items()]
        self._times: dict[str, dict[str, float]] = {name: {} for name in stores}
        self._error: float | None = None
        self._data, self._latest = PageData(), dict[str, Any]()
        self._lock = Lock()
        self._version = 1  # goes up with everything new in the stores

        def progress() -> Any:
            return {"stores": [asdict(reader.read()) for reader in self._readers]}

        self._progress = _Rested(self._look, progress, SHARE[0], REST[0], clock)
        self._shown = _Rested(self._look, self._make_data, SHARE[1], REST[1], clock)
        if all(follower.path.exists() for follower in self._followers.values()):
            self.progress()
            self.data()

    def progress(self) -> Answer:
        """The progress of each sweep, as JSON."""
        with self._lock:
            return self._progress.get()

    def data(self) -> Answer:
        """The data of the page, as JSON."""
        with self._lock:
            return self._shown.get()

    def page(self) -> Answer:
        """The page itself with its data in it."""
        with self._lock:
            made = self._shown.get()
            page = compose(self._latest | {"tag": made.tag}, live=True)
            return Answer(page.encode(), f"page-{made.tag}")

    def _look(self) -> int:
        self._version += sum(follower.look() for follower in self._followers.values())
        return self._version

    def _make_data(self) -> Any:
        parts: dict[str, Results] = {}
        with ExitStack() as stack:
            for name, follower in self._followers.items():
                store = stack.enter_context(SqliteStore(follower.path))
                parts[name] = self._results(name, store, next(iter(parts.values())).success_error if parts else None)
            self._latest = self._data.of(side_by_side(parts), self._title) | {"profile": None}
        return self._latest

    def _results(self, name: str, store: SqliteStore, success_error: float | None) -> Results:
        follower = self._followers[name]
        error = newest_success_error(follower.sweeps) if success_error is None else success_error
        error = error if self._success_error is None else self._success_error
        if error != self._error:  # a new sweep has another: what was kept belongs to the old one
            self._error = error
            for before in self._times.values():
                before.clear()
        order = np.argsort(follower.column("hash"))
        columns = {column: follower.column(column)[order] for column in COLUMNS}
        return one_store(store, tuple(follower.settings), columns, follower.sweeps, error, self._times[name])


class _Rested:
    """An answer that is made again on request when the pause after the last time is over and there is something new."""

    def __init__(
        self, look: Callable[[], int], make: Callable[[], Any], share: float, pause: float, clock: Callable[[], float]
    ) -> None:
        self._look, self._make, self._share, self._pause, self._clock = look, make, share, pause, clock
        self._answer, self._version = Answer(b"", ""), 0
        self._next = -np.inf

    def get(self) -> Answer:
        if self._clock() >= self._next:
            first = not self._answer.tag
            spent = -time.thread_time()
            version = self._look()
            if version != self._version:
                body = json.dumps(self._make(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
                self._answer, self._version = Answer(body, sha256(body).hexdigest()[:32]), version
            spent += time.thread_time()
            # The first look reads what any report of the store would read, once.
            self._next = self._clock() + max(self._pause, 0.0 if first else spent / self._share)
        return self._answer
