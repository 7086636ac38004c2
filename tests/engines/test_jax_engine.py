"""The JAX engine: conformance, draws equal to the bit, and agreement with the reference engine on awkward shapes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewfire._dense.losses import LOSSES
from fewfire._dense.network import Backprop, Layout
from fewfire._dense.optimisers import SGD, AdamW
from fewfire._errors import DeviceMemoryError, EngineUnavailable, InvalidArgument
from fewfire._random import Stream
from fewfire.engines import PerLayer, Phase, ReferenceEngine, Run, Sample, Schedule, Start, get_engine, gradients
from fewfire.networks import Mlp, TwoLayer, init, shifted_relu
from fewfire.problems import Parity
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.testing import EngineConformance
from fewfire.testing._engines import assert_same_network, small_run

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
    batch = _batch.RunBatch(runs, False, JaxEngine())
    ended = [number for number, _ in batch.train(lambda done: None)]
    assert ended == [0, 1, 2, 3, 4, 5] and len(batch._members) <= 3
    assert batch._training.X.shape == (1, 600, 12)


def described(count, rows=30):
    problem = Parity(9, 2)
    return [
        Run(Start(init.dense(), 9, 5, seed=i), Schedule(Phase(5)), sample=Sample(problem, rows, seed=i), seed=i)
        for i in range(count)
    ]


def test_memory_is_planned_in_batches_of_one_size():
    runs = described(7)
    most = 3 * _engine._bytes(runs[0])
    assert [len(batch) for batch in _engine._batches(runs, most)] == [3, 3, 1]
    assert [len(batch) for batch in _engine._batches(runs, most + most // 2)] == [4, 3]
    assert [len(batch) for batch in _engine._batches(runs, 1)] == [1] * 7
    assert len(list(_engine._batches([*runs, *described(2, 40)], 1 << 40))) == 1  # rows may differ


def test_a_batch_that_finds_too_little_memory_is_split(monkeypatch):
    runs, train, sizes = described(5), _batch.train, []
    together = JaxEngine().train(runs)

    def full(form, state, *others):
        sizes.append(len(state.diverged))
        if sizes[-1] > 2:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.\nat length")
        return train(form, state, *others)

    monkeypatch.setattr(_batch, "train", full)
    seen = []
    for first, second in zip(
        together, JaxEngine().train(runs, progress=lambda *state: seen.append(state)), strict=True
    ):
        assert_same_network(first.network, second.network, 1e-6)
    assert sizes[:2] == [5, 3] and max(sizes[2:]) <= 2 and seen[-1] == (25, 25)

    def always(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")

    monkeypatch.setattr(_batch, "train", always)
    rule = r"a run of 9 inputs and widths \(5,\) takes about 0\.00 GiB, for .* \(RESOURCE_EXHAUSTED: .*\)\. Remedy: use fewer"
    with pytest.raises(DeviceMemoryError, match=rule):
        JaxEngine().train(runs)
    monkeypatch.setattr(_batch, "train", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        JaxEngine().train(runs)


def test_it_can_be_stopped_between_calls():
    calls = []

    def stop(done, total):
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        JaxEngine().train([small_run(Schedule(Phase(100_000), evaluate=100_000))], progress=stop)
    assert len(calls) == 1 and calls[0] <= 64  # the first call is short


def test_compiled_functions_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        _batch.keep_compiled()
        assert Path(jax.config.jax_compilation_cache_dir).parent == tmp_path / "jax"
        jax.config.update("jax_compilation_cache_dir", "chosen")
        _batch.keep_compiled()
        assert jax.config.jax_compilation_cache_dir == "chosen"
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_real_fresh_examples():
    class Real:
        inputs = 6

        def sample(self, m, seed, start=0):
            X = seed.normal((start + m) * 6).reshape(-1, 6)[start:].astype(np.float32)
            return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)

    schedule = Schedule(Phase(30, [0.1] * 15 + [0.05] * 15, batch_size=8))
    assert_agree([Run(init.dense()(6, 12, seed=seed), schedule, source=Real(), seed=seed) for seed in range(2)])


def layers_of(network):
    """Weights and biases by layer, the outputs last."""
    if isinstance(network, Mlp):
        return list(zip(network.weights, network.biases, strict=True))
    return [(network.hidden, network.bias), (network.output[None], np.array([network.offset]))]


def by_hand(run, optimiser):
    """The layers that a `Descent` of `_dense` gives, with the products of its `Backprop`."""
    layers, schedule = layers_of(run.network), run.schedule
    layout = Layout(run.inputs, run.widths, run.outputs, skip=False)
    flat = np.concatenate([part.ravel() for kind in zip(*layers, strict=True) for part in kind]).astype(np.float32)
    phase = schedule.phases[0]
    backprop, descent = Backprop(layout, flat, phase.batch_size), optimiser.start(layout.size, layout.decayed)
    for step in range(phase.steps):
        X, y = run.batch(phase.batch_size, step * phase.batch_size)
        target = np.eye(run.outputs)[y.astype(int)] if run.outputs > 1 else y[:, None]
        slopes = LOSSES[schedule.loss].slope(backprop.values(X.astype(np.float32)), target) / len(y)
        descent.step(flat, backprop.differentiate(X.astype(np.float32), slopes.astype(np.float32)))
    parts = layout.unpack(flat)
    return [*zip(parts.hidden, parts.biases, strict=True), (parts.output, parts.offset)]


def assert_same_layers(found, expected):
    """To 1e-4 of the largest weight, or of 1: half of the weights of each layer, and of a hidden one all but a neuron's.

    A neuron whose score comes within rounding of its threshold may fire in one of both only, and Adam makes a step of
    the rate's size of a gradient of any; in a deep network its neighbours then see another input. The hinge loss is not
    tried: terms of its gradients cancel to nothing but rounding.
    """
    deep = isinstance(found, Mlp)
    for pair, wanted in zip(layers_of(found), expected, strict=True):
        for a, b in zip(pair, wanted, strict=True):
            apart = np.abs(a - b).reshape(len(b), -1) > 1e-4 * max(1.0, np.abs(b).max())
            assert np.mean(apart) < 0.5 and (deep or apart.any(axis=1).sum() <= (len(apart) > 1))


MOMENTUM = {"momentum": 0.9}, SGD(0.003, weight_decay=0.1, momentum=0.9)
ADAMW = {"optimiser": "adamw"}, AdamW(0.003, weight_decay=0.1)


@pytest.mark.parametrize(
    ("widths", "loss", "settings", "optimiser"),
    [
        (30, "square", *ADAMW),
        (30, "logistic", *ADAMW),
        (30, "square", *MOMENTUM),
        ((30, 30), "logistic", *ADAMW),
        ((30, 20, 10), "square", *MOMENTUM),
    ],
)
def test_networks_and_optimisers_are_those_of_dense(widths, loss, settings, optimiser):
    phase = Phase(100, 0.003, weight_decay=PerLayer(hidden=0.1, output=0.1), batch_size=20)
    run = make(12, 30, 64, Schedule(phase, loss=loss, sampling="epochs", **settings), real=True)
    if widths != 30:
        run = replace(run, network=Start(init.sparse(2), 12, widths, seed=5).draw())
    result = JaxEngine().train([run])[0]
    assert_same_layers(result.network, by_hand(run, optimiser))
    first, begun = layers_of(result.network)[0][0], layers_of(run.network)[0][0]
    assert np.abs(first - begun).max() > 0.02  # it has moved


@pytest.mark.parametrize("widths", [20, (20, 10)])
def test_several_classes(widths):
    """Three outputs, softmax; errors are shares of wrong classes."""
    schedule = Schedule(Phase(100, 0.01, batch_size=16), loss="cross_entropy", optimiser="adamw")
    drawn = make(6, 4, 60, Schedule(Phase(1)), real=True)
    y = np.digitize(drawn.X[:, 0], [-0.3, 0.3])
    network = Start(init.dense(), 6, widths, seed=3, outputs=3).draw()
    run = Run(network, schedule, drawn.X, y, drawn.X, y, seed=2)
    result = JaxEngine().train([run])[0]
    assert_same_layers(result.network, by_hand(run, AdamW(0.01, weight_decay=0.0)))
    assert result.test_error == np.mean(result.network(run.X).argmax(axis=1) != y) < 0.2
    assert result.history.train_error[-1] == result.test_error
    powers = np.exp(result.network(run.X).astype(np.float64))
    chosen = powers[np.arange(60), y] / powers.sum(axis=1)
    assert result.history.train_loss[-1] == pytest.approx(-np.log(chosen).mean(), rel=1e-4)


def test_history_of_a_deep_network():
    schedule = Schedule(Phase(30, 0.05, batch_size=8), loss="logistic", evaluate=30)
    run = replace(make(5, 4, 40, schedule, support=[0, 2]), network=Start(init.dense(), 5, (9, 7), seed=3).draw())
    result = JaxEngine().train([run])[0]
    history, net = result.history, result.network
    (first, bias), (second, above), (output, _) = layers_of(net)
    assert history.hidden_norm[-1] == pytest.approx(np.hypot(np.linalg.norm(first), np.linalg.norm(second)), rel=1e-5)
    assert history.output_norm[-1] == pytest.approx(np.linalg.norm(output), rel=1e-5)
    mass = (np.abs(output) @ np.abs(second) @ np.abs(first))[0]
    assert history.support_weight[-1] == pytest.approx(mass[[0, 2]].sum() / mass.sum(), rel=1e-5)
    z = run.X @ first.T + bias
    fired = (z > 0).sum() + (np.maximum(z, 0) @ second.T + above > 0).sum()
    assert history.active_fraction[-1] == pytest.approx(fired / (40 * 16), rel=1e-5)
    assert result.counters.multiply_adds == 2 * 30 * 8 * (5 * 9 + 9 * 7 + 7)


@pytest.mark.parametrize(("precision", "name"), [("tf32", "jax-tf32"), ("bf16", "jax-bf16")])
def test_products_of_lower_precision_by_name(precision, name):
    """Weights stay float32: what rounding the factors to 8 bits changes is small, and recorded under another name."""
    schedule = Schedule(Phase(20, 0.05, batch_size=8), loss="logistic")
    run = replace(make(12, 4, 40, schedule, real=True), network=Start(init.dense(), 12, (30, 30), seed=3).draw())
    exact, rough = JaxEngine().train([run])[0], get_engine(name).train([run])[0]
    apart = max(np.abs(a - b).max() for a, b in zip(exact.network.weights, rough.network.weights, strict=True))
    assert apart < 2e-3 and rough.engine == name
    assert precision == "tf32" or apart > 1e-7
    assert rough.network.dtype == np.float32


def test_auto_takes_it_for_deeper_networks():
    spec = {
        "problem": {"name": "parity", "n": 8, "k": 2},
        "network": [{"start": "dense", "width": 8, "depth": [1, 2]}, {"start": "dense", "widths": [9, 4]}],
        "data": {"samples": 40, "test_samples": 20},
        "training": {"steps": 20},
    }
    store = MemoryStore()
    assert Sweep.from_dict(spec).run(store).engine == "jax"
    assert store.columns()["status"].tolist() == ["done"] * 3
    with pytest.raises(InvalidArgument, match=r"engine must be one that .*; got 'cpu'\. Remedy: use engine='jax'"):
        Sweep.from_dict(spec).run(store, engine="cpu")


def test_a_transformation_of_optax():
    """Lion's first step is that of signs."""
    schedule = Schedule(Phase(1, 0.5, batch_size=None), loss="logistic", optimiser="optax.scale_by_lion")
    run = small_run(schedule)
    g = gradients(run.network, run.X, run.y, "logistic")
    found = JaxEngine().train([run])[0].network
    clear = np.abs(g.hidden) > 1e-6  # others may be 0 on one side only
    assert np.allclose(found.hidden[clear], (run.network.hidden - 0.5 * np.sign(g.hidden))[clear], atol=1e-6)


@pytest.mark.parametrize("name", ["optax.scale_by_lyon", "optax.scale_by_rprop", "optax.__name__"])
def test_optimisers_that_optax_has_not_are_refused(name):
    rule = f"optimiser must be a transformation that the installed Optax has .*; got '{name}'\\. Remedy: write"
    with pytest.raises(InvalidArgument, match=rule):
        JaxEngine().train([small_run(Schedule(Phase(1), optimiser=name))])


def test_auto_takes_it_for_other_optimisers():
    assert get_engine(general=True).name == "jax"
    spec = {
        "problem": {"name": "parity", "n": 8, "k": 2},
        "network": {"start": "dense", "width": 8},
        "data": {"samples": 40, "test_samples": 20},
        "training": {"steps": 20, "optimiser": ["adamw", "sgd"]},
    }
    store = MemoryStore()
    assert Sweep.from_dict(spec).run(store).engine == "jax"
    assert store.columns()["engine"].tolist() == ["jax", "jax"]


def test_without_jax_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setattr(_engine, "is_installed", lambda module: False)
    remedy = r"engine 'jax' cannot run here: JAX is not installed\. Remedy: pip install 'fewfire\[jax\]'\."
    with pytest.raises(EngineUnavailable, match=remedy):
        get_engine("jax")
    with pytest.raises(EngineUnavailable, match=remedy):
        JaxEngine().train([])


def test_auto_leaves_two_layers_to_the_engines_written_for_them():
    assert get_engine(work=1e20).name != "jax"
