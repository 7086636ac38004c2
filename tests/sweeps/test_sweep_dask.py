"""Dask, with a real scheduler and real worker processes: the same rows, and a worker that is killed is survived."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import device_engine
import pytest
from small_search import small_search

from fewfire._errors import ExecutorError
from fewfire._optional import is_installed
from fewfire._threads import usable_cores
from fewfire.engines import get_engine, register_engine, unregister_engine
from fewfire.sweeps import MemoryStore
from fewfire.sweeps.executors import _dask
from fewfire.sweeps.executors._protocol import Work
from fewfire.sweeps.run._execute import choose_executor
from fewfire.testing import ExecutorConformance
from fewfire.testing._sweeps import cut_batches, outcomes, tiny

pytestmark = pytest.mark.skipif(
    not is_installed("distributed"), reason="dask is not installed: pip install 'fewfire[sweep]'"
)


class Cluster:
    """A scheduler and workers, each a process of its own, without nannies: a worker that dies stays dead."""

    def __init__(self, folder, **variables):
        self._file, self.processes = folder / "scheduler.json", {}
        self._variables = os.environ | variables
        self.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")

    def start(self, name, verb, *options):
        command = [sys.executable, "-m", "dask", verb, *options, "--scheduler-file", str(self._file)]
        self.processes[name] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._variables
        )

    def start_worker(self, name, nanny="--no-nanny"):
        self.start(name, "worker", nanny, "--nthreads", "1", "--name", name, "--host", "127.0.0.1", "--no-dashboard")

    @property
    def address(self):
        import json

        deadline = time.monotonic() + 60
        while not self._file.exists() or not self._file.read_text().strip():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        return json.loads(self._file.read_text())["address"]

    def wait_for_workers(self, count):
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def kill(self, name):
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self):
        for name in self.processes:
            self.kill(name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    for name in ("one", "two"):
        cluster.start_worker(name)
    try:
        cluster.wait_for_workers(2)
        yield cluster
    finally:
        cluster.close()


class TestDaskExecutor(ExecutorConformance):
    @pytest.fixture
    def executor(self, cluster):
        return choose_executor(cluster.address, get_engine(), 1.0)


def test_errors_of_workers_stop_the_sweep(cluster, monkeypatch):
    monkeypatch.setattr(_dask, "Work", lambda engine, threads: Work(engine, threads, version="0.0.1"))
    with pytest.raises(ExecutorError, match="a worker has fewfire .*, but the sweep was started with 0.0.1"):
        tiny().run(MemoryStore(), executor=cluster.address)


def test_a_scheduler_without_workers_is_waited_for_and_reported(tmp_path, caplog):
    cluster = Cluster(tmp_path)
    try:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tiny().run, MemoryStore(), executor=cluster.address)
            deadline = time.monotonic() + 60
            while not caplog.messages and time.monotonic() < deadline:
                time.sleep(0.05)
            cluster.start_worker("late")
            assert waiting.result(timeout=120).failed == 0
    finally:
        cluster.close()
    assert caplog.messages[0] == f"no workers yet at the Dask scheduler {cluster.address}; waiting for some"


def test_a_search_trains_the_same_runs(cluster):
    store, local = MemoryStore(), MemoryStore()
    state = small_search().run(store, executor=cluster.address)
    small_search().run(local, executor="inline")
    assert state.executor == "dask" and outcomes(store) == outcomes(local)


def test_a_worker_that_is_killed_is_survived(cluster, monkeypatch):
    """Two workers are busy when one is killed; the other does the rest, and the rows are those of a local sweep."""
    cut_batches(monkeypatch, 1)
    sweep, store, local, killed = tiny(training={"steps": 20_000, "evaluate": 5000}), MemoryStore(), MemoryStore(), []

    def kill(state):
        if state.ran >= 3 and not killed:
            killed.append(state.ran)
            cluster.kill("one")

    state = sweep.run(store, executor=cluster.address, progress=kill)
    sweep.run(local, executor="inline")
    assert killed and killed[0] < len(sweep) and state.ran == len(sweep) and state.failed == 0
    assert outcomes(store) == outcomes(local)


def test_numbered_workers_use_the_device_of_their_number(tmp_path, monkeypatch):
    """Two workers, two devices of a made-up engine that only they can run."""
    log, folder = tmp_path / "log", str(Path(__file__).parent)
    cluster = Cluster(tmp_path, FAKE_DEVICE_LOG=str(log), PYTHONPATH=os.pathsep.join([folder, *sys.path]))
    register_engine("two_devices", device_engine.make_two)
    monkeypatch.setattr(device_engine.TwoDevices, "unusable", lambda engine: "there is no device here")
    try:
        for name in ("0", "1"):
            cluster.start_worker(name)
        cluster.wait_for_workers(2)
        state = tiny(trials=6).run(MemoryStore(), engine="two_devices", executor=cluster.address)
    finally:
        unregister_engine("two_devices")
        cluster.close()
    assert (state.engine, state.executor, state.ran, state.failed) == ("two_devices", "dask", 48, 0)
    used = {tuple(line.split()[:2]) for line in log.read_text().splitlines()}
    assert {device for device, _ in used} == {"0", "1"} and len(used) == 2


def test_a_cluster_of_this_machine_has_a_worker_per_device_or_core():
    register_engine("two_devices", device_engine.make_two)
    try:
        assert (_dask._workers_for("two_devices"), _dask._workers_for("reference")) == (2, usable_cores())
    finally:
        unregister_engine("two_devices")


class Deadly(Work):
    """Kills the worker that meets a run of width 8."""

    def __call__(self, texts):
        if any('"width":8}' in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(texts)


def test_a_scheduler_that_goes_away_is_reported(tmp_path):
    cluster, store = Cluster(tmp_path), MemoryStore()
    cluster.start_worker("only")
    try:
        cluster.wait_for_workers(1)
        sweep = tiny(training={"steps": 20_000, "evaluate": 5000}, trials=300)
        address = cluster.address

        def kill(state):
            if state.ran:
                cluster.close()

        with pytest.raises(
            ExecutorError, match=r"the Dask cluster at tcp://.* cannot go on: .* Finished runs are kept"
        ):
            sweep.run(store, executor=address, progress=kill)
        assert store.counts()["done"] > 0
    finally:
        cluster.close()


def test_a_scheduler_that_hangs_is_reported(tmp_path, monkeypatch):
    """No answer comes and no connection breaks: only the clock shows it."""
    monkeypatch.setattr(_dask, "_HEARTBEAT_SECONDS", 0.5)
    monkeypatch.setattr(_dask, "_ANSWER_SECONDS", 2)
    monkeypatch.setattr(_dask, "_CLOSE_SECONDS", 1)
    cluster, store = Cluster(tmp_path), MemoryStore()
    cluster.start_worker("only")
    try:
        cluster.wait_for_workers(1)
        sweep = tiny(training={"steps": 20_000, "evaluate": 5000}, trials=300)

        def freeze(state):
            if state.ran:
                cluster.processes["scheduler"].send_signal(signal.SIGSTOP)

        with pytest.raises(ExecutorError) as caught:
            sweep.run(store, executor=cluster.address, progress=freeze)
        assert str(caught.value) == (
            f"the Dask scheduler at {cluster.address} has not answered for 2 s. Finished runs are kept. "
            "Remedy: see whether it hangs, start it again, and repeat the sweep to go on."
        )
        assert store.counts()["done"] > 0
    finally:
        cluster.close()


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr(_dask, "_CONNECT_SECONDS", 1)
    with pytest.raises(
        ExecutorError,
        match="no Dask scheduler answers at tcp://127.0.0.1:9: .* Remedy: start one with 'dask scheduler'",
    ):
        tiny().run(MemoryStore(), executor="tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_run_that_kills_workers_is_recorded_and_given_up(tmp_path, monkeypatch):
    """The nanny replaces the worker; the batch is cut up, and the runs that kill are found out."""
    folder = str(Path(__file__).parent)  # workers have to find Deadly
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    cluster = Cluster(tmp_path, PYTHONPATH=path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    monkeypatch.setattr(_dask, "Work", Deadly)
    try:
        cluster.start_worker("only", "--nanny")
        cluster.wait_for_workers(1)
        sweep, store = tiny(network={"start": "dense", "width": [5, 8]}, data={"samples": 30}, trials=1), MemoryStore()
        state = sweep.run(store, executor=cluster.address)
    finally:
        cluster.processes["only"].terminate()  # a nanny that is killed would leave its worker behind
        cluster.processes["only"].wait()
        cluster.close()
    assert (state.ran, state.failed) == (2, 1)
    assert {row.status: row.message for row in store.rows()} == {
        "done": "",
        "failed": "ExecutorError: the workers that had it died, and so it went 2 times while the run was alone there",
    }


@pytest.mark.slow
def test_a_local_cluster():
    store, local = MemoryStore(), MemoryStore()
    assert tiny().run(store, executor="dask").executor == "dask"
    tiny().run(local, executor="inline")
    assert outcomes(store) == outcomes(local)


@pytest.mark.slow
def test_a_search_starts_one_local_cluster_for_all_of_its_rounds(monkeypatch):
    started, start = [], _dask._local_cluster
    monkeypatch.setattr(_dask, "_local_cluster", lambda *options: started.append(options) or start(*options))
    store, local = MemoryStore(), MemoryStore()
    state = small_search().run(store, executor="dask")
    small_search().run(local, executor="inline")
    assert state.executor == "dask" and len(started) == 1
    assert outcomes(store) == outcomes(local)
