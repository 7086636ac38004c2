"""Sweeps on engines with devices of their own: which is taken, batches of one shape, several devices, Ctrl-C."""

import os
import signal
import threading
import time
from pathlib import Path

import device_engine
import numpy as np
import pytest
from small_search import small_search

from fewfire._errors import EngineUnavailable
from fewfire.engines import (
    DeviceEngine,
    ReferenceEngine,
    _protocol,
    get_engine,
    register_engine,
    unregister_engine,
)
from fewfire.engines._protocol import DEVICE_WORK
from fewfire.sweeps import MemoryStore, estimate_time, make_plan
from fewfire.sweeps.executors import InlineExecutor, ProcessExecutor
from fewfire.sweeps.executors._device import DeviceExecutor
from fewfire.sweeps.run._execute import choose_executor
from fewfire.sweeps.run._plan import batches, in_device_order, one_of_each_shape
from fewfire.testing import ExecutorConformance
from fewfire.testing._sweeps import tiny


@pytest.fixture
def engines(monkeypatch):
    """The fakes, known by name here and in worker processes; much counts as work enough for a device."""
    made = {
        "two_devices": device_engine.make_two,
        "one_device": device_engine.make_one,
        "endless": device_engine.make_endless,
    }
    for name, make in made.items():
        register_engine(name, make)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    yield
    for name in made:
        unregister_engine(name)


@pytest.fixture
def log(tmp_path, monkeypatch):
    """What the fakes have trained: rows of (device, process, runs, shapes)."""
    monkeypatch.setenv("FAKE_DEVICE_LOG", str(tmp_path / "log"))
    return lambda: [line.split() for line in (tmp_path / "log").read_text().splitlines()]


def decided(store):
    """Everything of the rows but the engine's name."""
    return [(row.hash, row.status, row.steps, row.test_error) for row in store.rows()]


class TestDeviceExecutor(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return DeviceExecutor()


class TestAuto:
    def test_takes_a_device_where_there_is_work_enough(self, engines):
        assert get_engine(work=DEVICE_WORK).name == "two_devices"
        assert get_engine(work=DEVICE_WORK / 2).name == get_engine().name != "two_devices"

    def test_takes_none_that_cannot_run(self, engines, monkeypatch):
        monkeypatch.setattr(device_engine.TwoDevices, "unusable", lambda engine: "it is broken. Remedy: mend it.")
        assert not get_engine(work=1e20).side_by_side
        with pytest.raises(
            EngineUnavailable, match="engine 'two_devices' cannot run here: it is broken. Remedy: mend it"
        ):
            get_engine("two_devices")

    def test_rows_record_the_device_and_other_engines_take_what_does_not_fit(self, engines, monkeypatch):
        """A run that is too large for the device never ends a sweep."""
        monkeypatch.setattr(_protocol, "DEVICE_WORK", 1.0)
        monkeypatch.setattr(device_engine.TwoDevices, "devices", lambda engine: ["fake"])
        sweep = tiny(network={"start": "dense", "width": [5, 500]}, trials=3)
        store, states = MemoryStore(), []
        state = sweep.run(store, progress=states.append)
        assert (state.engine, state.executor) == ("two_devices", "device")
        assert (state.ran, state.failed, state.done) == (12, 0, 12) and max(s.failed for s in states) == 6
        other = get_engine().name
        assert {(row.engine, row.status, '"width":500' in row.setting) for row in store.rows()} == {
            ("two_devices", "done", False),
            (other, "done", True),
        }

    def test_a_named_engine_records_what_does_not_fit(self, engines):
        store = MemoryStore()
        sweep = tiny(network={"start": "dense", "width": [5, 500]}, data={"samples": 30})
        state = sweep.run(store, engine="one_device")
        assert (state.ran, state.failed) == (4, 2)
        assert {(row.status, row.message) for row in store.rows()} == {
            ("done", ""),
            ("failed", "DeviceMemoryError: a run is too wide"),
        }


QUICK = {
    "training": {"steps": 200, "learning_rate": 0.1, "stop_error": 0.1, "evaluate": 50},
    "search": {"budget": 12},
}


@pytest.fixture(scope="module")
def searched():
    store = MemoryStore()
    small_search(**QUICK).run(store, engine="reference", executor="inline")
    return store


@pytest.mark.parametrize("engine", ["one_device", "two_devices"])
def test_a_search_trains_the_same_runs_on_devices(engine, engines, searched):
    store = MemoryStore()
    small_search(**QUICK).run(store, engine=engine)
    assert len(store.finished()) > 12 and decided(store) == decided(searched)


class TestShapes:
    sweep = tiny(network={"start": ["dense", {"name": "sparse", "s": 2}], "width": [8, 5]}, trials=3)

    @pytest.mark.parametrize("brief", [True, False])
    def test_batches_hold_runs_of_one_shape_the_dearest_first_if_the_work_is_brief(self, engines, monkeypatch, brief):
        engine, plan = get_engine("one_device"), make_plan(self.sweep)
        monkeypatch.setattr("fewfire.sweeps.run._plan.BRIEF", plan.cost * (1.001 if brief else 0.999))
        ordered = in_device_order(self.sweep, plan.pending)
        assert sorted(ordered) == sorted(plan.pending)
        cut = list(batches((self.sweep.run_at(int(i)) for i in ordered), engine))
        shapes = [{(spec.width, spec.samples) for spec in batch} for batch in cut]
        found = [next(iter(shape)) for shape in shapes if len(shape) == 1]
        cheapest_first = [(5, None), (5, None), (5, 30), (5, 30), (8, None), (8, None), (8, 30), (8, 30)]
        assert found == (cheapest_first[::-1] if brief else cheapest_first)
        assert all(len(batch) == 3 for batch in cut)
        trials = [spec.trial for spec in cut[0] + cut[1]]
        assert trials == sorted(trials)

    def test_the_first_batch_is_small_so_that_the_device_begins_soon(self, engines, monkeypatch):
        monkeypatch.setattr("fewfire.sweeps.run._plan.FIRST_RUNS", 2)
        specs = [self.sweep.run_at(0)] * 5
        assert [len(batch) for batch in batches(specs, get_engine("one_device"))] == [2, 3]
        assert [len(batch) for batch in batches(specs, get_engine("reference"))] == [5]

    def test_cores_take_runs_trial_by_trial(self):
        specs = [self.sweep.run_at(int(i)) for i in make_plan(self.sweep).pending]
        mixed = next(batches(iter(specs), ReferenceEngine()))
        assert len({spec.width for spec in mixed}) == 2

    def test_a_device_gets_the_shapes_beforehand(self, engines):
        device_engine.TwoDevices.prepared = ()
        self.sweep.run(MemoryStore(), engine="one_device")
        assert [(run.width, run.source is None) for run in device_engine.TwoDevices.prepared] == [
            (spec.width, spec.samples is not None) for spec in one_of_each_shape(self.sweep, range(len(self.sweep)))
        ]


class TestSeveralDevices:
    def test_the_choice_of_an_executor(self, engines):
        two, one = get_engine("two_devices"), get_engine("one_device")
        assert isinstance(two, DeviceEngine)
        chosen = choose_executor("local", two, 1e9)
        assert isinstance(chosen, ProcessExecutor) and chosen.devices and chosen.workers == 2
        assert isinstance(choose_executor("local", two, 1e9, workers=1), DeviceExecutor)
        assert isinstance(choose_executor("local", one, 1e9), DeviceExecutor)
        assert isinstance(choose_executor("device", one, 1e9), DeviceExecutor)
        assert isinstance(choose_executor("inline", two, 1e9), InlineExecutor)
        asked = choose_executor("processes", one, 1e9)
        assert isinstance(asked, ProcessExecutor) and asked.devices and asked.workers == 1

    def test_each_device_has_a_process(self, engines, log):
        sweep, store, expected = tiny(trials=6), MemoryStore(), MemoryStore()
        state = sweep.run(store, engine="two_devices")
        sweep.run(expected, engine="reference", executor="inline")
        assert (state.executor, state.ran, state.failed) == ("processes", 48, 0)
        assert decided(store) == decided(expected)
        lines = log()
        assert {device for device, *_ in lines} == {"0", "1"}
        assert len({(device, pid) for device, pid, *_ in lines}) == len({pid for _, pid, *_ in lines}) == 2
        assert sum(int(runs) for _, _, runs, _ in lines) == 48 and {shapes for *_, shapes in lines} == {"1"}


class TestStopping:
    def test_ctrl_c_ends_what_is_under_way_within_a_second(self, engines):
        executor, engine = DeviceExecutor(), get_engine("endless")
        results = executor.run(batches(tiny().runs(), engine), engine.name)
        main, over = threading.main_thread().ident, threading.Event()

        def press():  # again where one was lost: Python passes over those that come while it frees objects
            pause = 0.2
            while not over.wait(pause):
                signal.pthread_kill(main, signal.SIGINT)
                pause = 10.0

        pressing = threading.Thread(target=press, daemon=True)
        with pytest.raises(KeyboardInterrupt):
            pressing.start()
            next(results)
        over.set()
        begun = time.monotonic()
        results.close()
        assert time.monotonic() - begun < 1

    def test_errors_that_are_no_runs_stop_the_sweep(self, engines, monkeypatch):
        def broken(engine, runs, **options):
            raise EngineUnavailable("the device fell off the bus")

        monkeypatch.setattr(device_engine.OneDevice, "train", broken)
        with pytest.raises(EngineUnavailable, match="fell off the bus"):
            tiny().run(MemoryStore(), engine="one_device")

    def test_whose_fault_it_was_is_found_by_halves(self, engines, monkeypatch):
        calls, real = [], device_engine.TwoDevices.train
        monkeypatch.setattr(device_engine.TwoDevices, "batch_runs", 64)
        monkeypatch.setattr(
            device_engine.OneDevice,
            "train",
            lambda engine, runs, **o: calls.append(len(runs)) or real(engine, runs, **o),
        )
        sweep = tiny(network={"start": "dense", "width": 5}, data={"samples": 30}, trials=16)
        culprit = sweep.run_at(11).describe().seed
        honest = ReferenceEngine.train

        def refuse(engine, runs, **options):
            if any(run.seed == culprit for run in runs):
                raise MemoryError("no room")
            return honest(engine, runs, **options)

        monkeypatch.setattr(ReferenceEngine, "train", refuse)
        store = MemoryStore()
        assert sweep.run(store, engine="one_device").failed == 1
        assert sorted(calls, reverse=True) == [16, 8, 8, 4, 4, 2, 2, 1, 1]
        assert [row.trial for row in store.rows() if row.status == "failed"] == [11]


class TestEstimates:
    sweep = tiny(
        network={"start": "dense", "width": [5, 10]},
        training={"steps": 1000, "learning_rate": 0.1, "evaluate": 100, "stop_error": 0.1},
    )

    def test_a_device_is_asked_for_its_pace(self, engines):
        plan = make_plan(self.sweep)
        told = estimate_time(self.sweep, plan, "one_device")
        rows = {30: 30 + 40, None: 40}
        expected = sum(1000 * 1e-6 * spec.width + 11 * rows[spec.samples] * 1e-8 for spec in self.sweep.runs())
        assert told.seconds == pytest.approx(expected) and told.device_hours == pytest.approx(expected / 3600)
        assert (told.engine, told.devices, told.stopping_seconds) == ("one_device", 1, None)
        two = estimate_time(self.sweep, plan, "two_devices")
        assert two.devices == 2 and two.seconds == pytest.approx(expected / 2)
        assert two.device_hours == pytest.approx(expected / 3600)

    def test_early_stops_are_taken_from_finished_runs(self, engines):
        """Cells that have none are like the nearest one that has."""
        store = MemoryStore()
        part = tiny(
            problem={"name": "parity", "n": 8, "k": 2},
            network={"start": "dense", "width": 5},
            training={"steps": 1000, "learning_rate": 0.1, "evaluate": 100, "stop_error": 0.1},
            trials=1,
        )
        part.run(store, engine="reference")
        shares = {json_samples(row): row.steps / 1000 for row in store.rows()}
        told = estimate_time(self.sweep, make_plan(self.sweep), "one_device", measured=[store])
        rows = {30: 30 + 40, None: 40}
        expected = sum(
            shares[spec.samples] * (1000 * 1e-6 * spec.width + 11 * rows[spec.samples] * 1e-8)
            for spec in self.sweep.runs()
        )
        assert told.stopping_seconds == pytest.approx(expected) and (told.measured_runs, told.devices) == (2, 1)
        other = estimate_time(tiny(), make_plan(tiny()), "one_device", measured=[store])
        assert other.stopping_seconds == pytest.approx(other.seconds)  # of another schedule nothing is known


def json_samples(row):
    return 30 if '"samples":30' in row.setting else None


def test_numbers_of_a_plan_stay_numbers():
    ordered = in_device_order(tiny(), make_plan(tiny()).pending)
    assert ordered.dtype == np.int64
