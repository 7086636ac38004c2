"""Networks trained side by side, each on all folds but one, and stopped together where their held-out rows say.

A network's held-out part is too small to stop it well; together the parts cover every row. So all networks advance
epoch by epoch, every row is predicted by those that did not train on it, and the epoch of the lowest loss of that
prediction is the one whose weights every network keeps. What is judged and kept is the mean of the weights over the
last epochs: it shakes less than the weights, which so may take larger steps, and fewer of them. Before they predict,
networks that were stopped so cool down (_cooling.py).

`train_together` is a job of the queue (_queue.py); who trains is a `GroupTrainer`: threads of this process (here), in
C++ or NumPy, or PyTorch (_torch.py).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fewfire._errors import DivergenceError
from fewfire.tabular._fused import FusedNetwork, packing
from fewfire.tabular._network import LOSSES, Backprop, evaluate
from fewfire.tabular._queue import Meeting

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray, IdArray
    from fewfire.tabular._held_out import HeldOut
    from fewfire.tabular._network import Layout, TabularLoss
    from fewfire.tabular._optimisers import Optimiser
    from fewfire.tabular._queue import Task

    GroupJob = Generator[list[Task] | Meeting, Any, "Stop"]
    """A group in training, as the queue works it off."""


MEETINGS = (10, 20, 40, 80)  # after so many epochs groups are compared, and the hopeless stop
NEWEST = 0.2  # share of the newest epoch in the mean of weights


@dataclass(frozen=True)
class TrainingRows:
    """Rows as a network sees them, without a copy of them: the `chosen` of a table, their inputs times `gains`.

    X (all rows, inputs), target (all rows, outputs) and weight (all rows,) are float32; `chosen`, numbers of rows, and
    `gains` (inputs,) may be None: all rows, inputs as they are.
    """

    X: FloatArray
    target: FloatArray
    weight: FloatArray
    chosen: IdArray | None = None
    gains: FloatArray | None = None

    def __getitem__(self, rows: IdArray) -> TrainingRows:
        return replace(self, chosen=rows if self.chosen is None else self.chosen[rows])

    def __len__(self) -> int:
        return len(self.X if self.chosen is None else self.chosen)

    def with_gains(self, gains: FloatArray) -> TrainingRows:
        """Inputs multiplied by gains (inputs,)."""
        return replace(self, gains=gains if self.gains is None else self.gains * gains)

    def smoothed(self, share: float) -> TrainingRows:
        """Targets of classes with a share of them spread evenly over all classes; two classes have one output."""
        if not share:
            return self
        even = np.float32(share / max(2, self.target.shape[1]))
        return replace(self, target=np.float32(1 - share) * self.target + even)

    def places(self) -> IdArray:
        """Numbers of the rows in the table."""
        return np.arange(len(self.X)) if self.chosen is None else self.chosen

    def factors(self) -> FloatArray:
        """The gains, 1 where there are none."""
        return np.ones(self.X.shape[1], np.float32) if self.gains is None else self.gains

    def copied(self) -> TrainingRows:
        """The same rows as arrays of their own, gains included."""
        chosen = slice(None) if self.chosen is None else self.chosen
        return TrainingRows(self.inputs(), self.target[chosen], self.weight[chosen])

    def inputs(self) -> FloatArray:
        """Inputs (rows, inputs), gains included."""
        X = self.X if self.chosen is None else self.X[self.chosen]
        return X if self.gains is None else X * self.gains


class TrainedNetwork:
    """A network in training: its weights and the state of its optimiser.

    Between `train_epoch` and `release` the weights may be elsewhere, packed for C++.

    Parameters
    ----------
    layout : Layout
    flat : array (layout.size,)
        Its start; changed in place.
    optimiser : AdamW or SGD
    loss : str
        A key of LOSSES.
    stream : Stream
        Orders the rows of every epoch.
    rows : int
        Rows it will train on, for settings that go by them.
    paces : sequence of float
        Shares of the learning rate in its first epochs; in later ones it is whole.
    """

    def __init__(
        self,
        layout: Layout,
        flat: FloatArray,
        optimiser: Optimiser,
        loss: TabularLoss,
        stream: Stream,
        rows: int,
        paces: Sequence[float] = (),
    ) -> None:
        self.layout, self.flat, self.optimiser, self.loss, self.stream = layout, flat, optimiser, loss, stream
        self.descent = optimiser.start(layout.size, layout.decayed, rows)
        self.paces, self._epochs = paces, 0
        self.rows_drawn = 0
        self._fused: FusedNetwork | None = None
        self._mean: FloatArray | None = None
        self._kept: FloatArray | None = None
        self._averaged = 0

    def train_epoch(self, rows: TrainingRows) -> float:
        """One pass over the rows in a fresh order; returns the mean loss met on the way."""
        self._set_pace()
        size = self.optimiser.rows_per_step(len(rows))
        # One step takes all rows: their order is of no account, and left alone it changes no sum.
        ordered = rows if size == len(rows) else rows[self.order(len(rows))]
        fused = self._begin()
        if fused is None:
            with np.errstate(over="ignore", invalid="ignore"):  # a diverging loss is reported once, by its value
                return self._numpy_epoch(ordered.copied(), size)
        chosen = np.ascontiguousarray(ordered.places(), np.int64)
        return fused.epoch(rows, chosen, self.loss, size)

    def advance(self, rows: TrainingRows, held: TrainingRows | None) -> Advance:
        """`train_epoch`, then, with held-out rows, `average` and `values`."""
        fused = self._begin()
        if held is None or fused is None:
            loss = self.train_epoch(rows)
            if held is None:
                return Advance(loss, None)
            self.average()
            return Advance(loss, self.values(held))
        self._set_pace()
        size, newest = self.optimiser.rows_per_step(len(rows)), self._newest()
        if self._mean is None:
            self._mean = np.empty_like(fused.parameters)
        words, outputs = (self.stream, self.rows_drawn), self.layout.outputs
        self.rows_drawn += len(rows) if size < len(rows) else 0
        return Advance(*fused.advance(rows, self.loss, size, words, self._mean, newest, held, outputs))

    def pace(self, epoch: int) -> float:
        """The share of the learning rate in an epoch, counted from 0."""
        return self.paces[epoch] if epoch < len(self.paces) else 1.0

    def order(self, rows: int) -> IdArray:
        """A fresh order of so many rows: the next of the network's stream."""
        order = self.stream.permutation(rows, start=self.rows_drawn)
        self.rows_drawn += rows
        return order

    def average(self) -> None:
        """Take the weights into their mean over epochs, of which the newest is a fifth, or of the first few."""
        newest = self._newest()
        if self._mean is None:
            self._mean = self._weights().copy()
        else:
            self._mean += np.float32(newest) * (self._weights() - self._mean)

    def _newest(self) -> float:
        self._averaged += 1
        return max(NEWEST, 1 / self._averaged)

    def values(self, rows: TrainingRows) -> FloatArray:
        """Outputs (rows, outputs) by the mean of the weights, or by the weights where none was taken."""
        judged = self._judged()
        if self._fused is None:
            return evaluate(self.layout, judged, rows.inputs())
        return self._fused.values(rows.X, rows.factors(), rows.places(), self.layout.outputs, judged)

    def keep(self) -> None:
        """Remember what `values` goes by."""
        self._kept = self._judged().copy()

    def restore(self) -> None:
        """Make what is remembered the weights."""
        assert self._kept is not None
        self._weights()[:] = self._kept

    def release(self) -> None:
        """Write the weights back to `flat`, and give up the buffers of training."""
        if self._fused is not None:
            self._fused.unpack()
        self._fused, self._mean, self._kept, self._averaged = None, None, None, 0

    def _set_pace(self) -> None:
        """For the next epoch."""
        self.descent.pace = self.pace(self._epochs)
        self._epochs += 1

    def _weights(self) -> FloatArray:
        return self.flat if self._fused is None else self._fused.parameters

    def _judged(self) -> FloatArray:
        return self._weights() if self._mean is None else self._mean

    def _begin(self) -> FusedNetwork | None:
        if self._fused is None and (packed := packing(self.layout)) is not None:
            self._fused = FusedNetwork(packed, self.flat, self.descent)
        return self._fused

    def _numpy_epoch(self, rows: TrainingRows, size: int) -> float:
        backprop, total = Backprop(self.layout, self.flat, size), 0.0
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            X, weight = rows.X[part], rows.weight[part]
            losses, errors = LOSSES[self.loss](backprop.values(X), rows.target[part])
            total += float(losses @ weight)
            errors *= (weight / len(X))[:, None]
            self.descent.step(self.flat, backprop.differentiate(X, errors))
        return total / len(rows)


class Advance(NamedTuple):
    """What an epoch of a network brought: the mean loss, and its outputs at the rows it is judged by, if any."""

    loss: float
    outputs: FloatArray | None


class GroupTrainer(Protocol):
    """Networks in training, whoever carries it out."""

    learning_rate: float

    @property
    def steps(self) -> int:
        """Steps of a network so far."""

    def epoch(self) -> list[Task]:
        """Tasks that take every network an epoch further; each returns a list of `Advance`, in all one per network."""

    def keep(self) -> None:
        """Remember the weights."""

    def restore(self) -> None:
        """Go back to the weights remembered."""

    def release(self) -> None:
        """Hand the weights back; called once, however training ended."""


class CpuTrainer:
    """Networks on threads of this process, in C++ where it is installed, else in NumPy.

    Parameters
    ----------
    networks : list of TrainedNetwork
    parts, held : one TrainingRows per network
        What each trains on and, for early stopping, is judged by; `held` may be empty where nothing stops early.
    """

    def __init__(self, networks: list[TrainedNetwork], parts: list[TrainingRows], held: list[TrainingRows]) -> None:
        self.networks, self.parts, self.held = networks, parts, held
        self.learning_rate = float(networks[0].optimiser.learning_rate)

    @property
    def steps(self) -> int:
        """Steps the first network has done."""
        return self.networks[0].descent.steps

    def epoch(self) -> list[Task]:
        """One task per network."""
        held: list[TrainingRows | None] = [*self.held] or [None] * len(self.networks)
        return [partial(_advance, *case) for case in zip(self.networks, self.parts, held, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        for network in self.networks:
            network.keep()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        for network in self.networks:
            network.restore()

    def release(self) -> None:
        """Write the weights back."""
        for network in self.networks:
            network.release()


def _advance(network: TrainedNetwork, part: TrainingRows, held: TrainingRows | None) -> list[Advance]:
    return [network.advance(part, held)]


@dataclass
class Curves:
    """Mean loss of every epoch, in training and on held-out rows."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


class Stop(NamedTuple):
    """Where training stopped: the best held-out loss and the pooled outputs that had it; NaN and None without any.

    `epochs` says after how many it was.
    """

    loss: float = np.nan
    pooled: Float64Array | None = None
    epochs: int = 0


def train_together(
    trainer: GroupTrainer,
    epochs: int,
    curves: Curves,
    held: HeldOut | None = None,
    patience: int = 1,
    label: str = "",
    phase: str = "",
) -> GroupJob:
    """A job that trains all networks for up to `epochs` epochs and, with held-out rows, goes back to the best epoch.

    With held-out rows it shows the best `Stop` so far at meetings; a verdict of False ends it.

    Parameters
    ----------
    curves : Curves
        Continued.
    patience : int
        Epochs without a better held-out loss before all stop.
    label : str
        Named in the progress, which is told if it is not empty.
    phase : str
        What errors say behind the number of an epoch.
    """
    best, since = Stop(), 0
    try:
        for epoch in range(epochs):
            advances = [advance for several in (yield trainer.epoch()) for advance in several]
            curves.training.append(float(np.mean([advance.loss for advance in advances])))
            if not np.isfinite(curves.training[-1]):
                raise divergence(trainer, f"the loss of epoch {len(curves.training)}{phase}")
            pooled = None
            if held is not None:
                pooled = held.pool([advance.outputs for advance in advances if advance.outputs is not None])
                curves.validation.append(held.score(pooled))
                if not np.isfinite(curves.validation[-1]):
                    # The weights diverged in the epoch's last steps, or the rows lie far outside those trained on.
                    rows = ", or look for extreme values in the held-out rows (validation_data, where it is passed)"
                    raise divergence(trainer, f"the held-out loss of epoch {len(curves.training)}", rows)
            if label:
                _tell(label, epoch, epochs, curves, held is not None)
            if pooled is None:
                continue
            since += 1
            if best.pooled is None or curves.validation[-1] < best.loss:
                best, since = Stop(curves.validation[-1], pooled, epoch + 1), 0
                trainer.keep()
            if since >= patience or (epoch + 1 in MEETINGS and not (yield Meeting(best))):
                break
        if held is not None:
            trainer.restore()
    finally:
        trainer.release()
    return best


def _tell(label: str, epoch: int, epochs: int, curves: Curves, judged: bool) -> None:
    held = f", held out {curves.validation[-1]:.4f}" if judged else ""
    most = "at most " if judged else ""
    told = f"{label}: epoch {epoch + 1} of {most}{epochs}: loss {curves.training[-1]:.4f}{held}\n"
    sys.stderr.write(told)  # at once: groups are in several threads


def divergence(trainer: GroupTrainer, what: str, otherwise: str = "") -> DivergenceError:
    """An error that says what is not finite, and what to do."""
    rate = trainer.learning_rate
    return DivergenceError(
        f"{what} is not finite at learning rate {rate:g}. "
        f"Remedy: lower the optimiser's learning_rate, to {rate / 10:g} for example{otherwise}.",
        step=trainer.steps,
        learning_rate=rate,
    )
