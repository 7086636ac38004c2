"""LightGBM's trees that are mixed with the networks: a random forest and boosting, fitted on the networks' folds.

Networks bend where the target does and lose where it jumps along few columns; trees the other way round, and the two
err on different rows. One model is fitted per fold and predicts the rows the fold left out; later rows get the mean of
all models. Trees see the columns in their own units: categories by their numbers, NaN where values are missing.

A random forest (Breiman 2001) does well from thirty rows on. It regresses targets, or indicators of classes, less their
mean: a tree of LightGBM's forest that finds no split predicts 0. Boosting (Friedman 2001; Ke et al. 2017) needs some
hundred rows; the rounds that predict held-out rows best are kept, the same number in all models. Columns are binned
once for all folds. Every model is grown by one thread, so the same seed gives the same bits on any number of threads.

Growing is a job that runs with those of the networks. To add a kind of tree, write a `TreeGroup` and enter it in
`TREES`.
"""

from __future__ import annotations

import bz2
import math
import re
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire._dense.network import Rows
from fewfire._errors import MissingDependency
from fewfire.tabular._training import pooled

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from types import ModuleType

    from lightgbm import Booster, Dataset

    from fewfire._dense.losses import TabularLoss
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._training import Job, Task

    Growth = Generator[list[Task], Any, None]

MOST_TREES = 100  # of a model on MANY rows or fewer
MANY = 2000  # rows; of more, fewer trees: they are larger, and their mean is less in need of number
FEWEST_TREES = 25
MOST_OUTPUTS = 32  # outputs that have so many trees, or rounds, each; more share those of so many
LARGE_ROWS = 5000  # of more, boosting has LARGE trees
FIRST_ROUNDS, STRETCH, MOST_ROUNDS = 60, 20, 500  # of boosting
ENOUGH = 0.7  # of the rounds so far: a best round before it ends boosting
LEAST_PROBABILITY = 1e-6  # less is none: of a class that a model has not seen, or rounded in float32

SHARED: dict[str, Any] = {
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
    "min_data_in_bin": 1,
    "feature_pre_filter": False,  # it would drop columns that no split of all rows can use
    "feature_fraction_bynode": 0.5,
    "histogram_pool_size": 64,  # MB per model that grows; without a limit, a forest has histograms of all its leaves
}
FOREST = SHARED | {
    "boosting": "rf",
    "objective": "regression",
    "max_bin": 63,
    "min_data_in_leaf": 2,
    "bagging_fraction": 0.632,
    "bagging_freq": 1,
}
BOOSTING = SHARED | {"learning_rate": 0.1, "lambda_l2": 1.0}
SMALL = BOOSTING | {"num_leaves": 8, "min_data_in_leaf": 5, "max_bin": 63}
LARGE = BOOSTING | {"num_leaves": 31, "min_data_in_leaf": 20, "max_bin": 127}
UNUSED = re.compile("^(internal_value|internal_weight|leaf_weight|tree_sizes)=.*\n", re.M)
"""Lines of LightGBM's text that neither predictions nor importances nor SHAP values need."""
DROPPED = ("objective", "average_output", "tree_sizes")
"""Lines of its head that do not hold of boosters put together."""
NO_SPLIT = "num_leaves=1\nnum_cat=0\nleaf_value=0\nis_linear=0\nshrinkage=1"
FEW_ROWS = 8  # of which the calls of several boosters take longer than their trees
MOST_LEAVES = 131_072  # LightGBM's limit
OBJECTIVES = {"squared": "regression", "logistic": "binary", "cross_entropy": "multiclass"}


def load_lightgbm() -> ModuleType:
    """LightGBM, imported when trees are grown: it takes a while, and its library needs the system's OpenMP."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        remedy = "pip install lightgbm"
        if not isinstance(error, ImportError):
            remedy = "install the system's OpenMP library (Debian: apt install libgomp1; macOS: brew install libomp)"
        reason = f"Trees need LightGBM, which cannot be imported here ({error})"
        raise MissingDependency(f"{reason}. Remedy: {remedy}, or pass trees=False.") from error
    return lightgbm


class TreeModel(NamedTuple):
    """Boosters that share the outputs among them, and what is to be added to their predictions (outputs,)."""

    boosters: list[Booster]
    baseline: Float64Array

    def values(self, table: AnyArray) -> Float64Array:
        """What the boosters predict (rows, outputs) for a table (rows, columns)."""
        found: list[Any] = [booster.predict(table, num_threads=1) for booster in self.boosters]
        return np.column_stack(found)

    def __reduce__(self) -> tuple[Any, ...]:
        texts = (UNUSED.sub("", booster.model_to_string()) for booster in self.boosters)
        return _unpacked, ([_packed(text) for text in texts], self.baseline)

    def __deepcopy__(self, memo: dict[int, Any]) -> TreeModel:
        return self  # grown models do not change


def _packed(text: str) -> tuple[bytes, list[int]]:
    """LightGBM's text at a sixth of its length: lines of one key side by side, compressed, and where they were."""
    lines = text.split("\n")
    order = sorted(range(len(lines)), key=lambda index: lines[index].partition("=")[0])
    return bz2.compress("\n".join(lines[index] for index in order).encode()), order


def _unpacked(packed: list[tuple[bytes, list[int]]], baseline: Float64Array) -> TreeModel:
    boosters = []
    for compressed, order in packed:
        lines = dict(zip(order, bz2.decompress(compressed).decode().split("\n"), strict=True))
        text = "\n".join(lines[index] for index in range(len(lines)))
        boosters.append(load_lightgbm().Booster(model_str=text))
    return TreeModel(boosters, baseline)


class MergedBooster:
    """Boosters as one of many outputs, for predictions to the same bits: of one row the time is that of the call."""

    def __init__(self, boosters: list[Booster]) -> None:
        heads, texts = zip(*(tree_texts(booster) for booster in boosters), strict=True)
        outputs = [int(head["num_tree_per_iteration"]) for head in heads]
        columns = [trees[k::count] for trees, count in zip(texts, outputs, strict=True) for k in range(count)]
        rounds = [max(1, len(column)) for column in columns]
        # Boosters may differ in their number of rounds: trees that add 0 make up for that.
        trees = [column[i] if i < len(column) else NO_SPLIT for i in range(max(rounds)) for column in columns]
        head = heads[0] | {"num_class": str(len(columns)), "num_tree_per_iteration": str(len(columns))}
        lines = [f"{key}={value}" if value else key for key, value in head.items() if key not in DROPPED]
        lines += [f"\nTree={number}\n{tree}\n" for number, tree in enumerate(trees)]
        self.booster = load_lightgbm().Booster(model_str="\n".join([*lines, "end of trees\n"]))
        self.outputs, self.objective = outputs[0], heads[0]["objective"].split()[0]
        self.rounds = np.array(rounds if "average_output" in heads[0] else [1] * len(rounds))

    def values(self, table: AnyArray) -> Float64Array:
        """What the boosters predict, next to one another: (rows, outputs of all)."""
        found = np.asarray(self.booster.predict(table, raw_score=True, num_threads=1))
        sums = found.reshape(len(table), len(self.rounds))
        if self.objective == "binary":
            return np.asarray(1 / (1 + _exp(-sums)))
        if self.objective == "multiclass":
            parts = sums.reshape(len(table), len(self.rounds) // self.outputs, self.outputs)
            powers = _exp(parts - parts.max(axis=2, keepdims=True))
            return np.asarray(powers / np.cumsum(powers, axis=2)[..., -1:]).reshape(sums.shape)  # summed one by one
        return np.asarray(sums / self.rounds)


def _exp(values: Float64Array) -> Float64Array:
    """exp as LightGBM computes it; NumPy's differs in the last bit."""
    return np.asarray(np.frompyfunc(math.exp, 1, 1)(np.minimum(values, 700.0)), dtype=np.float64)


def tree_texts(booster: Booster) -> tuple[dict[str, str], list[str]]:
    """LightGBM's text of a booster: its head by key, and what it says of each tree."""
    head, *trees = re.split(r"\n\nTree=\d+\n", booster.model_to_string().partition("\nend of trees")[0])
    return dict(line.partition("=")[::2] for line in head.splitlines()), trees


class TreeGroup(ABC):
    """Models of one kind of tree, one per fold; they predict targets (loss "squared") or probabilities of classes."""

    _merged: MergedBooster | None = None

    def __init__(self, loss: TabularLoss, outputs: int, stream: Stream) -> None:
        load_lightgbm()
        self.loss, self.outputs, self.stream, self.share = loss, outputs, stream, min(1.0, MOST_OUTPUTS / outputs)
        self.models: list[TreeModel] = []

    def train(self, rows: Rows, folds: Sequence[IdArray] | None, validation: Rows | None) -> Job:
        """A job: fit a model on the rows outside each fold.

        It returns what the models predict of the rows held out (held out, outputs). With `validation` one model is
        fitted to all rows, and these are the rows held out.
        """
        if validation is None:
            assert folds is not None
            everything, held_out = rows, [np.sort(fold) for fold in folds]
            parts = [np.setdiff1d(np.arange(len(rows)), fold) for fold in folds]
        else:
            everything, held_out = _stacked(rows, validation), [np.arange(len(rows), len(rows) + len(validation))]
            parts = [np.arange(len(rows))]
        self._merged = None
        yield from self._grow(everything, parts, held_out)
        cases = zip(self.models, held_out, strict=True)
        predicted = yield [partial(self._predict, model, everything.X[ids]) for model, ids in cases]
        return pooled(predicted, held_out)

    def predictions(self, table: Float64Array) -> Float64Array:
        """Mean prediction (rows, outputs) of the models at a table (rows, columns)."""
        if len(table) > FEW_ROWS:  # then one model after the other stays in cache
            values = np.stack([model.values(table) for model in self.models], axis=1)
        else:
            if self._merged is None:  # two threads may each make one: they are equal
                self._merged = MergedBooster([booster for model in self.models for booster in model.boosters])
            values = np.stack(np.split(self._merged.values(table), len(self.models), axis=1), axis=1)
        found = self._normalised(values, np.stack([model.baseline for model in self.models]))
        return np.asarray(sum(found[:, index] for index in range(len(self.models))) / len(self.models))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_merged"}

    @abstractmethod
    def description(self) -> str:
        """A description of the models."""

    @abstractmethod
    def _grow(self, rows: Rows, parts: list[IdArray], held_out: list[IdArray]) -> Growth:
        """Fit a model to each part of the rows, and validate it, if need be, on those held out; both ascend."""

    def _predict(self, model: TreeModel, table: AnyArray) -> Float64Array:
        """Predictions (rows, outputs) of one model for a table (rows, columns)."""
        return self._normalised(model.values(table)[:, None], model.baseline[None])[:, 0]

    def _normalised(self, values: Float64Array, baselines: Float64Array) -> Float64Array:
        """Predictions (rows, models, outputs) from what boosters predict, and baselines (models, outputs)."""
        values = values + baselines
        if self.loss == "squared":
            return values
        if self.loss == "logistic":
            values = np.concatenate([1 - values, values], axis=2)
        values[values < LEAST_PROBABILITY] = 0.0
        none = ~values.any(axis=2)  # one forest per class: each may predict that a row is of another
        if none.any():
            values[none] = np.broadcast_to(baselines, values.shape)[none]
        return np.asarray(values / values.sum(axis=2, keepdims=True))

    def _parameters(self, rule: dict[str, Any], number: int) -> dict[str, Any]:
        """The rule with the seed of model `number`."""
        return rule | {"seed": int(self.stream.child(f"model{number}").integers(2**31 - 1, 1)[0])}


class RandomForest(TreeGroup):
    """Trees on 63% of the rows each, half of the columns tried at each split, and their mean."""

    def description(self) -> str:
        """How many trees."""
        return f"{len(self.models)} × {self.models[0].boosters[0].num_trees()} trees"

    def _grow(self, rows: Rows, parts: list[IdArray], held_out: list[IdArray]) -> Growth:
        (table,) = yield [partial(_binned, rows.X, FOREST)]
        means = [np.average(rows.target[part], axis=0, weights=rows.weight[part]) for part in parts]
        found = yield [
            partial(self._fit, table, number, part, target, rows.weight)
            for number, (part, mean) in enumerate(zip(parts, means, strict=True))
            for target in (rows.target - mean).T
        ]
        self.models = _models(found, means)

    def _fit(self, table: Dataset, number: int, part: IdArray, target: AnyArray, weight: AnyArray) -> Booster:
        leaves = {"num_leaves": min(MOST_LEAVES, max(2, len(part) // FOREST["min_data_in_leaf"]))}
        chosen = _part(table, part, target, weight)
        booster = load_lightgbm().Booster(self._parameters(FOREST | leaves, number), chosen)
        for _ in range(max(1, round(self.share * tree_count(len(part))))):
            booster.update()
        return _grown(booster)


class Boosting(TreeGroup):
    """Gradient boosting, with the number of rounds that predicts held-out rows best."""

    rounds = grown = 0

    def description(self) -> str:
        """How many rounds are kept."""
        return f"{len(self.models)} × {self.rounds} rounds"

    def _grow(self, rows: Rows, parts: list[IdArray], held_out: list[IdArray]) -> Growth:
        """Until the best round is not among the last."""
        large = self.share == 1 and len(parts[0]) > LARGE_ROWS
        rule = (LARGE if large else SMALL) | {"objective": OBJECTIVES[self.loss]}
        targets = [*rows.target.T]
        if self.loss == "cross_entropy":
            rule["num_class"], targets = self.outputs, [rows.target.argmax(axis=1)]
        (table,) = yield [partial(_binned, rows.X, rule)]
        cases = enumerate(zip(parts, held_out, strict=True))
        growing = yield [
            partial(_GrowingBooster, table, self._parameters(rule, number), *ids, target, rows.weight)
            for number, ids in cases
            for target in targets
        ]
        most = max(1, round(self.share * MOST_ROUNDS))
        losses, stretch = np.zeros(0), min(FIRST_ROUNDS, most)
        while len(losses) < most:
            found = yield [partial(booster.advance, stretch) for booster in growing]
            losses, stretch = np.append(losses, np.sum(found, axis=0)), min(STRETCH, most - len(losses))
            self.rounds = int(losses.argmin()) + 1
            if self.rounds < ENOUGH * len(losses):
                break
        self.grown = len(losses)
        found = yield [partial(booster.first, self.rounds) for booster in growing]
        self.models = _models(found, [np.zeros(1)] * len(parts))


class _GrowingBooster:
    """A model that is being boosted on `part` of the rows and validated on those held out."""

    def __init__(
        self,
        table: Dataset,
        parameters: dict[str, Any],
        part: IdArray,
        held_out: IdArray,
        target: AnyArray,
        weight: AnyArray,
    ) -> None:
        self.booster: Booster = load_lightgbm().Booster(parameters, _part(table, part, target, weight))
        self.booster.add_valid(_part(table, held_out, target, weight), "held out")
        self.weight, self.trees = float(weight[held_out].sum()), [0]

    def advance(self, rounds: int) -> Float64Array:
        """Go on for so many rounds; the sum of the losses of the held-out rows after each (rounds,)."""
        losses = np.empty(rounds)
        for round_ in range(rounds):
            self.booster.update()
            self.trees.append(self.booster.current_iteration())  # a round in which no split is found adds none
            losses[round_] = self.weight * self.booster.eval_valid()[0][2]
        return losses

    def first(self, rounds: int) -> Booster:
        """The model of the first rounds."""
        return _grown(self.booster, self.trees[rounds])


TREES: dict[str, type[TreeGroup]] = {"random forest": RandomForest, "boosting": Boosting}
"""Kinds of trees by name."""


def tree_count(rows: int) -> int:
    """Trees of a forest on so many rows."""
    return max(FEWEST_TREES, min(MOST_TREES, MOST_TREES * MANY // rows))


def _binned(table: AnyArray, rule: dict[str, Any]) -> Dataset:
    """A table (rows, columns) in bins, without targets."""
    found: Dataset = load_lightgbm().Dataset(table, np.zeros(len(table)), params=rule).construct()
    return found


def _part(table: Dataset, rows: IdArray, target: AnyArray, weight: AnyArray) -> Dataset:
    """Some rows, ascending, of a binned table, with targets and weights of all rows; these weights get mean 1."""
    relative = weight[rows] / weight[rows].mean()  # LightGBM adds up weights where it counts rows
    return table.subset(rows.tolist()).construct().set_label(target[rows]).set_weight(relative)


def _models(boosters: list[Booster], baselines: list[Float64Array]) -> list[TreeModel]:
    """A model per baseline, each with its part of the boosters."""
    count = len(boosters) // len(baselines)
    return [TreeModel(boosters[count * i : count * (i + 1)], baseline) for i, baseline in enumerate(baselines)]


def _grown(booster: Booster, trees: int | None = None) -> Booster:
    """A copy that has the first trees alone, or all, and nothing to go on with."""
    found: Booster = load_lightgbm().Booster(model_str=booster.model_to_string(num_iteration=trees))
    return found


def _stacked(rows: Rows, others: Rows) -> Rows:
    """Rows, then others."""
    pairs = [(rows.X, others.X), (rows.target, others.target), (rows.weight, others.weight)]
    return Rows(*(np.concatenate(pair) for pair in pairs))
