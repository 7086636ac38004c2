"""One queue of work for all networks of a fit: whoever is free takes the next task, whichever group it belongs to.

A job is a generator: it yields tasks that may run side by side, is sent their results once all are done, and returns
what it found. Groups of networks are such jobs, an epoch of one network a task. Decisions are taken inside the
generators, each from the results of its own tasks alone, so nothing depends on how many threads there are or on who
was first. A job may also yield a `Meeting`: it then waits until all others are at one or at their end, and a referee
who has seen all tells each its verdict.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple

from fewfire._blas import ONE_BLAS_THREAD

Task = Callable[[], Any]
AT_LEAST = 4  # items of `mapped` that are worth a thread


class Meeting(NamedTuple):
    """What a job has to show so far; it is sent the referee's verdict."""

    shown: Any


Job = Generator[list[Task] | Meeting, Any, Any]
Referee = Callable[[list[Any]], Sequence[Any]]
"""From what every job has shown last, or returned, to a verdict per job."""
Runner = Callable[[Sequence[Task]], Sequence[Task]]
"""Begins tasks side by side; one function per task that gives its result."""


def work_off(
    jobs: Sequence[Job], threads: int, referee: Referee | None = None, beside: Sequence[Job] = ()
) -> list[Any]:
    """What the jobs return, their tasks run on so many threads; they may meet if there is a referee.

    Jobs `beside` them never meet, and nobody waits for them; what they return comes last.
    Products of a batch are small: BLAS gets one thread meanwhile. If a job raises, those after it are given up and
    those before it go on, to their next meeting at most: which error is raised does not depend on the threads.
    """
    with ONE_BLAS_THREAD:
        under_way = _Round([*jobs, *beside], len(jobs), referee)
        return under_way.run_here() if threads == 1 else _run_on_threads(under_way, threads)


def work_off_by(runner: Runner, jobs: Sequence[Job], referee: Referee | None = None) -> list[Any]:
    """As `work_off`, but all tasks of the jobs that are ready at a time by one call of a runner."""
    with ONE_BLAS_THREAD:
        return _Round(jobs, len(jobs), referee).run_by(runner)


def mapped(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """What a function makes of items, on so many threads; it pays if it gives up the interpreter's lock."""
    share = max(AT_LEAST, -(-len(items) // threads))
    if len(items) <= share:
        return [function(item) for item in items]
    parts = [items[start : start + share] for start in range(0, len(items), share)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return [found for part in pool.map(lambda part: [function(item) for item in part], parts) for found in part]


def _run_on_threads(under_way: _Round, threads: int) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        try:
            return under_way.run_on(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for what has not begun
            raise


class _Round:
    """Jobs under way, the first `meeting` of which meet.

    What each showed last or returned, who is still running and who of those is at a meeting, the results of each one's
    current tasks so far and how many are missing, and the tasks yet to start.
    """

    def __init__(self, jobs: Sequence[Job], meeting: int, referee: Referee | None) -> None:
        self.jobs, self.meeting, self.referee = jobs, meeting, referee
        self.shown: list[Any] = [None] * len(jobs)
        self.running, self.met = set(range(len(jobs))), set[int]()
        self.results: list[list[Any]] = [[] for _ in jobs]
        self.missing = [0] * len(jobs)
        self.ready: deque[tuple[int, int, Task]] = deque()
        self.error: tuple[int, BaseException] | None = None
        for number in range(len(jobs)):
            self._advance(number, None)

    def run_here(self) -> list[Any]:
        """All tasks in this thread."""
        try:
            while self.ready:
                number, place, task = self.ready.popleft()
                if self._wanted(number):
                    self._take(number, place, task)
            return self._finish()
        finally:
            self._close()

    def run_by(self, runner: Runner) -> list[Any]:
        """All tasks that are ready at a time by one call of the runner."""
        try:
            while self.ready:
                ready = [entry for entry in self.ready if self._wanted(entry[0])]
                self.ready.clear()
                results = runner([task for _, _, task in ready])
                for (number, place, _), result in zip(ready, results, strict=True):
                    self._take(number, place, result)
            return self._finish()
        finally:
            self._close()

    def run_on(self, pool: ThreadPoolExecutor) -> list[Any]:
        """All tasks in threads of the pool, the decisions in this one."""
        running: dict[Future[Any], tuple[int, int]] = {}
        try:
            while self.ready or running:
                for number, place, task in self.ready:
                    running[pool.submit(task)] = number, place
                self.ready.clear()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self._take(*running.pop(future), future.result)
            return self._finish()
        finally:
            self._close()

    def _wanted(self, number: int) -> bool:
        return self.error is None or number < self.error[0]

    def _take(self, number: int, place: int, result: Task) -> None:
        """Enter a result of a job; the last one takes the job a step further."""
        if not self._wanted(number):
            return
        try:
            self.results[number][place] = result()
        except Exception as error:
            self._fail(number, error)
            return
        self.missing[number] -= 1
        if not self.missing[number]:
            self._advance(number, self.results[number])

    def _advance(self, number: int, results: list[Any] | None) -> None:
        self._send(number, results)
        while self.met and self.met == {job for job in self.running if job < self.meeting} and self.error is None:
            assert self.referee is not None
            verdicts, waiting = self.referee(self.shown[: self.meeting]), sorted(self.met)
            self.met.clear()
            for job in waiting:
                self._send(job, verdicts[job])

    def _send(self, number: int, what: Any) -> None:
        if not self._wanted(number):
            return
        try:
            given = self.jobs[number].send(what)
        except StopIteration as end:
            self.running.remove(number)
            self.shown[number] = end.value
            return
        except Exception as error:
            self._fail(number, error)
            return
        if isinstance(given, Meeting):
            self.met.add(number)
            self.shown[number] = given.shown
            return
        self.results[number], self.missing[number] = [None] * len(given), len(given)
        self.ready.extend((number, place, task) for place, task in enumerate(given))

    def _fail(self, number: int, error: Exception) -> None:
        """Give up this job and those after it."""
        self.error = number, error
        self.running = {job for job in self.running if job < number}
        self.met &= self.running

    def _finish(self) -> list[Any]:
        if self.error is not None:
            raise self.error[1]
        return self.shown

    def _close(self) -> None:
        """Let jobs that were given up clean up after themselves."""
        for job in self.jobs:
            job.close()


def clocked(job: Job, seconds: dict[str, float], name: str) -> Job:
    """The same job; the seconds that its tasks take, one after another, are added to those of a name."""
    seconds.setdefault(name, 0.0)
    results = None
    try:
        while True:
            try:
                given = job.send(results)
            except StopIteration as end:
                return end.value
            if isinstance(given, Meeting):
                results = yield given
                continue
            timed = yield [partial(_time, task) for task in given]
            seconds[name] += sum(spent for _, spent in timed)
            results = [result for result, _ in timed]
    finally:
        job.close()


def _time(task: Task) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = task()
    return result, time.perf_counter() - begin
