"""The fitted model: groups of networks, one group per variant of the inputs, mixed by what held-out rows say.

A variant is an encoding and a relevance gain. None suits all tables: ranks ruin columns that are one value nine times
of ten, raw units are ruled by outliers; piecewise-linear encodings help where the target jumps along a column and
periodic embeddings where it swings, and both cost rows to learn; gains save a table of mostly idle columns but hide
interactions. So networks are trained on every variant.

Variants are mixed by the weights that predict held-out rows best (_mixing.py), and trees fitted on the same folds stand
beside them (_trees.py).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from fewfire._threads import Helpers
from fewfire.tabular._encodings import PiecewiseLinearEncoding
from fewfire.tabular._examples import Examples, Variant, choose_variants
from fewfire.tabular._group import NetworkGroup
from fewfire.tabular._held_out import held_out_folds
from fewfire.tabular._mixing import best_temperature, mix, mixing_weights, tree_shares
from fewfire.tabular._network import Layout
from fewfire.tabular._preprocessing import learn_columns
from fewfire.tabular._queue import clocked, work_off, work_off_by, working_off
from fewfire.tabular._race import Race, finalists
from fewfire.tabular._relevance import relevance_gains
from fewfire.tabular._settings import FINALISTS, TRIAL_EPOCHS, TRIAL_NETWORKS, TRIAL_ROWS, Settings, folds_of
from fewfire.tabular._trees import KINDS, TreeGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._preprocessing import Columns
    from fewfire.tabular._queue import Job
    from fewfire.tabular._training import GroupJob, Stop
    from fewfire.tabular._trees import TreeJob


# Seeds of networks are drawn from streams that bear the first names of the encodings: the same seed, the same fit.
WORTH = 4  # bins per column from which on they are seen as ladders
BLOCK = 16_384  # rows that are encoded at a time for predictions: an encoding takes many times the room of its table
STREAMS = {"rank": "quantile", "piecewise_linear": "bins", "periodic": "waves"}


@dataclass(frozen=True)
class Division:
    """Examples, the rows each network leaves out, or rows to stop by instead."""

    examples: Examples
    folds: list[IdArray] | None
    validation: Examples | None

    def judges(self) -> Examples | None:
        """The rows that some network does not train on, if there are any."""
        if self.validation is not None or self.folds is None:
            return self.validation
        return self.examples[np.unique(np.concatenate(self.folds))]


class Ensemble:
    """Groups of networks on several variants of one table.

    Parameters
    ----------
    columns : Columns
    loss : str
    offset : array (outputs,)
    settings : Settings
    stream : Stream
    """

    def __init__(
        self,
        columns: Columns,
        loss: TabularLoss,
        offset: AnyArray,
        settings: Settings,
        stream: Stream,
    ) -> None:
        self.columns, self.shares = columns, np.zeros(0)
        self.loss, self.offset, self.stream = loss, offset, stream
        variants = choose_variants(settings.scaling, settings.gains)
        self.groups = {variant: self._fresh(variant, settings) for variant in variants}
        self.weights = np.full(len(variants), 1.0 / len(variants))
        self.temperature = 1.0
        self.seconds: dict[str, float] = {}  # of the last training, by what was done
        self._leave_trees_out()

    def learn_shares(self, examples: Examples, threads: int) -> None:
        """Learn what each input explains of the targets, which gains are made of, if it is not known yet."""
        if not len(self.shares):
            self.shares = examples.shares(threads)

    def train(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every group; with held-out rows, weigh the groups by them. Many rows: only the best of a trial."""
        self.seconds = {}
        division = self._divide(examples, validation, settings)
        judges = division.judges()
        if not settings.trees:  # an earlier fit may have grown some
            self._leave_trees_out()
        trees = self._grow_trees(division) if settings.trees and judges is not None and len(self.columns.places) else []
        with self._beside(trees, settings) as (queued, grown):
            self.learn_shares(examples, settings.threads)
            weighed = validation is not None or settings.patience is not None
            if weighed and len(examples) > TRIAL_ROWS and len(self.groups) > FINALISTS and not self._begun():
                self._hold_trial(examples, validation, settings, verbose)
            stops, held = self._train_groups(division, settings, verbose, "networks", queued)
            held += grown()
        if judges is not None:
            mixed = self._weigh(stops, judges)
            if division.folds is not None:
                self._cool_down(examples, settings, verbose)
            if trees:
                self.shares_of_kinds = tree_shares(self.loss, mixed, held, judges.target, judges.weight)

    def train_epoch(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """One epoch of every network over all rows."""
        self.learn_shares(examples, settings.threads)
        jobs = []
        for variant, group in self.groups.items():
            shown = examples.rows(variant).with_gains(self._gains(variant, self.shares))
            jobs.append(group.train_epoch(shown, settings, str(variant) if verbose else ""))
        self._run(jobs, settings)

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), over the temperature."""
        starts = range(0, max(1, len(table)), BLOCK)
        return np.concatenate([self._outputs_of_block(table[start : start + BLOCK]) for start in starts])

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

    def _outputs_of_block(self, table: Float64Array) -> Float64Array:
        inputs, total = self.columns.encode(table), 0.0
        for weight, (variant, group) in zip(self.weights, self.groups.items(), strict=True):
            total = total + weight * group.outputs(inputs[variant.encoding], self._gains(variant, self.shares))
        mixed = np.asarray(total / self.temperature)
        if not self.trees:
            return mixed
        raw = inputs.raw()
        return mix(self.loss, self.shares_of_kinds, mixed, [trees.predictions(raw) for trees in self.trees.values()])

    def _hold_trial(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train a few networks of every group on TRIAL_ROWS rows, for a while; go on, afresh, with the FINALISTS."""
        optimiser = clone(settings.optimiser)
        optimiser.epochs = min(optimiser.epochs, TRIAL_EPOCHS)
        shortened = replace(settings, optimiser=optimiser, members=min(settings.members, TRIAL_NETWORKS))
        self.groups = {variant: self._fresh(variant, shortened) for variant in self.groups}
        sample = examples.sample(self.stream.child("trial").permutation(len(examples))[:TRIAL_ROWS])
        division = self._divide(sample, validation, settings)
        with Helpers(1) as helper:
            if settings.threads > 1:  # what the finalists will see
                helper.submit(lambda: [examples.encoded(variant.encoding) for variant in self.groups])
            stops, _ = self._train_groups(division, shortened, verbose, "trial of the variants")
        losses = {variant: stop.loss for variant, stop in zip(self.groups, stops, strict=True)}
        self.groups = {variant: self._fresh(variant, settings) for variant in finalists(losses, FINALISTS)}

    def _divide(self, examples: Examples, validation: Examples | None, settings: Settings) -> Division:
        """What every group is trained on: rows left out are the same in all, so that their outputs can be mixed."""
        count = next(iter(self.groups.values())).count
        if validation is not None or settings.patience is None or len(examples) < 2:
            return Division(examples, None, validation)
        folds = held_out_folds(examples.strata, count, folds_of(len(examples)), self.stream.child("folds"))
        return Division(examples, folds, None)

    def _shares_of(self, division: Division) -> list[Float64Array]:
        """What inputs explain of the targets, for each network.

        Gains that know a row's target flatter it when the row is held out. Of many inputs and few rows some explain
        much by chance, and held-out losses would be fiction; then the fold's rows do not count. Of few inputs none
        does, and shares of all rows are better shares.
        """
        examples, folds = division.examples, division.folds
        if folds is None or len(self.shares) <= len(examples):
            return [self.shares] * next(iter(self.groups.values())).count
        return [examples[np.setdiff1d(np.arange(len(examples)), fold)].shares() for fold in folds]

    def _gains(self, variant: Variant, shares: Float64Array) -> AnyArray:
        """Gains (inputs,), float32."""
        return relevance_gains(shares, variant.gain)[self.columns.sources(variant.encoding)]

    def _train_groups(
        self, division: Division, settings: Settings, verbose: bool, what: str, trees: Sequence[Job] = ()
    ) -> tuple[list[Stop], list[Float64Array]]:
        """Where the groups stopped, and what trees that are grown in their queue say of the rows held out.

        The time of the groups is counted as that of `what`.
        """
        shares = self._shares_of(division)
        jobs: list[Job] = [self._training(variant, division, shares, settings, verbose) for variant in self.groups]
        judged = division.judges() or division.examples
        weigh = partial(mixing_weights, self.loss, target=judged.target, weight=judged.weight)
        found = self._run(jobs, settings, what, Race(weigh, len(jobs)), trees)
        return found[: len(jobs)], found[len(jobs) :]

    def _cool_down(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """Take the groups that are left through their last epochs, on all rows (_cooling.py)."""
        jobs, what = [], "cooling down"
        for variant, group in self.groups.items():
            shown = examples.rows(variant).with_gains(self._gains(variant, self.shares))
            jobs.append(group.cool_down(shown, settings, f"{variant}, {what}" if verbose else ""))
        self._run(jobs, settings, what)

    def _run(
        self,
        jobs: Sequence[Job],
        settings: Settings,
        what: str | None = None,
        race: Race | None = None,
        beside: Sequence[Job] = (),
    ) -> list[Any]:
        """Train groups and grow trees, all in one queue of threads; or groups alone, as one batch by PyTorch.

        The time of the groups is counted as that of `what`, if it is named.
        """
        if settings.engine != "torch":
            timed = jobs if what is None else [clocked(job, self.seconds, what) for job in jobs]
            return work_off(timed, settings.threads, race, beside)
        from fewfire.tabular._torch import BatchRunner  # loads torch

        begin = time.perf_counter()
        with BatchRunner(settings.threads) as runner:
            found = work_off_by(runner, jobs, race)
        if what is not None:  # a batch is one task, whose groups have no times of their own
            self.seconds[what] = time.perf_counter() - begin
        return found

    @contextmanager
    def _beside(
        self, trees: Sequence[TreeJob], settings: Settings
    ) -> Iterator[tuple[list[Job], Callable[[], list[Float64Array]]]]:
        """Trees for the queue of the networks; or, where a device trains them, a function that waits for all trees.

        Processors then have little to do but grow trees, from the first moment on.
        """
        jobs: list[Job] = [clocked(job, self.seconds, "trees") for job in trees]
        if settings.engine != "torch" or not jobs:
            yield jobs, list
        else:
            with working_off(jobs, settings.threads) as grown:
                yield [], grown

    def _training(
        self, variant: Variant, division: Division, shares: list[Float64Array], settings: Settings, verbose: bool
    ) -> GroupJob:
        gains = [self._gains(variant, of_network) for of_network in shares]
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

    def _leave_trees_out(self) -> None:
        self.trees: dict[str, TreeGroup] = {}
        self.shares_of_kinds = np.ones(1)  # the networks' share, then those of the trees

    def _grow_trees(self, division: Division) -> list[TreeJob]:
        """Jobs that fit trees on the folds of the networks."""
        outputs = 2 if self.loss == "logistic" else len(self.offset)
        validation = None if division.validation is None else division.validation.for_trees()
        rows = division.examples.for_trees()
        self.trees = {name: kind(self.loss, outputs, self.stream.child(name)) for name, kind in KINDS.items()}
        return [trees.train(rows, division.folds, validation) for trees in self.trees.values()]

    def _fresh(self, variant: Variant, settings: Settings) -> NetworkGroup:
        inputs = len(self.columns.sources(variant.encoding))
        embedding = self.columns.embedding(variant.encoding)
        layout = Layout(inputs, settings.hidden, len(self.offset), settings.skip, embedding, self._ladders(variant))
        stream = self.stream.child(f"{STREAMS.get(variant.encoding, variant.encoding)}/{variant.gain}")
        return NetworkGroup(layout, self.loss, self.offset, stream, settings.members)

    def _ladders(self, variant: Variant) -> tuple[int, ...]:
        """Bins of the columns, if there are enough of them to be worth it."""
        encoding = self.columns.encodings[variant.encoding]
        if not isinstance(encoding, PiecewiseLinearEncoding):
            return ()
        bins = [len(edges) - 1 for edges in encoding.edges_ if len(edges) > 1]
        return tuple(bins) if sum(bins) >= WORTH * len(bins) else ()

    def _begun(self) -> bool:
        return any(group.weights is not None for group in self.groups.values())


def columns_for(table: Float64Array, weight: Float64Array, settings: Settings) -> Columns:
    """The columns of a table (rows, columns) in the encodings an ensemble needs; ranks tell what inputs explain."""
    encodings = {variant.encoding: None for variant in choose_variants(settings.scaling, settings.gains)}
    return learn_columns(table, weight, encodings | {"rank": None}, settings.threads)
