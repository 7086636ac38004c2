"""A group: networks of one layout on the same variant of the inputs, trained together, that predict by their mean."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.tabular._cooling import cooling_paces
from fewfire.tabular._held_out import HeldOut
from fewfire.tabular._network import draw_start
from fewfire.tabular._prediction import mean_outputs
from fewfire.tabular._training import CpuTrainer, Curves, TrainedNetwork, divergence, train_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import Layout, TabularLoss
    from fewfire.tabular._optimisers import Optimiser
    from fewfire.tabular._settings import Settings
    from fewfire.tabular._training import GroupJob, GroupTrainer, TrainingRows


class NetworkGroup:
    """Networks of one layout that see the same variant of the inputs.

    Between fits only `weights` are kept, unless training may go on (`warm_start`, `partial_fit`): then the networks
    with the state of their optimisers stay as well, as they were before they cooled down. For predictions the weights
    are converted once, when a fit ends. `reached` counts the epochs up to the weights that training would go on from.

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
        self.curves, self.cooled, self.reached = Curves(), 0, 0
        self._set_weights(None)

    def _set_weights(self, weights: FloatArray | None) -> None:
        """Take weights (networks, size), and convert them for predictions."""
        self.weights = weights
        self._outputs = None if weights is None else mean_outputs(self.layout, weights)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_outputs"}

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
    ) -> GroupJob:
        """A job of the queue: train until the held-out rows, or the epochs, say stop.

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
            parts = [smoothed[np.delete(everything, fold)].with_gains(gain) for fold, gain in shown]
            held = HeldOut(examples, folds, [examples[fold].with_gains(gain) for fold, gain in shown], self.loss)
        else:  # the same rows and gains for all networks: one table, not a copy per network
            parts = [smoothed.with_gains(gains[0])] * self.count
        if validation is not None:
            rows = [np.arange(len(validation))] * self.count
            held = HeldOut(validation, rows, [validation.with_gains(gains[0])] * self.count, self.loss)
        return self._run(parts, held, settings.optimiser.epochs, settings, label)

    def train_epoch(self, examples: TrainingRows, settings: Settings, label: str = "") -> GroupJob:
        """A job of one epoch of every network over all rows, gains included; it goes on from what predicts."""
        if self.cooled and self.weights is not None:
            for network, flat in zip(self.networks, self.weights, strict=False):  # none, if training was forgotten
                network.flat[:] = flat
        return self._run([examples.smoothed(settings.smoothing)] * self.count, None, 1, settings, label)

    def cool_down(self, examples: TrainingRows, settings: Settings, label: str = "") -> GroupJob:
        """A job that takes networks that have stopped through a few more epochs; what comes of them predicts.

        Training goes on, should it, from where it was. `examples` are all rows, with the gains of predictions.
        """
        rows, paces, rule = examples.smoothed(settings.smoothing), cooling_paces(self.reached), settings.optimiser
        cooling = []
        for number, network in enumerate(self.networks):
            flat, stream = network.flat.copy(), self.stream.child(f"member{number}").child("cool down")
            cooling.append(TrainedNetwork(self.layout, flat, rule, self.loss, stream, len(rows), paces))
        trainer = self._trainer(cooling, [rows] * self.count, [], settings)
        stop = yield from train_together(trainer, len(paces), Curves(), label=label, phase=" of cooling down")
        weights = np.stack([network.flat for network in cooling])
        if not np.isfinite(weights).all():  # those of the last steps; nothing is computed by them here
            raise divergence(trainer, "a weight at the end of cooling down")
        self._set_weights(weights)
        self.cooled = len(paces)
        return stop

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        self.networks = []

    def outputs(self, X: FloatArray, gains: FloatArray) -> Float64Array:
        """Mean output (rows, outputs) of the networks at X (rows, inputs) times gains (inputs,), float64."""
        assert self._outputs is not None
        return self._outputs(X, gains)

    def _run(
        self, parts: list[TrainingRows], held: HeldOut | None, epochs: int, settings: Settings, label: str
    ) -> GroupJob:
        before = [network.flat for network in self.networks] or self.weights
        if self.networks and not _alike(self.networks[0].optimiser, settings.optimiser):
            self.networks = []  # another way to descend starts afresh, from these weights
        if not self.networks:
            self.networks = yield [partial(self._network, *case, before, settings) for case in enumerate(parts)]
        trainer = self._trainer(self.networks, parts, [] if held is None else held.parts, settings)
        best = yield from train_together(trainer, epochs, self.curves, held, settings.patience or epochs, label)
        self._set_weights(np.stack([network.flat for network in self.networks]))
        self.cooled = 0
        self.reached += epochs if held is None else best.epochs
        return best

    def _trainer(
        self,
        networks: list[TrainedNetwork],
        parts: list[TrainingRows],
        held: list[TrainingRows],
        settings: Settings,
    ) -> GroupTrainer:
        if settings.engine != "torch":
            return CpuTrainer(networks, parts, held)
        from fewfire.tabular._torch import TorchTrainer  # loads torch

        return TorchTrainer(networks, parts, held)

    def _network(
        self, number: int, rows: TrainingRows, before: Sequence[FloatArray] | FloatArray | None, settings: Settings
    ) -> TrainedNetwork:
        """A fresh network, or, after a finished fit, one with the weights before and a fresh optimiser."""
        stream = self.stream.child(f"member{number}")
        if before is None:
            flat = draw_start(self.layout, settings.sparsity, rows, self.offset, stream)
        else:
            flat = before[number].copy()
        return TrainedNetwork(self.layout, flat, settings.optimiser, self.loss, stream.child("batches"), len(rows))


def _alike(one: Optimiser, other: Optimiser) -> bool:
    """Whether two optimisers differ in their number of epochs at most."""
    settings, others = one.get_params(), other.get_params()
    return type(one) is type(other) and {**settings, "epochs": 0} == {**others, "epochs": 0}
