"""Several recipes side by side, in processes with cores of their own: what `fewfire reproduce --all` does.

One process per core, longest recipe first; with more cores than recipes each has several. A process runs one recipe
after another (`_recipe_process`), and one that breaks off has a successor. A recipe's text appears in one piece when it
ends. Processes are in groups of their own, so Ctrl-C is the parent's to handle: it asks them to stop, and ends those
that do not. They end by themselves when the parent is gone, however that happened.
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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from rich.console import Console

PATIENCE = 5.0
"""Seconds that a process has to stop by itself."""

CORES = "FEWFIRE_CORES"
"""The environment variable that names the cores of a process."""

COMMAND = (sys.executable, "-P", "-m", "fewfire.cli._recipe_process")
"""What starts a process; tasks are lines of its input."""

ENDED = b"\0"
"""What a process writes when a recipe has ended, before the status."""

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
class _Lane:
    """Cores, and the process that has them: none before the first task, and after one that broke off."""

    cores: list[int]
    process: subprocess.Popen[bytes] | None = None


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
    _lanes: list[_Lane] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, tasks: Sequence[RecipeTask]) -> Generator[EndedRecipe, None, None]:
        """What each task gave, as it ends; tasks begin in their order. Whoever breaks off stops all that runs."""
        self._lanes = [_Lane(cores) for cores in _lanes(len(tasks))]
        free = list(self._lanes)

        def one(task: RecipeTask) -> EndedRecipe | None:
            with self._lock:
                lane = free.pop()
            try:
                return self._one(task, lane)
            finally:
                with self._lock:
                    free.append(lane)

        with ThreadPoolExecutor(len(self._lanes)) as threads:
            futures = [threads.submit(one, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    ended = future.result()
                    if ended is not None:
                        yield ended
            finally:
                self._stop()

    def _one(self, task: RecipeTask, lane: _Lane) -> EndedRecipe | None:
        with self._lock:
            if self._stopped:
                return None
            process = lane.process = lane.process or self._start(lane.cores)
            self._running[task.name] = process
            self.show(list(self._running))
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # it is gone, which its output says too
            process.stdin.write(json.dumps(asdict(task)).encode() + b"\n")
            process.stdin.flush()
        text, status = _told(process.stdout)
        with self._lock:
            if status is None:
                lane.process = None
            del self._running[task.name]
            self.show(list(self._running))
        return EndedRecipe(task.name, _leave(process) if status is None else status, text)

    def _start(self, cores: list[int]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(max(1, len(cores))))}
        environment |= {"COLUMNS": str(self.console.width), CORES: ",".join(map(str, cores))}
        if self.console.is_terminal and not self.console.no_color:
            environment["FORCE_COLOR"] = "1"
        group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        return subprocess.Popen(
            self.command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **group,
        )

    def _stop(self) -> None:
        """End what runs: ask first. Processes that wait for a task leave when their input ends."""
        with self._lock:
            self._stopped = True
            running = list(self._running.values())
            waiting = [lane.process for lane in self._lanes if lane.process is not None]
        for process in running:
            _signal(process, signal.SIGINT)
        for process in running:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        for process in waiting:
            if process not in running:
                _leave(process)


def _told(output: IO[bytes]) -> tuple[str, int | None]:
    """What a process wrote until a recipe ended, and its status: none where the process ended first."""
    text = b""
    for line in output:
        head, mark, status = line.partition(ENDED)
        text += head
        if mark:
            return text.decode(errors="backslashreplace"), int(status)
    return text.decode(errors="backslashreplace"), None


def _leave(process: subprocess.Popen[bytes]) -> int:
    """Close what leads to a process, and wait for it: its status."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    status = process.wait()
    process.stdout.close()
    return status


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
