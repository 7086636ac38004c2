"""One queue of work for all networks of a fit: whoever is free takes the next task, whichever group it belongs to.

A job is a generator: it yields tasks that may run side by side, is sent their results once all are done, and returns
what it found. Groups of networks are such jobs, an epoch of one network a task. Decisions are taken inside the
generators, each from the results of its own tasks alone, so nothing depends on how many threads there are or on who
was first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from fewfire._blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from collections.abc import Sequence

Task = Callable[[], Any]
Job = Generator[list[Task], list[Any], Any]


def work_off(jobs: Sequence[Job], threads: int) -> list[Any]:
    """What the jobs return, their tasks run on so many threads.

    Products of a batch are small: BLAS gets one thread meanwhile. If a job raises, those after it are given up and
    those before it go on: the error is that of the first job that fails, for any number of threads.
    """
    with ONE_BLAS_THREAD:
        return _Round(jobs).run_here() if threads == 1 else _run_on_threads(jobs, threads)


def _run_on_threads(jobs: Sequence[Job], threads: int) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        try:
            return _Round(jobs).run_on(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for what has not begun
            raise


class _Round:
    """Jobs under way: what each returned, the results that its current tasks have so far, and tasks yet to start."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.returned: list[Any] = [None] * len(jobs)
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
            self.error = number, error
            return
        self.missing[number] -= 1
        if not self.missing[number]:
            self._advance(number, self.results[number])

    def _advance(self, number: int, results: list[Any] | None) -> None:
        if not self._wanted(number):
            return
        job = self.jobs[number]
        try:
            tasks = next(job) if results is None else job.send(results)
        except StopIteration as end:
            self.returned[number] = end.value
            return
        except Exception as error:
            self.error = number, error
            return
        self.results[number], self.missing[number] = [None] * len(tasks), len(tasks)
        self.ready.extend((number, place, task) for place, task in enumerate(tasks))

    def _finish(self) -> list[Any]:
        if self.error is not None:
            raise self.error[1]
        return self.returned

    def _close(self) -> None:
        """Let jobs that were given up clean up after themselves."""
        for job in self.jobs:
            job.close()
