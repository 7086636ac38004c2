"""Runs of one shape on the device: drawn, trained in short calls between which a program can be stopped, and read back.

A call trains for a fraction of a second and ends at a checkpoint at the latest. Runs that have ended go along until no
more than half of the batch goes on; then the batch is halved.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from fewfire._cuda._compile import cache_folder
from fewfire._optional import require
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire.engines._result import MEASURED_ROWS, History, Result, Stopped, dense_counters, divergence
from fewfire.engines._run import Run, Schedule
from fewfire.engines.jax._engine import JaxEngine
from fewfire.engines.jax._philox import pair
from fewfire.engines.jax._steps import (
    Choice,
    Cursor,
    Form,
    Measured,
    Runs,
    Trained,
    measure,
    train,
    transformation,
    weigh,
)
from fewfire.networks import Mlp, TwoLayer

jax: Any = require("jax", "jax", "the jax engine")
_SLICE_SECONDS = 0.2

_LISTED = 256
"""Steps of one call where rates change from step to step."""

_COUNTED = 1 << 31
"""Pairs of a neuron and an example in one call, which counts in 32 bits those that fired."""

_FRESH_BYTES = 1 << 24
"""Of fresh examples that one call of a batch sees, where they are signs."""

_BLOCK_BYTES = 1 << 26
"""Of preactivations that a checkpoint computes at a time for a batch."""


SHARE = 0.5
"""Of a device's free memory, for one batch of several runs."""


def room() -> int:
    """Bytes for one batch of several runs; 0 where the device does not report its memory."""
    stats = jax.devices()[0].memory_stats() or {}
    return int(SHARE * (stats.get("bytes_limit", 0) - stats.get("bytes_in_use", 0)))


def out_of_memory(error: Exception) -> bool:
    """Whether the device, or this machine, had too little memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
    )


def keep_compiled() -> None:
    """Let JAX keep what it compiles on disk, unless the program has named a folder for that itself.

    The folder is this machine's: code for one processor need not run on another that shares the home folder.
    """
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder("jax") / platform.node()))


class RunBatch:
    """Runs that share sizes, batch sizes, steps, checkpoints, loss and sampling.

    Each slot of the batch trains one run: `_members` are their numbers, `_active` marks those that go on.
    """

    def __init__(self, runs: Sequence[Run], keep_networks: bool, engine: JaxEngine) -> None:
        self._engine, self._precision = engine.name, engine.precision
        self.runs, self.schedule = [run.drawn() for run in runs], runs[0].schedule
        self._keep, self._online = keep_networks, runs[0].source is not None
        self._members, self._active = np.arange(len(runs)), np.ones(len(runs), dtype=bool)
        self._step = self._position = self._steps_of_ended = 0
        self._pace = 16
        self._fired = np.zeros(len(runs), dtype=np.int64)
        self._records: list[list[tuple[float, ...]]] = [[] for _ in runs]
        layers = [_layers(run.network) for run in self.runs]
        parameters = jax.tree.map(lambda *parts: np.stack(parts, dtype=np.float32), *layers)
        counts = np.zeros(len(runs), dtype=np.uint32), np.zeros(len(runs), dtype=np.int32)
        memory = jax.vmap(transformation(self.schedule.optimiser, self.schedule.momentum).init)(parameters)
        self._state = jax.device_put(Trained(parameters, memory, *counts))
        self._training, self._signs = self._tables([(run.X, run.y) for run in self.runs])
        self._test, self._test_signs = self._tables([(run.X_test, run.y_test) for run in self.runs])
        self._signs = self._test_signs = self._signs & self._test_signs  # one kind of error per run
        self._support = np.zeros((len(runs), runs[0].inputs), dtype=np.float32)
        for row, run in zip(self._support, runs, strict=True):
            row[list(run.support or ())] = 1

    def _tables(self, given: Sequence[tuple[AnyArray | None, AnyArray | None]]) -> tuple[Runs, AnyArray]:
        """The runs with these tables, each copied once, and whether all labels of a run are ±1."""
        none = np.zeros((0, self.runs[0].inputs), dtype=np.int8), np.zeros(0, dtype=np.float32)
        pairs = [none if X is None or y is None else (X, y) for X, y in given]
        keys = [(id(X), y.tobytes()) for X, y in pairs]  # a run has a copy of its labels
        distinct = dict(zip(keys, pairs, strict=True))
        number = {key: i for i, key in enumerate(distinct)}
        rows = [len(X) for X, _ in pairs]
        signs = all(X.dtype == np.int8 for X, _ in pairs)
        tables = np.zeros((len(distinct), max(rows), self.runs[0].inputs), dtype=np.int8 if signs else np.float32)
        labels = np.zeros(tables.shape[:2], dtype=np.float32)
        for i, (X, y) in enumerate(distinct.values()):
            tables[i, : len(X)], labels[i, : len(y)] = X, y
        activations = [cast("TwoLayer | Mlp", run.network).activation for run in self.runs]
        streams = [run.stream for run in self.runs]
        described = Runs(
            tables,
            labels,
            np.array([number[key] for key in keys], dtype=np.int32),
            np.array(rows, dtype=np.int32),
            np.array([activation.threshold for activation in activations], dtype=np.float32),
            np.array([activation.ceiling for activation in activations], dtype=np.float32),
            pair([int(stream.key) for stream in streams]),
            pair([stream.id for stream in streams]),
            pair([stream.child("epochs").id for stream in streams]),
        )
        classes = self.runs[0].outputs > 1
        return jax.device_put(described), np.array([classes or bool(np.all(np.abs(y) == 1)) for _, y in pairs])

    def train(self, notify: Callable[[int], object]) -> Iterator[tuple[int, Result]]:
        """The number of each run and its result, as it ends; `notify` gets the steps of all runs that are done."""
        checkpoints = self.schedule.checkpoints()
        yield from self._checked()
        for number, phase in enumerate(self.schedule.phases):
            first = self._step
            while self._step < first + phase.steps and self._active.any():
                check = checkpoints[int(np.searchsorted(checkpoints, self._step, side="right"))]
                self._advance(number, self._step - first, min(check, first + phase.steps) - self._step)
                steps = np.asarray(self._state.diverged)
                for slot in np.flatnonzero(self._active & (steps > 0)).tolist():
                    yield self._ended(slot, "diverged", int(steps[slot]))
                if self._step == check:
                    yield from self._checked()
                notify(self._steps_of_ended + self._step * int(self._active.sum()))
                self._halve()

    def _advance(self, number: int, within: int, most: int) -> None:
        """So many steps of all runs, or fewer: `within` steps after the beginning of the phase of this number."""
        phase = self.schedule.phases[number]
        size = phase.batch_size
        choice: Choice = "all" if size is None else "in order" if self._online else self.schedule.sampling
        schedule = self.schedule
        rows = size or self._training.X.shape[1]
        form = Form(schedule.loss, choice, rows, schedule.optimiser, schedule.momentum, self._precision)
        count = min(most, self._pace, max(1, _COUNTED // (form.batch * self.runs[0].width)))
        if self._online:
            fitting = _FRESH_BYTES // (len(self._members) * form.batch * self.runs[0].inputs)
            room = max(1, min(phase.steps, fitting))
            count = min(count, room)
            self._draw_fresh(count * form.batch, room * form.batch)
        tables = [np.stack(self.runs[i].schedule.phases[number].tables(), axis=1) for i in self._members]
        if any(len(table) > 1 for table in tables):
            count = min(count, _LISTED)
            steps = np.minimum(np.arange(within, within + _LISTED), phase.steps - 1)
            tables = [np.broadcast_to(table, (phase.steps, 3, 4))[steps] for table in tables]
        rates = np.stack(tables, axis=1, dtype=np.float32)
        epoch, rest = divmod(self._position, max(1, self._training.X.shape[1]))
        cursor = Cursor(np.int32(self._step), pair(self._position), np.uint32(epoch), np.uint32(rest))
        began = time.perf_counter()
        self._state = jax.block_until_ready(train(form, self._state, self._training, cursor, rates, np.int32(count)))
        seconds = time.perf_counter() - began
        self._pace = 2 * self._pace if seconds < _SLICE_SECONDS else max(1, self._pace // 2)
        np.add.at(self._fired, self._members[self._active], np.asarray(self._state.pairs)[self._active])
        self._state = self._state._replace(pairs=np.zeros(len(self._members), dtype=np.uint32))
        self._step += count
        self._position += count * (size or 0)

    def _draw_fresh(self, rows: int, room: int) -> None:
        """The next examples of every run that goes on; tables of one size need one compiled function."""
        drawn = {}
        for slot in np.flatnonzero(self._active).tolist():
            run = self.runs[self._members[slot]]
            assert run.source is not None
            drawn[slot] = run.source.sample(rows, run.stream.child("online"), start=self._position)
        kinds = {X.dtype == np.int8 for X, _ in drawn.values()}
        X = np.zeros((len(self._members), room, self.runs[0].inputs), dtype=np.int8 if kinds == {True} else np.float32)
        y = np.zeros(X.shape[:2], dtype=np.float32)
        for slot, (inputs, labels) in drawn.items():
            X[slot, :rows], y[slot, :rows] = inputs, labels
        self._training = self._training._replace(X=X, y=y, table=np.arange(len(X), dtype=np.int32))

    def _checked(self) -> Iterator[tuple[int, Result]]:
        """Record what a checkpoint measures, and give the results of the runs that end there."""
        columns = self._measured()
        for slot in np.flatnonzero(self._active).tolist():
            record = tuple(float(column[slot]) for column in columns)
            run = self.runs[self._members[slot]]
            self._records[self._members[slot]].append((self._step, *record))
            limit, last = run.schedule.stop_error, self._step == self.schedule.steps
            if last and not np.isfinite(record[3:5]).all():
                # The last update of all left the finite numbers, and no later score could show it.
                yield self._ended(slot, "diverged", self._step)
            elif limit is not None and record[2] <= limit:
                yield self._ended(slot, "test_error", self._step)
            elif last:
                yield self._ended(slot, "steps", self._step)

    def _measured(self) -> list[Float64Array]:
        """The columns of a history but for the step, one number per slot."""
        members = self._members
        with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 is what is not there
            rows, train = self._sums(self._training, MEASURED_ROWS)
            loss, active = train.loss / rows, train.fired / (rows * self.runs[0].width)
            error = np.where(self._signs[members], train.wrong, train.squares) / rows
            rows, test = self._sums(self._test, None)
            test_error = np.where(self._test_signs[members], test.wrong, test.squares) / rows
            weights = np.asarray(weigh(self._state.parameters, self._support[members]), dtype=np.float64)
            hidden, output, mass, inside = weights
            known = np.array([self.runs[member].support is not None for member in members])
            return [loss, error, test_error, hidden, output, active, np.where(known, inside / mass, np.nan)]

    def _sums(self, tables: Runs, most: int | None) -> tuple[Float64Array, Measured]:
        """How many rows of its table each slot looks at, and what is summed over them."""
        rows = np.minimum(np.asarray(tables.rows), MEASURED_ROWS) if most else np.asarray(tables.rows)
        if not rows.any():
            return rows.astype(np.float64), Measured(*np.zeros((4, len(rows))))
        fit = max(16, _BLOCK_BYTES // (4 * len(rows) * self.runs[0].width))
        block = min(fit, int(rows.max()))
        blocks = -(-int(rows.max()) // block)
        seen = tables._replace(rows=rows)
        found = measure(self.schedule.loss, self._precision, block, blocks, self._state.parameters, seen)
        return rows.astype(np.float64), Measured(*(np.asarray(part, dtype=np.float64) for part in found))

    def _ended(self, slot: int, stopped: Stopped, step: int) -> tuple[int, Result]:
        """The number of the run at this slot and what it ended with; its slot is free."""
        self._active[slot] = False
        number = int(self._members[slot])
        run = self.runs[number]
        self._steps_of_ended += run.schedule.steps
        initial = cast("TwoLayer | Mlp", run.network)
        error = None
        if stopped == "diverged":
            error = divergence(step, _rate_at(run.schedule, step))
            step -= 1
        network = initial if self._keep else None
        if network is not None and error is None:
            layers = jax.tree.map(lambda part: np.asarray(part[slot]), self._state.parameters)
            network = _network(layers, initial)
        counters = dense_counters(run, step, int(self._fired[number]))
        return number, Result(network, History.of(self._records[number]), counters, stopped, self._engine, error)

    def _halve(self) -> None:
        """Leave out runs that have ended, as often as half of the slots are enough."""
        slots, size = np.flatnonzero(self._active), len(self._members)
        while 0 < len(slots) <= size // 2:
            size //= 2
        if size == len(self._members) or not len(slots):
            return
        kept = np.concatenate([slots, np.flatnonzero(~self._active)])[:size]
        self._state = jax.tree.map(lambda part: part[kept], self._state)
        self._training, self._test = (_of_slots(runs, kept) for runs in (self._training, self._test))
        self._members, self._active = self._members[kept], self._active[kept]


def _layers(network: Any) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Weights and biases of each layer of a network, the outputs last."""
    if isinstance(network, Mlp):
        return tuple(zip(network.weights, network.biases, strict=True))
    return (network.hidden, network.bias), (network.output[None], np.array([network.offset], np.float32))


def _network(layers: Sequence[tuple[FloatArray, FloatArray]], like: TwoLayer | Mlp) -> TwoLayer | Mlp:
    """The network of these layers, of the kind of another one."""
    if isinstance(like, Mlp):
        return Mlp([weights for weights, _ in layers], [bias for _, bias in layers], like.activation)
    (hidden, bias), (output, offset) = layers
    return like.with_parameters(hidden=hidden, bias=bias, output=output[0], offset=float(offset[0]))


def _rate_at(schedule: Schedule, step: int) -> float:
    """The largest learning rate of a step, counted from 1."""
    for phase in schedule.phases:
        if step <= phase.steps:
            rates = phase.tables()[0]
            return float(rates[min(step, len(rates)) - 1].max())
        step -= phase.steps
    raise AssertionError("the schedule has fewer steps")


def _of_slots(runs: Runs, slots: IdArray) -> Runs:
    """The same tables, seen by the runs at these slots."""
    kept = jax.tree.map(lambda part: part[slots], runs._replace(X=(), y=()))
    return cast("Runs", kept._replace(X=runs.X, y=runs.y))
