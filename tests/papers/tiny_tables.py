"""Made-up tabular data in place of the real sets: 120 rows, two columns, a class that the first column decides."""

import numpy as np
import pytest

COUNTED = []
"""The trainings of the model `counting`, as (trial, rows)."""


class Majority:
    """The larger class of the training rows; counts how often it is trained."""

    def __init__(self, trial, fail=False):
        self.trial, self.fail = trial, fail

    def fit(self, X, y):
        COUNTED.append((self.trial, len(X)))
        if self.fail:
            raise ValueError("no wish to learn")
        self.answer = int(np.mean(y) > 0.5)
        return self

    def predict(self, X):
        return np.full((len(X), 1), self.answer)  # a column, as CatBoost may give it


def write_tables(folder, *names, rows=120):
    """Parquet files NAME.parquet of made-up rows."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    columns = {"a": X[:, 0], "b": X[:, 1], "target": (X[:, 0] > 0).astype(np.int8)}
    for name in names:
        parquet.write_table(arrow.table(columns), folder / f"{name}.parquet")
    return folder
