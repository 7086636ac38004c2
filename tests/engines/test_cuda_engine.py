"""The CUDA engine on a GPU: conformance, and agreement with the reference engine on every layout and awkward shapes."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.engines import PerLayer, Phase, ReferenceEngine, Run, Sample, Schedule, Start
from fewfire.engines.cuda import CudaEngine, _kernels
from fewfire.engines.cuda._layouts import KernelLayout
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.problems import CorrelatedParity, Parity
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.sweeps.store._row import row_of
from fewfire.testing import EngineConformance

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(CudaEngine().unusable() is not None, reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore:fewfire's C.. part is not installed"),
]

HISTORY = ("train_loss", "train_error", "test_error", "hidden_norm", "output_norm", "active_fraction", "support_weight")


class TestCudaEngine(EngineConformance):
    def engine(self):
        return CudaEngine()


def described(inputs, width, rows=200, schedule=None, start=None, problem=None, seed=3, **fields):
    problem = problem or Parity(inputs, min(3, inputs))
    schedule = schedule or Schedule(Phase(100, 0.1, weight_decay=0.01))
    fields = {"sample": Sample(problem, rows, seed), "test": Sample(problem, 100, seed + 1), **fields}
    return Run(Start(start or init.dense(), inputs, width, seed), schedule, seed=seed, **fields)


TALLY = {"neurons": 0, "apart": 0}


def assert_agrees(task, tolerance=1e-5):
    """The trained network is the reference engine's, up to a few neurons that met a tie; the last test counts those."""
    fast, slow = CudaEngine().train([task])[0], ReferenceEngine().train([task])[0]
    a, b = fast.network, slow.network
    apart = np.abs(a.hidden - b.hidden).max(axis=1) > tolerance * max(1.0, np.abs(b.hidden).max())
    apart |= np.abs(a.bias - b.bias) > tolerance * max(1.0, np.abs(b.bias).max())
    apart |= np.abs(a.output - b.output) > tolerance * max(1.0, np.abs(b.output).max())
    TALLY["neurons"] += len(apart)
    TALLY["apart"] += np.count_nonzero(apart)
    assert np.count_nonzero(apart) <= max(1, len(apart) // 100)
    assert abs(a.offset - b.offset) <= tolerance * max(1.0, abs(b.offset))
    for name in HISTORY:
        assert np.allclose(
            getattr(fast.history, name), getattr(slow.history, name), rtol=1e-3, atol=1e-3, equal_nan=True
        ), name
    assert np.array_equal(fast.history.step, slow.history.step)
    assert (fast.stopped, fast.counters.steps, fast.counters.examples) == (
        slow.stopped,
        slow.counters.steps,
        slow.counters.examples,
    )
    assert fast.counters.active_pairs == pytest.approx(slow.counters.active_pairs, rel=1e-3, abs=2)


@pytest.mark.parametrize("inputs", [1, 16, 31, 63, 64, 65, 127, 200, 300])
@pytest.mark.parametrize("width", [1, 15, 17, 100, 1000])
def test_every_layout_agrees_with_the_reference(inputs, width):
    assert_agrees(described(inputs, width, support=(0,)))


def test_a_wide_network_of_many_blocks():
    assert_agrees(described(300, 12345, schedule=Schedule(Phase(30, 0.1, weight_decay=0.01), evaluate=30)))


@pytest.mark.parametrize(("inputs", "width"), [(50, 70), (50, 1000), (200, 1000)])
def test_streamed_weights_agree(monkeypatch, inputs, width):
    """The layout of very wide networks, forced on small ones: two blocks, several tiles per warp."""
    layout = KernelLayout(inputs // 16 + 1, 1, 3, 2, 1, False, 1, streamed=True)
    monkeypatch.setattr(_kernels, "choose_layout", lambda *run, **loss: layout)
    assert_agrees(described(inputs, width, support=(0,)))
    assert_agrees(described(inputs, width, schedule=Schedule(Phase(60, 0.1, weight_decay=1.0), loss="logistic")))


@pytest.mark.parametrize("rows", [1, 32, 33, 129])
@pytest.mark.parametrize("kind", [10, 100, 1000, "streamed"])
def test_checkpoints_over_any_number_of_rows(monkeypatch, rows, kind):
    """Rows are looked at in batches of 32, several under way at a time where a run has many blocks."""
    if kind == "streamed":
        layout = KernelLayout(4, 1, 3, 2, 1, False, 1, streamed=True)
        monkeypatch.setattr(_kernels, "choose_layout", lambda *run, **loss: layout)
    width = 300 if kind == "streamed" else kind
    test = Sample(Parity(50, 3), 131 - rows, 8)
    assert_agrees(described(50, width, rows=rows, test=test, schedule=Schedule(Phase(20, 0.1), evaluate=5)))


@pytest.mark.parametrize("batch", [1, 7, 31, 33, 100, None])
@pytest.mark.parametrize(("inputs", "width"), [(1, 1), (65, 17), (300, 40)])
def test_every_batch_size_agrees(batch, inputs, width):
    assert_agrees(described(inputs, width, rows=130, schedule=Schedule(Phase(40, 0.1, batch_size=batch))))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute", "square"])
@pytest.mark.parametrize("width", [10, 100, 1000])
def test_every_loss_agrees(loss, width):
    assert_agrees(described(50, width, schedule=Schedule(Phase(100, 0.05, weight_decay=0.01), loss=loss)))


@pytest.mark.parametrize("activation", ["relu", "relu6", shifted_relu(0.1)])
def test_real_inputs_and_activations_agree(activation):
    X = Stream(1, "x").normal((90, 20)).astype(np.float32)
    start = init.dense()(20, 30, 1)
    network = TwoLayer(start.hidden * 3, start.bias, start.output, start.offset, activation)
    assert_agrees(Run(network, Schedule(Phase(60, 0.05)), X, Stream(1, "y").signs(90), seed=2), tolerance=1e-4)


@pytest.mark.parametrize("width", [10, 100, 1000])
def test_layers_phases_and_strong_decay_agree(width):
    own = Phase(50, PerLayer(0.1, 0.05, 0.2, 0.01), weight_decay=PerLayer(0.1, 0.01, 0.2, 0.3))
    listed = Phase(20, list(np.linspace(0.1, 0.01, 20)))
    strong = Phase(60, 0.1, weight_decay=1.0)
    assert_agrees(described(50, width, schedule=Schedule((own, listed, strong))))


@pytest.mark.parametrize("problem", [Parity(50, 3, noise=0.2), CorrelatedParity(50, 3, support=(5, 30, 49), noise=0.1)])
@pytest.mark.parametrize("width", [10, 1000])
@pytest.mark.parametrize("start", [init.dense(), init.sparse(2), init.sparse(7, 0.5)], ids=repr)
def test_online_runs_and_starts_drawn_on_the_device_agree(problem, width, start):
    assert_agrees(described(50, width, start=start, sample=None, source=problem))


@pytest.mark.parametrize("rows", [20, 33, 100])
def test_epochs_agree(rows):
    assert_agrees(described(50, 100, rows=rows, schedule=Schedule(Phase(100, 0.1), sampling="epochs")))


def test_a_run_repeats_bit_for_bit_alone_and_among_others():
    tasks = [described(50, width, seed=seed) for width in (10, 100, 1000) for seed in range(5)]
    together = CudaEngine().train(tasks)
    for task, result in zip(tasks, together, strict=True):
        alone = CudaEngine().train([task])[0]
        assert alone.network.equals(result.network) and alone.counters == result.counters
        assert all(
            np.array_equal(getattr(alone.history, n), getattr(result.history, n), equal_nan=True) for n in HISTORY
        )


def test_finished_runs_make_room_for_waiting_ones():
    schedule = Schedule(Phase(300, 0.1, weight_decay=0.01), evaluate=50, stop_error=0.45)
    tasks = [described(12, 10, seed=seed, schedule=schedule) for seed in range(5000)]
    results = CudaEngine().train(tasks, keep_networks=False)
    slow = ReferenceEngine().train(tasks[:40])
    assert [result.stopped for result in results[:40]] == [result.stopped for result in slow]
    assert {result.stopped for result in results} == {"steps", "test_error"}


@pytest.mark.parametrize("kind", ["resident", "streamed", "general"])
def test_ctrl_c_ends_a_kernel_within_a_second(monkeypatch, kind):
    if kind == "streamed":
        layout = KernelLayout(4, 1, 3, 2, 1, False, 1, streamed=True)
        monkeypatch.setattr(_kernels, "choose_layout", lambda *run, **loss: layout)
    size = 100 if kind == "general" else 32
    endless = Schedule(Phase(10**9, 0.1, batch_size=size), evaluate=10**9)
    short = Schedule(Phase(10, 0.1, batch_size=size))
    CudaEngine().train([described(50, 1000, schedule=short)])  # compiled and loaded
    pressed = []
    timer = threading.Timer(0.5, lambda: (pressed.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        CudaEngine().train([described(50, 1000, schedule=endless, seed=seed) for seed in range(50)])
    assert time.monotonic() - pressed[0] < 1
    CudaEngine().train([described(50, 1000, schedule=short)])  # and the device is free


def test_a_sweep_gives_the_rows_of_single_runs():
    """Three threads on one device, batches of one shape: the same bits as run by run."""
    spec = {
        "problem": {"name": "parity", "n": 20, "k": 3},
        "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [10, 300]},
        "data": {"samples": [100, "online"], "test_samples": 300},
        "training": {"steps": 500, "learning_rate": 0.1, "weight_decay": 0.01, "evaluate": 100, "stop_error": 0.1},
        "trials": 20,
    }
    sweep, together = Sweep.from_dict(spec), MemoryStore()
    state = sweep.run(together, engine="cuda")
    assert (state.executor, state.ran, state.failed) == ("device", 160, 0)
    rows = {row.hash: row for row in together.rows()}
    for number in range(0, 160, 7):
        run_spec = sweep.run_at(number)
        result = CudaEngine().train([run_spec.describe()], keep_networks=False)[0]
        assert rows[run_spec.hash].outcome() == row_of(run_spec, result).outcome()


def test_the_pace_is_that_of_training():
    task = described(50, 100, schedule=Schedule(Phase(20_000, 0.1, weight_decay=0.01), evaluate=20_000))
    pace, many = CudaEngine().pace(task), [replace(task, seed=seed) for seed in range(2000)]
    begun = time.monotonic()
    CudaEngine().train(many, keep_networks=False)
    spent = time.monotonic() - begun
    assert 0.3 * spent < 2000 * 20_000 * pace.step < 1.2 * spent


def test_ties_are_rare_over_the_suite():
    assert TALLY["apart"] <= 3 * TALLY["neurons"] / 1000
