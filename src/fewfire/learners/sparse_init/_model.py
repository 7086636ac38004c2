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
        folds = self._folds(examples, validation, settings)
        stops = [self._train_view(view, examples, folds, validation, settings, verbose) for view in self.networks]
        if validation is not None:
            self._judge(stops, validation)
        elif folds is not None:
            self._judge(stops, examples[np.unique(np.concatenate(folds))])

    def train_epoch(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """One epoch of every network over all rows."""
        for view, networks in self.networks.items():
            networks.train_epoch(self._show(examples, view), settings, str(view) if verbose else "")

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
        folds = self._folds(sample, validation, settings)
        losses = {
            view: self._train_view(view, sample, folds, validation, settings, verbose).loss for view in self.networks
        }
        best = sorted(losses, key=lambda view: losses[view])[:FINALISTS]
        self.networks = {view: self._fresh(view, settings) for view in best}

    def _train_view(
        self, view: View, examples: Examples, folds: list[IdArray] | None, validation: Examples | None,
        settings: Settings, verbose: bool,
    ) -> Stop:  # fmt: skip
        held = None if validation is None else self._show(validation, view)
        label = str(view) if verbose else ""
        return self.networks[view].train(self._show(examples, view), folds, held, settings, label)

    def _folds(
        self, examples: Examples, validation: Examples | None, settings: Settings
    ) -> list[IdArray] | None:  # fmt: skip
        """The rows each member leaves out, the same in every view so that their outputs can be mixed."""
        if validation is not None or settings.patience is None:
            return None
        parts = min(FOLDS, len(examples.table))
        return held_out_folds(examples.strata, settings.members, parts, self.stream.child("folds"))

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

    def _show(self, examples: Examples, view: View) -> Table:
        return Table(self.inputs.transform(examples.table, view), examples.target, examples.weight)
