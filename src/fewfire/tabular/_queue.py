"""One queue of work for all networks of a fit: whoever is free takes the next task, whichever group it belongs to.

A job is a generator: it yields tasks that may run side by side, is sent their results once all are done, and returns
what it found. Groups of networks are such jobs, an epoch of one network a task. Decisions are taken inside the
generators, each from the results of its own tasks alone, so nothing depends on how many threads there are or on who
was first. A job may also yield a `Meeting`: it then waits until all others are at one or at their end, and a referee
who has seen all tells each its verdict.

Who does the last task of a job also takes the job further, so no thread waits for another to decide. The thread that
asked for the work only waits, and an interrupt reaches it at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from fewfire._blas import ONE_BLAS_THREAD
from fewfire._threads import Helpers, start_threads

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
    if threads == 1:
        with ONE_BLAS_THREAD:
            return _Round([*jobs, *beside], len(jobs), referee).run_here()
    with working_off(jobs, threads, referee, beside) as results:
        return results()


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
    with Helpers(len(parts)) as helpers:
        return [found for part in helpers.map(lambda part: [function(item) for item in part], parts) for found in part]


@contextmanager
def working_off(
    jobs: Sequence[Job], threads: int, referee: Referee | None = None, beside: Sequence[Job] = ()
) -> Iterator[Callable[[], list[Any]]]:
    """Begin as `work_off` does; gives a function that waits for what the jobs return.

    What is not done when the block ends, because of an error or an interrupt, is given up: tasks under way end by
    themselves, and nobody waits for them.
    """
    with ONE_BLAS_THREAD:
        under_way = _Round([*jobs, *beside], len(jobs), referee)
        try:
            yield under_way.wait if start_threads(under_way.work, threads) else under_way.run_here
        finally:
            under_way.close()


class _Round:
    """Jobs under way, the first `meeting` of which meet.

    What each showed last or returned, who is still running and who of those is at a meeting, the results of each one's
    current tasks so far and how many are missing, how many threads are at each one's tasks or decisions, and the tasks
    yet to start. All of it is changed under one lock; tasks and decisions run outside it.
    """

    def __init__(self, jobs: Sequence[Job], meeting: int, referee: Referee | None) -> None:
        self.jobs, self.meeting, self.referee = jobs, meeting, referee
        self.shown: list[Any] = [None] * len(jobs)
        self.running, self.met = set(range(len(jobs))), set[int]()
        self.results: list[list[Any]] = [[] for _ in jobs]
        self.missing, self.busy = [0] * len(jobs), [0] * len(jobs)
        self.ready: deque[tuple[int, int, Task]] = deque()
        self.error: tuple[int, BaseException] | None = None
        self.closed = False
        self.changed = threading.Condition()
        for number in range(len(jobs)):
            self._advance(number, None)

    def run_here(self) -> list[Any]:
        """All tasks in this thread."""
        try:
            while self.ready:
                number, place, task = self.ready.popleft()
                self._begin(number)
                self._take(number, place, task)
            return self._found()
        finally:
            self.close()

    def run_by(self, runner: Runner) -> list[Any]:
        """All tasks that are ready at a time by one call of the runner."""
        try:
            while self.ready:
                ready = list(self.ready)
                self.ready.clear()
                results = runner([task for _, _, task in ready])
                for (number, place, _), result in zip(ready, results, strict=True):
                    self._begin(number)
                    self._take(number, place, result)
            return self._found()
        finally:
            self.close()

    def work(self) -> None:
        """What each of several threads does: tasks, as long as there are any or may be."""
        while True:
            with self.changed:
                while not (self.ready or self._over()):
                    self.changed.wait()
                if not self.ready:
                    return
                number, place, task = self.ready.popleft()
                self.busy[number] += 1
            self._take(number, place, task)

    def wait(self) -> list[Any]:
        """What the jobs return, as soon as threads that `work` have done them."""
        with self.changed:
            while not self._over():
                self.changed.wait()
        return self._found()

    def close(self) -> None:
        """Give up what is not done; jobs clean up after themselves, those with threads at them when these are done."""
        with self.changed:
            self.closed = True
            self.ready.clear()
            idle = [number for number, threads in enumerate(self.busy) if not threads]
            self.changed.notify_all()
        for number in idle:
            self.jobs[number].close()

    def _over(self) -> bool:
        """Whether nothing is left to wait for: after an error, tasks of jobs beside those that meet do not count."""
        awaited = self.busy if self.error is None else self.busy[: max(self.meeting, self.error[0])]
        return self.closed or not (self.ready or any(awaited))

    def _wanted(self, number: int) -> bool:
        return not self.closed and (self.error is None or number < self.error[0])

    def _begin(self, number: int) -> None:
        """A thread turns to a job."""
        with self.changed:
            self.busy[number] += 1

    def _end(self, number: int) -> None:
        """A thread turns away from a job."""
        with self.changed:
            self.busy[number] -= 1
            left = self.closed and not self.busy[number]
            if not self.ready:
                self.changed.notify_all()
        if left:
            self.jobs[number].close()

    def _take(self, number: int, place: int, task: Task) -> None:
        """Do a task of a job; the last one takes the job a step further."""
        try:
            if self._wanted(number) and self._enter(number, place, task()):
                self._advance(number, self.results[number])
        except BaseException as error:
            self._fail(number, error)
        finally:
            self._end(number)

    def _enter(self, number: int, place: int, result: Any) -> bool:
        """Whether this was the last result that was missing."""
        with self.changed:
            self.results[number][place] = result
            self.missing[number] -= 1
            return not self.missing[number]

    def _advance(self, number: int, results: list[Any] | None) -> None:
        self._send(number, results)
        while waiting := self._gather():
            assert self.referee is not None
            try:
                verdicts = self.referee(self.shown[: self.meeting])
                for job in waiting:
                    self._send(job, verdicts[job])
            finally:
                for job in waiting:
                    self._end(job)

    def _gather(self) -> list[int]:
        """The jobs at a meeting, to each of which this thread turns; none as long as one is missing."""
        with self.changed:
            complete = self.met == {job for job in self.running if job < self.meeting} and self.error is None
            waiting = sorted(self.met) if complete else []
            self.met -= set(waiting)
            for job in waiting:
                self.busy[job] += 1
            return waiting

    def _send(self, number: int, what: Any) -> None:
        if not self._wanted(number):
            return
        try:
            given = self.jobs[number].send(what)
        except StopIteration as end:
            with self.changed:
                self.running.discard(number)
                self.shown[number] = end.value
            return
        except BaseException as error:
            self._fail(number, error)
            return
        with self.changed:
            if isinstance(given, Meeting):
                self.met.add(number)
                self.shown[number] = given.shown
            elif self._wanted(number):
                self.results[number], self.missing[number] = [None] * len(given), len(given)
                self.ready.extend((number, place, task) for place, task in enumerate(given))
                self.changed.notify_all()

    def _fail(self, number: int, error: BaseException) -> None:
        """Give up this job and those after it; all, where it is no error but an interrupt."""
        number = number if isinstance(error, Exception) else 0
        with self.changed:
            if self._wanted(number):
                self.error = number, error
                self.running = {job for job in self.running if job < number}
                self.met &= self.running
                self.ready = deque(entry for entry in self.ready if entry[0] < number)
                self.changed.notify_all()

    def _found(self) -> list[Any]:
        if self.error is not None:
            raise self.error[1]
        return self.shown


_CLOCK = threading.Lock()


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
            with _CLOCK:  # jobs of one name are in several threads
                seconds[name] += sum(spent for _, spent in timed)
            results = [result for result, _ in timed]
    finally:
        job.close()


def _time(task: Task) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = task()
    return result, time.perf_counter() - begin
