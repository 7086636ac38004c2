"""The JAX engine: conformance, draws equal to the bit, and agreement with the reference engine on awkward shapes."""

import numpy as np
import pytest

from fewfire._errors import EngineUnavailable
from fewfire._random import Stream
from fewfire.engines import PerLayer, Phase, ReferenceEngine, Run, Sample, Schedule, Start, get_engine
from fewfire.networks import TwoLayer, init, shifted_relu
from fewfire.problems import Parity
from fewfire.testing import EngineConformance
from fewfire.testing._engines import assert_same_network

jax = pytest.importorskip("jax", reason="JAX is not installed (WITH_JAX=1 make test installs it)")

from fewfire.engines.jax import JaxEngine, _batch, _engine, _philox  # noqa: E402


class TestJaxEngine(EngineConformance):
    def engine(self):
        return JaxEngine()


@pytest.mark.parametrize("start", [0, 1, 6, 2**32 - 3, 2**34 - 2, 2**63 + 5])
@pytest.mark.parametrize("count", [1, 4, 31])
def test_words_are_those_of_the_stream(start, count):
    stream = Stream(0xFEDCBA9876543210, "batches/epochs")
    drawn = jax.jit(_philox.words, static_argnums=3)(*map(_philox.pair, (stream.key, stream.id, start)), count)
    assert np.array_equal(np.asarray(drawn), stream.words(count, start))


@pytest.mark.parametrize("bound", [1, 2, 1000, 65_537, 2**31 - 1])
def test_integers_are_those_of_the_stream(bound):
    stream = Stream(3, "batches")
    drawn = _philox.integers(stream.words(500), np.uint32(bound))
    assert np.array_equal(np.asarray(drawn), stream.integers(bound, 500))


def test_permutations_are_those_of_the_stream():
    words = Stream(3, "batches").words(1000) >> np.uint32(24)  # many ties: the order is stable
    assert np.array_equal(np.asarray(_philox.permutation(words)), np.argsort(words, kind="stable"))


def make(inputs, width, rows, schedule, activation="relu", real=False, seed=5, **more):
    stream = Stream(seed, "jax")
    X = stream.child("x").sign_rows(rows, inputs)
    y = np.where(stream.child("y").signs(rows) > 0, 1, -1)
    if real:
        X = (X * stream.child("d").uniform((rows, inputs), 0.2, 1.0)).astype(np.float32)
    start = init.dense()(inputs, width, seed=seed)
    network = TwoLayer(start.hidden * 2, start.bias, start.output, start.offset, activation)
    return Run(network, schedule, X, y, seed=seed, **more)


def assert_agree(runs):
    for fast, slow in zip(JaxEngine().train(runs), ReferenceEngine().train(runs), strict=True):
        assert_same_network(fast.network, slow.network)
        for name in ("train_loss", "hidden_norm", "output_norm"):
            assert np.allclose(
                getattr(fast.history, name), getattr(slow.history, name), rtol=1e-4, atol=1e-5, equal_nan=True
            )
        assert np.array_equal(fast.history.step, slow.history.step)
        assert (fast.counters.examples, fast.counters.multiply_adds) == (
            slow.counters.examples,
            slow.counters.multiply_adds,
        )
        # A neuron within rounding of its threshold may count on one side only.
        assert fast.counters.active_pairs == pytest.approx(slow.counters.active_pairs, rel=1e-3, abs=2)
        assert fast.stopped == slow.stopped and fast.engine == "jax"


@pytest.mark.parametrize(
    ("inputs", "width", "rows", "batch"), [(1, 1, 1, 1), (3, 2, 7, 5), (50, 100, 300, 32), (130, 20, 50, 100)]
)
@pytest.mark.parametrize("sampling", ["replacement", "epochs"])
def test_agrees_with_the_reference(inputs, width, rows, batch, sampling):
    """Batches that reach over several epochs among them."""
    schedule = Schedule(Phase(100, 0.1, weight_decay=0.01, batch_size=batch), sampling=sampling)
    assert_agree([make(inputs, width, rows, schedule, seed=seed) for seed in range(2)])


def test_runs_of_a_batch_keep_their_own_settings():
    """Numbers of rows, activations, rates, decays and truncations may differ."""
    schedules = [
        Schedule((Phase(40, rate, weight_decay=decay, truncation=PerLayer(output=cut)), Phase(3, 0.1, batch_size=None)))
        for rate, decay, cut in ((0.1, 0.0, 0.0), (0.05, 0.1, 0.01), ([0.02 + 0.001 * t for t in range(40)], 0.0, 0.0))
    ]
    runs = [
        make(12, 30, rows, schedule, activation, real=real)
        for rows, schedule, activation, real in zip(
            (100, 37, 64), schedules, ("relu", shifted_relu(0.1), "relu6"), (False, True, False), strict=True
        )
    ]
    assert_agree(runs)


def test_a_batch_shrinks_as_runs_end():
    """What goes on is trained as if it were alone; tables that runs share are copied once."""
    problem = Parity(12, 2)
    table, held_out = problem.sample(600, seed=1), problem.sample(200, seed=2)
    runs = []
    for seed in range(6):
        schedule = Schedule(Phase(600, 0.1), evaluate=50, stop_error=1.0 if seed < 4 else 0.0 if seed == 4 else None)
        runs.append(Run(init.sparse(2)(12, 40, seed=seed), schedule, *table, *held_out, seed=seed))
    assert_agree(runs)
    batch = _batch.RunBatch(runs, keep_networks=False)
    ended = [number for number, _ in batch.train(lambda done: None)]
    assert ended == [0, 1, 2, 3, 4, 5] and len(batch._members) <= 3
    assert batch._training.X.shape == (1, 600, 12)


def test_large_examples_come_in_several_batches(monkeypatch):
    problem = Parity(9, 2)
    runs = [
        Run(Start(init.dense(), 9, 5, seed=i), Schedule(Phase(5)), sample=Sample(problem, 30, seed=i), seed=i)
        for i in range(3)
    ]
    together = JaxEngine().train(runs)
    monkeypatch.setattr(_engine, "BATCH_BYTES", 1)
    for first, second in zip(together, JaxEngine().train(runs), strict=True):
        assert_same_network(first.network, second.network, 1e-6)


def test_real_fresh_examples():
    class Real:
        inputs = 6

        def sample(self, m, seed, start=0):
            X = seed.normal((start + m) * 6).reshape(-1, 6)[start:].astype(np.float32)
            return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)

    schedule = Schedule(Phase(30, [0.1] * 15 + [0.05] * 15, batch_size=8))
    assert_agree([Run(init.dense()(6, 12, seed=seed), schedule, source=Real(), seed=seed) for seed in range(2)])


def test_without_jax_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setattr(_engine, "is_installed", lambda module: False)
    remedy = r"engine 'jax' cannot run here: JAX is not installed\. Remedy: pip install 'fewfire\[jax\]'\."
    with pytest.raises(EngineUnavailable, match=remedy):
        get_engine("jax")
    with pytest.raises(EngineUnavailable, match=remedy):
        JaxEngine().train([])


def test_auto_leaves_two_layers_to_the_engines_written_for_them():
    assert get_engine(work=1e20).name != "jax"
