"""The kernel that trains tabular networks: it compiles for every architecture, and its steps are PyTorch's."""

from types import SimpleNamespace

import numpy as np
import pytest

import fewfire as ff
from fewfire._cuda import CompileError, compiled, find_nvrtc, missing
from fewfire.tabular import SGD, AdamW, PeriodicEmbedding

torch = pytest.importorskip("torch")

from epoch_emulator import COMPILER, EmulatedKernel  # noqa: E402

from fewfire.tabular import _device_batch  # noqa: E402
from fewfire.tabular._device_batch import BatchPace, DeviceBatch  # noqa: E402
from fewfire.tabular._network import Layout  # noqa: E402
from fewfire.tabular.cuda import _epoch_kernel, load_kernel  # noqa: E402
from fewfire.tabular.cuda._epoch_kernel import KERNELS  # noqa: E402
from fewfire.tabular.cuda._records import FIELDS, known, places_of, share_blocks  # noqa: E402

SETTINGS = {"members": 2, "trees": False, "engine": "torch", "random_state": 0}
emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++, which compiles the kernel for the processor")


def table(rows=48, columns=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=rows)


@pytest.fixture
def kernel(tmp_path_factory, monkeypatch):
    """The kernel in the place of PyTorch's steps: seven blocks of threads, three epochs at a time."""
    found = EmulatedKernel(tmp_path_factory.getbasetemp())

    def use(blocks=7):
        monkeypatch.setattr(DeviceBatch, "_load_kernel", lambda self, layouts: (found, blocks))
        monkeypatch.setitem(_device_batch.PACES, "cpu", BatchPace(3, 1, 0.5, True))
        return found

    return use


@pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC, from the extra cuda13 or cuda12")
@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_it_compiles(architecture, tmp_path, monkeypatch):
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    code = compiled(KERNELS, "epochs.cu", architecture)
    assert code.startswith(b"\x7fELF") and b"train_epochs" in code


def test_where_it_does_not_compile_steps_are_recorded_with_a_warning(monkeypatch):
    def fails(*_):
        raise CompileError("NVRTC could not compile epochs.cu")

    monkeypatch.setattr(_epoch_kernel, "_LOADED", {})
    monkeypatch.setattr(_epoch_kernel, "missing", lambda: None)
    monkeypatch.setattr(_epoch_kernel, "current_device", lambda: SimpleNamespace(architecture=90))
    monkeypatch.setattr(_epoch_kernel, "compiled", fails)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    layouts = [Layout(5, (8,), 1, True)]
    with pytest.warns(
        UserWarning, match="could not compile epochs.cu\\nFits are right all the same, by recorded steps"
    ):
        assert load_kernel(layouts) is None
    assert load_kernel(layouts) is None  # said once


@emulated
def test_records_are_as_long_as_the_kernels(kernel):
    assert kernel().library.network_bytes() == 8 * len(FIELDS)


CASES = {
    "two classes": (ff.SparseInitClassifier, lambda y: y > 0, {"hidden": (40, 8), "gains": "mild"}),
    "classes": (
        ff.SparseInitClassifier,
        lambda y: np.digitize(y, [-0.6, 0.6]),
        {"hidden": (12, 9, 35), "scaling": "periodic", "gains": "mild", "skip": False},
    ),
    "targets": (
        ff.SparseInitRegressor,
        lambda y: np.column_stack([y, y**2]),
        {"hidden": (36,), "scaling": "periodic", "gains": "mild"},
    ),
}


@emulated
@pytest.mark.parametrize("optimiser", [SGD(0.1, epochs=4), AdamW(0.01, epochs=4, batch_size=17)])
@pytest.mark.parametrize("case", CASES)
def test_its_steps_are_those_of_pytorch(kernel, case, optimiser):
    build, target, settings = CASES[case]
    X, y = table()
    settings = {**SETTINGS, **settings, "optimiser": optimiser}
    weight = np.linspace(0.5, 2, len(X))
    theirs = build(**settings).fit(X, target(y), weight)
    used = kernel()
    ours = build(**settings).fit(X, target(y), weight)
    assert used.launches
    # AdamW moves weights of vanishing gradients by the sign of their rounding error; SGD does not.
    apart = 2e-4 if isinstance(optimiser, SGD) else 5e-3
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=apart)
    np.testing.assert_allclose(ours.validation_curve_, theirs.validation_curve_, rtol=apart)
    np.testing.assert_allclose(ours._outputs(X), theirs._outputs(X), atol=10 * apart)


@emulated
def test_networks_that_outnumber_the_blocks_take_turns_and_the_stopped_are_passed_over(kernel):
    X, y = table(30)
    settings = {**SETTINGS, "hidden": 12, "gains": "mild", "optimiser": SGD(0.05, epochs=8), "early_stopping": 1}
    theirs = ff.SparseInitRegressor(**settings).fit(X, y)
    for blocks in (2, 8):
        kernel(blocks)
        ours = ff.SparseInitRegressor(**settings).fit(X, y)
        for name, group in theirs._ensemble.groups.items():
            found = ours._ensemble.groups[name].curves
            np.testing.assert_allclose(found.validation, group.curves.validation, rtol=2e-4)
    assert len({len(group.curves.training) for group in theirs._ensemble.groups.values()}) > 1


@emulated
def test_weights_are_the_same_however_many_blocks_share_a_network(kernel):
    X, y = table(40)
    settings = {**SETTINGS, "hidden": (40, 33), "scaling": "periodic", "gains": "none", "optimiser": AdamW(epochs=3)}
    found = []
    for blocks in (2, 7):
        kernel(blocks)
        found.append(ff.SparseInitRegressor(**settings).fit(X, y)._ensemble.main().weights)
    assert np.array_equal(*found)


@emulated
def test_without_rows_held_out_the_weights_themselves_are_the_result(kernel):
    X, y = table(40)
    settings = {**SETTINGS, "hidden": 12, "early_stopping": False, "optimiser": SGD(0.1, epochs=4)}
    theirs = ff.SparseInitRegressor(**settings).fit(X, y)
    kernel()
    ours = ff.SparseInitRegressor(**settings).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


@emulated
def test_divergence_shows(kernel):
    kernel()
    X, y = table(40)
    with pytest.raises(ff.DivergenceError, match="not finite"):
        ff.SparseInitRegressor(**SETTINGS, hidden=12, scaling="rank", optimiser=SGD(1e20, epochs=4)).fit(X, y)


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
    parts, places = layout.unpack(flat), places_of(layout)
    found = {"at_hidden0": parts.hidden[0], "at_hidden1": parts.hidden[1], "at_bias1": parts.biases[1]}
    found |= {"at_output": parts.output, "at_skip": parts.skip, "at_offset": parts.offset}
    found |= dict(zip(("at_mix", "at_frequency", "at_phase", "at_shift"), parts.embedding, strict=True))
    assert {name: int(part.flat[0]) for name, part in found.items()} == {name: places[name] for name in found}
    assert places_of(Layout(3, (5,), 2, False))["at_skip"] == -1


class Other(PeriodicEmbedding):
    """An embedding of a user's own."""


def test_what_it_does_not_know_is_left_to_pytorch():
    assert known(Layout(3, (5, 4, 3), 32, True, PeriodicEmbedding(2))) and known(Layout(3, (5,), 1, False))
    assert not known(Layout(3, (5,), 33, False)) and not known(Layout(3, (5,), 1, False, Other(2)))
    assert load_kernel([Layout(3, (5,), 33, False)]) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available() or missing() is not None, reason="needs a GPU, CuPy and NVRTC")
@pytest.mark.parametrize("case", CASES)
def test_on_a_gpu_its_steps_are_those_that_are_recorded(monkeypatch, case):
    build, target, settings = CASES[case]
    X, y = table(200)
    settings = {**SETTINGS, **settings, "optimiser": SGD(0.1, epochs=12)}
    ours = build(**settings).fit(X, target(y))
    again = build(**settings).fit(X, target(y))
    assert np.array_equal(ours._outputs(X), again._outputs(X))
    monkeypatch.setattr(DeviceBatch, "_load_kernel", lambda self, layouts: None)
    theirs = build(**settings).fit(X, target(y))
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-3)
    np.testing.assert_allclose(ours._outputs(X), theirs._outputs(X), atol=1e-2)
