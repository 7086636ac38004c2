"""Groups of networks in training: their start, epochs, early stopping, successive halving over a pool of threads.

Start (pareto, sections 4.2 and C.3): a sparse neuron has s weights of random sign and size 1/√s and its kink through a
training row: it splits the data along s columns, as a split of a tree does along one. All weights are trained
afterwards, so sparsity is a start, not a constraint. The output layer and the skip start at 0, so every network starts
as the constant `offset`.

Early stopping: each network of a group trains on all folds but one. A single held-out fold is too small to stop a
network well; together the folds cover every row. So all networks of a group advance epoch by epoch, every row is
predicted by those that did not train on it, and the epoch of the lowest loss of that prediction is the one whose
weights every network keeps. What is validated and kept is the mean of the weights over the last epochs: it varies less
than the weights, which so may take larger steps, and fewer of them. Afterwards the networks anneal
(_dense/optimisers.py).

Successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization,
2016): most groups end without weight in the mixture, and it shows early. At every synchronisation point the better half
of the groups still in training goes on, and each group to which the mixture, as it would be now, gives a weight. Few
rows do not show which group is worse, and their networks are quickly trained: below `ENOUGH` of them all go on.

A group in training is a job: a generator that yields tasks, is sent their results, and returns where it stopped.
Decisions are taken inside the generators, each from the results of its own tasks alone, so nothing depends on the
number of threads or on the order in which tasks end. On a GPU (_gpu.py) all networks advance together.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire._dense.losses import TABLE_LOSSES
from fewfire._dense.network import MOST_ROWS, Backprop, FusedNetwork, evaluate, mean_outputs, packing
from fewfire._dense.optimisers import BestEpoch, annealing_factors
from fewfire._errors import DivergenceError
from fewfire._progress import Bar
from fewfire._threads import ONE_BLAS_THREAD, Helpers

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fewfire._dense.losses import TabularLoss
    from fewfire._dense.network import Layout, Rows
    from fewfire._dense.optimisers import Optimiser
    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray, IdArray
    from fewfire.tabular._base import Settings
    from fewfire.tabular._gpu import GpuRunner, GpuTrainer


RUNGS = (10, 20, 40, 80)  # after so many epochs groups are compared, and the worse are pruned
ENOUGH = 500  # held-out rows; of fewer, no group is pruned
FOLDED = 4 / 3  # an epoch of annealing, on all rows, in those of training
NEWEST = 0.2  # share of the newest epoch in the mean of weights

Task = Callable[[], Any]


class Rung(NamedTuple):
    """A synchronisation point: the job shows its best stop, and is sent whether it goes on."""

    shown: Any


Job = Generator[list[Task] | Rung, Any, Any]


def draw_start(layout: Layout, sparsity: int | None, rows: Rows, offset: FloatArray, stream: Stream) -> FloatArray:
    """Initial parameters (layout.size,), float32; the outputs start at `offset` (outputs,).

    `sparsity` is the number of non-zero weights of each first-layer row; None, or at least the number of inputs: dense
    rows. Kinks of the first layer pass through `rows`, through a row of weight 2 as often as through two.
    """
    flat = np.zeros(layout.size, dtype=np.float32)
    parts = layout.unpack(flat)
    if layout.embedding is not None:
        layout.embedding.draw(parts.embedding, stream)
    for layer, weights in enumerate(parts.hidden):
        if layer == 0:
            weights[:] = first_layer(weights.shape[0], weights.shape[1], sparsity, stream.child("hidden"))
            chosen = _rows_by_weight(rows, len(weights), stream.child("kinks"))
            # Of its row a neuron reads the inputs it has weights for: all others need not be embedded.
            inputs = np.nonzero(weights)[1].reshape(len(weights), -1)
            read = np.take_along_axis(weights, inputs, axis=1)
            if layout.embedding is None:
                at_row = np.take_along_axis(chosen, inputs, axis=1)
            else:  # in float64 by NumPy: the same bits on every machine
                at_row = layout.embedding.values_at([p.astype(np.float64) for p in parts.embedding], chosen, inputs)
            parts.biases[0][:] = -np.einsum("ji,ji->j", read, at_row)
        else:
            weights[:] = stream.child(f"hidden{layer}").normal(weights.shape) * np.sqrt(2.0 / weights.shape[1])
    parts.offset[:] = offset
    return flat


def first_layer(width: int, inputs: int, sparsity: int | None, stream: Stream) -> FloatArray:
    """Rows (width, inputs) with `sparsity` entries ±1/√sparsity each, or dense normal rows of unit expected length."""
    if sparsity is None:
        return np.asarray(stream.child("dense").normal((width, inputs)) / np.sqrt(inputs))
    few = min(sparsity, inputs)
    weights = np.zeros((width, inputs))
    chosen = stream.child("inputs").subsets(width, inputs, few)
    np.put_along_axis(weights, chosen, stream.child("signs").signs((width, few)) / np.sqrt(few), axis=1)
    return weights


def _rows_by_weight(rows: Rows, count: int, stream: Stream) -> FloatArray:
    """`count` rows drawn by their weights, in an order that depends on their values, not on their indices."""
    along, indices = stream.child("order").normal(rows.X.shape[1]), np.arange(len(rows))
    # Some rows at a time: threads that each copy a whole table wait for one another's memory.
    parts = (rows[indices[start : start + MOST_ROWS]].inputs() for start in range(0, len(rows), MOST_ROWS))
    sums = [np.einsum("ij,j->i", X.astype(np.float64), along) for X in parts]
    order = np.argsort(np.concatenate(sums), kind="stable")
    mass = np.cumsum(rows.weight[rows.indices()][order], dtype=np.float64)
    chosen = np.searchsorted(mass / mass[-1], stream.child("rows").uniform(count))
    return np.asarray(rows[order[np.minimum(chosen, len(rows) - 1)]].inputs(), np.float64)


class Advance(NamedTuple):
    """One epoch of a network: the mean loss, and its outputs at its validation rows, if any."""

    loss: float
    outputs: FloatArray | None


class TrainedNetwork:
    """A network in training: its weights and the state of its optimiser.

    `flat` is its start, and changed in place; between `train_epoch` and `release` the weights may be elsewhere, packed
    for C++. `rows` is how many it will train on, for settings that go by them; `rate_factors` are learning-rate factors
    of its first epochs, 1 in later ones.
    """

    def __init__(
        self,
        layout: Layout,
        flat: FloatArray,
        optimiser: Optimiser,
        loss: TabularLoss,
        stream: Stream,
        rows: int,
        rate_factors: Sequence[float] = (),
    ) -> None:
        self.layout, self.flat, self.optimiser, self.loss, self.stream = layout, flat, optimiser, loss, stream
        self.descent = optimiser.start(layout.size, layout.decayed, rows)
        self.rate_factors, self._epochs = rate_factors, 0
        self.rows_drawn = 0
        self._fused: FusedNetwork | None = None
        self._mean: FloatArray | None = None
        self._kept: FloatArray | None = None
        self._averaged = 0

    def train_epoch(self, rows: Rows) -> float:
        """One pass over the rows in a fresh order; returns the mean training loss."""
        self._set_rate()
        size = self.optimiser.rows_per_step(len(rows))
        # One step takes all rows: their order is of no account, and left alone it changes no sum.
        ordered = rows if size == len(rows) else rows[self.order(len(rows))]
        fused = self._begin()
        if fused is None:
            with np.errstate(over="ignore", invalid="ignore"):  # a diverging loss is reported once, by its value
                return self._numpy_epoch(ordered.copied(), size)
        return fused.epoch(rows, np.ascontiguousarray(ordered.indices(), np.int64), self.loss, size)

    def advance(self, rows: Rows, validation: Rows | None) -> Advance:
        """`train_epoch`, then, with validation rows, `average` and `values`."""
        fused = self._begin()
        if validation is None or fused is None:
            loss = self.train_epoch(rows)
            if validation is None:
                return Advance(loss, None)
            self.average()
            return Advance(loss, self.values(validation))
        self._set_rate()
        size, newest = self.optimiser.rows_per_step(len(rows)), self._newest()
        if self._mean is None:
            self._mean = np.empty_like(fused.parameters)
        words, outputs = (self.stream, self.rows_drawn), self.layout.outputs
        self.rows_drawn += len(rows) if size < len(rows) else 0
        return Advance(*fused.advance(rows, self.loss, size, words, self._mean, newest, validation, outputs))

    def rate_factor(self, epoch: int) -> float:
        """The learning-rate factor of an epoch, counted from 0."""
        return self.rate_factors[epoch] if epoch < len(self.rate_factors) else 1.0

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

    def values(self, rows: Rows) -> FloatArray:
        """Outputs (rows, outputs) by the mean of the weights, or by the weights where none was taken."""
        validated = self._validated()
        if self._fused is None:
            return evaluate(self.layout, validated, rows.inputs())
        return self._fused.values(rows.X, rows.factors(), rows.indices(), self.layout.outputs, validated)

    def keep(self) -> None:
        """Remember the weights that `values` uses."""
        self._kept = self._validated().copy()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        assert self._kept is not None
        self._weights()[:] = self._kept

    def release(self) -> None:
        """Write the weights back to `flat`, and give up the buffers of training."""
        if self._fused is not None:
            self._fused.unpack()
        self._fused, self._mean, self._kept, self._averaged = None, None, None, 0

    def _set_rate(self) -> None:
        """For the next epoch."""
        self.descent.factor = self.rate_factor(self._epochs)
        self._epochs += 1

    def _weights(self) -> FloatArray:
        return self.flat if self._fused is None else self._fused.parameters

    def _validated(self) -> FloatArray:
        return self._weights() if self._mean is None else self._mean

    def _begin(self) -> FusedNetwork | None:
        if self._fused is None and self.optimiser.name and (packed := packing(self.layout)) is not None:
            self._fused = FusedNetwork(packed, self.flat, self.descent)
        return self._fused

    def _numpy_epoch(self, rows: Rows, size: int) -> float:
        backprop, total = Backprop(self.layout, self.flat, size), 0.0
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            X, weight = rows.X[part], rows.weight[part]
            losses, errors = TABLE_LOSSES[self.loss](backprop.values(X), rows.target[part])
            total += float(losses @ weight)
            errors *= (weight / len(X))[:, None]
            self.descent.step(self.flat, backprop.differentiate(X, errors))
        return total / len(rows)


class CpuTrainer:
    """Networks trained by tasks of one network each; `validation`, the rows to stop early by, may be empty."""

    def __init__(self, networks: list[TrainedNetwork], parts: list[Rows], validation: list[Rows]) -> None:
        self.networks, self.parts, self.validation = networks, parts, validation

    @property
    def steps(self) -> int:
        """Steps of the first network so far."""
        return self.networks[0].descent.steps

    def epoch(self) -> list[Task]:
        """Tasks that take every network an epoch further; each returns a list of `Advance`."""
        validation: list[Rows | None] = [*self.validation] or [None] * len(self.networks)
        return [partial(_advance, *case) for case in zip(self.networks, self.parts, validation, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        for network in self.networks:
            network.keep()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        for network in self.networks:
            network.restore()

    def release(self) -> None:
        """Write the weights back to the networks; called once, however training ended."""
        for network in self.networks:
            network.release()


def _advance(network: TrainedNetwork, part: Rows, validation: Rows | None) -> list[Advance]:
    return [network.advance(part, validation)]


@dataclass
class Curves:
    """Mean loss of every epoch, in training and on validation rows."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


class Stop(NamedTuple):
    """Where training stopped: the best validation loss, the pooled outputs that had it, and after how many epochs."""

    loss: float = np.nan
    pooled: Float64Array | None = None
    epochs: int = 0


class PooledValidation:
    """Which rows each network did not train on, and the loss of their pooled prediction."""

    def __init__(self, rows: Rows, folds: list[IdArray], parts: list[Rows], loss: TabularLoss) -> None:
        self.folds, self.parts, self.loss = folds, parts, loss
        self.seen = np.unique(np.concatenate(folds))
        self.target, self.weight = rows.target[self.seen], rows.weight[self.seen]

    def pool(self, outputs: list[FloatArray]) -> Float64Array:
        """The mean output (seen, outputs) at each row that some network left out."""
        return pooled(outputs, self.folds)

    def score(self, pooled: Float64Array) -> float:
        """The mean loss of pooled outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is reported once, by its value
            losses, _ = TABLE_LOSSES[self.loss](pooled, self.target)
            return float(np.average(losses, weights=self.weight))


def pooled(values: Sequence[FloatArray], folds: Sequence[IdArray]) -> Float64Array:
    """The mean of the values (fold, outputs) of each row that is in some fold, in the order of the rows; float64."""
    count = np.bincount(np.concatenate(folds))
    total, seen = np.zeros((len(count), values[0].shape[1])), count > 0
    for ids, some in zip(folds, values, strict=True):
        total[ids] += some
    return np.asarray(total[seen] / count[seen, None])


class NetworkGroup:
    """Networks of one layout that see the same variant of the inputs, trained together; they predict by their mean.

    Between fits only `weights` are kept, unless training may go on (`warm_start`, `partial_fit`): then the networks
    with the state of their optimisers stay as well, as they were before annealing. For predictions the weights are
    converted once, when a fit ends. `reached` counts the epochs up to the weights that training would go on from.
    """

    def __init__(self, layout: Layout, loss: TabularLoss, offset: FloatArray, stream: Stream, count: int) -> None:
        self.layout, self.loss, self.offset, self.stream, self.count = layout, loss, offset, stream, count
        self.networks: list[TrainedNetwork] = []
        self.curves, self.annealed, self.reached = Curves(), 0, 0
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
        rows: Rows,
        gains: list[FloatArray],
        folds: list[IdArray] | None,
        validation: Rows | None,
        settings: Settings,
        label: str,
    ) -> Job:
        """A job: train until the validation rows, or the epochs, end it; it returns a `Stop`.

        Inputs come without gains, which are those of each network (inputs,). Networks do not train on their fold, which
        they are stopped by; `validation`, if given, takes its place. Progress is reported under the label.
        """
        pooled, smoothed = None, rows.smoothed(settings.smoothing)
        if folds is not None and validation is None:
            everything = np.arange(len(rows))
            shown = list(zip(folds, gains, strict=True))
            parts = [smoothed[np.delete(everything, fold)].with_gains(gain) for fold, gain in shown]
            pooled = PooledValidation(rows, folds, [rows[fold].with_gains(gain) for fold, gain in shown], self.loss)
        else:  # the same rows and gains for all networks: one table, not a copy per network
            parts = [smoothed.with_gains(gains[0])] * self.count
        if validation is not None:
            every = [np.arange(len(validation))] * self.count
            pooled = PooledValidation(validation, every, [validation.with_gains(gains[0])] * self.count, self.loss)
        return self._run(parts, pooled, settings.optimiser.epochs, settings, label)

    def train_epoch(self, rows: Rows, settings: Settings, label: str) -> Job:
        """A job of one epoch of every network over all rows, gains included, from the weights that predict."""
        if self.annealed and self.weights is not None:
            for network, flat in zip(self.networks, self.weights, strict=False):  # none, if training was forgotten
                network.flat[:] = flat
        return self._run([rows.smoothed(settings.smoothing)] * self.count, None, 1, settings, label)

    def anneal(self, rows: Rows, settings: Settings, label: str) -> Job:
        """A job that anneals copies of the networks on all rows, with the gains of predictions; the copies predict."""
        rows, factors, rule = rows.smoothed(settings.smoothing), annealing_factors(self.reached), settings.optimiser
        copies = []
        for number, network in enumerate(self.networks):
            # Names of streams outlive renamings: the same seed, the same fit.
            flat, stream = network.flat.copy(), self.stream.child(f"member{number}").child("cool down")
            copies.append(TrainedNetwork(self.layout, flat, rule, self.loss, stream, len(rows), factors))
        trainer, report = _trainer(copies, [rows] * self.count, [], settings), partial(settings.progress.epoch, label)
        stop = yield from train_together(trainer, len(factors), Curves(), report=report, phase=" of annealing")
        weights = np.stack([network.flat for network in copies])
        if not np.isfinite(weights).all():  # those of the last steps; nothing is computed by them here
            raise _divergence(trainer, "a weight at the end of annealing")
        self._set_weights(weights)
        self.annealed = len(factors)
        return stop

    def forget_training(self) -> None:
        """Keep only what predicts."""
        self.networks = []

    def outputs(self, X: FloatArray, gains: FloatArray) -> Float64Array:
        """Mean output (rows, outputs) of the networks at X (rows, inputs) times gains (inputs,), float64."""
        assert self._outputs is not None
        return self._outputs(X, gains)

    def _run(
        self, parts: list[Rows], pooled: PooledValidation | None, epochs: int, settings: Settings, label: str
    ) -> Job:
        before = [network.flat for network in self.networks] or self.weights
        if self.networks and not _alike(self.networks[0].optimiser, settings.optimiser):
            self.networks = []  # another optimiser starts afresh, from these weights
        if not self.networks:
            self.networks = yield [partial(self._network, *case, before, settings) for case in enumerate(parts)]
        trainer = _trainer(self.networks, parts, [] if pooled is None else pooled.parts, settings)
        patience, report = settings.patience or epochs, partial(settings.progress.epoch, label)
        best = yield from train_together(trainer, epochs, self.curves, pooled, patience, report=report)
        self._set_weights(np.stack([network.flat for network in self.networks]))
        self.annealed = 0
        self.reached += epochs if pooled is None else best.epochs
        return best

    def _network(
        self, number: int, rows: Rows, before: Sequence[FloatArray] | FloatArray | None, settings: Settings
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


def _trainer(
    networks: list[TrainedNetwork], parts: list[Rows], validation: list[Rows], settings: Settings
) -> CpuTrainer | GpuTrainer:
    if settings.device == "cpu":
        return CpuTrainer(networks, parts, validation)
    from fewfire.tabular._gpu import GpuTrainer

    return GpuTrainer(networks, parts, validation)


def train_together(
    trainer: CpuTrainer | GpuTrainer,
    epochs: int,
    curves: Curves,
    validation: PooledValidation | None = None,
    patience: int = 1,
    *,
    report: Callable[..., None],
    phase: str = "",
) -> Job:
    """A job that trains networks for up to `epochs` epochs and, with validation rows, goes back to the best.

    Curves are continued. `phase` follows the number of an epoch in errors.
    """
    stop, best = Stop(), BestEpoch(patience)
    try:
        for epoch in range(epochs):
            advances = [advance for several in (yield trainer.epoch()) for advance in several]
            curves.training.append(float(np.mean([advance.loss for advance in advances])))
            if not np.isfinite(curves.training[-1]):
                raise _divergence(trainer, f"the loss of epoch {len(curves.training)}{phase}")
            pooled = None
            if validation is not None:
                pooled = validation.pool([advance.outputs for advance in advances if advance.outputs is not None])
                curves.validation.append(validation.score(pooled))
                if not np.isfinite(curves.validation[-1]):
                    # The weights diverged in the epoch's last steps, or the rows lie far outside those trained on.
                    rows = ", or look for extreme values in the held-out rows (validation_data, where it is passed)"
                    raise _divergence(trainer, f"the held-out loss of epoch {len(curves.training)}", rows)
            if pooled is not None and best.better(curves.validation[-1]):
                stop = Stop(curves.validation[-1], pooled, epoch + 1)
                trainer.keep()
            report(epoch + 1, epochs, curves, None if pooled is None else best)
            if pooled is not None and (best.over or (epoch + 1 in RUNGS and not (yield Rung(stop)))):
                break
        if validation is not None:
            trainer.restore()
    finally:
        trainer.release()
    return stop


class FitProgress:
    """How far a fit is: nothing (`verbose` 0), one bar (1), or a line per epoch (more). What is left is a guess."""

    def __init__(self, verbose: int) -> None:
        self.logs, self.bar = verbose > 1, Bar("fit, epochs", forecast=True) if verbose == 1 else None
        self.best, self.done = np.inf, 0.0
        self.begin()

    def begin(self, cost: float = 1.0, left: float = 0.0, *, anneals: bool = False) -> None:
        """A phase whose epochs count as `cost`; `left` are those of later phases, but for annealing."""
        self.cost, self.left, self.anneals = cost, {"": left}, anneals

    def epoch(self, label: str, epoch: int, epochs: int, curves: Curves, best: BestEpoch | None) -> None:
        """Take in an epoch, counted from 1; `best` is None where nothing is held out."""
        if self.logs:
            most, held_out = ("at most ", f", held out {curves.validation[-1]:.4f}") if best else ("", "")
            sys.stderr.write(f"{label}: epoch {epoch} of {most}{epochs}: loss {curves.training[-1]:.4f}{held_out}\n")
        annealing, self.done = 0.0, self.done + self.cost
        if best:  # half as many epochs again as so far, and what patience adds
            self.best = min(self.best, curves.validation[-1])
            epochs = epoch if best.over else min(epochs, max(epoch, best.epoch + (best.patience or 0)) + epoch // 2)
            annealing = FOLDED * len(annealing_factors(best.epoch)) if self.anneals else 0.0
        self.left[label] = self.cost * (epochs - epoch) + annealing
        self._draw(label, self.done + max(1.0, sum(self.left.values())))

    def finish(self) -> None:
        """The bar ends full."""
        self._draw("done", self.done)

    def _draw(self, what: str, total: float) -> None:
        if self.bar is not None:
            self.bar(self.done, total, what + (f", best loss {self.best:.4f}" if self.best < np.inf else ""))


def _divergence(trainer: CpuTrainer | GpuTrainer, what: str, otherwise: str = "") -> DivergenceError:
    """An error that names what is not finite, and the remedy."""
    rate = float(trainer.networks[0].optimiser.learning_rate)
    return DivergenceError(
        f"{what} is not finite at learning rate {rate:g}. "
        f"Remedy: lower the optimiser's learning_rate, to {rate / 10:g} for example{otherwise}.",
        step=trainer.steps,
        learning_rate=rate,
    )


class SuccessiveHalving:
    """Which groups go on; `mix` maps outputs (groups, rows, outputs) at validation rows to weights (groups,)."""

    def __init__(self, mix: Callable[[Float64Array], Float64Array], groups: int) -> None:
        self._mix, self._running = mix, np.ones(groups, dtype=bool)

    def __call__(self, stops: Sequence[Stop]) -> list[bool]:
        """Which groups go on, given the best stop of each so far."""
        running = self._running
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        if len(stops) > 1 and outputs.shape[1] >= ENOUGH:
            losses = np.where(running, [stop.loss for stop in stops], np.inf)
            half = np.argsort(losses, kind="stable")[: -(-int(running.sum()) // 2)]
            ahead = self._mix(outputs) > 0
            ahead[half] = True
            running &= ahead
        return [bool(runs) for runs in running]


class Finished(NamedTuple):
    """What each job returned, and the seconds that its tasks took."""

    found: list[Any]
    seconds: list[float]


def run_jobs(
    jobs: Sequence[Job],
    threads: int,
    prune: Callable[[list[Any]], Sequence[Any]] | None = None,
    others: Sequence[Job] = (),
    gpu: GpuRunner | None = None,
) -> Finished:
    """Run jobs and `others`, whose results come last, concurrently; `prune` decides at the rungs of jobs.

    `prune` maps what every job has shown last, or returned, to what each is sent. `gpu` takes all tasks of a GPU that
    are ready at a time. BLAS gets one thread meanwhile, as the products of a batch are small. If a job raises, those
    after it are given up and those before it go on, to their next rung at most: which error is raised does not depend
    on the threads. Neither an error nor an interrupt waits for tasks that are under way.
    """
    with ONE_BLAS_THREAD:
        schedule = _Schedule([*jobs, *others], len(jobs), prune)
        try:
            with Helpers(threads if threads > 1 or gpu is not None else 0) as helpers:
                _run_tasks(schedule, helpers, gpu)
                if schedule.error is not None:
                    raise schedule.error[1]
        finally:
            for job in schedule.jobs:
                job.close()
        return Finished(schedule.shown, schedule.seconds)


def _run_tasks(schedule: _Schedule, helpers: Helpers, gpu: GpuRunner | None) -> None:
    """Submit what is ready, and advance the jobs whose tasks are done; a GPU waits for other tasks of its jobs."""
    done: SimpleQueue[tuple[int, int, Future[Any]]] = SimpleQueue()
    under_way = [0] * len(schedule.jobs)
    on_gpu: list[tuple[int, int, Any]] = []

    def submit(number: int, index: int, task: Task) -> None:
        under_way[number] += 1
        future = helpers.submit(_timed, partial(schedule.run, number, task))
        future.add_done_callback(lambda future: done.put((number, index, future)))

    def collect() -> None:
        number, index, future = done.get()
        under_way[number] -= 1
        if (error := future.exception()) is not None:
            schedule.fail(number, error)
        else:
            schedule.take(number, index, *future.result())

    while True:
        while schedule.ready:
            number, index, task = schedule.ready.popleft()
            if gpu is not None and gpu.takes(task):
                on_gpu.append((number, index, task))
            else:
                submit(number, index, task)
            while not done.empty():
                collect()
        if gpu is not None and on_gpu and not any(under_way[: schedule.count]):
            _run_on_gpu(schedule, gpu, [entry for entry in on_gpu if schedule.wanted(entry[0])])
            on_gpu = []
        elif schedule.awaited(under_way):
            collect()
        else:
            return


def _run_on_gpu(schedule: _Schedule, gpu: GpuRunner, entries: list[tuple[int, int, Any]]) -> None:
    """Run tasks of a GPU together; each gets its share of the time."""
    try:
        results, spent = _timed(partial(gpu.run, [task for _, _, task in entries]))
    except BaseException as error:
        schedule.fail(0, error)
        return
    for (number, index, _), result in zip(entries, results, strict=True):
        schedule.take(number, index, result, spent / len(entries))


class _Schedule:
    """Jobs under way, the first `count` of which have rungs; advanced by one thread."""

    def __init__(self, jobs: Sequence[Job], count: int, prune: Callable[[list[Any]], Sequence[Any]] | None) -> None:
        self.jobs, self.count, self.prune = jobs, count, prune
        self.shown: list[Any] = [None] * len(jobs)
        self.seconds = [0.0] * len(jobs)
        self.running, self.at_rung = set(range(len(jobs))), set[int]()
        self.results: list[list[Any]] = [[] for _ in jobs]
        self.missing = [0] * len(jobs)
        self.ready: deque[tuple[int, int, Task]] = deque()
        self.error: tuple[int, BaseException] | None = None
        for number in range(len(jobs)):
            self._advance(number, None)

    def run(self, number: int, task: Task) -> Any:
        """The result of a task, unless its job has been given up."""
        return task() if self.wanted(number) else None

    def take(self, number: int, index: int, result: Any, spent: float) -> None:
        """Take in the result of a task and its seconds; the last one takes its job further."""
        if not self.wanted(number):
            return
        self.results[number][index] = result
        self.seconds[number] += spent
        self.missing[number] -= 1
        if not self.missing[number]:
            self._advance(number, self.results[number])

    def fail(self, number: int, error: BaseException) -> None:
        """Give up this job and those after it; all, where it is no error but an interrupt."""
        number = number if isinstance(error, Exception) else 0
        if self.wanted(number):
            self.error = number, error
            self.running = {job for job in self.running if job < number}
            self.at_rung &= self.running
            self.ready = deque(entry for entry in self.ready if entry[0] < number)

    def awaited(self, under_way: list[int]) -> bool:
        """Whether tasks under way are to be waited for: after an error, those of jobs before the one that failed."""
        return any(under_way if self.error is None else under_way[: self.error[0]])

    def wanted(self, number: int) -> bool:
        """Whether a job has not been given up."""
        return self.error is None or number < self.error[0]

    def _advance(self, number: int, results: list[Any] | None) -> None:
        self._send(number, results)
        while self.at_rung and self.error is None and self.at_rung == {job for job in self.running if job < self.count}:
            assert self.prune is not None
            verdicts, waiting = self.prune(self.shown[: self.count]), sorted(self.at_rung)
            self.at_rung = set()
            for job in waiting:
                self._send(job, verdicts[job])

    def _send(self, number: int, what: Any) -> None:
        if not self.wanted(number):
            return
        try:
            given = self.jobs[number].send(what)
        except StopIteration as end:
            self.running.discard(number)
            self.shown[number] = end.value
        except BaseException as error:
            self.fail(number, error)
        else:
            if isinstance(given, Rung):
                self.at_rung.add(number)
                self.shown[number] = given.shown
            else:
                self.results[number], self.missing[number] = [None] * len(given), len(given)
                self.ready.extend((number, index, task) for index, task in enumerate(given))


def _timed(task: Task) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = task()
    return result, time.perf_counter() - begin
