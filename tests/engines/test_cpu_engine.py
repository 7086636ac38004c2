"""The C++ engine: conformance, and agreement with the reference engine run by run on awkward shapes."""

import numpy as np
import pytest

from fewfire import _extension
from fewfire._random import Stream
from fewfire.engines import CpuEngine, PerLayer, Phase, ReferenceEngine, Run, Schedule
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.problems import Parity
from fewfire.testing import EngineConformance
from fewfire.testing._engines import assert_same_network, small_run

pytestmark = pytest.mark.skipif(_extension.load() is None, reason="the C++ part is not installed")


class TestCpuEngine(EngineConformance):
    def engine(self):
        return CpuEngine(threads=2)

    def test_multiply_adds_skip_nothing_in_the_scores(self):
        result = self.train(small_run(Schedule(Phase(10, batch_size=4)), width=17))[0]
        assert result.counters.multiply_adds >= 10 * 4 * 17 * (9 + 1)
        assert result.counters.examples == 40


def both(task):
    fast, slow = CpuEngine(threads=1).train([task])[0], ReferenceEngine().train([task])[0]
    return fast, slow


def make(inputs, width, m, schedule, activation="relu", dense=False, seed=5, **more):
    stream = Stream(seed, "cpu")
    X = stream.child("x").sign_rows(m, inputs)
    y = np.where(stream.child("y").signs(m) > 0, 1, -1)
    if dense:
        X = (X * stream.child("d").uniform((m, inputs), 0.2, 1.0)).astype(np.float32)
    start = init.dense()(inputs, width, seed=seed)
    network = TwoLayer(start.hidden * 2, start.bias, start.output, start.offset, activation)
    return Run(network, schedule, X, y, seed=seed, **more)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("inputs", "width", "m", "batch"),
    [(1, 1, 1, 1), (3, 2, 7, 5), (16, 8, 40, 32), (50, 100, 300, 32), (64, 9, 33, 31), (65, 13, 64, 33), (130, 20, 50, 100),
     (200, 37, 100, None), (31, 5, 3, 32), (1024, 3, 20, 32)],
)  # fmt: skip
def test_agrees_with_the_reference(core, isa, inputs, width, m, batch):
    if isa not in core.available_isas():
        pytest.skip(f"this processor has no {isa}")
    core.set_isa(isa)
    task = make(inputs, width, m, Schedule(Phase(100, 0.1, weight_decay=0.01, batch_size=batch)))
    fast, slow = both(task)
    assert_same_network(fast.network, slow.network)
    for name in ("train_loss", "hidden_norm", "output_norm"):
        assert np.allclose(getattr(fast.history, name), getattr(slow.history, name), rtol=1e-4, atol=1e-5)
    assert np.array_equal(fast.history.step, slow.history.step)
    assert fast.counters.examples == slow.counters.examples
    # A neuron within rounding of its threshold may count on one side only.
    assert fast.counters.active_pairs == pytest.approx(slow.counters.active_pairs, rel=1e-3, abs=2)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "square", "absolute"])
@pytest.mark.parametrize("activation", ["relu", "relu6", shifted_relu(0.4)], ids=str)
@pytest.mark.parametrize("dense", [False, True])
def test_losses_and_activations(loss, activation, dense):
    schedule = Schedule(Phase(60, 0.05, weight_decay=0.02), loss=loss, evaluate=20)
    fast, slow = both(make(20, 30, 90, schedule, activation, dense))
    assert_same_network(fast.network, slow.network, 2e-5)
    assert np.allclose(fast.history.train_loss, slow.history.train_loss, rtol=1e-4)
    assert np.allclose(fast.history.active_fraction, slow.history.active_fraction, atol=2e-3)


@pytest.mark.parametrize("batch", [8, 32, 70, None])
def test_rates_decay_and_truncation_per_layer_and_step(batch):
    steps = 6
    phases = (
        Phase(steps, PerLayer([0.3, 0.2, 0.1, 0.3, 0.2, 0.1], 0.1, 0.2, 0.05), PerLayer(0.9, 0.0, 0.1, 0.0),
              PerLayer(hidden=1e-3, output=1e-3), decay="direct", batch_size=batch),
        Phase(3, PerLayer(output=0.1), batch_size=batch),
        Phase(2, 0.1, PerLayer(hidden=1.0), decay="direct", batch_size=batch),
    )  # fmt: skip
    fast, slow = both(make(24, 21, 64, Schedule(phases)))
    assert_same_network(fast.network, slow.network)


@pytest.mark.parametrize("batch", [7, 32, 50])
def test_epochs_agree(batch):
    fast, slow = both(make(12, 10, 45, Schedule(Phase(40, 0.1, batch_size=batch), sampling="epochs")))
    assert_same_network(fast.network, slow.network)


def test_strong_decay_does_not_lose_the_weights():
    """The side scalar is folded back before it underflows: 5000 steps of decay 0.9 each."""
    fast, slow = both(make(10, 8, 32, Schedule(Phase(5000, 0.1, weight_decay=1.0), loss="square")))
    assert_same_network(fast.network, slow.network, 1e-4)
    assert np.isfinite(fast.network.hidden).all()


def test_many_more_runs_than_threads_come_back_in_order():
    tasks = [make(10, 1 + i % 5, 20, Schedule(Phase(5 + i)), seed=i) for i in range(40)]
    results = CpuEngine(threads=2).train(tasks)
    assert [result.counters.steps for result in results] == [5 + i for i in range(40)]
    assert [result.network.width for result in results] == [1 + i % 5 for i in range(40)]


def test_online_runs_cross_the_refill_border(monkeypatch):
    monkeypatch.setattr("fewfire.engines.cpu._ONLINE_SIGNS", 500)
    problem = Parity(9, 2)
    task = Run(init.sparse(2)(9, 12, seed=1), Schedule(Phase(100, 0.1, batch_size=8)), source=problem, seed=3)
    fast, slow = both(task)
    assert_same_network(fast.network, slow.network)
    assert fast.counters.examples == 800


def test_float64_networks_are_refused():
    net = TwoLayer(np.ones((2, 3), dtype=np.float64), np.zeros(2), np.ones(2))
    with pytest.raises(
        ValueError, match="network must be float32 for the cpu engine; got dtype float64. Remedy: use the"
    ):
        CpuEngine().train([Run(net, Schedule(Phase(1)), np.ones((2, 3)), np.ones(2))])


def test_missing_extension_is_reported(without_core):
    assert "Remedy: install a C++20 compiler" in CpuEngine().unusable()
