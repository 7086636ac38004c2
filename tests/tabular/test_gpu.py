"""`device="cuda"`: the kernel compiles, and fits are those of the processor; it runs here on an emulated GPU."""

import numpy as np
import pytest
from epoch_emulator import COMPILER, emulate

import fewfire as ff
from fewfire._cuda._compile import compiled
from fewfire._cuda._device import missing
from fewfire._cuda._nvrtc import find_nvrtc
from fewfire._dense.network import Layout, PeriodicEmbedding, Rows
from fewfire._random import Stream
from fewfire._threads import Helpers
from fewfire.tabular import SGD, AdamW, _gpu
from fewfire.tabular._gpu import (
    FIELDS,
    GpuBatch,
    GpuRunner,
    GpuTrainer,
    joined_tables,
    part_starts,
    refuse_unknown,
    share_blocks,
)
from fewfire.tabular._training import TrainedNetwork

NINE_VARIANTS = {
    "hidden": (16, 8),
    "members": 2,
    "trees": False,
    "random_state": 0,
    "optimiser": AdamW(0.03, epochs=20),
}
SETTINGS = {"members": 2, "trees": False, "random_state": 0}
emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++, which compiles the kernel for the processor")


def table(rows=48, columns=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=rows)


def classes(rows=120, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=rows) > 1).astype(int)


def curves(model):
    return {name: group.curves for name, group in model._ensemble.groups.items()}


def on_both(build, *data, **settings):
    """The same fit on the processor and on the GPU."""
    return (build(**settings, device=device).fit(*data) for device in ("cpu", "cuda"))


@pytest.fixture
def gpu(tmp_path_factory, monkeypatch):
    """An emulated GPU: three blocks of threads, three epochs at a time, unless asked for others."""

    def use(blocks=3, ahead=3):
        return emulate(monkeypatch, tmp_path_factory.getbasetemp(), blocks, ahead)

    use()
    return use


@pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC, from the extra cuda13 or cuda12")
@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_it_compiles(architecture, tmp_path, monkeypatch):
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    code = compiled(_gpu.KERNELS, "epochs.cu", architecture)
    assert code.startswith(b"\x7fELF") and b"train_epochs" in code


def test_without_a_gpu_it_names_what_is_missing(monkeypatch):
    monkeypatch.setattr(_gpu, "missing", lambda otherwise: f"CUDA found no device. Remedy: {otherwise}.")
    with pytest.raises(
        ff.EngineUnavailable, match="device='cuda' cannot train networks: CUDA found no device. Remedy: pass"
    ):
        ff.TabularClassifier(**SETTINGS, device="cuda").fit(*classes())


@emulated
def test_records_are_as_long_as_the_kernels(gpu):
    assert gpu().library.network_bytes() == 8 * len(FIELDS)


CASES = {
    "two classes": (ff.TabularClassifier, lambda y: y > 0, {"hidden": (40, 8), "gains": "mild"}),
    "classes": (
        ff.TabularClassifier,
        lambda y: np.digitize(y, [-0.6, 0.6]),
        {"hidden": (12, 9, 35), "scaling": "periodic", "gains": "mild", "skip": False},
    ),
    "targets": (
        ff.TabularRegressor,
        lambda y: np.column_stack([y, y**2]),
        {"hidden": (36,), "scaling": "periodic", "gains": "mild"},
    ),
}


@emulated
@pytest.mark.parametrize("optimiser", [SGD(0.1, epochs=4), AdamW(0.01, epochs=4, batch_size=17)])
@pytest.mark.parametrize("case", CASES)
def test_its_steps_are_those_of_the_processor(gpu, case, optimiser):
    gpu(7)
    build, target, settings = CASES[case]
    X, y = table()
    weight = np.linspace(0.5, 2, len(X))
    theirs, ours = on_both(build, X, target(y), weight, **{**SETTINGS, **settings, "optimiser": optimiser})
    # AdamW moves weights of vanishing gradients by the sign of their rounding error; SGD does not.
    apart = 2e-4 if isinstance(optimiser, SGD) else 5e-3
    assert (ours.device_, theirs.device_) == ("cuda", "cpu")
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=apart)
    np.testing.assert_allclose(ours.validation_curve_, theirs.validation_curve_, rtol=apart)
    np.testing.assert_allclose(ours._outputs(X), theirs._outputs(X), atol=10 * apart)


# Periodic embeddings have many weights of vanishing gradients: over more epochs than the five of whole tables they take SGD.
@emulated
@pytest.mark.parametrize(("scaling", "rule"), [("standard", AdamW(0.01, 0.1, epochs=8)), ("periodic", SGD(epochs=8))])
def test_the_same_steps_with_and_without_rows_held_out(gpu, scaling, rule):
    X, y = table(50)
    labels = np.digitize(y, [-0.6, 0.6])
    settings = {**SETTINGS, "hidden": (12,), "scaling": scaling, "gains": "none"}
    every = {"optimiser": AdamW(0.01, batch_size=20, epochs=5), "early_stopping": False}
    theirs, ours = on_both(ff.TabularClassifier, X, labels, **settings, **every)  # all members on all rows
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, atol=1e-4)
    theirs, ours = on_both(ff.TabularRegressor, X, 1.0 * labels, **settings, optimiser=rule)
    exact = 1e-3 if scaling == "standard" else 1e-5
    np.testing.assert_allclose(ours.validation_curve_, theirs.validation_curve_, atol=exact)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=10 * exact)


@emulated
def test_a_network_without_rows_in_a_step_stays_as_it_is(gpu):
    layout, rng = Layout(2, (3,), 1, skip=False), np.random.default_rng(0)
    flat = rng.normal(size=layout.size).astype(np.float32)
    for rule in (AdamW(0.1, 0.1, batch_size=2), SGD(0.1, 0.1, batch_size=2)):
        networks = [TrainedNetwork(layout, flat.copy(), rule, "squared", Stream(k, "t"), 2 + k) for k in range(2)]
        parts = [
            Rows(
                *(part.astype(np.float32) for part in (rng.normal(size=(n, 2)), rng.normal(size=(n, 1)), np.arange(n)))
            )
            for n in (2, 3)
        ]
        trainer = GpuTrainer(networks, parts, [])
        with Helpers(1) as pool:
            for _ in range(3):
                GpuRunner(pool).run(trainer.epoch())
            trainer.release()
        assert trainer.steps == 3  # the second member's are six
        alone = TrainedNetwork(layout, flat.copy(), rule, "squared", Stream(0, "t"), 2)
        for _ in range(3):
            alone.train_epoch(parts[0])
        alone.release()
        np.testing.assert_allclose(networks[0].flat, alone.flat, atol=1e-5)


def numbers_of(model, X):
    """What a fit gives, as one vector."""
    values = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    return np.concatenate([values.ravel(), model.loss_curve_, model.validation_curve_])


def rounded_apart(build, X, *rest, **settings):
    """How far eight fits on the processor come apart whose tables differ by the rounding of a sum of 16 terms.

    It is 1e-6 or less, unless some row is so near a neuron's kink that a rounding decides on which side it is.
    """
    fits = []
    for seed in range(8):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], X.shape)
        fits.append(numbers_of(build(**settings).fit(X * (1 + 2.0**-20 * signs), *rest), X))
    return np.ptp(fits, axis=0).max()


# Parts of 48 and 49 rows, 3 and 4 steps; of 112 and 113, 7 and 8 steps; of 143 and 144, batches of 17 and 18.
@emulated
@pytest.mark.parametrize("rows", [65, 150, 191])
@pytest.mark.parametrize(("rule", "exact"), [(SGD(0.03, "auto", epochs=6), 1e-5), (AdamW(0.01, epochs=6), 2e-3)])
def test_the_same_steps_on_parts_of_different_lengths(gpu, rows, rule, exact):
    X, y = classes(rows, 3)
    weight = np.where(np.arange(rows) % 5, 1.0, 0.0)  # a row of no weight is left out
    settings = {**SETTINGS, "hidden": (12,), "members": 4, "scaling": "standard", "gains": "none", "optimiser": rule}
    for build, *data in ((ff.TabularClassifier, X, y, weight), (ff.TabularRegressor, X, X[:, 0])):
        theirs, ours = on_both(build, *data, **settings)
        apart = np.abs(numbers_of(ours, X) - numbers_of(theirs, X)).max()
        assert apart <= exact or apart <= 2 * rounded_apart(build, *data, **settings)


@emulated
def test_networks_that_outnumber_the_blocks_take_turns_and_the_stopped_are_passed_over(gpu):
    X, y = table(30)
    settings = {**SETTINGS, "hidden": 12, "gains": "mild", "optimiser": SGD(0.05, epochs=8), "early_stopping": 1}
    theirs = ff.TabularRegressor(**settings).fit(X, y)
    for blocks in (2, 8):
        gpu(blocks)
        ours = ff.TabularRegressor(**settings, device="cuda").fit(X, y)
        for name, group in theirs._ensemble.groups.items():
            found = ours._ensemble.groups[name].curves
            np.testing.assert_allclose(found.validation, group.curves.validation, rtol=2e-4)
    assert len({len(group.curves.training) for group in theirs._ensemble.groups.values()}) > 1


@emulated
def test_weights_are_the_same_however_many_blocks_share_a_network(gpu):
    X, y = table(40)
    settings = {**SETTINGS, "hidden": (40, 33), "scaling": "periodic", "gains": "none", "optimiser": AdamW(epochs=3)}
    found = []
    for blocks in (2, 7):
        gpu(blocks)
        found.append(ff.TabularRegressor(**settings, device="cuda").fit(X, y)._ensemble.main().weights)
    assert np.array_equal(*found)


@emulated
def test_without_rows_held_out_the_weights_themselves_are_the_result(gpu):
    X, y = table(40)
    settings = {**SETTINGS, "hidden": 12, "early_stopping": False, "optimiser": SGD(0.1, epochs=4)}
    theirs, ours = on_both(ff.TabularRegressor, X, y, **settings)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


@emulated
def test_divergence_shows(gpu):
    X, y = table(40)
    with pytest.raises(ff.DivergenceError, match="not finite"):
        ff.TabularRegressor(**SETTINGS, device="cuda", hidden=12, scaling="rank", optimiser=SGD(1e20, epochs=4)).fit(
            X, y
        )


@emulated
def test_all_variants_are_one_batch_and_stop_where_threads_would(gpu, monkeypatch):
    X, y = classes(60)
    made, begin = [], GpuBatch.__init__
    monkeypatch.setattr(GpuBatch, "__init__", lambda self, *a: (made.append(self), begin(self, *a))[1])
    # AdamW moves weights of vanishing gradients by the sign of their rounding error; SGD does not.
    settings = {**NINE_VARIANTS, "optimiser": SGD(0.2, epochs=12), "early_stopping": 1, "n_jobs": 2}
    ours, theirs = on_both(ff.TabularClassifier, X, y, **settings)
    batch, annealing = made
    assert len(annealing.groups) == len(ours.mixing_weights_)
    assert len(batch.groups) == 9 and len({stack.layout for stack in batch.stacks}) == len(batch.stacks) <= 3
    assert theirs.mixing_weights_.keys() == ours.mixing_weights_.keys()
    lengths, alike = set(), 0
    for name, found in curves(theirs).items():
        wanted = curves(ours)[name]
        assert len(found.training) == len(wanted.training)
        lengths.add(len(found.training))
        # First kinks pass through rows: there rounding may decide whether a row counts, and the paths of a variant part.
        if np.abs(np.subtract(found.training[:5], wanted.training[:5])).max() < 1e-6:
            np.testing.assert_allclose(found.validation, wanted.validation, atol=1e-3)
            alike += 1
    assert alike >= len(curves(ours)) - 2
    assert len(lengths) > 1  # some stopped, and the others went on without them
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=0.02)


@emulated
@pytest.mark.parametrize("early", [2, False])
def test_epochs_run_ahead_change_nothing(gpu, early):
    X, y = classes(60)
    settings = {**NINE_VARIANTS, "gains": "none", "early_stopping": early, "device": "cuda", "warm_start": True}
    settings["optimiser"] = AdamW(0.03, epochs=8)
    models = []
    for ahead in (1, 3, 5):
        gpu(ahead=ahead)
        models.append(ff.TabularClassifier(**settings).fit(X, y))
    one, *others = models
    for several in others:
        assert np.array_equal(several.predict_proba(X), one.predict_proba(X))
        assert curves(several) == curves(one)
        drawn, without = (
            [net.rows_drawn for group in model._ensemble.groups.values() for net in group.networks]
            for model in (several, one)
        )
        assert drawn == without  # a later fit takes up the orders where this one stopped


@emulated
def test_weights_of_many_epochs_are_not_kept_where_they_are_too_large(gpu, monkeypatch):
    X, y = classes(60)
    settings = {**NINE_VARIANTS, "scaling": "rank", "gains": "none", "device": "cuda", "early_stopping": 3}
    few = ff.TabularClassifier(**settings).fit(X, y)
    monkeypatch.setattr(_gpu, "AHEAD_BYTES", 1)
    blocks = []
    monkeypatch.setattr(
        GpuBatch, "_fill", lambda self, *a, do=GpuBatch._fill: (blocks.append(self._epochs), do(self, *a))
    )
    same = ff.TabularClassifier(**settings).fit(X, y)
    assert set(blocks) == {1}
    assert np.array_equal(same.predict_proba(X), few.predict_proba(X))


@emulated
@pytest.mark.parametrize("scaling", ["rank", "periodic"])
def test_held_out_rows_are_predicted_some_at_a_time(gpu, monkeypatch, scaling):
    X, y = classes(90)
    settings = {
        **NINE_VARIANTS,
        "scaling": scaling,
        "gains": "none",
        "device": "cuda",
        "optimiser": AdamW(0.03, epochs=5),
    }
    whole = ff.TabularClassifier(**settings).fit(X[:50], y[:50], validation_data=(X[50:], y[50:]))
    monkeypatch.setattr(_gpu, "SPACE_BYTES", 1)
    blocks = ff.TabularClassifier(**settings).fit(X[:50], y[:50], validation_data=(X[50:], y[50:]))
    np.testing.assert_allclose(blocks.validation_curve_, whole.validation_curve_, rtol=1e-5)


@emulated
def test_trees_are_the_same_trees(gpu):
    X, y = classes(60)
    settings = {**NINE_VARIANTS, "trees": True, "scaling": "rank", "gains": "none", "optimiser": AdamW(0.03, epochs=5)}
    ours, theirs = on_both(ff.TabularClassifier, X, y, **settings)
    assert list(theirs._ensemble.trees) == ["random forest", "boosting"]
    for name, trees in theirs._ensemble.trees.items():
        assert np.array_equal(trees.predictions(X), ours._ensemble.trees[name].predictions(X))
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=5e-3)


@emulated
def test_an_error_of_a_batch_is_the_fits(gpu, monkeypatch):
    def fails(self, wanted):
        raise MemoryError("no room on the device")

    monkeypatch.setattr(GpuBatch, "advance", fails)
    with pytest.raises(MemoryError, match="no room"):
        ff.TabularClassifier(**{**NINE_VARIANTS, "trees": True}, device="cuda").fit(*classes(40))


def test_a_table_that_several_networks_see_is_placed_once():
    one, other = np.ones((3, 2), np.float32), np.full((2, 2), 2, np.float32)
    joined, starts = joined_tables([one, other, one])
    assert starts.tolist() == [0, 4, 0]
    assert joined[:, 0].tolist() == [1, 1, 1, 0, 2, 2, 0]


def test_blocks_are_shared_by_work():
    shares = share_blocks([1.0, 5.0, 2.0], 16)
    assert shares.shape == (16, 4)
    assert np.bincount(shares[:, 0]).tolist() == [2, 10, 4]
    for network, of in enumerate((2, 10, 4)):
        mine = shares[shares[:, 0] == network]
        assert mine[:, 1].tolist() == list(range(of)) and set(mine[:, 2]) == {of} and set(mine[:, 3]) == {3}
    assert share_blocks([1.0] * 5, 3).tolist() == [[0, 0, 1, 3], [1, 0, 1, 3], [2, 0, 1, 3]]
    assert share_blocks([1.0, 1e9], 4)[:, 0].tolist() == [0, 1, 1, 1]


def test_parts_of_a_vector_are_where_the_layout_has_them():
    layout = Layout(3, (5, 4), 2, True, PeriodicEmbedding(2))
    flat = np.arange(layout.size, dtype=np.float32)
    parts, starts = layout.unpack(flat), part_starts(layout)
    found = {"at_hidden0": parts.hidden[0], "at_hidden1": parts.hidden[1], "at_bias1": parts.biases[1]}
    found |= {"at_output": parts.output, "at_skip": parts.skip, "at_offset": parts.offset}
    found |= dict(zip(("at_mix", "at_frequency", "at_phase", "at_shift"), parts.embedding, strict=True))
    assert {name: int(part.flat[0]) for name, part in found.items()} == {name: starts[name] for name in found}
    assert part_starts(Layout(3, (5,), 2, False))["at_skip"] == -1


class Other(PeriodicEmbedding):
    """An embedding of a user's own."""


def test_what_the_kernel_does_not_support_is_refused():
    refuse_unknown(Layout(3, (5, 4, 3), 32, True, PeriodicEmbedding(2)))
    with pytest.raises(
        ff.InvalidArgument, match="device must be 'cpu' for more than 32 classes or targets; got 'cuda'"
    ):
        refuse_unknown(Layout(3, (5,), 33, False))
    with pytest.raises(ff.InvalidArgument, match="device must be 'cpu' for an embedding such as Other"):
        refuse_unknown(Layout(3, (5,), 1, False, Other(2)))


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason="needs a GPU, CuPy and NVRTC")
@pytest.mark.parametrize("case", CASES)
def test_on_a_gpu_its_steps_are_those_of_the_processor(case):
    build, target, settings = CASES[case]
    X, y = table(200)
    settings = {**SETTINGS, **settings, "optimiser": SGD(0.1, epochs=12)}
    theirs, ours = on_both(build, X, target(y), **settings)
    again = build(**settings, device="cuda").fit(X, target(y))
    assert np.array_equal(ours._outputs(X), again._outputs(X))
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-3)
    np.testing.assert_allclose(ours._outputs(X), theirs._outputs(X), atol=1e-2)


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason="needs a GPU, CuPy and NVRTC")
def test_on_a_gpu_variants_stop_as_on_the_processor():
    X, y = classes(150)
    on_processor, on_gpu = on_both(ff.TabularClassifier, X, y, **NINE_VARIANTS, early_stopping=3)
    for name, found in curves(on_gpu).items():
        np.testing.assert_allclose(found.training[:5], curves(on_processor)[name].training[:5], atol=1e-3)
    np.testing.assert_allclose(on_gpu.predict_proba(X), on_processor.predict_proba(X), atol=0.02)
