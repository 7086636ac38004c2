"""What carries out the fits of SparseInitClassifier and SparseInitRegressor: threads, C++ or NumPy, PyTorch."""

import tracemalloc

import numpy as np
import pytest

import fewfire as ff
from fewfire._random import Stream
from fewfire.tabular import SGD, AdamW
from fewfire.tabular._embeddings import PeriodicEmbedding
from fewfire.tabular._network import Layout, evaluate, rows_at_once
from fewfire.tabular._settings import folds_of
from fewfire.tabular._training import TrainedNetwork, TrainingRows, held_out_folds

ONE_VARIANT = {
    "hidden": (32,),
    "trees": False,
    "members": 2,
    "scaling": "standard",
    "gains": "none",
    "random_state": 0,
    "optimiser": AdamW(0.01, 0.1, epochs=15),
}


def table(rows=80, columns=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    score = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def spy(method, shapes):
    """The method, noting the shape of what it is given."""

    def noting(self, array):
        shapes.append(array.shape)
        return method(self, array)

    return noting


@pytest.mark.parametrize("scaling", ["standard", "periodic"])
def test_without_the_cpp_part_numpy_takes_the_same_steps(monkeypatch, scaling):
    X, y = table(50)
    settings = {
        **ONE_VARIANT,
        "scaling": scaling,
        "early_stopping": False,
        "optimiser": AdamW(0.01, batch_size=20, epochs=5),
    }
    fast = ff.SparseInitClassifier(**settings).fit(X, y).decision_function(X)
    monkeypatch.setattr("fewfire._extension.core", lambda: None)
    np.testing.assert_allclose(ff.SparseInitClassifier(**settings).fit(X, y).decision_function(X), fast, atol=2e-3)


# AdamW moves weights of vanishing gradients by the sign of their rounding error, and periodic embeddings have many: over more epochs
# than the five of whole tables they take SGD.
@pytest.mark.parametrize(("scaling", "rule"), [("standard", AdamW(0.01, 0.1, epochs=15)), ("periodic", SGD(epochs=15))])
def test_torch_takes_the_same_steps(scaling, rule):
    pytest.importorskip("torch")
    X, y = table(50, classes=3)
    settings = {
        **ONE_VARIANT,
        "scaling": scaling,
        "optimiser": AdamW(0.01, batch_size=20, epochs=5),
        "early_stopping": False,
    }
    ours = ff.SparseInitClassifier(**settings).fit(X, y)  # all members on all rows
    torchs = ff.SparseInitClassifier(**settings, engine="torch").fit(X, y)
    assert (ours.engine_, torchs.engine_) == ("cpu", "torch")
    np.testing.assert_allclose(torchs.decision_function(X), ours.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(torchs.loss_curve_, ours.loss_curve_, atol=1e-4)
    stopped = [
        ff.SparseInitRegressor(**{**ONE_VARIANT, "scaling": scaling, "engine": engine, "optimiser": rule}).fit(
            X, 1.0 * y
        )
        for engine in ("cpu", "torch")
    ]
    exact = 1e-3 if scaling == "standard" else 1e-5
    np.testing.assert_allclose(stopped[1].validation_curve_, stopped[0].validation_curve_, atol=exact)
    np.testing.assert_allclose(stopped[1].predict(X), stopped[0].predict(X), atol=10 * exact)


# Parts of 48 and 49 rows, 3 and 4 steps; of 112 and 113, 7 and 8 steps; of 143 and 144, batches of 17 and 18.
@pytest.mark.parametrize("rows", [65, 150, 191])
@pytest.mark.parametrize(("rule", "exact"), [(SGD(0.03, "auto", epochs=15), 1e-5), (AdamW(0.01, epochs=15), 2e-3)])
def test_torch_takes_the_same_steps_on_parts_of_different_lengths(rows, rule, exact):
    pytest.importorskip("torch")
    X, y = table(rows)
    weight = np.where(np.arange(rows) % 5, 1.0, 0.0)  # a row of no weight is still a row of its batch
    settings = {**ONE_VARIANT, "members": 4, "optimiser": rule}
    ours, torchs = (ff.SparseInitClassifier(**settings, engine=engine).fit(X, y, weight) for engine in ("cpu", "torch"))
    np.testing.assert_allclose(torchs.predict_proba(X), ours.predict_proba(X), atol=exact)
    np.testing.assert_allclose(torchs.loss_curve_, ours.loss_curve_, atol=exact)
    ours, torchs = (ff.SparseInitRegressor(**settings, engine=engine).fit(X, X[:, 0]) for engine in ("cpu", "torch"))
    np.testing.assert_allclose(torchs.predict(X), ours.predict(X), atol=exact)
    np.testing.assert_allclose(torchs.validation_curve_, ours.validation_curve_, atol=exact)


def test_a_network_without_rows_in_a_step_stays_as_it_is():
    pytest.importorskip("torch")
    from fewfire.tabular._torch import TorchTrainer

    layout, rng = Layout(2, (3,), 1, skip=False), np.random.default_rng(0)
    flat = rng.normal(size=layout.size).astype(np.float32)
    for rule in (AdamW(0.1, 0.1, batch_size=2), SGD(0.1, 0.1, batch_size=2)):
        networks = [TrainedNetwork(layout, flat.copy(), rule, "squared", Stream(k, "t"), 2 + k) for k in range(2)]
        parts = [
            TrainingRows(
                *(part.astype(np.float32) for part in (rng.normal(size=(n, 2)), rng.normal(size=(n, 1)), np.arange(n)))
            )
            for n in (2, 3)
        ]
        trainer = TorchTrainer(networks, parts, [])
        for _ in range(3):
            trainer.train_epoch()
        trainer.release()
        assert trainer.steps == 3  # the second member's are six
        alone = TrainedNetwork(layout, flat.copy(), rule, "squared", Stream(0, "t"), 2)
        for _ in range(3):
            alone.train_epoch(parts[0])
        alone.release()
        np.testing.assert_allclose(networks[0].flat, alone.flat, atol=1e-5)


def test_predictions_of_wide_tables_take_few_rows_at_a_time():
    wide = Layout(500, (8,), 1, True, PeriodicEmbedding(16))
    block = rows_at_once(wide, 8)
    assert 16 <= block < 1024 == rows_at_once(Layout(20, (256, 64), 1, skip=True), 8)
    assert rows_at_once(Layout(10**6, (8,), 1, True, PeriodicEmbedding(16)), 8) == 16
    rng = np.random.default_rng(0)
    flat, X = rng.normal(size=wide.size), rng.normal(size=(2 * block + 3, 500))
    tracemalloc.start()
    outputs = evaluate(wide, flat, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20
    np.testing.assert_allclose(outputs[-3:], evaluate(wide, flat, X[-3:]), rtol=1e-9)


def test_torch_predicts_in_blocks_and_shares_validation_rows(monkeypatch):
    pytest.importorskip("torch")
    X, y = table(90)
    settings = {**ONE_VARIANT, "members": 3, "engine": "torch"}
    whole = ff.SparseInitClassifier(**settings).fit(X[:60], y[:60], validation_data=(X[60:], y[60:]))
    monkeypatch.setattr("fewfire.tabular._network.MOST_ROWS", 7)
    from fewfire.tabular._torch import TorchNetworks

    placed = []
    monkeypatch.setattr("fewfire.tabular._torch.TorchNetworks._moved", spy(TorchNetworks._moved, placed))
    blocks = ff.SparseInitClassifier(**settings).fit(X[:60], y[:60], validation_data=(X[60:], y[60:]))
    np.testing.assert_allclose(blocks.validation_curve_, whole.validation_curve_, rtol=1e-5)
    assert (1, 31, 4) in placed and (3, 31, 4) not in placed


def test_networks_see_more_of_many_rows():
    assert [folds_of(rows) for rows in (2, 4, 2000, 2001, 20_000)] == [2, 4, 4, 8, 8]
    held = held_out_folds(np.arange(2400) % 2, 4, folds_of(2400), Stream(0, "test"))
    assert [len(fold) for fold in held] == [300] * 4
    assert len(np.unique(np.concatenate(held))) == 1200
