"""The host's side of the CUDA engine on a device that only counts: memory planned, batches split, Ctrl-C, probes."""

import time

import numpy as np
import pytest
from fake_cuda import A100, H200, SMALL, FakeDevice

from fewfire._errors import DeviceMemoryError, EngineUnavailable, InvalidArgument
from fewfire._random import Stream
from fewfire.engines import DeviceEngine, Phase, Run, Sample, Schedule, Start, _protocol, get_engine
from fewfire.engines.cuda import CudaEngine, _engine, _kernels, _memory
from fewfire.engines.cuda._batch import stream_bytes
from fewfire.engines.cuda._kernels import variant_of
from fewfire.engines.cuda._memory import plan_batches, planned_bytes
from fewfire.networks import TwoLayer, init
from fewfire.problems import Indexing, Parity
from fewfire.sweeps import MemoryStore
from fewfire.testing._sweeps import tiny


def run(inputs=50, width=100, rows=200, schedule=None, seed=3, start=None, **fields):
    fields = {"sample": Sample(Parity(inputs, 2), rows, seed), **fields}
    schedule = schedule or Schedule(Phase(100))
    return Run(Start(start or init.dense(), inputs, width, seed), schedule, seed=seed, **fields)


@pytest.mark.parametrize("device", [H200, A100, SMALL], ids=lambda device: device.name)
def test_batches_fit_into_memory_and_hold_every_run_once(device):
    tasks = [run(width=width, rows=50_000) for width in (100, 3000) for _ in range(40)]
    plans = list(plan_batches(tasks, device))
    assert sorted(index for plan in plans for index in plan.members) == list(range(80))
    for plan in plans:
        assert sum(planned_bytes(tasks[index], plan.variant) for index in plan.members) < plan.nbytes
        assert plan.nbytes <= 0.3 * device.memory and 1 <= plan.at_once <= len(plan.members)
        assert {variant_of(tasks[index], device) for index in plan.members} == {plan.variant}
    assert len(plans) == (2 if device is not SMALL else 8)


@pytest.mark.parametrize(
    ("inputs", "width", "runs", "at_once"),
    [(50, 10, 2000, 1584), (50, 100, 100, 100), (50, 1000, 256, 66), (200, 10_000, 16, 3), (200, 100_000, 4, 1)],
)
def test_how_many_runs_train_at_once(inputs, width, runs, at_once):
    (plan,) = plan_batches([run(inputs, width)] * runs, H200)
    assert plan.at_once == at_once


def test_weights_that_stream_are_planned():
    task = run(200, 100_000)
    (plan,) = plan_batches([task] * 2, H200)
    assert plan.variant.layout.streamed
    streamed = stream_bytes([task], plan.variant.layout)
    assert streamed > 4 * 100_000 * 200  # a copy of the weights besides those of the runs
    assert plan.nbytes > 2 * planned_bytes(task, plan.variant) + streamed


def test_scratch_of_the_general_kernel_is_planned():
    task = run(200, 10_000, schedule=Schedule(Phase(10, batch_size=100)))
    (plan,) = plan_batches([task] * 1000, H200)
    assert not plan.variant.layout.fast and plan.at_once == 528
    assert plan.nbytes > 1000 * planned_bytes(task, plan.variant) + 528 * 4 * 10_000 * (32 + 202)
    (tight,) = plan_batches([task], SMALL)  # scratch takes an eighth of little memory, so fewer train at once
    assert tight.at_once == 1


def test_room_to_sort_epochs_is_planned():
    drawn, sorted_ = (run(schedule=Schedule(Phase(100), sampling=how)) for how in ("replacement", "epochs"))
    (plain,), (epochs,) = (list(plan_batches([task], H200)) for task in (drawn, sorted_))
    assert epochs.nbytes > plain.nbytes + 8 * 2**24


def test_examples_that_the_host_draws_are_planned(monkeypatch):
    problem = Indexing(2)
    task = Run(Start(init.dense(), problem.inputs, 10, 1), Schedule(Phase(1000)), source=problem, seed=1)
    assert planned_bytes(task, variant_of(task, H200)) > 4 * 1000 * 32 * (problem.inputs + 1)
    monkeypatch.setattr(_memory, "HOST_BYTES", 3 * _memory.host_bytes(task))
    assert [len(plan.members) for plan in plan_batches([task] * 8, H200)] == [3, 3, 2]


def test_the_longest_trainings_come_first():
    tasks = [run(width=width, schedule=Schedule(Phase(steps))) for width, steps in ((98, 10), (100, 10), (99, 20))]
    (plan,) = plan_batches(tasks, H200)
    assert plan.members == (2, 1, 0)


def test_runs_that_see_few_examples_come_first():
    """They rarely stop early, so the others fill the gaps at the end."""
    tasks = [run(width=100, rows=rows) for rows in (500, 100, 300)]
    (plan,) = plan_batches(tasks, H200)
    assert plan.members == (1, 2, 0)


def test_a_run_that_never_fits_is_refused_before_anything_is_allocated(monkeypatch):
    device = FakeDevice(SMALL).install(monkeypatch)
    with pytest.raises(DeviceMemoryError) as caught:
        CudaEngine().train([run(), run(width=300_000)])
    assert str(caught.value) == (
        "a run of 50 inputs and width 300000 takes 0.16 GiB on small, of which 0.04 GiB are free. "
        "Remedy: use fewer examples or a smaller width, or engine='cpu'."
    )
    assert device.peak == 0 and not device.launches


class TestOnAFakeDevice:
    def test_results_come_in_the_order_of_the_runs(self, fake_device):
        tasks = [run(width=width, seed=seed) for seed, width in enumerate((10, 1000, 10, 100, 1000))]
        results = CudaEngine().train(tasks, keep_networks=False)
        assert [result.counters.active_pairs for result in results] == [t.stream.key % 1000 for t in tasks]
        assert {(result.stopped, result.engine, result.counters.steps) for result in results} == {
            ("steps", "cuda", 100)
        }
        assert all(
            list(result.history.step) == task.schedule.checkpoints()
            for result, task in zip(results, tasks, strict=True)
        )
        assert [name for name, *_ in fake_device.launches].count("train_resident") == 3
        assert fake_device.used == 0

    def test_out_of_memory_splits_the_batch(self, monkeypatch):
        """The device has less than it reports: every run is trained all the same, in smaller batches."""
        tasks = [run(width=1000, rows=100_000, seed=seed) for seed in range(40)]
        (plan,) = plan_batches(tasks, H200)
        device = FakeDevice(H200, plan.nbytes // 5).install(monkeypatch)
        results = CudaEngine().train(tasks, keep_networks=False)
        assert [result.counters.active_pairs for result in results] == [t.stream.key % 1000 for t in tasks]
        assert device.refused == 7 and device.peak <= device.memory
        assert [name for name, *_ in device.launches].count("train_resident") == 8

    def test_a_single_run_that_finds_no_memory_is_reported(self, monkeypatch):
        FakeDevice(H200, memory=1000).install(monkeypatch)
        with pytest.raises(DeviceMemoryError, match=r"a run of 50 inputs and width 100 takes .* Remedy: use fewer"):
            CudaEngine().train([run()] * 5)

    def test_networks_of_float64_are_refused(self, fake_device):
        start = init.dense()(20, 10, 1)
        X, y = Parity(20, 3).sample(30, 1)
        network = TwoLayer(start.hidden.astype(np.float64), start.bias, start.output)
        with pytest.raises(InvalidArgument, match="network must be float32 for the cuda engine"):
            CudaEngine().train([Run(network, Schedule(Phase(1)), X, y)])

    def test_progress_counts_steps(self, fake_device):
        fake_device.naps, seen = 2, []
        CudaEngine().train([run(), run(width=10)], progress=lambda done, total: seen.append((done, total)))
        assert seen == [(1, 200), (1, 200), (100, 200), (101, 200), (101, 200), (200, 200)]

    def test_ctrl_c_ends_the_kernel(self, fake_device):
        """What comes out of a look of the host, such as KeyboardInterrupt, sets the flag that kernels look at."""
        fake_device.naps = 1000

        def press(done, total):
            raise KeyboardInterrupt

        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            CudaEngine().train([run()], progress=press)
        assert len(fake_device.poked) == 1 and fake_device.poked[0].tolist() == [1]
        assert time.monotonic() - begun < 1
        fake_device.naps = 0
        CudaEngine().train([run()])  # and the device is free for the next

    def test_an_error_of_the_device_is_no_runs_fault(self, fake_device, monkeypatch):
        """It stops a sweep instead of failing run after run."""

        def broken(start, tell, stop, ready):
            raise ZeroDivisionError("an illegal memory access was encountered.")

        monkeypatch.setattr("fewfire.engines.cuda._batch.watch", broken)
        monkeypatch.setattr(_engine, "device_errors", lambda: (ZeroDivisionError,))
        store = MemoryStore()
        with pytest.raises(EngineUnavailable) as caught:
            tiny(training={"steps": 10}).run(store, engine="cuda")
        assert str(caught.value) == (
            "engine 'cuda' cannot go on: the GPU answered an illegal memory access was encountered. Finished runs of a "
            "sweep are kept. Remedy: start the program again; if it comes back, use engine='cpu'."
        )
        assert store.counts() == {"done": 0, "diverged": 0, "failed": 0}

    @pytest.mark.usefixtures("core")
    def test_a_sweep_survives_too_little_memory(self, monkeypatch):
        """The device reports much memory and gives little: batches are split, and what never fits goes to the cores."""
        device = FakeDevice(H200, memory=400_000).install(monkeypatch)
        monkeypatch.setattr(_protocol, "DEVICE_WORK", 1.0)
        sweep, store = tiny(network={"start": "dense", "width": [5, 20_000]}, training={"steps": 10}), MemoryStore()
        state = sweep.run(store)
        assert (state.engine, state.executor, state.ran, state.failed) == ("cuda", "device", 8, 0)
        assert device.refused > 0 and device.peak <= device.memory
        engines = {(row.engine, '"width":5}' in row.setting) for row in store.rows()}
        assert engines == {("cuda", True), (get_engine().name, False)}

    def test_it_lists_its_devices(self, fake_device):
        engine = CudaEngine()
        assert isinstance(engine, DeviceEngine)
        assert engine.devices() == ["NVIDIA H200 (sm_90, 139 GiB free)"]

    @pytest.mark.parametrize("online", [False, True])
    def test_the_pace_counts_steps_and_rows_apart(self, fake_device, monkeypatch, online):
        """On a device that takes 1 µs per step and run and 10 ns per row of a checkpoint."""

        def watch(start, tell, stop, ready):
            start()
            jobs = next(
                held
                for held in reversed(fake_device.held.values())
                if held.dtype.names and "checks" in held.dtype.names
            )
            rows = jobs["measured"] + jobs["test"]["count"]
            return float((1e-6 * jobs["steps"] + 1e-8 * jobs["checks"] * rows).sum())

        monkeypatch.setattr("fewfire.engines.cuda._batch.watch", watch)
        problem = Parity(50, 3)
        data = {"sample": None, "source": problem} if online else {}
        task = run(schedule=Schedule(Phase(100_000), stop_error=0.1), test=Sample(problem, 500, Stream(1, "t")), **data)
        pace = CudaEngine().pace(task)
        assert pace.step == pytest.approx(1e-6) and pace.row == pytest.approx(1e-8)


def test_kernels_are_compiled_ahead_once(monkeypatch):
    calls = []

    def slow(source, file, architecture, definitions):
        calls.append(file)
        time.sleep(0.02)
        if file == "bad.cu":
            raise ValueError("no kernel")
        return file.encode()

    monkeypatch.setattr(_kernels, "compiled", slow)
    monkeypatch.setattr(_kernels, "_known", {})
    for _ in range(3):
        _kernels.compile_ahead("a.cu", 90)
    assert _kernels.machine_code("a.cu", 90) == b"a.cu" and calls == ["a.cu"]
    for _ in range(2):  # one that failed is tried again
        with pytest.raises(ValueError, match="no kernel"):
            _kernels.machine_code("bad.cu", 90)
    assert calls == ["a.cu", "bad.cu", "bad.cu"]
