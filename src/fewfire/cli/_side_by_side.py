"""Several recipes side by side, each in a process with cores of its own: what `fewfire reproduce --all` does.

One process per core, longest recipe first; with more cores than recipes each has several. A recipe's text appears in
one piece when it ends. Processes are in groups of their own, so Ctrl-C is the parent's to handle: it asks them to stop,
and ends those that do not. They end by themselves when the parent is gone, however that happened
(`_recipe_process`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

PATIENCE = 5.0
"""Seconds that a process has to stop by itself."""

CORES = "FEWFIRE_CORES"
"""The environment variable that names the cores of a process."""

COMMAND = (sys.executable, "-P", "-m", "fewfire.cli._recipe_process")
"""What starts a process; the task is its last argument."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class RecipeTask:
    """A recipe to run in a process: its scale, the folder for results, its options, whether figures are PDF too."""

    name: str
    scale: str
    output: str | None
    pdf: bool
    options: dict[str, Any]


@dataclass(frozen=True)
class EndedRecipe:
    """What a process printed, and its status: 0 where all claims held, 1 where one failed, else it broke off."""

    name: str
    status: int
    text: str


@dataclass
class SideBySide:
    """Runs tasks in processes.

    Parameters
    ----------
    console : Console
        Whose width and colours the processes print with.
    show : callable (names under way)
        Called whenever a process starts or ends.
    command : sequence of str
        What starts a process.
    """

    console: Console
    show: Callable[[list[str]], None] = lambda running: None
    command: Sequence[str] = COMMAND
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, tasks: Sequence[RecipeTask]) -> Generator[EndedRecipe, None, None]:
        """What each task gave, as it ends; tasks begin in their order. Whoever breaks off stops all that runs."""
        lanes = _lanes(len(tasks))
        free = list(lanes)

        def one(task: RecipeTask) -> EndedRecipe | None:
            with self._lock:
                cores = free.pop()
            try:
                return self._one(task, cores)
            finally:
                with self._lock:
                    free.append(cores)

        with ThreadPoolExecutor(len(lanes)) as threads:
            futures = [threads.submit(one, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    ended = future.result()
                    if ended is not None:
                        yield ended
            finally:
                self._stop()

    def _one(self, task: RecipeTask, cores: list[int]) -> EndedRecipe | None:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(max(1, len(cores))))}
        environment |= {"COLUMNS": str(self.console.width), CORES: ",".join(map(str, cores))}
        if self.console.is_terminal and not self.console.no_color:
            environment["FORCE_COLOR"] = "1"
        command = [*self.command, json.dumps(asdict(task))]
        group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                **group,
            )
            self._processes[task.name] = process
            self.show(list(self._processes))
        assert process.stdout is not None and process.stdin is not None
        text = process.stdout.read().decode(errors="backslashreplace")  # its input stays open while the parent lives
        status = process.wait()
        process.stdin.close()
        process.stdout.close()
        with self._lock:
            del self._processes[task.name]
            self.show(list(self._processes))
        return EndedRecipe(task.name, status, text)

    def _stop(self) -> None:
        """End what runs: ask first."""
        with self._lock:
            self._stopped = True
            left = list(self._processes.values())
        for process in left:
            _signal(process, signal.SIGINT)
        for process in left:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)


def _lanes(tasks: int) -> list[list[int]]:
    """The cores of each process that runs at a time; none are named where a process cannot be held to them."""
    if not hasattr(os, "sched_getaffinity"):
        return [[] for _ in range(min(tasks, os.cpu_count() or 1))]
    cores = sorted(os.sched_getaffinity(0))
    count = min(tasks, len(cores))
    return [cores[lane::count] for lane in range(count)]


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the process and to those that it started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()
