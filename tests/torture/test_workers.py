"""Workers are killed at random for as long as a sweep runs: while they start, work, wait; no innocent run is failed."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from fewfire.sweeps import MemoryStore
from fewfire.sweeps.executors import ProcessExecutor, _processes
from fewfire.sweeps.executors._protocol import Work
from fewfire.testing._sweeps import cut_batches, outcomes, tiny


def children():
    """The processes that this one has started, from the system's table."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(stat.parent.name))
    return found


class Killer:
    """Kills one of the processes started since, at random moments, until it is left."""

    def __init__(self, draw, mean):
        self._draw, self._mean, self._before = draw, mean, set(children())
        self.kills, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._hunt)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _hunt(self):
        while not self._over.wait(self._draw.exponential(self._mean)):
            workers = sorted(set(children()) - self._before)
            if workers:
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(int(self._draw.choice(workers)), self._draw.choice([signal.SIGKILL, signal.SIGTERM]))
                    self.kills += 1


class Deadly(Work):
    """Takes its process with it when it meets a run of width 8."""

    def __call__(self, texts):
        if any('"width":8}' in text for text in texts):
            os._exit(9)
        return super().__call__(texts)


def seconds_to_start():
    """How long a worker takes from nothing to its first result, on this machine as busy as it is now."""
    begun = time.monotonic()
    tiny(trials=1).run(MemoryStore(), executor=ProcessExecutor(1))
    return time.monotonic() - begun


@pytest.fixture
def sweep():
    return tiny(trials=6, training={"steps": 20_000, "evaluate": 5000})


@pytest.mark.least({"sweeps under worker kills": 2, "worker kills": 10})
def test_no_innocent_run_is_failed(rounds, draw, tally, monkeypatch, sweep):
    """Each worker is killed as often as it could start once or twice, so most of them while they start.

    Were none left the time to start, a hundred in a row would end before their first run, and the sweep would raise an error.
    """
    undisturbed = MemoryStore()
    sweep.run(undisturbed, executor="inline")
    for _ in rounds:
        cut_batches(monkeypatch, int(draw.integers(1, 9)))
        store = MemoryStore()
        workers = int(draw.integers(1, 4))
        with Killer(draw, float(draw.uniform(0.7, 2.0)) * seconds_to_start() / workers) as killer:
            state = sweep.run(store, executor=ProcessExecutor(workers))
        tally("worker kills", killer.kills)
        tally("sweeps under worker kills")
        tally("innocent runs failed", state.failed)
        assert state.failed == 0 and outcomes(store) == outcomes(undisturbed)


@pytest.mark.least({"sweeps with deadly runs": 2, "worker kills beside deadly runs": 2})
def test_guilty_runs_are_separated_from_innocent_ones(rounds, draw, tally, monkeypatch):
    """Half of the runs kill their process, and others are killed at random: the first half fails, the other does not."""
    monkeypatch.setattr(_processes, "Work", Deadly)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    sweep = tiny(network={"start": "dense", "width": [5, 8]}, data={"samples": 30}, trials=2)
    for _ in rounds:
        cut_batches(monkeypatch, int(draw.integers(1, 5)))
        store = MemoryStore()
        with Killer(draw, 0.7 * seconds_to_start()) as killer:
            sweep.run(store, executor=ProcessExecutor(2))
        tally("worker kills beside deadly runs", killer.kills)
        tally("sweeps with deadly runs")
        assert {(row.status, '"width":8}' in row.setting) for row in store.rows()} == {
            ("failed", True),
            ("done", False),
        }
