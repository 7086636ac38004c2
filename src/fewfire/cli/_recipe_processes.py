"""Several recipes at a time, each in a process with cores of its own: what `fewfire reproduce --all` does.

One process per core, longest recipe first; with more cores than recipes each has several. A recipe's text appears in
one piece when it ends. Processes are in groups of their own, so Ctrl-C is the parent's to handle: it asks them to stop,
and kills those that do not. They end by themselves when the parent is gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from fewfire._errors import FewfireError
from fewfire.cli._output import complain, never_fail_to_encode, wide_console

PATIENCE = 5.0
"""Seconds that a process has to stop by itself."""

COMMAND = (sys.executable, "-P", "-c", "from fewfire.cli._recipe_processes import run_here; run_here()")
"""What starts a process; its last argument is the task, as JSON. It ends when its input does."""

STOPPED = 130

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class RecipeTask:
    """A recipe to run: its scale, the folder for results, and whether figures are written as PDF too."""

    name: str
    scale: str
    output: str | None = None
    pdf: bool = False


@dataclass(frozen=True)
class EndedRecipe:
    """What a process printed, and its status: 0 where all claims hold, 1 where one fails, else it broke off."""

    name: str
    status: int
    text: str


@dataclass
class RecipePool:
    """Runs tasks in processes, which print with this console's width and colours; `show` gets the names that run."""

    console: Console
    show: Callable[[list[str]], None] = lambda running: None
    command: Sequence[str] = COMMAND
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, tasks: Sequence[RecipeTask]) -> Generator[EndedRecipe, None, None]:
        """The result of each task as it ends; tasks begin in order. Closing the generator stops all that run."""
        free = _shares(len(tasks))
        with ThreadPoolExecutor(len(free)) as threads:
            futures = [threads.submit(self._one, task, free) for task in tasks]
            try:
                for future in as_completed(futures):
                    ended = future.result()
                    if ended is not None:
                        yield ended
            finally:
                self._stop()

    def _one(self, task: RecipeTask, free: list[list[int]]) -> EndedRecipe | None:
        with self._lock:
            if self._stopped:
                return None
            cores = free.pop()
            process = self._running[task.name] = self._start(task, cores)
            self.show(list(self._running))
        assert process.stdin is not None and process.stdout is not None
        with process.stdin, process.stdout:  # the input stays open for as long as this process is there
            text = process.stdout.read()
        status = process.wait()
        with self._lock:
            free.append(cores)
            del self._running[task.name]
            self.show(list(self._running))
        return EndedRecipe(task.name, status, text.decode(errors="backslashreplace"))

    def _start(self, task: RecipeTask, cores: list[int]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(max(1, len(cores))))}
        environment["COLUMNS"] = str(self.console.width)
        if self.console.is_terminal and not self.console.no_color:
            environment["FORCE_COLOR"] = "1"
        group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        process = subprocess.Popen(
            (*self.command, json.dumps(asdict(task))),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **group,
        )
        if cores:
            os.sched_setaffinity(process.pid, cores)  # before it has imported anything that starts threads
        return process

    def _stop(self) -> None:
        """End what runs: ask first."""
        with self._lock:
            self._stopped = True
            running = list(self._running.values())
        for process in running:
            _signal(process, signal.SIGINT)
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)


def _shares(tasks: int) -> list[list[int]]:
    """The cores of each process that runs at a time; none where a process cannot be bound to them."""
    if not hasattr(os, "sched_getaffinity"):
        return [[] for _ in range(min(tasks, os.cpu_count() or 1))]
    cores = sorted(os.sched_getaffinity(0))
    count = min(tasks, len(cores))
    return [cores[share::count] for share in range(count)]


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the process and to those that it started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


def run_here() -> None:
    """Run the task of the command line: status 0 where all claims hold, 1 where one fails, 2 for an error, printed."""
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    never_fail_to_encode()
    try:
        from fewfire.cli.reproduce import run_task

        status = 0 if run_task(wide_console(), RecipeTask(**json.loads(sys.argv[1]))) else 1
    except KeyboardInterrupt:
        status = STOPPED
    except FewfireError as error:
        complain(str(error))
        status = 2
    except Exception:
        traceback.print_exc()
        status = 2
    sys.exit(status)


def _leave_with_the_parent() -> None:
    """End this process when its input ends."""
    while os.read(0, 1 << 16):  # not through sys.stdin, whose lock would be taken when the interpreter ends
        pass
    os._exit(STOPPED)
