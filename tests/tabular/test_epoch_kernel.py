"""The kernel that trains tabular networks: it compiles for every architecture, and its steps are PyTorch's."""

import numpy as np
import pytest

import fewfire as ff
from fewfire._cuda import compiled, find_nvrtc
from fewfire.tabular import SGD, AdamW

torch = pytest.importorskip("torch")

from epoch_emulator import COMPILER, EmulatedKernel  # noqa: E402

from fewfire.tabular import _device_batch  # noqa: E402
from fewfire.tabular._device_batch import BatchPace, DeviceBatch  # noqa: E402
from fewfire.tabular.cuda._epoch_kernel import KERNELS  # noqa: E402
from fewfire.tabular.cuda._records import FIELDS  # noqa: E402

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++, which compiles the kernel for the processor")


def table(rows=60, columns=5, seed=0):
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


@emulated
def test_records_are_as_long_as_the_kernels(kernel):
    assert kernel().library.network_bytes() == 8 * len(FIELDS)


CASES = {
    "logistic, all variants": (ff.SparseInitClassifier, lambda y: y > 0, {"hidden": (40, 8)}),
    "classes": (
        ff.SparseInitClassifier,
        lambda y: np.digitize(y, [-0.6, 0.6]),
        {"hidden": (12, 9, 35), "scaling": "periodic", "skip": False},
    ),
    "targets": (
        ff.SparseInitRegressor,
        lambda y: np.column_stack([y, y**2]),
        {"hidden": (36,), "scaling": "periodic", "gains": "mild"},
    ),
}


@emulated
@pytest.mark.parametrize("optimiser", [SGD(0.1, epochs=6), AdamW(0.01, epochs=6, batch_size=17)])
@pytest.mark.parametrize("case", CASES)
def test_its_steps_are_those_of_pytorch(kernel, case, optimiser):
    build, target, settings = CASES[case]
    X, y = table()
    settings = {"members": 2, "trees": False, "engine": "torch", "random_state": 0, **settings, "optimiser": optimiser}
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
