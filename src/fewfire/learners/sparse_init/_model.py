"""The fitted model: networks on every view of the inputs, their outputs weighted by how well each view did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.learners.sparse_init._calibration import combine, sharpness
from fewfire.learners.sparse_init._member import Table
from fewfire.learners.sparse_init._network import Layout
from fewfire.learners.sparse_init._networks import Networks
from fewfire.learners.sparse_init._settings import FINALISTS, TRIAL_ROWS, Settings
from fewfire.learners.sparse_init._views import View, choose_views, learn_inputs, view_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
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
            self._hold_trial(examples, validation, settings)
        stops = []
        for view, networks in self.networks.items():
            held, label = self._shown(validation, view), str(view) if verbose else ""
            stops.append(networks.train(self._show(examples, view), examples.strata, held, settings, label))
        if weighed:
            self._judge(stops, examples if validation is None else validation)

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

    def _hold_trial(self, examples: Examples, validation: Examples | None, settings: Settings) -> None:
        """Train every view on TRIAL_ROWS rows and go on, afresh, with the FINALISTS best."""
        sample = examples[self.stream.child("trial").permutation(len(examples.table))[:TRIAL_ROWS]]
        losses = {}
        for view, networks in self.networks.items():
            held = self._shown(validation, view)
            losses[view] = networks.train(self._show(sample, view), sample.strata, held, settings).loss
        best = sorted(losses, key=lambda view: losses[view])[:FINALISTS]
        self.networks = {view: self._fresh(view, settings) for view in best}

    def _judge(self, stops: list[Stop], judges: Examples) -> None:
        """Weigh the views, drop the least, and learn how sure their outputs may be."""
        weights = view_weights([stop.loss for stop in stops], self.loss, len(judges.table))
        if self.loss != "squared":
            outputs = combine([stop.pooled for stop in stops if stop.pooled is not None], weights)
            self.sharpness = sharpness(self.loss, outputs, judges.target, judges.weight)
        kept = weights > 0
        self.networks = {view: n for (view, n), stays in zip(self.networks.items(), kept, strict=True) if stays}
        self.weights = weights[kept]

    def _fresh(self, view: View, settings: Settings) -> Networks:
        layout = Layout(self.inputs.count(view), settings.hidden, len(self.offset), settings.skip, view.waves)
        return Networks(layout, self.loss, self.offset, self.stream.child(f"{view.scaling}/{view.gain}"),
                        settings.members)  # fmt: skip

    def _begun(self) -> bool:
        return any(networks.weights is not None for networks in self.networks.values())

    def _shown(self, examples: Examples | None, view: View) -> Table | None:
        return None if examples is None else self._show(examples, view)

    def _show(self, examples: Examples, view: View) -> Table:
        return Table(self.inputs.transform(examples.table, view), examples.target, examples.weight)
