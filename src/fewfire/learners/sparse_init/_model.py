"""The fitted model: networks on every view of the inputs, mixed by what held-out rows say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.learners.sparse_init._ensemble import held_out_folds
from fewfire.learners.sparse_init._member import Table
from fewfire.learners.sparse_init._mixing import mixing_weights, sharpness
from fewfire.learners.sparse_init._network import Layout
from fewfire.learners.sparse_init._networks import Networks
from fewfire.learners.sparse_init._settings import FINALISTS, FOLDS, TRIAL_ROWS, Settings
from fewfire.learners.sparse_init._views import View, choose_views, learn_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.learners.sparse_init._ensemble import Stop


@dataclass(frozen=True)
class Examples:
    """Rows with encoded targets: table (rows, columns), target (rows, outputs), weight and strata (rows,)."""

    table: Float64Array
    target: AnyArray
    weight: AnyArray
    strata: AnyArray

    def __getitem__(self, rows: NDArray[np.int64]) -> Examples:
        return Examples(self.table[rows], self.target[rows], self.weight[rows], self.strata[rows])


@dataclass(frozen=True)
class Task:
    """Examples, the rows each member leaves out, what inputs explain on its other rows, and rows to stop by instead."""

    examples: Examples
    folds: list[IdArray] | None
    shares: list[Float64Array]
    validation: Examples | None


class Model:
    """Networks on several views of one table.

    Parameters
    ----------
    examples : Examples
        What scaling and gains are learned from.
    loss : str
    offset : array (outputs,)
    settings : Settings
    stream : Stream
    """

    def __init__(self, examples: Examples, loss: str, offset: AnyArray, settings: Settings, stream: Stream) -> None:
        self.inputs = learn_inputs(examples.table, examples.target, examples.weight)
        self.loss, self.offset, self.stream = loss, offset, stream
        views = choose_views(settings.scaling, settings.gains)
        self.networks = {view: self._fresh(view, settings) for view in views}
        self.weights = np.full(len(views), 1.0 / len(views))
        self.sharpness = 1.0

    def train(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every view; with held-out rows, weigh the views by them. Many rows: only the best of a trial."""
        weighed = validation is not None or settings.patience is not None
        if weighed and len(examples.table) > TRIAL_ROWS and len(self.networks) > FINALISTS and not self._begun():
            self._hold_trial(examples, validation, settings, verbose)
        task = self._task(examples, validation, settings)
        stops = [self._train_view(view, task, settings, verbose) for view in self.networks]
        if validation is not None:
            self._judge(stops, validation)
        elif task.folds is not None:
            self._judge(stops, examples[np.unique(np.concatenate(task.folds))])

    def train_epoch(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """One epoch of every network over all rows."""
        for view, networks in self.networks.items():
            shown = self._scale(examples, view).gained(self.inputs.gains(view))
            networks.train_epoch(shown, settings, str(view) if verbose else "")

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), as sure as held-out rows allow."""
        parts = zip(self.weights, self.networks.items(), strict=True)
        total = sum(weight * networks.outputs(self.inputs.transform(table, view)) for weight, (view, networks) in parts)
        return np.asarray(self.sharpness * total)

    def main(self) -> Networks:
        """The networks of the weightiest view."""
        return list(self.networks.values())[int(self.weights.argmax())]

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        for networks in self.networks.values():
            networks.forget_training()

    def _hold_trial(
        self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool
    ) -> None:  # fmt: skip
        """Train every view on TRIAL_ROWS rows and go on, afresh, with the FINALISTS best."""
        sample = examples[self.stream.child("trial").permutation(len(examples.table))[:TRIAL_ROWS]]
        task = self._task(sample, validation, settings)
        losses = {view: self._train_view(view, task, settings, verbose).loss for view in self.networks}
        best = sorted(losses, key=lambda view: losses[view])[:FINALISTS]
        self.networks = {view: self._fresh(view, settings) for view in best}

    def _task(self, examples: Examples, validation: Examples | None, settings: Settings) -> Task:
        """What every view is trained on: rows left out are the same in all, so that their outputs can be mixed."""
        members = next(iter(self.networks.values())).count
        if validation is not None or settings.patience is None or len(examples.table) < 2:
            return Task(examples, None, [self.inputs.shares] * members, validation)
        parts = min(FOLDS, len(examples.table))
        folds = held_out_folds(examples.strata, members, parts, self.stream.child("folds"))
        return Task(examples, folds, [self._shares(examples, fold) for fold in folds], None)

    def _shares(self, examples: Examples, fold: IdArray) -> Float64Array:
        """What inputs explain of the targets, for a member that leaves a fold out.

        Gains that know a row's target flatter it when the row is held out. Of many inputs and few rows some explain
        much by chance, and held-out losses would be fiction; then the fold's rows do not count. Of few inputs none
        does, and shares of all rows are better shares.
        """
        if len(self.inputs.shares) <= len(examples.table):
            return self.inputs.shares
        rest = examples[np.setdiff1d(np.arange(len(examples.table)), fold)]
        return self.inputs.explained(rest.table, rest.target, rest.weight)

    def _train_view(self, view: View, task: Task, settings: Settings, verbose: bool) -> Stop:
        gains = [self.inputs.gains(view, shares) for shares in task.shares]
        held = None if task.validation is None else self._scale(task.validation, view)
        label = str(view) if verbose else ""
        return self.networks[view].train(self._scale(task.examples, view), gains, task.folds, held, settings, label)

    def _judge(self, stops: list[Stop], judges: Examples) -> None:
        """Weigh the views by the rows held out, drop the least, and learn how sure their outputs may be."""
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        weights = mixing_weights(self.loss, outputs, judges.target, judges.weight)
        if self.loss != "squared":
            mixed = np.tensordot(weights, outputs, 1)
            self.sharpness = sharpness(self.loss, mixed, judges.target, judges.weight)
        kept = weights > 0
        self.networks = {view: n for (view, n), stays in zip(self.networks.items(), kept, strict=True) if stays}
        self.weights = weights[kept]

    def _fresh(self, view: View, settings: Settings) -> Networks:
        layout = Layout(self.inputs.count(view), settings.hidden, len(self.offset), settings.skip, view.waves)
        return Networks(layout, self.loss, self.offset, self.stream.child(f"{view.scaling}/{view.gain}"),
                        settings.members)  # fmt: skip

    def _begun(self) -> bool:
        return any(networks.weights is not None for networks in self.networks.values())

    def _scale(self, examples: Examples, view: View) -> Table:
        return Table(self.inputs.scale(examples.table, view), examples.target, examples.weight)
