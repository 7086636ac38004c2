"""The page of stores that are being written: its data and the progress of their sweeps, as new as they may be.

Nothing is done while nobody asks. Whoever asks gets what was made last until a rest is over that is so long that all
looks together take at most `SHARE` of one processor: a sweep does not notice that it is watched.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire._validate import check_number
from fewfire.experiments import SqliteStore
from fewfire.experiments.store import COLUMNS, StoreFollower, succeeded
from fewfire.report._page import compose
from fewfire.report._page_data import PageData
from fewfire.report._progress import ProgressReader
from fewfire.report._results import Results, convergence_times, side_by_side, success_error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SHARE = 0.004, 0.006
"""Of one processor: for progress, for the data of the page."""

PAUSE = 1.0, 5.0
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
        Of files that exist.
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
        self._told = self._drawn = 0  # the versions that progress and data are of
        self._progress = _Rested(self._make_progress, SHARE[0], PAUSE[0], clock)
        self._shown = _Rested(self._make_data, SHARE[1], PAUSE[1], clock)
        self.progress()
        self.data()

    def progress(self) -> Answer:
        """How far each sweep is, as JSON."""
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

    def _make_progress(self) -> Any:
        version = self._look()
        if version == self._told:
            return None
        found = {"stores": [asdict(reader.read()) for reader in self._readers]}
        self._told = version
        return found

    def _make_data(self) -> Any:
        version = self._look()
        if version == self._drawn:
            return None
        parts: dict[str, Results] = {}
        with ExitStack() as stack:
            for name, follower in self._followers.items():
                store = stack.enter_context(SqliteStore(follower.path))
                parts[name] = self._results(name, store, next(iter(parts.values())).success_error if parts else None)
            self._latest = self._data.of(side_by_side(parts), self._title) | {"profile": None}
        self._drawn = version
        return self._latest

    def _results(self, name: str, store: SqliteStore, success_error: float | None) -> Results:
        follower = self._followers[name]
        error = success_error_of(follower.sweeps) if success_error is None else success_error
        error = error if self._success_error is None else self._success_error
        if error != self._error:  # a new sweep has another: what was remembered was for the old one
            self._error = error
            for before in self._times.values():
                before.clear()
        order = np.argsort(follower.column("hash"))
        columns = {column: follower.column(column)[order] for column in COLUMNS}
        settings = tuple(follower.settings)
        success = succeeded(columns["status"], columns["best_test_error"], error)
        times = convergence_times(store, settings, columns, success, error, self._times[name])
        names = tuple(dict.fromkeys(record.name for record in follower.sweeps))
        return Results((store,), settings, columns, error, success, times, names)


class _Rested:
    """An answer that is made again when it is asked for and the rest after the last time is over."""

    def __init__(self, make: Callable[[], Any], share: float, pause: float, clock: Callable[[], float]) -> None:
        self._make, self._share, self._pause, self._clock = make, share, pause, clock
        self._answer = Answer(b"", "")
        self._next = -np.inf

    def get(self) -> Answer:
        if self._clock() >= self._next:
            first = not self._answer.tag
            spent = -time.thread_time()
            made = self._make()  # None where nothing is new
            if made is not None:
                body = json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
                self._answer = Answer(body, sha256(body).hexdigest()[:32])
            spent += time.thread_time()
            # The first look reads what any report of the store would read, once.
            self._next = self._clock() + max(self._pause, 0.0 if first else spent / self._share)
        return self._answer
