"""Threads as far as the system has them: where no more can be started, those there are do the work.

C++ has the same in `csrc/base/parallel.hpp`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

Value = TypeVar("Value")


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
    """At most so many threads that work off what is submitted; without any, whoever submits does it.

    At the end of a `with` block all is done, or after an error given up.

    Parameters
    ----------
    threads : int

    Examples
    --------
    >>> from fewfire._threads import Helpers
    >>> with Helpers(2) as helpers:
    ...     helpers.map(abs, [-1, 2, -3])
    [1, 2, 3]
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
    except BaseException as error:  # whoever waits for it gets it
        future.set_exception(error)
