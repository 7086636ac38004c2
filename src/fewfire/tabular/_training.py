"""Networks trained side by side, each on all folds but one, and stopped together where their held-out rows say.

A network's held-out part is too small to stop it well; together the parts cover every row. So all networks advance
epoch by epoch, every row is predicted by those that did not train on it, and the epoch of the lowest loss of that
prediction is the one whose weights every network keeps. Who trains is a `GroupTrainer`: threads of this process with
NumPy's BLAS and C++ between the products (here), or PyTorch (_torch.py).
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from fewfire._blas import ONE_BLAS_THREAD
from fewfire._errors import DivergenceError
from fewfire.tabular._network import LOSSES, Backprop, evaluate

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import Layout, TabularLoss
    from fewfire.tabular._optimisers import Optimiser


@dataclass(frozen=True)
class TrainingRows:
    """Rows as a network sees them: inputs X (rows, inputs), target (rows, outputs), weight (rows,); all float32."""

    X: FloatArray
    target: FloatArray
    weight: FloatArray

    def __getitem__(self, rows: IdArray) -> TrainingRows:
        return TrainingRows(self.X[rows], self.target[rows], self.weight[rows])

    def __len__(self) -> int:
        return len(self.X)

    def with_gains(self, gains: FloatArray) -> TrainingRows:
        """Inputs multiplied by gains (inputs,)."""
        return TrainingRows(self.X * gains, self.target, self.weight)

    def smoothed(self, share: float) -> TrainingRows:
        """Targets of classes with a share of them spread evenly over all classes; two classes have one output."""
        if not share:
            return self
        even = np.float32(share / max(2, self.target.shape[1]))
        return TrainingRows(self.X, np.float32(1 - share) * self.target + even, self.weight)


class TrainedNetwork:
    """A network in training: its weights and the state of its optimiser.

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
    """

    def __init__(
        self, layout: Layout, flat: FloatArray, optimiser: Optimiser, loss: TabularLoss, stream: Stream, rows: int
    ) -> None:
        self.layout, self.flat, self.optimiser, self.loss, self.stream = layout, flat, optimiser, loss, stream
        self.descent = optimiser.start(layout.size, layout.decayed, rows)
        self.rows_drawn = 0
        self._backprop: Backprop | None = None

    def train_epoch(self, rows: TrainingRows) -> float:
        """One pass over the rows in a fresh order; returns the mean loss met on the way."""
        size = self.optimiser.rows_per_step(len(rows))
        if self._backprop is None or self._backprop.rows < size:
            self._backprop = Backprop(self.layout, self.flat, size)
        # One step takes all rows: their order is of no account, and left alone it changes no sum.
        shuffled = rows if size == len(rows) else rows[self.order(len(rows))]
        backprop, total = self._backprop, 0.0
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            X, weight = shuffled.X[part], shuffled.weight[part]
            losses, errors = LOSSES[self.loss](backprop.values(X), shuffled.target[part])
            total += float(losses @ weight)
            errors *= (weight / len(X))[:, None]
            self.descent.step(self.flat, backprop.differentiate(X, errors))
        return total / len(rows)

    def order(self, rows: int) -> IdArray:
        """A fresh order of so many rows: the next of the network's stream."""
        order = self.stream.permutation(rows, start=self.rows_drawn)
        self.rows_drawn += rows
        return order

    def values(self, X: FloatArray) -> FloatArray:
        """Outputs (rows, outputs)."""
        return evaluate(self.layout, self.flat, X)

    def release(self) -> None:
        """Give back the buffers of training."""
        self._backprop = None


class GroupTrainer(Protocol):
    """Networks in training, whoever carries it out; a context manager."""

    learning_rate: float

    def __enter__(self) -> Self: ...

    def __exit__(self, *details: object) -> None: ...

    @property
    def steps(self) -> int:
        """Steps of a network so far."""

    def train_epoch(self) -> float:
        """One epoch of every network; the mean loss."""

    def held_out(self) -> list[FloatArray]:
        """Outputs of each network at its held-out rows."""

    def keep(self) -> None:
        """Remember the weights."""

    def restore(self) -> None:
        """Go back to the weights remembered."""


class CpuTrainer:
    """Networks on threads of this process: matrix products by NumPy's BLAS, the rest in C++.

    Parameters
    ----------
    networks : list of TrainedNetwork
    parts, held : one TrainingRows per network
        What each trains on and, for early stopping, is judged by; `held` may be empty where nothing stops early.
    threads : int
        Networks trained at a time.
    """

    def __init__(
        self, networks: list[TrainedNetwork], parts: list[TrainingRows], held: list[TrainingRows], threads: int
    ) -> None:
        self.networks, self.parts, self.held = networks, parts, held
        self.threads = min(threads, len(networks))
        self.learning_rate = float(networks[0].optimiser.learning_rate)
        self.kept: list[FloatArray] = []

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self.threads)
        # Products of a batch are small: threads inside them cost more than they bring, and fight for the cores.
        ONE_BLAS_THREAD.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown()
        ONE_BLAS_THREAD.__exit__()
        for network in self.networks:
            network.release()

    @property
    def steps(self) -> int:
        """Steps the first network has done."""
        return self.networks[0].descent.steps

    def train_epoch(self) -> float:
        """One epoch of every network; the mean loss."""
        return float(np.mean(list(self._pool.map(_train, self.networks, self.parts))))

    def held_out(self) -> list[FloatArray]:
        """Outputs of each network at its held-out rows."""
        return list(self._pool.map(_predict, self.networks, self.held))

    def keep(self) -> None:
        """Remember the weights."""
        self.kept = [network.flat.copy() for network in self.networks]

    def restore(self) -> None:
        """Go back to the weights remembered."""
        for network, kept in zip(self.networks, self.kept, strict=True):
            network.flat[:] = kept


def _train(network: TrainedNetwork, part: TrainingRows) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # a diverging loss is reported once, by its value
        return network.train_epoch(part)


def _predict(network: TrainedNetwork, held: TrainingRows) -> FloatArray:
    return network.values(held.X)


@dataclass
class Curves:
    """Mean loss of every epoch, in training and on held-out rows."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


class HeldOut:
    """Which rows each network did not train on, and the loss of their pooled prediction.

    Parameters
    ----------
    examples : TrainingRows
        The rows that `rows` counts.
    rows : one array of row numbers per network
    parts : one TrainingRows per network
        Its rows as it sees them, gains included.
    loss : str
    """

    def __init__(
        self, examples: TrainingRows, rows: list[IdArray], parts: list[TrainingRows], loss: TabularLoss
    ) -> None:
        self.rows, self.parts, self.loss = rows, parts, loss
        self.count = np.bincount(np.concatenate(rows), minlength=len(examples))
        self.seen = np.flatnonzero(self.count)
        self.judged = examples[self.seen]

    def pool(self, outputs: list[FloatArray]) -> Float64Array:
        """The mean output (seen, outputs) at each row that some network left out."""
        total = np.zeros((len(self.count), self.judged.target.shape[1]))
        for ids, values in zip(self.rows, outputs, strict=True):
            total[ids] += values
        return np.asarray(total[self.seen] / self.count[self.seen, None])

    def score(self, pooled: Float64Array) -> float:
        """The mean loss of pooled outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is reported once, by its value
            losses, _ = LOSSES[self.loss](pooled, self.judged.target)
            return float(np.average(losses, weights=self.judged.weight))


class Stop(NamedTuple):
    """Where training stopped: the best held-out loss and the pooled outputs that had it; NaN and None without any."""

    loss: float = np.nan
    pooled: Float64Array | None = None


def held_out_folds(strata: AnyArray, networks: int, folds: int, stream: Stream) -> list[IdArray]:
    """For each network the rows it does not train on; `folds` networks in a row together hold out every row once.

    Rows are dealt out stratum by stratum (classes, or sorted targets), so that every fold sees the same mix.
    """
    held: list[IdArray] = []
    for partition in range(-(-networks // folds)):
        order = stream.child(f"folds{partition}").permutation(len(strata))
        dealt = order[np.argsort(strata[order], kind="stable")]
        held.extend(np.sort(dealt[fold::folds]) for fold in range(folds))
    return held[:networks]


def train_together(
    trainer: GroupTrainer, epochs: int, curves: Curves, held: HeldOut | None = None, patience: int = 1, label: str = ""
) -> Stop:
    """Train all networks for up to `epochs` epochs; with held-out rows, go back to the best epoch.

    Parameters
    ----------
    curves : Curves
        Continued.
    patience : int
        Epochs without a better held-out loss before all stop.
    label : str
        Named in the progress, which is told if it is not empty.
    """
    best, since = Stop(), 0
    for epoch in range(epochs):
        curves.training.append(trainer.train_epoch())
        if not np.isfinite(curves.training[-1]):
            raise _divergence(trainer, f"the loss of epoch {len(curves.training)}")
        if held is not None:
            pooled = held.pool(trainer.held_out())
            curves.validation.append(held.score(pooled))
            if not np.isfinite(curves.validation[-1]):
                # The weights diverged in the epoch's last steps, or the rows lie far outside those trained on.
                rows = ", or look for extreme values in the held-out rows (validation_data, where it is passed)"
                raise _divergence(trainer, f"the held-out loss of epoch {len(curves.training)}", rows)
        if label:
            _tell(label, epoch, epochs, curves, held is not None)
        if held is None:
            continue
        since += 1
        if best.pooled is None or curves.validation[-1] < best.loss:
            best, since = Stop(curves.validation[-1], pooled), 0
            trainer.keep()
        if since >= patience:
            break
    if held is not None:
        trainer.restore()
    return best


def _tell(label: str, epoch: int, epochs: int, curves: Curves, judged: bool) -> None:
    held = f", held out {curves.validation[-1]:.4f}" if judged else ""
    print(f"{label}: epoch {epoch + 1} of at most {epochs}: loss {curves.training[-1]:.4f}{held}", file=sys.stderr)


def _divergence(trainer: GroupTrainer, what: str, otherwise: str = "") -> DivergenceError:
    rate = trainer.learning_rate
    return DivergenceError(
        f"{what} is not finite at learning rate {rate:g}. "
        f"Remedy: lower the optimiser's learning_rate, to {rate / 10:g} for example{otherwise}.",
        step=trainer.steps,
        learning_rate=rate,
    )
