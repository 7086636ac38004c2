"""Trees beside the networks: extra trees and boosting, fitted on the networks' folds, for targets that jump.

Networks bend where the target does and lose where it jumps along few columns; trees the other way round, and the two
err on different rows. One model is fitted per fold and predicts the rows the fold left out; later rows get the mean of
all models. Trees see the columns as they are: categories by their numbers, NaN where values are missing.

Extra trees (Geurts, Ernst and Wehenkel 2006) do well from thirty rows on. Boosting is scikit-learn's, of histograms;
it wants some hundred rows. The rounds that predict held-out rows best are kept, the same number in all models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from threadpoolctl import threadpool_limits

from fewfire.tabular._mixing import likelihood

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._network import TabularLoss

TREES = 100  # of a model on MANY rows or fewer
MANY = 2000  # rows; of more, fewer trees: they are larger, and their mean is less in need of number
LEAST_TREES = 25
STRETCHES = (60, 200, 500)  # rounds of boosting, one after the other
ENOUGH = 0.7  # of a stretch: a best round before it ends boosting
BOOSTED = {"max_features": 0.5, "l2_regularization": 1.0, "early_stopping": False, "warm_start": True}
SMALL = {"max_leaf_nodes": 8, "min_samples_leaf": 5, "max_bins": 63}  # few bins: a quarter of the time on wide tables
LARGE = {"max_leaf_nodes": 31, "min_samples_leaf": 20, "learning_rate": 0.05}
LARGE_ROWS = 5000  # of more, boosting has LARGE trees
LARGEST = 1e30  # trees take float32, whose sums over a table are to stay finite


@dataclass(frozen=True)
class TreeRows:
    """Rows as trees see them: table (rows, columns) with NaN, target (rows, outputs), weight (rows,)."""

    table: Float64Array
    target: AnyArray
    weight: AnyArray

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: IdArray) -> TreeRows:
        return TreeRows(self.table[rows], self.target[rows], self.weight[rows])

    def uneven(self) -> AnyArray | None:
        """The weights, or None where they are one: bins of weighted rows take seconds to find."""
        return None if np.ptp(self.weight) == 0 else self.weight


Parts = list[TreeRows]


class TreeGroup(ABC):
    """Models of one kind of tree, one per fold, that predict chances of classes or targets.

    Parameters
    ----------
    loss : str
        "squared" asks for targets, the others for chances.
    outputs : int
        Classes of which there are chances, or targets.
    stream : Stream
        Seeds the models.
    """

    def __init__(self, loss: TabularLoss, outputs: int, stream: Stream) -> None:
        self.loss, self.outputs, self.stream = loss, outputs, stream
        self.models: list[Any] = []

    def train(
        self, rows: TreeRows, folds: Sequence[IdArray] | None, judges: TreeRows | None, threads: int
    ) -> Float64Array:
        """Fit a model on the rows outside each fold; what they predict of the rows held out (held out, outputs).

        With `judges` one model is fitted to all rows, and these are the rows held out.
        """
        if judges is not None:
            parts, held, places = [rows], [judges], [np.arange(len(judges))]
        else:
            assert folds is not None
            parts = [rows[np.setdiff1d(np.arange(len(rows)), fold)] for fold in folds]
            held, places = [rows[fold] for fold in folds], list(folds)
        seeds = [int(self.stream.child(f"model{number}").integers(2**31 - 1, 1)[0]) for number in range(len(parts))]
        self.models = [self._model(seed, part) for seed, part in zip(seeds, parts, strict=True)]
        with ThreadPoolExecutor(threads) as pool:
            return self._grow(parts, held, places, judges or rows, pool)

    def predictions(self, table: Float64Array) -> Float64Array:
        """Mean prediction (rows, outputs) of the models at a table (rows, columns)."""
        return np.asarray(sum(self._predict(model, table) for model in self.models) / len(self.models))

    @abstractmethod
    def described(self) -> str:
        """What was fitted, in words."""

    @abstractmethod
    def _model(self, seed: int, part: TreeRows) -> Any:
        """A model to be fitted to a part of the rows."""

    @abstractmethod
    def _predict(self, model: Any, table: Float64Array) -> Float64Array:
        """What one model says of a table (rows, columns): (rows, outputs)."""

    @abstractmethod
    def _grow(self, parts: Parts, held: Parts, places: list[IdArray], rows: TreeRows, pool: Executor) -> Float64Array:
        """Fit every model to its part; what they say of the rows held out, whose places among `rows` are given."""

    def _labels(self, target: AnyArray) -> AnyArray:
        """Targets as scikit-learn takes them: classes (rows,), or numbers (rows, outputs)."""
        if self.loss == "squared":
            return target
        return target.argmax(axis=1) if target.shape[1] > 1 else (target[:, 0] > 0.5).astype(np.int64)

    def _complete(self, model: Any, chances: Float64Array) -> Float64Array:
        """Chances of all classes, of a model whose rows may lack some."""
        complete = np.zeros((len(chances), self.outputs))
        complete[:, model.classes_] = chances[:, : len(model.classes_)] if len(model.classes_) > 1 else 1.0
        return complete


class ExtraTrees(TreeGroup):
    """Trees that split at random places, half of the columns tried at each, and their mean."""

    def described(self) -> str:
        """How many trees."""
        return f"{len(self.models)} × {self.models[0].n_estimators} trees"

    def _model(self, seed: int, part: TreeRows) -> Any:
        build = ExtraTreesRegressor if self.loss == "squared" else ExtraTreesClassifier
        trees = max(LEAST_TREES, min(TREES, TREES * MANY // len(part)))
        return build(trees, min_samples_leaf=2, max_features=0.5, random_state=seed)

    def _predict(self, model: Any, table: Float64Array) -> Float64Array:
        if self.loss == "squared":
            return np.asarray(model.predict(_narrowed(table))).reshape(len(table), -1)
        return self._complete(model, model.predict_proba(_narrowed(table)))

    def _grow(self, parts: Parts, held: Parts, places: list[IdArray], rows: TreeRows, pool: Executor) -> Float64Array:
        list(pool.map(self._fit, self.models, parts))
        return _pooled(list(pool.map(self._predict, self.models, [part.table for part in held])), places, len(rows))

    def _fit(self, model: Any, part: TreeRows) -> None:
        model.fit(_narrowed(part.table), self._labels(part.target).squeeze(), part.uneven())


class Boosting(TreeGroup):
    """Gradient boosting of histograms, with the number of rounds that predicts held-out rows best."""

    rounds = 0

    def described(self) -> str:
        """How many rounds are kept."""
        return f"{len(self.models)} × {self.rounds} rounds"

    def _model(self, seed: int, part: TreeRows) -> Any:
        """A classifier in a list, or a regressor per target."""
        build = HistGradientBoostingRegressor if self.loss == "squared" else HistGradientBoostingClassifier
        size = LARGE if len(part) > LARGE_ROWS else SMALL
        count = self.outputs if self.loss == "squared" else 1
        return [build(**BOOSTED, **size, random_state=seed) for _ in range(count)]

    def _predict(self, model: Any, table: Float64Array) -> Float64Array:
        return next(islice(self._stages(model, table), self.rounds - 1, None))

    def _grow(self, parts: Parts, held: Parts, places: list[IdArray], rows: TreeRows, pool: Executor) -> Float64Array:
        """Go on by stretches as long as the best round is among the last."""
        seen = rows[np.unique(np.concatenate(places))]
        for rounds in STRETCHES:
            list(pool.map(self._fit, self.models, parts, [rounds] * len(parts)))
            best, lowest = np.zeros(0), np.inf
            stages = [self._stages(model, part.table) for model, part in zip(self.models, held, strict=True)]
            for number, said in enumerate(zip(*stages, strict=True)):
                pooled = _pooled(list(said), places, len(rows))
                value = likelihood(self.loss, pooled[None], seen.target, seen.weight)(np.ones(1))[0]
                if value < lowest:
                    best, lowest, self.rounds = pooled, value, number + 1
            if self.rounds < ENOUGH * rounds:
                break
        return best

    def _fit(self, model: Any, part: TreeRows, rounds: int) -> None:
        """Go on to so many rounds; in one thread of OpenMP, as models are shared out and sums depend on threads."""
        labels = self._labels(part.target).reshape(len(part), -1)
        with threadpool_limits(1, "openmp"):
            for one, of in zip(model, labels.T, strict=True):
                one.set_params(max_iter=rounds).fit(part.table, of, part.uneven())

    def _stages(self, model: Any, table: Float64Array) -> Iterator[Float64Array]:
        """What a model says after each round."""
        with threadpool_limits(1, "openmp"):
            if self.loss == "squared":
                for columns in zip(*(one.staged_predict(table) for one in model), strict=True):
                    yield np.column_stack(columns)
            else:
                for chances in model[0].staged_predict_proba(table):
                    yield self._complete(model[0], chances)


KINDS: dict[str, type[TreeGroup]] = {"extra trees": ExtraTrees, "boosting": Boosting}
"""Kinds of trees by name."""


def _pooled(said: list[Float64Array], places: list[IdArray], rows: int) -> Float64Array:
    """The mean prediction of each row that was held out, in the order of the rows."""
    total, count = np.zeros((rows, said[0].shape[1])), np.bincount(np.concatenate(places), minlength=rows)
    for ids, values in zip(places, said, strict=True):
        total[ids] += values
    return np.asarray(total[count > 0] / count[count > 0, None])


def _narrowed(table: Float64Array) -> AnyArray:
    return np.clip(table, -LARGEST, LARGEST).astype(np.float32)
