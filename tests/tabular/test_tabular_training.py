"""What carries out the fits of TabularClassifier and TabularRegressor: threads, C++ or NumPy, PyTorch."""

import tracemalloc

import numpy as np
import pytest

import fewfire as ff
from fewfire._dense.network import Layout, PeriodicEmbedding, evaluate, rows_at_once
from fewfire.tabular import AdamW

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


@pytest.mark.parametrize("scaling", ["standard", "periodic"])
def test_without_the_cpp_part_numpy_takes_the_same_steps(monkeypatch, scaling):
    X, y = table(50)
    settings = {
        **ONE_VARIANT,
        "scaling": scaling,
        "early_stopping": False,
        "optimiser": AdamW(0.01, batch_size=20, epochs=5),
    }
    fast = ff.TabularClassifier(**settings).fit(X, y).decision_function(X)
    monkeypatch.setattr("fewfire._extension.core", lambda: None)
    np.testing.assert_allclose(ff.TabularClassifier(**settings).fit(X, y).decision_function(X), fast, atol=2e-3)


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
