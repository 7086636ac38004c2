"""A device that never waits: three threads of this process share it.

While the runs of one thread train, the others make rows of those that ended before and describe the next batch, which
takes the places that the last runs leave; what ends is kept by the caller meanwhile.

Threads do not hear Ctrl-C. When the caller stops, the engine's next call of `progress` ends what is under way.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from fewfire.experiments.executors._protocol import Work, rows_from

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from fewfire.experiments.spec import RunSpec
    from fewfire.experiments.store import Row

THREADS = 3
_LAST_WORDS = 2.0  # seconds for a thread to end; an engine that is not asked for progress may take longer


class DeviceExecutor:
    """Batches one after the other on one device, prepared and read back beside the training.

    Parameters
    ----------
    device : int, optional
        Which one, where the engine has several; the engine's choice by default.
    """

    name = "device"

    def __init__(self, device: int | None = None) -> None:
        self.device = device

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        pair = _Pair(batches, Work(engine, device=self.device))
        threads = [threading.Thread(target=pair.serve, daemon=True) for _ in range(THREADS)]
        try:
            for thread in threads:
                thread.start()
            yield from rows_from(pair.answers, THREADS)
        finally:
            pair.stopped.set()
            for thread in threads:
                if thread.ident is not None:  # Ctrl-C may come before the last one has started
                    thread.join(_LAST_WORDS)


class _Stopped(BaseException):
    """The caller has stopped; no `Exception`, which would be taken for a run's fault."""


class _Pair:
    """What the threads share: where batches come from, where rows go; None says that a thread is out of work."""

    def __init__(self, batches: Iterator[list[RunSpec]], work: Work) -> None:
        self.answers: queue.SimpleQueue[list[Row] | BaseException | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        self._batches, self._work, self._lock = batches, work, threading.Lock()

    def serve(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self.answers.put(self._work.rows(batch, self._look))
            self.answers.put(None)
        except BaseException as error:
            self.answers.put(error)

    def _next(self) -> list[RunSpec] | None:
        with self._lock:  # a generator serves one caller at a time
            return None if self.stopped.is_set() else next(self._batches, None)

    def _look(self, done: int, total: int) -> None:
        if self.stopped.is_set():
            raise _Stopped
