"""The fitted model: groups of networks, one group per variant of the inputs, mixed by what held-out rows say.

A variant is an encoding and a relevance gain. None suits all tables: ranks ruin columns that are one value nine times
of ten, raw units are ruled by outliers; piecewise-linear encodings help where the target jumps along a column and
periodic embeddings where it swings, and both cost rows to learn; gains save a table of mostly idle columns but hide
interactions. So networks are trained on every variant.

Variants are mixed by the weights that predict held-out rows best (_mixing.py), and trees fitted on the same folds stand
beside them (_trees.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.tabular._examples import Examples, Variant, choose_variants
from fewfire.tabular._mixing import best_temperature, mix, mixing_weights, tree_shares
from fewfire.tabular._network import Layout, draw_start, evaluate
from fewfire.tabular._preprocessing import learn_columns
from fewfire.tabular._relevance import relevance_gains
from fewfire.tabular._settings import FINALISTS, FOLDS, TRIAL_ROWS, Settings
from fewfire.tabular._summary import timed
from fewfire.tabular._training import (
    CpuTrainer,
    Curves,
    HeldOut,
    Stop,
    TrainedNetwork,
    TrainingRows,
    held_out_folds,
    train_together,
)
from fewfire.tabular._trees import KINDS, TreeGroup

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._optimisers import Optimiser
    from fewfire.tabular._preprocessing import Columns
    from fewfire.tabular._training import GroupTrainer


# Seeds of networks are drawn from streams that bear the first names of the encodings: the same seed, the same fit.
STREAMS = {"rank": "quantile", "piecewise_linear": "bins", "periodic": "waves"}


@dataclass(frozen=True)
class Division:
    """Examples, the rows each network leaves out, what inputs explain on its other rows, rows to stop by instead."""

    examples: Examples
    folds: list[IdArray] | None
    shares: list[Float64Array]
    validation: Examples | None


class NetworkGroup:
    """Networks of one layout that see the same variant of the inputs.

    Between fits only `weights` are kept, unless training may go on (`warm_start`, `partial_fit`): then the networks
    with the state of their optimisers stay as well. Predictions are in float64, so that rows do not depend on each
    other; the weights are converted once, at the end of a fit.

    Parameters
    ----------
    layout : Layout
    loss : str
        A key of LOSSES.
    offset : array (outputs,)
        What every network says at its start.
    stream : Stream
    count : int
        Networks.
    """

    def __init__(self, layout: Layout, loss: TabularLoss, offset: FloatArray, stream: Stream, count: int) -> None:
        self.layout, self.loss, self.offset, self.stream, self.count = layout, loss, offset, stream, count
        self.networks: list[TrainedNetwork] = []
        self.curves = Curves()
        self._set_weights(None)

    def _set_weights(self, weights: FloatArray | None) -> None:
        """Take weights (networks, size), and convert them for predictions."""
        self.weights = weights
        self._doubles = None if weights is None else weights.astype(np.float64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_doubles"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_weights(self.weights)

    def train(
        self,
        examples: TrainingRows,
        gains: list[FloatArray],
        folds: list[IdArray] | None,
        validation: TrainingRows | None,
        settings: Settings,
        label: str = "",
    ) -> Stop:
        """Train until the held-out rows, or the epochs, say stop.

        Parameters
        ----------
        examples, validation : TrainingRows
            Inputs without gains.
        gains : list of arrays (inputs,)
            How large each network sees the inputs.
        folds : list of arrays, optional
            Rows that each network does not train on, to stop by.
            `validation`, if given, is what all stop by instead.
        label : str
            Named in the progress, which is told if it is not empty.
        """
        held, smoothed = None, examples.smoothed(settings.smoothing)
        if folds is not None and validation is None:
            everything = np.arange(len(examples))
            shown = list(zip(folds, gains, strict=True))
            parts = [smoothed[np.setdiff1d(everything, fold)].with_gains(gain) for fold, gain in shown]
            held = HeldOut(examples, folds, [examples[fold].with_gains(gain) for fold, gain in shown], self.loss)
        else:  # the same rows and gains for all networks: one table, not a copy per network
            parts = [smoothed.with_gains(gains[0])] * self.count
        if validation is not None:
            rows = [np.arange(len(validation))] * self.count
            held = HeldOut(validation, rows, [validation.with_gains(gains[0])] * self.count, self.loss)
        return self._run(parts, held, settings.optimiser.epochs, settings, label)

    def train_epoch(self, examples: TrainingRows, settings: Settings, label: str = "") -> None:
        """One epoch of every network over all rows, gains included."""
        self._run([examples.smoothed(settings.smoothing)] * self.count, None, 1, settings, label)

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        self.networks = []

    def outputs(self, X: FloatArray) -> Float64Array:
        """Mean output (rows, outputs) of the networks at X (rows, inputs), float64."""
        assert self._doubles is not None
        total, inputs = np.zeros((len(X), self.layout.outputs)), X.astype(np.float64)
        for flat in self._doubles:
            total += evaluate(self.layout, flat, inputs)
        return total / len(self._doubles)

    def _run(
        self, parts: list[TrainingRows], held: HeldOut | None, epochs: int, settings: Settings, label: str
    ) -> Stop:
        if self.networks and not _alike(self.networks[0].optimiser, settings.optimiser):
            self.networks = []  # another way to descend starts afresh, from these weights
        if not self.networks:
            self.networks = [self._network(number, part, settings) for number, part in enumerate(parts)]
        with self._trainer(parts, [] if held is None else held.parts, settings) as trainer:
            best = train_together(trainer, epochs, self.curves, held, settings.patience or epochs, label)
        self._set_weights(np.stack([network.flat for network in self.networks]))
        return best

    def _trainer(self, parts: list[TrainingRows], held: list[TrainingRows], settings: Settings) -> GroupTrainer:
        if settings.engine != "torch":
            return CpuTrainer(self.networks, parts, held, settings.threads)
        from fewfire.tabular._torch import TorchTrainer  # loads torch

        return TorchTrainer(self.networks, parts, held)

    def _network(self, number: int, rows: TrainingRows, settings: Settings) -> TrainedNetwork:
        """A fresh network, or, after a finished fit, one with its weights and a fresh optimiser."""
        stream = self.stream.child(f"member{number}")
        if self.weights is None:
            flat = draw_start(self.layout, settings.sparsity, rows.X, rows.weight, self.offset, stream)
        else:
            flat = self.weights[number].copy()
        return TrainedNetwork(self.layout, flat, settings.optimiser, self.loss, stream.child("batches"), len(rows))


def _alike(one: Optimiser, other: Optimiser) -> bool:
    """Whether two optimisers differ in their number of epochs at most."""
    settings, others = one.get_params(), other.get_params()
    return type(one) is type(other) and {**settings, "epochs": 0} == {**others, "epochs": 0}


class Ensemble:
    """Groups of networks on several variants of one table.

    Parameters
    ----------
    columns : Columns
    examples : Examples
        What gains are learned from.
    loss : str
    offset : array (outputs,)
    settings : Settings
    stream : Stream
    """

    def __init__(
        self,
        columns: Columns,
        examples: Examples,
        loss: TabularLoss,
        offset: AnyArray,
        settings: Settings,
        stream: Stream,
    ) -> None:
        self.columns, self.shares = columns, examples.shares()
        self.loss, self.offset, self.stream = loss, offset, stream
        variants = choose_variants(settings.scaling, settings.gains)
        self.groups = {variant: self._fresh(variant, settings) for variant in variants}
        self.weights = np.full(len(variants), 1.0 / len(variants))
        self.temperature = 1.0
        self.trees: dict[str, TreeGroup] = {}
        self.seconds: dict[str, float] = {}  # of the last training, by what was done
        self.shares_of_kinds = np.ones(1)  # the networks' share, then those of the trees

    def train(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every group; with held-out rows, weigh the groups by them. Many rows: only the best of a trial."""
        self.seconds = {}
        weighed = validation is not None or settings.patience is not None
        if weighed and len(examples) > TRIAL_ROWS and len(self.groups) > FINALISTS and not self._begun():
            with timed(self.seconds, "trial of the variants"):
                self._hold_trial(examples, validation, settings, verbose)
        division = self._divide(examples, validation, settings)
        with timed(self.seconds, "networks"):
            stops = [self._train_group(variant, division, settings, verbose) for variant in self.groups]
        judges = validation
        if judges is None and division.folds is not None:
            judges = examples[np.unique(np.concatenate(division.folds))]
        if judges is not None:
            mixed = self._weigh(stops, judges)
            if settings.trees and len(self.columns.places):
                with timed(self.seconds, "trees"):
                    self._grow_trees(division, judges, mixed, settings)

    def train_epoch(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """One epoch of every network over all rows."""
        for variant, group in self.groups.items():
            shown = examples.rows(variant).with_gains(self._gains(variant, self.shares))
            group.train_epoch(shown, settings, str(variant) if verbose else "")

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), over the temperature."""
        inputs, total = self.columns.encode(table), 0.0
        for weight, (variant, group) in zip(self.weights, self.groups.items(), strict=True):
            shown = inputs[variant.encoding] * self._gains(variant, self.shares)
            total = total + weight * group.outputs(shown)
        mixed = np.asarray(total / self.temperature)
        if not self.trees:
            return mixed
        raw = inputs.raw()
        return mix(self.loss, self.shares_of_kinds, mixed, [trees.predictions(raw) for trees in self.trees.values()])

    def mixing_weights(self) -> dict[str, float]:
        """What each variant of the networks and each kind of tree counts for, by name; 1 together."""
        names = [*map(str, self.groups), *self.trees]
        weights = [*(self.shares_of_kinds[0] * self.weights), *self.shares_of_kinds[1:]]
        return {name: float(weight) for name, weight in zip(names, weights, strict=True)}

    def main(self) -> NetworkGroup:
        """The group of the largest weight."""
        return list(self.groups.values())[int(self.weights.argmax())]

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        for group in self.groups.values():
            group.forget_training()

    def _hold_trial(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every group on TRIAL_ROWS rows and go on, afresh, with the FINALISTS best."""
        sample = examples[self.stream.child("trial").permutation(len(examples))[:TRIAL_ROWS]]
        division = self._divide(sample, validation, settings)
        losses = {variant: self._train_group(variant, division, settings, verbose).loss for variant in self.groups}
        best = sorted(losses, key=lambda variant: losses[variant])[:FINALISTS]
        self.groups = {variant: self._fresh(variant, settings) for variant in best}

    def _divide(self, examples: Examples, validation: Examples | None, settings: Settings) -> Division:
        """What every group is trained on: rows left out are the same in all, so that their outputs can be mixed."""
        count = next(iter(self.groups.values())).count
        if validation is not None or settings.patience is None or len(examples) < 2:
            return Division(examples, None, [self.shares] * count, validation)
        parts = min(FOLDS, len(examples))
        folds = held_out_folds(examples.strata, count, parts, self.stream.child("folds"))
        return Division(examples, folds, [self._shares_without(examples, fold) for fold in folds], None)

    def _shares_without(self, examples: Examples, fold: IdArray) -> Float64Array:
        """What inputs explain of the targets, for a network that leaves a fold out.

        Gains that know a row's target flatter it when the row is held out. Of many inputs and few rows some explain
        much by chance, and held-out losses would be fiction; then the fold's rows do not count. Of few inputs none
        does, and shares of all rows are better shares.
        """
        if len(self.shares) <= len(examples):
            return self.shares
        return examples[np.setdiff1d(np.arange(len(examples)), fold)].shares()

    def _gains(self, variant: Variant, shares: Float64Array) -> AnyArray:
        """Gains (inputs,), float32."""
        return relevance_gains(shares, variant.gain)[self.columns.sources(variant.encoding)]

    def _train_group(self, variant: Variant, division: Division, settings: Settings, verbose: bool) -> Stop:
        gains = [self._gains(variant, shares) for shares in division.shares]
        held = None if division.validation is None else division.validation.rows(variant)
        label = str(variant) if verbose else ""
        rows = division.examples.rows(variant)
        return self.groups[variant].train(rows, gains, division.folds, held, settings, label)

    def _weigh(self, stops: list[Stop], judges: Examples) -> Float64Array:
        """Weigh the groups by the rows held out, drop the least, and learn the temperature; their mixed outputs."""
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        weights = mixing_weights(self.loss, outputs, judges.target, judges.weight)
        mixed = np.tensordot(weights, outputs, 1)
        if self.loss != "squared":
            self.temperature = best_temperature(self.loss, mixed, judges.target, judges.weight)
        kept = weights > 0
        self.groups = {name: group for (name, group), stays in zip(self.groups.items(), kept, strict=True) if stays}
        self.weights = weights[kept]
        return np.asarray(mixed / self.temperature)

    def _grow_trees(self, division: Division, judges: Examples, mixed: Float64Array, settings: Settings) -> None:
        """Fit trees on the folds of the networks, and weigh them by the rows held out, of which `mixed` is said."""
        outputs = 2 if self.loss == "logistic" else len(self.offset)
        validation = None if division.validation is None else division.validation.for_trees()
        rows = division.examples.for_trees()
        self.trees = {name: kind(self.loss, outputs, self.stream.child(name)) for name, kind in KINDS.items()}
        held = [trees.train(rows, division.folds, validation, settings.threads) for trees in self.trees.values()]
        self.shares_of_kinds = tree_shares(self.loss, mixed, held, judges.target, judges.weight)

    def _fresh(self, variant: Variant, settings: Settings) -> NetworkGroup:
        inputs = len(self.columns.sources(variant.encoding))
        embedding = self.columns.embedding(variant.encoding)
        layout = Layout(inputs, settings.hidden, len(self.offset), settings.skip, embedding)
        stream = self.stream.child(f"{STREAMS.get(variant.encoding, variant.encoding)}/{variant.gain}")
        return NetworkGroup(layout, self.loss, self.offset, stream, settings.members)

    def _begun(self) -> bool:
        return any(group.weights is not None for group in self.groups.values())


def columns_for(table: Float64Array, weight: Float64Array, settings: Settings) -> Columns:
    """The columns of a table (rows, columns) in the encodings an ensemble needs; ranks tell what inputs explain."""
    encodings = {variant.encoding: None for variant in choose_variants(settings.scaling, settings.gains)}
    return learn_columns(table, weight, encodings | {"rank": None})
