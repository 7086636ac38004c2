"""Threads: how many there may be, work that runs on them, and BLAS at one of them.

Where the system starts no more threads, those that run do the work. C++ has the same in `csrc/base/parallel.hpp`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, TypeVar

import numpy as np

from fewfire._validate import check_integer

Value = TypeVar("Value")


def usable_cores() -> int:
    """The cores of this process's affinity mask, or all of the machine's where there is none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def job_count(n_jobs: int | None) -> int:
    """How many threads scikit-learn's `n_jobs` asks for: None is one, −1 every core, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, int | np.integer) and n_jobs < 0:
        return max(1, usable_cores() + 1 + int(n_jobs))
    return check_integer("n_jobs", n_jobs, 1, 1024, "pass a number of threads, or −1 for all cores")


def thread_count(threads: int | None) -> int:
    """`threads`, or every core this process may run on."""
    if threads is None:
        return usable_cores()
    return check_integer("threads", threads, 1, 1024, "pass None for all cores")


def start_threads(target: Callable[[], object], count: int) -> list[threading.Thread]:
    """Threads that call a function, as many of so many as can be started."""
    started = []
    for _ in range(count):
        thread = threading.Thread(target=target)
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread": a limit of the system, or of memory
            break
        started.append(thread)
    return started


class Helpers:
    """At most so many threads that run what is submitted; without any, the caller runs it.

    At the end of a `with` block all is done, or after an error given up.
    """

    def __init__(self, threads: int) -> None:
        self._left = threads
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()

    def submit(self, function: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """What a function will return."""
        future: Future[Value] = Future()
        if self._left:
            new = start_threads(self._serve, 1)
            self._threads += new
            self._left = self._left - 1 if new else 0
        if self._threads:
            self._work.put((future, function, arguments))
        else:
            _run(future, function, arguments)
        return future

    def map(self, function: Callable[[Any], Value], items: Iterable[Any]) -> list[Value]:
        """What a function makes of each item."""
        futures = [self.submit(function, item) for item in items]
        return [future.result() for future in futures]

    def __enter__(self) -> Helpers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            while not self._work.empty():
                if (entry := self._work.get()) is not None:
                    entry[0].cancel()
        for _ in self._threads:
            self._work.put(None)
        if error is None:
            for thread in self._threads:
                thread.join()

    def _serve(self) -> None:
        while (entry := self._work.get()) is not None:
            _run(*entry)


def _run(future: Future[Value], function: Callable[..., Value], arguments: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function(*arguments))
    except BaseException as error:  # raised where the result is awaited
        future.set_exception(error)


SMALL: Final = 1 << 27
"""Multiply-adds of a product that one core does in a few hundredths of a second: sharing it costs more than it saves,
tenfold on a busy machine."""


class OneBlasThread:
    """Keeps the BLAS of this process at one thread while any caller is inside: the first sets it, the last restores it.

    The limit is the process's: were each fit to restore what it found, one that began during another and ended after it
    would leave BLAS at one thread for good. Looking for the libraries takes some milliseconds: it is done again only
    after something was imported.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._imported = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                if self._imported != len(sys.modules):
                    from threadpoolctl import ThreadpoolController

                    self._libraries, self._imported = ThreadpoolController(), len(sys.modules)
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *details: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


ONE_BLAS_THREAD: Final = OneBlasThread()


def calm_products(multiply_adds: int) -> AbstractContextManager[object]:
    """Keep the linear algebra library at one thread while products of this size are made, if they are small."""
    return ONE_BLAS_THREAD if multiply_adds < SMALL else nullcontext()
