"""Processes of this machine, one core each: nothing is shared, so they scale with the cores.

Each process is owned by a thread, which hands it a batch, waits for the rows and takes the next. A process that dies
(out of memory, killed) is replaced; its batch is tried again one run at a time, and a run whose process dies twice
becomes a failed row.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from fewfire._cores import usable_cores
from fewfire._errors import ExecutorError
from fewfire._validate import check_integer
from fewfire.experiments.executors._protocol import Work
from fewfire.experiments.store import environment_text, failed_row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from fewfire.experiments.spec import RunSpec
    from fewfire.experiments.store import Row

TRIES = 2
"""How often a run may take its process with it before it is given up."""


class ProcessExecutor:
    """Worker processes with single-threaded engines.

    Parameters
    ----------
    workers : int, optional
        How many; one per core by default.
    """

    name = "processes"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = usable_cores() if workers is None else check_integer("workers", workers, 1)

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        team = _Team(batches, Work(engine, threads=1))
        workers = [_Worker(team) for _ in range(self.workers)]
        for worker in workers:
            worker.thread.start()
        try:
            working = len(workers)
            while working:
                answer = team.answers.get()
                if isinstance(answer, BaseException):
                    raise answer
                if answer is None:
                    working -= 1
                else:
                    yield answer
        finally:
            team.stopped = True
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.thread.join()


class _Team:
    """What the workers share: where batches come from and where rows go; None says that a worker is out of work."""

    def __init__(self, batches: Iterator[list[RunSpec]], work: Work) -> None:
        self.answers: queue.SimpleQueue[list[Row] | BaseException | None] = queue.SimpleQueue()
        self.work = work
        self.stopped = False
        self._batches, self._lock = batches, threading.Lock()

    def next(self) -> list[RunSpec] | None:
        """The next batch, or None when there is no more to do."""
        with self._lock:  # a generator serves one caller at a time
            return None if self.stopped else next(self._batches, None)


class _Died(Exception):
    """A worker's process ended before it answered."""


class _Worker:
    """A thread that owns a process."""

    def __init__(self, team: _Team) -> None:
        self._team, self._lock = team, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        try:
            while (batch := self._team.next()) is not None:
                try:
                    self._team.answers.put(self._ask(batch))
                except _Died:
                    for spec in batch:
                        self._team.answers.put([self._alone(spec)])
            self._team.answers.put(None)
        except BaseException as error:
            self._team.answers.put(error)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process; from any thread, any number of times."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # unsent bytes of a batch that nobody waits for
                        pipe.close()

    def _alone(self, spec: RunSpec) -> Row:
        for attempt in range(TRIES):
            try:
                return self._ask([spec])[0]
            except _Died as error:
                if attempt == TRIES - 1:
                    return failed_row(spec, error, self._team.work.engine, environment_text())
        raise AssertionError("unreachable")

    def _ask(self, batch: list[RunSpec]) -> list[Row]:
        process = self._child()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((self._team.work, [spec.canonical for spec in batch]), process.stdin)
            process.stdin.flush()
            answer: list[Row] | Exception = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.kill()
            if self._team.stopped:
                raise ExecutorError("the sweep was stopped.") from None
            raise _Died(f"its process ended with status {process.returncode}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _child(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._team.stopped:
                raise ExecutorError("the sweep was stopped.")
            if self._process is None:
                command = [sys.executable, "-P", "-W", "ignore", "-m", "fewfire.experiments.executors._worker"]
                # A group of its own: Ctrl-C in a terminal is for the parent alone.
                group = 0 if os.name == "posix" else -1
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=group
                )
            return self._process
