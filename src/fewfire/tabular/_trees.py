"""Trees beside the networks: extra trees and boosting, fitted on the networks' folds, for targets that jump.

Networks bend where the target does and lose where it jumps along few columns; trees the other way round, and the two
err on different rows. One model is fitted per fold and predicts the rows the fold left out; later rows get the mean of
all models. Trees see the columns in their own units: categories by their numbers, NaN where values are missing.

Extra trees (_extra_trees.py) do well from thirty rows on. Boosting (_boosting.py) wants some hundred rows; the rounds
that predict held-out rows best are kept, the same number in all models. Both are jobs of the queue in which the
networks train, and what is kept of either are `FlatTrees`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire.tabular._boosting import BinnedRows, Booster, BoostingRule, beside, binned, chances
from fewfire.tabular._extra_trees import ExtraTreesRule, WholeTargets, grown_trees, whole_targets
from fewfire.tabular._flat_trees import FlatTrees, joined, narrowed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._queue import Task

    TreeJob = Generator[list[Task], Any, Float64Array]
    """Trees being grown, as the queue works them off; what they predict of the rows held out."""

TREES = 100  # of a model on MANY rows or fewer
MANY = 2000  # rows; of more, fewer trees: they are larger, and their mean is less in need of number
LEAST_TREES = 25
EXTRA = ExtraTreesRule(least_rows=2, share=0.5)
PIECES = 4  # of a model of extra trees, or of the columns to be binned, for any threads to take
SMALL = BoostingRule(leaves=8, least_rows=5, learning_rate=0.1, bins=63)
LARGE = BoostingRule(leaves=31, least_rows=20, learning_rate=0.1, bins=127)
LARGE_ROWS = 5000  # of more, boosting has LARGE trees
FIRST_ROUNDS, STRETCH, MOST_ROUNDS = 60, 20, 500  # of boosting
ENOUGH = 0.7  # of the rounds so far: a best round before it ends boosting


@dataclass(frozen=True)
class TreeRows:
    """Rows as trees see them: table (rows, columns) with NaN, target (rows, outputs), weight (rows,)."""

    table: AnyArray
    target: AnyArray
    weight: AnyArray

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: IdArray) -> TreeRows:
        return TreeRows(self.table[rows], self.target[rows], self.weight[rows])

    def with_others(self, others: TreeRows) -> TreeRows:
        """These rows, then others."""
        pairs = [(self.table, others.table), (self.target, others.target), (self.weight, others.weight)]
        return TreeRows(*(np.concatenate(pair) for pair in pairs))

    def uneven(self) -> AnyArray | None:
        """The weights, or None where they are one."""
        return None if np.ptp(self.weight) == 0 else self.weight


class TreeModel(NamedTuple):
    """Trees and what is said without them (outputs,)."""

    trees: FlatTrees
    baseline: Float64Array

    def values(self, table: AnyArray) -> Float64Array:
        """The sum (rows, outputs) at a narrowed table."""
        return self.baseline + self.trees.sums(table, len(self.baseline))


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
        self.models: list[TreeModel] = []

    def train(self, rows: TreeRows, folds: Sequence[IdArray] | None, judges: TreeRows | None) -> TreeJob:
        """A job of the queue: fit a model on the rows outside each fold.

        It returns what the models predict of the rows held out (held out, outputs). With `judges` one model is fitted
        to all rows, and these are the rows held out.
        """
        if judges is None:
            assert folds is not None
            everything, places = rows, list(folds)
            parts = [_others(fold, len(rows)) for fold in folds]
        else:
            everything, places = rows.with_others(judges), [np.arange(len(rows), len(rows) + len(judges))]
            parts = [np.arange(len(rows))]
        yield from self._grow(everything, parts, places)
        cases = zip(self.models, places, strict=True)
        said = yield [partial(self._predict_rows, model, everything.table, ids) for model, ids in cases]
        return _pooled(said, places, len(everything))

    def predictions(self, table: Float64Array) -> Float64Array:
        """Mean prediction (rows, outputs) of the models at a table (rows, columns)."""
        shown = narrowed(table)
        return np.asarray(sum(self._predict(model, shown) for model in self.models) / len(self.models))

    @abstractmethod
    def described(self) -> str:
        """What was fitted, in words."""

    @abstractmethod
    def _predict(self, model: TreeModel, table: AnyArray) -> Float64Array:
        """What one model says of a narrowed table (rows, columns): (rows, outputs)."""

    @abstractmethod
    def _grow(self, rows: TreeRows, parts: list[IdArray], held: list[IdArray]) -> Generator[list[Task], Any, None]:
        """Fit a model to each part of the rows, and judge it, if need be, by those held out."""

    def _predict_rows(self, model: TreeModel, table: AnyArray, rows: IdArray) -> Float64Array:
        return self._predict(model, narrowed(table[rows]))

    def _seed(self, number: int) -> int:
        return int(self.stream.child(f"model{number}").integers(2**31 - 1, 1)[0])


class ExtraTrees(TreeGroup):
    """Trees that split at random places, half of the columns tried at each, and their mean."""

    def described(self) -> str:
        """How many trees."""
        return f"{len(self.models)} × {len(self.models[0].trees.roots)} trees"

    def _predict(self, model: TreeModel, table: AnyArray) -> Float64Array:
        return model.values(table) / len(model.trees.roots)

    def _grow(self, rows: TreeRows, parts: list[IdArray], held: list[IdArray]) -> Generator[list[Task], Any, None]:
        (targets,) = yield [partial(self._targets, rows)]
        pieces = yield [
            partial(grown_trees, targets, part, EXTRA, seeds)
            for number, part in enumerate(parts)
            for seeds in np.array_split(self._seeds(number, tree_count(len(part))), PIECES)
        ]
        self.models = [self._joined(pieces[first : first + PIECES]) for first in range(0, len(pieces), PIECES)]

    def fitted(self, rows: TreeRows, count: int) -> TreeModel:
        """A model of so many trees, grown to all rows."""
        return self._joined([grown_trees(self._targets(rows), np.arange(len(rows)), EXTRA, self._seeds(0, count))])

    def _targets(self, rows: TreeRows) -> WholeTargets:
        return whole_targets(narrowed(rows.table), rows.target, rows.uneven(), centred=self.loss == "squared")

    def _seeds(self, number: int, count: int) -> NDArray[np.uint64]:
        return self.stream.child(f"model{number}").words(2 * count).view(np.uint64)

    def _joined(self, pieces: Sequence[FlatTrees]) -> TreeModel:
        trees = joined(pieces)
        if self.loss == "logistic":  # from the chance of one class to those of both
            trees = replace(trees, values=np.hstack([1 - trees.values, trees.values]))
        return TreeModel(trees, np.zeros(self.outputs))


class Boosting(TreeGroup):
    """Gradient boosting, with the number of rounds that predicts held-out rows best."""

    rounds = grown = 0

    def described(self) -> str:
        """How many rounds are kept."""
        return f"{len(self.models)} × {self.rounds} rounds"

    def _predict(self, model: TreeModel, table: AnyArray) -> Float64Array:
        return chances(self.loss, model.values(table))

    def _grow(self, rows: TreeRows, parts: list[IdArray], held: list[IdArray]) -> Generator[list[Task], Any, None]:
        """Go on as long as the best round is among the last."""
        rule = boosting_rule(len(parts[0]))
        pieces = np.array_split(rows.table, min(PIECES, rows.table.shape[1]), axis=1)
        table = beside((yield [partial(_narrowed_and_binned, piece, rule.bins) for piece in pieces]))
        cases = enumerate(zip(parts, held, strict=True))
        boosters = [self.begun(rows, table, rule, *ids, number) for number, ids in cases]
        losses, stretch = np.zeros(0), FIRST_ROUNDS
        while len(losses) < MOST_ROUNDS:
            told = yield [partial(booster.advance, stretch) for booster in boosters]
            losses, stretch = np.append(losses, np.sum(told, axis=0)), min(STRETCH, MOST_ROUNDS - len(losses))
            self.rounds = int(losses.argmin()) + 1
            if self.rounds < ENOUGH * len(losses):
                break
        self.grown = len(losses)
        self.models = [TreeModel(*booster.trees(self.rounds)) for booster in boosters]

    def begun(
        self, rows: TreeRows, table: BinnedRows, rule: BoostingRule, part: IdArray, held: IdArray, number: int = 0
    ) -> Booster:
        """The model of fold `number`, before its first round."""
        target, weight = (np.ascontiguousarray(of, np.float32) for of in (rows.target, rows.weight))
        return Booster(table, target, weight, self.loss, part, held, rule, self._seed(number))


KINDS: dict[str, type[TreeGroup]] = {"extra trees": ExtraTrees, "boosting": Boosting}
"""Kinds of trees by name."""


def tree_count(rows: int) -> int:
    """Extra trees of a model on so many rows."""
    return max(LEAST_TREES, min(TREES, TREES * MANY // rows))


def boosting_rule(rows: int) -> BoostingRule:
    """How boosting goes about so many rows."""
    return LARGE if rows > LARGE_ROWS else SMALL


def _narrowed_and_binned(table: AnyArray, most: int) -> BinnedRows:
    return binned(narrowed(table), most)


def _others(fold: IdArray, rows: int) -> IdArray:
    outside = np.ones(rows, bool)
    outside[fold] = False
    return np.flatnonzero(outside)


def _pooled(said: list[Float64Array], places: list[IdArray], rows: int) -> Float64Array:
    """The mean prediction of each row that was held out, in the order of the rows."""
    total, count = np.zeros((rows, said[0].shape[1])), np.bincount(np.concatenate(places), minlength=rows)
    for ids, values in zip(places, said, strict=True):
        total[ids] += values
    return np.asarray(total[count > 0] / count[count > 0, None])
