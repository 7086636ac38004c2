"""Processes of this machine, one core each or one device each: nothing is shared, so they scale with both.

Each process is owned by a thread, which hands it a batch, waits for the rows and takes the next. A process reports when
it begins with a batch. One that dies before (while it starts, or between batches) costs nothing: it is replaced,
and the batch is sent again. One that dies at work (out of memory, killed) is replaced too, and the runs of its
batch are tried again at the end, each alone in its process. Only a run whose process died `TRIES` times while it was
alone there becomes a failed row: a run that kills its process does so each time, an accident rarely hits
the same run again.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fewfire._errors import ExecutorError
from fewfire._threads import usable_cores
from fewfire._validate import check_integer
from fewfire.sweeps.executors._protocol import SharedBatches, Work
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.store._row import Row, failed_row

TRIES = 4  # how often the process of a run that is alone in it may die before the run is given up
STARTS, KILLED_STARTS = 5, 100
"""How often in a row a worker's process may end by itself, or be killed from outside, before it begins with a run."""

BROKEN = (OSError, EOFError, ValueError, pickle.UnpicklingError)
"""What reading from or writing to a process raises that has died, or whose pipes another thread has closed."""

BEGUN = "begun"  # the first answer of a worker process to a batch


class ProcessExecutor:
    """Worker processes with single-threaded engines, or with a device of the engine's each.

    Parameters
    ----------
    workers : int, optional
        How many; one per core by default.
    devices : bool
        Whether worker i is to use device i of the engine.
    """

    name = "processes"

    def __init__(self, workers: int | None = None, *, devices: bool = False) -> None:
        self.workers = usable_cores() if workers is None else check_integer("workers", workers, 1)
        self.devices = devices

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        shared = _RetriedBatches(batches, Work(engine, threads=1))
        workers = [_Worker(shared, number if self.devices else None) for number in range(self.workers)]
        for worker in workers:
            worker.thread.start()
        try:
            yield from shared.rows(len(workers))
        finally:
            shared.stopped.set()
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.thread.join()


class _RetriedBatches(SharedBatches):
    """Batches, and then the runs of batches whose process died, each alone."""

    def __init__(self, batches: Iterator[list[RunSpec]], work: Work) -> None:
        super().__init__(batches, work)
        self._again: deque[RunSpec] = deque()
        self._deaths: Counter[str] = Counter()

    def next(self) -> list[RunSpec] | None:
        """The next batch, then the runs to be tried alone, or None when there is no more to do."""
        with self._lock:
            if self.stopped.is_set():
                return None
            batch = next(self._batches, None)
            return [self._again.popleft()] if batch is None and self._again else batch

    def died(self, batch: list[RunSpec], how: str) -> None:
        """A process died at work on this batch: its runs are tried alone; one that was alone is given up in the end."""
        if len(batch) == 1:
            spec = batch[0]
            self._deaths[spec.hash] += 1
            if self._deaths[spec.hash] == TRIES:
                error = ExecutorError(f"its process {how}, and so it went {TRIES} times while the run was alone in it")
                self.answers.put([failed_row(spec, error, self.work.engine)])
                return
        with self._lock:
            self._again.extend(batch)


class _Worker:
    """A thread that owns a process."""

    def __init__(self, shared: _RetriedBatches, device: int | None) -> None:
        self._shared, self._lock = shared, threading.Lock()
        self._work = shared.work if device is None else replace(shared.work, device=device)
        self._process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        try:
            # The worker whose process dies comes back for the runs it has put aside, even when it is the last one.
            self._shared.serve(self._rows)
        finally:
            self.kill()

    def kill(self) -> int | None:
        """End the process and give its status; from any thread, any number of times."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unsent bytes of a batch that is no longer needed
                    pipe.close()
        return process.returncode

    def _rows(self, batch: list[RunSpec]) -> list[Row] | None:
        """The rows of a batch, or None when the process died at it."""
        answers = self._send(pickle.dumps((self._work, [spec.canonical for spec in batch])))
        try:
            answer: list[Row] | Exception = pickle.load(answers)
        except BROKEN:
            self._shared.died(batch, self._end())
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _send(self, task: bytes) -> Any:
        """Where the rows of the task will be read, once a process has begun with it; several are tried."""
        ends: Counter[bool] = Counter()
        how = ""
        while ends[False] < STARTS and ends[True] < KILLED_STARTS:
            process = self._child()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(task)
                process.stdin.flush()
                if pickle.load(process.stdout) == BEGUN:
                    return process.stdout
            except BROKEN:
                how = self._end()
                ends[how.endswith(("SIGKILL", "SIGTERM"))] += 1
        raise ExecutorError(
            f"workers cannot start: {ends.total()} processes in a row ended before they began with a run, the last one "
            f"{how}. Finished runs are kept. Remedy: see what they print, and that there is memory for another "
            "process; or run the sweep in this one, with the executor 'inline'."
        )

    def _end(self) -> str:
        """How the process ended, in words."""
        status = self.kill()
        if self._shared.stopped.is_set() or status is None:
            raise ExecutorError("the sweep was stopped.") from None
        if status >= 0:
            return f"ended with status {status}"
        named = -status in set(signal.Signals)
        return f"was killed by {signal.Signals(-status).name if named else f'signal {-status}'}"

    def _child(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._shared.stopped.is_set():
                raise ExecutorError("the sweep was stopped.")
            if self._process is None:
                # What a user added is found where this process found it; last, so that it takes the place of nothing.
                also = [str(Path(folder).absolute()) for folder in sys.path if self._work.additions]
                code = f"import sys; sys.path += {also}; from {__name__} import serve; serve()"
                command = [sys.executable, "-P", "-W", "ignore", "-c", code]
                # A group of its own: Ctrl-C in a terminal is for the parent alone.
                group = 0 if os.name == "posix" else -1
                try:
                    self._process = subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=group
                    )
                except OSError as error:
                    raise ExecutorError(
                        f"workers cannot start: {error}. Finished runs are kept. Remedy: ask for fewer workers."
                    ) from None
            return self._process


def serve() -> None:
    """Be a worker process: batches come in on standard input, rows go out on standard output, until the input ends.

    Each batch is answered twice: when the worker begins with it, so that a death before is not counted against its
    runs, and with its rows. The input ends when the parent closes it or dies, however that happens; the worker then
    leaves at once, in the middle of a batch if need be. It has nothing to lose: only the parent writes results.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text must not end up among the answers
    tasks: queue.SimpleQueue[tuple[Work, list[str]]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        work, texts = tasks.get()
        answer: Any = BEGUN
        pickle.dump(answer, answers)
        answers.flush()
        try:
            answer = work(texts)
        except Exception as error:  # not a run's: those are rows already
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def _listen(tasks: queue.SimpleQueue[tuple[Work, list[str]]]) -> None:
    while True:
        try:
            tasks.put(pickle.load(sys.stdin.buffer))
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)
        except BaseException:  # what the batch needs cannot be imported here
            traceback.print_exc()
            os._exit(1)
