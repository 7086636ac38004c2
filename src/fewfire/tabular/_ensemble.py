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
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._examples import Examples, Variant, choose_variants
from fewfire.tabular._group import NetworkGroup
from fewfire.tabular._mixing import best_temperature, mix, mixing_weights, tree_shares
from fewfire.tabular._network import Layout
from fewfire.tabular._preprocessing import learn_columns
from fewfire.tabular._queue import work_off
from fewfire.tabular._race import Race, finalists
from fewfire.tabular._relevance import relevance_gains
from fewfire.tabular._settings import FINALISTS, TRIAL_ROWS, Settings, folds_of
from fewfire.tabular._summary import timed
from fewfire.tabular._training import held_out_folds
from fewfire.tabular._trees import KINDS, TreeGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._preprocessing import Columns
    from fewfire.tabular._training import GroupJob, Stop


# Seeds of networks are drawn from streams that bear the first names of the encodings: the same seed, the same fit.
STREAMS = {"rank": "quantile", "piecewise_linear": "bins", "periodic": "waves"}


@dataclass(frozen=True)
class Division:
    """Examples, the rows each network leaves out, what inputs explain on its other rows, rows to stop by instead."""

    examples: Examples
    folds: list[IdArray] | None
    shares: list[Float64Array]
    validation: Examples | None


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
            stops = self._train_groups(division, settings, verbose)
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
        jobs = []
        for variant, group in self.groups.items():
            shown = examples.rows(variant).with_gains(self._gains(variant, self.shares))
            jobs.append(group.train_epoch(shown, settings, str(variant) if verbose else ""))
        self._run(jobs, settings)

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), over the temperature."""
        inputs, total = self.columns.encode(table), 0.0
        for weight, (variant, group) in zip(self.weights, self.groups.items(), strict=True):
            total = total + weight * group.outputs(inputs[variant.encoding], self._gains(variant, self.shares))
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
        """Train every group on TRIAL_ROWS rows and go on, afresh, with the FINALISTS."""
        sample = examples[self.stream.child("trial").permutation(len(examples))[:TRIAL_ROWS]]
        division = self._divide(sample, validation, settings)
        stops = self._train_groups(division, settings, verbose)
        losses = {variant: stop.loss for variant, stop in zip(self.groups, stops, strict=True)}
        self.groups = {variant: self._fresh(variant, settings) for variant in finalists(losses, FINALISTS)}

    def _divide(self, examples: Examples, validation: Examples | None, settings: Settings) -> Division:
        """What every group is trained on: rows left out are the same in all, so that their outputs can be mixed."""
        count = next(iter(self.groups.values())).count
        if validation is not None or settings.patience is None or len(examples) < 2:
            return Division(examples, None, [self.shares] * count, validation)
        folds = held_out_folds(examples.strata, count, folds_of(len(examples)), self.stream.child("folds"))
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

    def _train_groups(self, division: Division, settings: Settings, verbose: bool) -> list[Stop]:
        jobs = [self._training(variant, division, settings, verbose) for variant in self.groups]
        judged = division.examples if division.validation is None else division.validation
        if division.folds is not None:
            judged = judged[np.unique(np.concatenate(division.folds))]
        weigh = partial(mixing_weights, self.loss, target=judged.target, weight=judged.weight)
        return self._run(jobs, settings, Race(weigh, len(jobs)))

    def _run(self, jobs: Sequence[GroupJob], settings: Settings, race: Race | None = None) -> list[Stop]:
        """Train groups, all networks in one queue; on threads, or one after another by PyTorch."""
        return work_off(jobs, 1 if settings.engine == "torch" else settings.threads, race)

    def _training(self, variant: Variant, division: Division, settings: Settings, verbose: bool) -> GroupJob:
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
