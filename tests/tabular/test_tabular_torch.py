"""All networks of a fit as one batch of PyTorch's: the same fits as by threads, however many epochs are run at a time."""

import numpy as np
import pytest

import fewfire as ff
from fewfire.tabular import SGD, AdamW
from fewfire.tabular._queue import work_off_by

torch = pytest.importorskip("torch")

from fewfire.tabular import _device_batch, _layout_stack, _torch_steps  # noqa: E402
from fewfire.tabular._device_batch import BatchPace, DeviceBatch  # noqa: E402

NINE_VARIANTS = {
    "hidden": (16, 8),
    "members": 2,
    "trees": False,
    "random_state": 0,
    "optimiser": AdamW(0.03, epochs=20),
}


def table(rows=120, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=rows) > 1).astype(int)


def curves(model):
    return {name: group.curves for name, group in model._ensemble.groups.items()}


def test_all_variants_are_one_batch_and_stop_where_threads_would(monkeypatch):
    X, y = table()
    made, begin = [], DeviceBatch.__init__
    monkeypatch.setattr(DeviceBatch, "__init__", lambda self, *a, **k: (made.append(self), begin(self, *a, **k))[1])
    # AdamW moves weights of vanishing gradients by the sign of their rounding error; SGD does not.
    settings = {**NINE_VARIANTS, "optimiser": SGD(0.2, epochs=30), "early_stopping": 1, "n_jobs": 2}
    ours, theirs = (ff.SparseInitClassifier(**settings, engine=engine).fit(X, y) for engine in ("cpu", "torch"))
    batch, cooling = made
    assert len(cooling.groups) == len(ours.mixing_weights_)
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
    assert alike >= 7
    assert len(lengths) > 1  # some stopped, and the others went on without them
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("pace", [BatchPace(5, 3, 0.5, False), BatchPace(3, 2, 0.9, True)])
@pytest.mark.parametrize("early", [2, False])
def test_epochs_run_ahead_change_nothing(monkeypatch, early, pace):
    """As on a GPU: blocks of epochs, recordings of several steps, networks that have stopped left in the batch."""
    X, y = table(150)
    settings = {**NINE_VARIANTS, "early_stopping": early, "engine": "torch", "warm_start": True}
    one = ff.SparseInitClassifier(**settings).fit(X, y)
    monkeypatch.setitem(_device_batch.PACES, "cpu", pace)
    several = ff.SparseInitClassifier(**settings).fit(X, y)
    for name, found in curves(several).items():
        np.testing.assert_allclose(found.validation, curves(one)[name].validation, atol=1e-5)
        np.testing.assert_allclose(found.training, curves(one)[name].training, atol=1e-5)
    np.testing.assert_allclose(several.predict_proba(X), one.predict_proba(X), atol=1e-4)
    drawn, without = (
        [net.rows_drawn for group in model._ensemble.groups.values() for net in group.networks]
        for model in (several, one)
    )
    assert drawn == without  # a later fit takes up the orders where this one stopped


def test_weights_of_many_epochs_are_not_kept_where_they_are_too_large(monkeypatch):
    X, y = table(60)
    settings = {**NINE_VARIANTS, "scaling": "rank", "engine": "torch", "early_stopping": 3}
    few = ff.SparseInitClassifier(**settings).fit(X, y)
    monkeypatch.setitem(_device_batch.PACES, "cpu", BatchPace(5, 1, 1.0, True))
    monkeypatch.setattr(_device_batch, "AHEAD_BYTES", 1)
    blocks = []
    monkeypatch.setattr(
        DeviceBatch, "_fill", lambda self, *a, do=DeviceBatch._fill: (blocks.append(self._epochs), do(self, *a))
    )
    same = ff.SparseInitClassifier(**settings).fit(X, y)
    assert set(blocks) == {1}
    assert np.array_equal(same.predict_proba(X), few.predict_proba(X))


@pytest.mark.parametrize("scaling", ["rank", "periodic"])
def test_held_out_rows_are_predicted_some_at_a_time(monkeypatch, scaling):
    X, y = table(90)
    settings = {**NINE_VARIANTS, "scaling": scaling, "gains": "none", "engine": "torch"}
    whole = ff.SparseInitClassifier(**settings).fit(X[:50], y[:50], validation_data=(X[50:], y[50:]))
    monkeypatch.setattr(_torch_steps, "JUDGED_BYTES", 1)
    blocks = ff.SparseInitClassifier(**settings).fit(X[:50], y[:50], validation_data=(X[50:], y[50:]))
    np.testing.assert_allclose(blocks.validation_curve_, whole.validation_curve_, rtol=1e-5)


def test_a_table_that_several_networks_see_is_placed_once():
    one, other = np.ones((3, 2), np.float32), np.full((2, 2), 2, np.float32)
    joined, starts = _layout_stack._joined([one, other, one])
    assert starts.tolist() == [0, 4, 0]
    assert joined[:, 0].tolist() == [1, 1, 1, 0, 2, 2, 0]


def test_regressors_of_several_targets_and_more_classes_agree():
    X, _ = table(80)
    Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2]])
    settings = {**NINE_VARIANTS, "scaling": "periodic", "gains": "mild"}
    ours, theirs = (ff.SparseInitRegressor(**settings, engine=engine).fit(X, Y) for engine in ("cpu", "torch"))
    np.testing.assert_allclose(theirs.validation_curve_, ours.validation_curve_, atol=2e-3)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    ours, theirs = (ff.SparseInitClassifier(**settings, engine=engine).fit(X, labels) for engine in ("cpu", "torch"))
    np.testing.assert_allclose(theirs.validation_curve_, ours.validation_curve_, atol=2e-3)


def test_trees_beside_the_batch_are_the_same_trees():
    X, y = table(60)
    settings = {**NINE_VARIANTS, "trees": True, "scaling": "rank", "gains": "none"}
    ours, theirs = (ff.SparseInitClassifier(**settings, engine=engine).fit(X, y) for engine in ("cpu", "torch"))
    assert list(theirs._ensemble.trees) == ["extra trees", "boosting"]
    for name, trees in theirs._ensemble.trees.items():
        assert np.array_equal(trees.predictions(X), ours._ensemble.trees[name].predictions(X))
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=5e-3)


def test_an_error_of_a_batch_is_the_fits(monkeypatch):
    def fails(self, wanted):
        raise MemoryError("no room on the device")

    monkeypatch.setattr(DeviceBatch, "advance", fails)
    with pytest.raises(MemoryError, match="no room"):
        ff.SparseInitClassifier(**{**NINE_VARIANTS, "trees": True}, engine="torch").fit(*table(40))


def test_a_runner_gets_all_tasks_that_are_ready():
    seen = []

    def runner(tasks):
        seen.append(len(tasks))
        return tasks

    def job(rounds):
        total = 0
        for number in range(rounds):
            total += sum((yield [lambda number=number: number, lambda: 1]))
        return total

    assert work_off_by(runner, [job(2), job(3)]) == [3, 6]
    assert seen == [4, 4, 2]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_steps_are_the_steps_of_the_processor(monkeypatch):
    X, y = table(150)
    settings = {**NINE_VARIANTS, "early_stopping": 3, "engine": "torch"}
    on_gpu = ff.SparseInitClassifier(**settings).fit(X, y)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_processor = ff.SparseInitClassifier(**settings).fit(X, y)
    for name, found in curves(on_gpu).items():
        wanted = curves(on_processor)[name].training
        np.testing.assert_allclose(found.training[:5], wanted[:5], atol=1e-3)
    np.testing.assert_allclose(on_gpu.predict_proba(X), on_processor.predict_proba(X), atol=0.02)
