"""What docs/architecture.md describes of adding a start, an encoding, a kind of tree, an optimiser and an executor.

Each is one class outside the package and, where there is a register, one entry.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_wine

from fewfire._dense.optimisers import Descent, Optimiser
from fewfire.networks import TwoLayer
from fewfire.networks.init._base import INITIALISERS, Initialiser
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.sweeps.executors import InlineExecutor
from fewfire.tabular import ENCODINGS, AdamW, Encoding, TabularClassifier
from fewfire.tabular._trees import TREES, RandomForest

X, Y = load_wine(return_X_y=True)
SMALL = {"members": 2, "random_state": 0}
SPEC = {
    "problem": {"name": "parity", "n": 8, "k": 2},
    "network": {"start": [{"name": "ones", "value": 0.5}, "dense"], "width": 5},
    "data": {"samples": 30, "test_samples": 40},
    "training": {"steps": 20, "batch_size": 8},
}


@dataclass(frozen=True, repr=False)
class Ones(Initialiser):
    name: ClassVar = "ones"
    value: float

    def _draw(self, inputs, width, stream):
        return TwoLayer(np.full((width, inputs), self.value, np.float32), np.zeros(width), np.ones(width))


class Backwards(InlineExecutor):
    """The batches in reverse."""

    name = "backwards"

    def run(self, batches, engine):
        yield from super().run(reversed(list(batches)), engine)


def test_specs_name_a_start(monkeypatch):
    monkeypatch.setitem(INITIALISERS, "ones", Ones)
    store = MemoryStore()
    state = Sweep.from_dict(SPEC).run(store, executor=Backwards())
    assert (state.ran, state.failed, state.executor) == (2, 0, "backwards")
    assert {run.start for run in Sweep.from_dict(SPEC).runs()} >= {Ones(0.5)}


class Halved(Encoding):
    """Columns by their ranges, from 0 to ½."""

    def fit_ranks(self, columns):
        self.low = np.array([column.distinct.min() for column in columns])
        self.range = np.array([np.ptp(column.distinct) or 1.0 for column in columns])
        return self

    def encode(self, table):
        return (table - self.low) / self.range / 2

    def sources(self):
        return np.arange(len(self.low))


def test_tables_take_an_encoding(monkeypatch):
    monkeypatch.setitem(ENCODINGS, "halved", Halved)
    assert TabularClassifier(scaling="halved", trees=False, **SMALL).fit(X, Y).score(X, Y) > 0.9


class Shares(RandomForest):
    """The training rows' shares of the classes."""

    def train(self, rows, folds, validation):
        held_out = np.concatenate(folds) if validation is None else np.arange(len(validation))
        self.share = np.average(rows.target, axis=0, weights=rows.weight)
        (found,) = yield [partial(np.tile, self.share, (len(held_out), 1))]
        return found

    def predictions(self, table):
        return np.tile(self.share, (len(table), 1))

    def description(self):
        return "shares"


def test_tables_take_a_kind_of_tree(monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setitem(TREES, "shares", Shares)
    model = TabularClassifier(**SMALL).fit(X, Y)
    assert model.score(X, Y) > 0.9 and 0 < model.mixing_weights_["shares"] < 0.5


class _SignDescent(Descent):
    memory = (0.0, 0.0)

    def step(self, parameters, gradient):
        self.steps += 1
        parameters -= self.learning_rate * np.sign(gradient)


@dataclass(eq=False, repr=False)
class SignDescent(Optimiser):
    """Steps of one size, in NumPy alone."""

    descent: ClassVar = _SignDescent
    stack: ClassVar = AdamW.stack
    learning_rate: float = 0.003
    weight_decay: float = 0.0
    batch_size: int = 32
    epochs: int = 20


def test_tables_take_an_optimiser():
    model = TabularClassifier(optimiser=SignDescent(), trees=False, **SMALL).fit(X, Y)
    assert model.score(X, Y) > 0.9
