"""One batch of runs of one layout on the device: described, drawn, trained and read back as results.

Everything a batch needs lies in one allocation, whose size is known before it is made. Runs that share a schedule share
its tables, and runs that are given the same array share its copy. A batch is described while others train, and read
back while others do; what the end of one leaves free, the next one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from fewfire._cuda._device import Device, current_device
from fewfire._cuda._launch import Arena, Kernel, own_stream, rounded, watch, write_orders
from fewfire._random import Stream
from fewfire._types import AnyArray
from fewfire.engines._gradients import LOSSES
from fewfire.engines._result import MEASURED_ROWS, History, Result, Stopped, dense_counters, divergence
from fewfire.engines._run import Run, Sample, Schedule, Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._kernels import KernelVariant, machine_code
from fewfire.engines.cuda._layouts import TILE, KernelLayout
from fewfire.engines.cuda._shared import ScheduleTables, description_of
from fewfire.networks import Mlp, TwoLayer

_GENERAL_THREADS = 256
_GENERAL_BLOCKS = 4  # per multiprocessor
_PIECE = 16  # bytes that a lane reads at once


_NAMES = {"general.cu": "train_general", "stream.cu": "train_streamed", "resident.cu": "train_resident"}


@cache
def kernel(file: str, name: str, definitions: tuple[tuple[str, int], ...] = ()) -> tuple[Kernel, list[int]]:
    """A loaded kernel, and the sizes in its file: shared memory, space per group of blocks, job, outcome."""
    loaded = Kernel(machine_code(file, current_device().architecture, definitions), name)
    if file == "draw.cu":
        return loaded, []
    sizes, expected = loaded.numbers("sizes", 4), [records.JOB.itemsize, records.OUTCOME.itemsize]
    assert sizes[2:] == expected, f"{file} lays records out as {sizes[2:]}, Python as {expected}"
    return loaded, sizes


class Walked(Run):
    """A run whose steps see the rows of X once, in order; X is no training set to measure on."""


def set_bytes(run: Run) -> int:
    """Bytes of a run's examples on the device."""
    total = 0
    for table, rows in ((run.X, run.rows), (run.X_test, run.test_rows)):
        real = table is not None and table.dtype != np.int8
        total += rounded(4 * rows * (run.inputs if real else records.words_for(run.inputs))) + rounded(4 * rows)
    if isinstance(run, Walked) or (run.source is None and run.schedule.sampling == "epochs"):
        total += rounded(4 * ScheduleTables.of(run.schedule).positions)
    return total


def run_bytes(run: Run, layout: KernelLayout) -> int:
    """An upper bound of what a run takes on the device."""
    tables = ScheduleTables.of(run.schedule)
    pieces = [4 * run.width * run.inputs, 4 * run.width, 4 * run.width, 8, *tables.nbytes]
    pieces += [len(tables.checkpoints) * record_size(layout) * 8, *[4 * records.words_for(run.inputs)] * 3]
    described = (records.JOB, records.OUTCOME, records.START_TASK, records.SAMPLE_TASK, records.SAMPLE_TASK)
    return sum(map(rounded, pieces)) + sum(kind.itemsize for kind in described) + set_bytes(run)


def record_size(layout: KernelLayout) -> int:
    """Doubles of one checkpoint."""
    return records.RECORD + records.SUMS * layout.parts


def stream_bytes(runs: Sequence[Run], layout: KernelLayout) -> int:
    """Of one run whose tiles stream: each has its weights, which neurons fire and output weights, lane by lane."""
    tiles = -(-max(run.width for run in runs) // TILE) if layout.streamed else 0
    return tiles * (2 * layout.columns + 3) * 32 * _PIECE


def scratch_sizes(runs: Sequence[Run]) -> tuple[int, int, int, int]:
    """Of one block of the general kernel: rows, scores, gradient, drawn rows."""
    large = any((phase.batch_size or 33) > 32 for run in runs for phase in run.schedule.phases)
    return (
        max(4 * 33 * run.inputs for run in runs),
        max(4 * 32 * run.width for run in runs),
        max(4 * run.width * (run.inputs + 2) for run in runs) if large else 0,
        max(4 * 32 * records.words_for(run.inputs) for run in runs),
    )


def group_bytes(runs: Sequence[Run], layout: KernelLayout) -> int:
    """What each of the runs trained side by side takes besides its own data."""
    return stream_bytes(runs, layout) if layout.fast else sum(map(rounded, scratch_sizes(runs)))


def general_groups(device: Device, space: int) -> int:
    """How many blocks the general kernel has: scratch of wide networks may take an eighth of the memory, not more."""
    return max(1, min(_GENERAL_BLOCKS * device.multiprocessors, device.memory // (8 * space)))


class Batch:
    """Runs of one variant, described and with their memory reserved from construction on."""

    def __init__(self, runs: Sequence[Run], variant: KernelVariant) -> None:
        self.runs, self.variant, layout = runs, variant, variant.layout
        self.seconds = 0.0  # that training took on the device
        file, definitions = variant.source()
        self._kernel, (self._shared_bytes, unit, *_) = kernel(file, _NAMES[file], definitions)
        self.at_once = self._fit()  # runs that the device trains side by side
        self._groups = min(len(runs), self.at_once)
        space = group_bytes(runs, layout)
        if not layout.fast:
            self._groups = min(self._groups, general_groups(current_device(), unit + space))
        self._arena = Arena(sum(run_bytes(run, layout) for run in runs) + self._groups * (unit + space) + (16 << 10))
        self._put_before: dict[Any, int] = {}
        self._sample_tasks: list[AnyArray] = []
        self._start_tasks: list[AnyArray] = []
        self._orders: list[Callable[[], None]] = []
        self._record_size = record_size(layout)
        checks = [len(ScheduleTables.of(run.schedule).checkpoints) for run in runs]
        self._first_record = np.concatenate([[0], np.cumsum(checks)])  # of each run, and the number of all
        self._records = self._arena.reserve(int(self._first_record[-1]) * self._record_size * 8)
        self._read: AnyArray | None = None
        self._control = self._arena.reserve(records.CONTROL.itemsize)
        self._outcomes = self._arena.reserve(len(runs) * records.OUTCOME.itemsize)
        self._jobs = np.zeros(len(runs), records.JOB)
        self._jobs["records"] = self._records + 8 * self._record_size * self._first_record[:-1]
        for index, run in enumerate(runs):
            self._describe(run, self._jobs[index])
        self._arguments = self._kernel_arguments(self._arena.put(self._jobs), unit)
        self._drawings = [
            (name, self._arena.put(np.stack(tasks)), len(tasks))
            for name, tasks in (("draw_samples", self._sample_tasks), ("draw_starts", self._start_tasks))
            if tasks
        ]

    def _put_once(self, key: Any, make: Callable[[], AnyArray]) -> int:
        if key not in self._put_before:
            self._put_before[key] = self._arena.put(make())
        return self._put_before[key]

    # Shape of the launch.

    def _fit(self) -> int:
        device, layout = current_device(), self.variant.layout
        if not layout.fast:
            return _GENERAL_BLOCKS * device.multiprocessors
        self._kernel.allow_shared(self._shared_bytes)
        blocks = self._kernel.blocks_per_multiprocessor(32 * layout.warps, self._shared_bytes)
        at_once = layout.at_once(device, blocks)
        assert at_once > 0, f"{layout} does not fit on {device.name}"
        return at_once

    def _kernel_arguments(self, jobs: int, unit: int) -> tuple[Any, ...]:
        count = np.int32(len(self.runs))
        if self.variant.layout.fast:
            given = jobs, self._outcomes, count, self._arena.reserve(self._groups * unit), self._control
            if not self.variant.layout.streamed:
                return given
            size = stream_bytes(self.runs, self.variant.layout)
            return (*given, self._arena.reserve(self._groups * size), np.uint64(size // _PIECE))
        scratch, sizes = np.zeros(self._groups, records.SCRATCH), scratch_sizes(self.runs)
        for name, size in zip(("rows", "scores", "gradient", "drawn"), sizes, strict=True):
            scratch[name] = [self._arena.reserve(size) for _ in range(self._groups)]
        fits = sizes[0] + self._shared_bytes <= current_device().shared_bytes - 1024
        self._shared_bytes = sizes[0] if fits else 0
        self._kernel.allow_shared(self._shared_bytes)
        return jobs, self._outcomes, count, self._arena.put(scratch), self._control, np.int32(fits)

    # Describing.

    def _describe(self, run: Run, job: AnyArray) -> None:
        schedule, stream = run.schedule, run.stream
        activation = run.network.activation if isinstance(run.network, TwoLayer) else None
        job["low"] = 0.0 if activation is None else activation.threshold
        job["high"] = np.inf if activation is None else activation.ceiling
        job["key"], job["batches"] = stream.key, stream.id
        job["inputs"], job["width"], job["loss"] = run.inputs, run.width, list(LOSSES).index(schedule.loss)
        job["boolean_labels"] = 1
        self._add_schedule(schedule, job)
        self._add_start(run, job)
        self._add_examples(run.X, run.y, run.sample, run.inputs, job["train"], job)
        self._add_examples(run.X_test, run.y_test, run.test, run.inputs, job["test"], job)
        if run.source is not None:
            description, _ = description_of(run.source)
            assert description is not None, "the engine takes only sources that it can draw"
            support = self._support(description["support"], run.inputs)
            job["source"] = records.source_record(description, stream.child("online"), support)
        elif isinstance(run, Walked):
            job["order"] = self._arena.put(np.arange(ScheduleTables.of(schedule).positions, dtype=np.uint32))
        elif schedule.sampling == "epochs":
            job["order"] = self._epoch_order(stream.child("epochs"), int(job["train"]["count"]), schedule)
        if run.source is None and not isinstance(run, Walked):
            job["measured"] = min(int(job["train"]["count"]), MEASURED_ROWS)
        if run.support is not None:
            job["support"] = self._support(run.support, run.inputs)

    def _support(self, support: Sequence[int], inputs: int) -> int:
        return self._put_once(("support", tuple(support), inputs), lambda: records.support_bits(tuple(support), inputs))

    def _add_schedule(self, schedule: Schedule, job: AnyArray) -> None:
        tables, key = ScheduleTables.of(schedule), id(schedule)
        job["segments"] = self._put_once(("segments", key), lambda: tables.segments)
        job["rates"] = self._put_once(("rates", key), lambda: tables.rates)
        job["checkpoints"] = self._put_once(("checkpoints", key), lambda: tables.checkpoints)
        job["steps"], job["phases"], job["checks"] = schedule.steps, len(tables.segments), len(tables.checkpoints)
        job["stop_error"] = -1.0 if schedule.stop_error is None else schedule.stop_error

    def _add_start(self, run: Run, job: AnyArray) -> None:
        sizes = {"hidden": 4 * run.width * run.inputs, "bias": 4 * run.width, "output": 4 * run.width, "offset": 8}
        if isinstance(run.network, TwoLayer):
            network = run.network
            for name in ("hidden", "bias", "output"):
                job[name] = self._arena.put(getattr(network, name))
            job["offset"] = self._arena.put(np.array([network.offset], np.float64))
            return
        for name, size in sizes.items():
            job[name] = self._arena.reserve(size)
        assert isinstance(run.network, Start)  # no Mlp comes here
        self._start_tasks.append(_start_task(run.network, job))

    def _add_examples(
        self, X: AnyArray | None, y: AnyArray | None, sample: Sample | None, inputs: int, part: AnyArray, job: AnyArray
    ) -> None:
        part["words"] = words = records.words_for(inputs)
        if sample is not None:
            description, text = description_of(sample.problem)
            assert description is not None, "the engine takes only problems that it can draw"
            key = ("sample", text, sample.stream, sample.rows)
            part["count"] = sample.rows
            if key not in self._put_before:
                self._put_before[key] = self._arena.reserve(4 * words * sample.rows)
                task = np.zeros((), records.SAMPLE_TASK)
                support = self._support(description["support"], inputs)
                task["source"] = records.source_record(description, sample.stream, support)
                task["bits"], task["count"], task["words"] = self._put_before[key], sample.rows, words
                self._sample_tasks.append(task)
            part["bits"] = self._put_before[key]
        elif X is not None and y is not None:
            part["count"] = len(X)
            boolean = bool(np.all(np.abs(y) == 1))
            if X.dtype == np.int8 and bool(np.all(np.abs(X) == 1)):
                part["bits"] = self._put_once(("bits", id(X), id(y)), lambda: records.pack_signs(X, y))
            else:
                part["rows"] = self._put_once(("rows", id(X)), lambda: X.astype(np.float32))
            if not (boolean and part["bits"]):
                part["labels"] = self._put_once(("labels", id(y)), lambda: y.astype(np.float32))
            job["boolean_labels"] = int(job["boolean_labels"]) and int(boolean)

    def _epoch_order(self, epochs: Stream, examples: int, schedule: Schedule) -> int:
        """The example at each position of the run's endless row of permutations, sorted on the device."""
        positions = ScheduleTables.of(schedule).positions
        at = self._arena.reserve(4 * positions)
        words = kernel("draw.cu", "draw_words")[0]
        self._orders.append(lambda: write_orders(words, epochs.key, epochs.id, examples, positions, at))
        return at

    # Drawing and training.

    def draw(self) -> None:
        """Have everything copied and drawn that is described, concurrently with what the device does."""
        with own_stream():
            self._arena.flush()
            for name, at, count in self._drawings:
                drawing, across = kernel("draw.cu", name)[0], 64 if count < 64 else 4
                drawing.launch((across, min(count, 16384)), 256, (at, np.int32(count)))
            for write in self._orders:
                write()

    def train(self, progress: Callable[[int], None]) -> None:
        """Run the kernel to its end, in the thread that has called `draw`.

        `progress` gets the steps made a few times per second. What it raises, and Ctrl-C, end the kernel within a
        moment. Other batches may train on the device meanwhile: this one's blocks start as theirs end.
        """
        layout = self.variant.layout
        threads = 32 * layout.warps if layout.fast else _GENERAL_THREADS
        blocks = self._groups * layout.parts
        stop_at = self._control + int(records.CONTROL.fields["stop"][1])  # type: ignore[index]
        with own_stream():
            self.seconds = watch(
                lambda: self._kernel.launch((blocks,), threads, self._arguments, self._shared_bytes),
                lambda started: progress(self._control_word("steps") if started else 0),
                lambda: self._arena.poke(stop_at, np.ones(1, np.uint32)),
                lambda: layout.parts == 1 or self._control_word("arrived") == blocks,
            )

    def _control_word(self, name: str) -> int:
        """A word of the control record, which the running kernel writes."""
        return int(self._arena.get(self._control, 1, records.CONTROL)[name][0])

    # Reading back.

    def outcomes(self) -> AnyArray:
        """How each run ended."""
        return self._arena.get(self._outcomes, len(self.runs), records.OUTCOME)

    def checkpoints(self, index: int, count: int) -> AnyArray:
        """The first `count` checkpoints of a run, of shape (count, RECORD + SUMS), its blocks added up in order."""
        parts, first = self.variant.layout.parts, int(self._first_record[index])
        if self._read is None:  # those of all runs at once
            self._read = self._arena.get(self._records, (int(self._first_record[-1]), self._record_size), np.float64)
        raw = self._read[first : first + count]
        if parts == 1:
            return raw
        sums = raw[:, records.RECORD :].reshape(count, parts, records.SUMS).sum(axis=1)
        return np.concatenate([raw[:, : records.RECORD], sums], axis=1)

    def network(self, index: int) -> TwoLayer:
        """The trained weights of a run."""
        run, job = self.runs[index], self._jobs[index]
        hidden = self._arena.get(int(job["hidden"]), (run.width, run.inputs), np.float32)
        bias, output = (self._arena.get(int(job[name]), run.width, np.float32) for name in ("bias", "output"))
        offset = float(self._arena.get(int(job["offset"]), 1, np.float64)[0])
        activation = run.network.activation if isinstance(run.network, TwoLayer) else "relu"
        return TwoLayer(hidden, bias, output, offset, activation)

    def result(self, index: int, outcome: AnyArray, keep_network: bool) -> Result:
        """What a run ended with; a diverged run gives back its initial network."""
        run, stopped = self.runs[index], records.STOPPED[int(outcome["stopped"])]
        diverged = stopped == "diverged"
        error = divergence(int(outcome["steps"]), float(outcome["rate"])) if diverged else None
        network: TwoLayer | Mlp | None = None
        if keep_network and diverged:
            network = run.network.draw() if isinstance(run.network, Start) else run.network
        elif keep_network:
            network = self.network(index)
        steps = int(outcome["steps"]) - diverged
        kind: Stopped = "diverged" if diverged else "test_error" if stopped == "test_error" else "steps"
        counters = dense_counters(run, steps, int(outcome["active_pairs"]))
        return Result(
            network, _history(run, self.checkpoints(index, int(outcome["records"]))), counters, kind, "cuda", error
        )


def _start_task(start: Start, job: AnyArray) -> AnyArray:
    """The device's form of a described start."""
    task, stream, given = np.zeros((), records.START_TASK), start.stream, start.init.parameters()
    task["key"] = stream.key
    for name in ("hidden", "bias", "output", "offset"):
        task[name], task[f"to_{name}"] = stream.child(name).id, job[name]
    task["inner"], task["outer"] = 1 / np.sqrt(start.inputs), 1 / np.sqrt(start.width)
    task["inputs"], task["width"] = start.inputs, start.width
    if start.init.name == "sparse":
        task["ones"], task["value"] = given["s"], given["value"]
    return task


def _history(run: Run, table: AnyArray) -> History:
    """What was measured at the checkpoints (count, RECORD + SUMS) of a run."""
    count = len(table)
    loss, error, test_error, hidden, output, mass, inside, fired = table.T
    rows = min(run.rows, MEASURED_ROWS)
    none = np.full(count, np.nan)
    active = fired / (rows * run.width) if rows and not isinstance(run, Walked) else none
    with np.errstate(invalid="ignore"):
        share = none if run.support is None else np.where(mass > 0, inside / mass, np.nan)
    steps = ScheduleTables.of(run.schedule).checkpoints[:count].astype(np.int64)
    # Copies: views would keep the records of the whole batch in memory.
    measured = (loss.copy(), error.copy(), test_error.copy())
    return History(steps, *measured, np.sqrt(hidden), np.sqrt(output), active, share)
