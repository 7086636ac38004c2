"""Executors of this machine, and how one is chosen."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fewfire._errors import ExecutorError, InvalidArgument, MissingDependency
from fewfire._threads import usable_cores
from fewfire.engines import CpuEngine, ReferenceEngine, get_engine
from fewfire.sweeps import MemoryStore
from fewfire.sweeps.executors import DaskExecutor, InlineExecutor, ProcessExecutor, _processes
from fewfire.sweeps.executors._protocol import Work
from fewfire.sweeps.run._execute import choose_executor
from fewfire.testing import ExecutorConformance
from fewfire.testing._sweeps import cut_batches, outcomes, tiny


class TestInlineExecutor(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return InlineExecutor(threads=2)


class TestProcessExecutor(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return ProcessExecutor(workers=2)


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


def test_a_process_that_is_killed_is_replaced(monkeypatch):
    """Two workers are killed in the middle, one after the other; the rows are those of an undisturbed sweep."""
    cut_batches(monkeypatch, 4)
    sweep, store, undisturbed, killed = tiny(trials=30), MemoryStore(), MemoryStore(), []

    def kill_one(state):
        if state.ran and len(killed) < 2:
            workers = [pid for pid in children() if pid not in killed + before]
            for worker in workers[:1]:  # none while those of the broken pool are being replaced
                killed.append(worker)
                os.kill(worker, signal.SIGKILL)

    before = children()
    state = sweep.run(store, executor=ProcessExecutor(2), progress=kill_one)
    sweep.run(undisturbed, executor="inline")
    assert len(killed) == 2 and state.failed == 0 and state.ran == len(sweep)
    assert outcomes(store) == outcomes(undisturbed)
    assert children() == before


class Deadly(Work):
    """Takes its process with it when it meets a run of width 8."""

    def __call__(self, texts):
        if any('"width":8}' in text for text in texts):
            os._exit(9)
        return super().__call__(texts)


class DeadlyByChance(Work):
    """Kills its process at one call in three, whatever the runs: by chance, as it seems to them."""

    def __call__(self, texts):
        if os.urandom(1)[0] < 256 / 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(texts)


class DeadlyWhenUnpacked(Work):
    """Its process dies while it starts, two times in three."""

    def __setstate__(self, state):
        if os.urandom(1)[0] < 256 * 2 / 3:
            os.kill(os.getpid(), signal.SIGKILL)
        self.__dict__.update(state)


class NeverUnpacked(Work):
    """Its process dies while it starts, each time."""

    def __setstate__(self, state):
        os._exit(3)


@pytest.fixture
def use(monkeypatch):
    """Have workers carry out a class of this file."""

    def use(work):
        monkeypatch.setattr(_processes, "Work", work)
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    return use


def test_a_run_that_kills_its_process_is_recorded_and_given_up(use):
    use(Deadly)
    sweep, store = tiny(trials=2, network={"start": "dense", "width": [5, 8]}, data={"samples": 30}), MemoryStore()
    state = sweep.run(store, executor=ProcessExecutor(1))
    assert state.failed == 2 and state.ran == 4
    messages = {row.message for row in store.rows() if row.status == "failed"}
    assert messages == {
        "ExecutorError: its process ended with status 9, and so it went 4 times while the run was alone in it"
    }
    assert {row.status for row in store.rows() if '"width":5}' in row.setting} == {"done"}


def test_chance_has_to_hit_a_lone_run_again_and_again(use, monkeypatch):
    """One death of a lone run proves nothing; as many tries as it takes find that it is innocent."""
    monkeypatch.setattr(_processes, "TRIES", 40)  # 3⁻⁴⁰: never
    use(DeadlyByChance)
    cut_batches(monkeypatch, 2)
    store, undisturbed = MemoryStore(), MemoryStore()
    assert tiny(trials=1).run(store, executor=ProcessExecutor(2)).failed == 0
    tiny(trials=1).run(undisturbed, executor="inline")
    assert outcomes(store) == outcomes(undisturbed)


def test_deaths_while_a_process_starts_do_not_count_against_a_run(use, monkeypatch):
    monkeypatch.setattr(_processes, "TRIES", 1)
    use(DeadlyWhenUnpacked)
    cut_batches(monkeypatch, 2)
    store = MemoryStore()
    assert tiny(trials=1).run(store, executor=ProcessExecutor(2)).failed == 0
    assert store.counts() == {"done": len(tiny(trials=1)), "diverged": 0, "failed": 0}


def test_workers_that_never_start_are_reported(use):
    use(NeverUnpacked)
    with pytest.raises(ExecutorError) as caught:
        tiny().run(MemoryStore(), executor=ProcessExecutor(1))
    assert str(caught.value) == (
        "workers cannot start: 5 processes in a row ended before they began with a run, the last one ended with status "
        "3. Finished runs are kept. Remedy: see what they print, and that there is memory for another process; or run "
        "the sweep in this one, with the executor 'inline'."
    )


def test_work_that_a_worker_cannot_import_is_reported(monkeypatch, capfd):
    monkeypatch.setattr(_processes, "Work", Deadly)  # of a module that workers do not find
    monkeypatch.setattr(_processes, "STARTS", 2)
    with pytest.raises(ExecutorError, match="workers cannot start: .* the last one ended with status 1"):
        tiny().run(MemoryStore(), executor=ProcessExecutor(1))
    assert "No module named" in capfd.readouterr().err


def test_a_machine_that_cannot_start_processes(monkeypatch):
    def refuse(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(_processes.subprocess, "Popen", refuse)
    with pytest.raises(ExecutorError, match="workers cannot start: .*Resource temporarily unavailable.* fewer workers"):
        tiny().run(MemoryStore(), executor=ProcessExecutor(2))


def test_a_worker_killed_while_it_has_nothing_to_do(monkeypatch):
    """The next batch finds it dead and is not blamed, not even a run that is alone in its batch."""
    monkeypatch.setattr(_processes, "TRIES", 1)
    cut_batches(monkeypatch, 1)
    killed = []

    def batches(specs):
        for spec in specs:
            for pid in set(children()) - before:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            yield [spec]

    before, specs = set(children()), list(tiny(trials=1).runs())
    rows = [row for rows in ProcessExecutor(1).run(batches(specs), get_engine().name) for row in rows]
    assert {row.status for row in rows} == {"done"} and len(rows) == len(specs)
    assert len(set(killed)) >= len(specs) - 1


def test_errors_that_are_no_runs_stop_the_sweep(monkeypatch):
    monkeypatch.setattr(_processes, "Work", lambda engine, threads: Work(engine, threads, version="0.0.1"))
    before = children()
    with pytest.raises(
        ExecutorError,
        match=r"a worker has fewfire .*, but the sweep was started with 0.0.1. Remedy: install the same version everywhere",
    ):
        tiny().run(MemoryStore(), executor=ProcessExecutor(2))
    assert children() == before


def test_an_interrupted_sweep_leaves_no_process():
    def stop(state):
        if state.ran:
            raise KeyboardInterrupt

    before, store = children(), MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        tiny(trials=50).run(store, executor=ProcessExecutor(2), progress=stop)
    assert 0 < store.counts()["done"] < 400 and children() == before


def test_workers_start_light():
    """Each of them pays for what the package loads."""
    heavy = ["sklearn", "scipy.stats", "distributed", "pyarrow", "rich"]
    code = f"import sys, fewfire.sweeps.executors._processes; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_choice_of_an_executor():
    small, large, cpu = 1e9, 1e15, CpuEngine()

    class Device(ReferenceEngine):
        side_by_side = True

    assert isinstance(choose_executor("local", cpu, small), InlineExecutor)
    chosen = choose_executor("local", cpu, large, workers=3)
    assert isinstance(chosen, ProcessExecutor) and chosen.workers == 3
    assert isinstance(choose_executor("local", cpu, large, workers=1), InlineExecutor)
    assert isinstance(choose_executor("local", ReferenceEngine(), large, workers=2), ProcessExecutor)
    assert isinstance(choose_executor("local", Device(), large, workers=2), InlineExecutor)
    assert isinstance(choose_executor("inline", cpu, large), InlineExecutor)
    assert choose_executor("processes", cpu, small).workers == usable_cores()
    given = InlineExecutor()
    assert choose_executor(given, cpu, large) is given
    with pytest.raises(
        InvalidArgument,
        match="executor must be one of 'local', 'inline', 'device', 'processes', 'dask' or the address of a Dask scheduler; got 'slurm'",
    ):
        choose_executor("slurm", cpu, large)


def test_a_missing_dask_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        MissingDependency,
        match=r"the Dask executor needs the package 'distributed', which is not installed. Remedy: pip install 'fewfire\[sweep\]'",
    ):
        DaskExecutor()
