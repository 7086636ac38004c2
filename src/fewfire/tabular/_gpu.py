"""All networks of a fit, of all encodings, trained as one batch on a GPU by a kernel of their own (cuda/epochs.cu).

Networks of one layout are a `GpuStack`: parameters are rows of one matrix, in the order of `Layout`. The table of
an encoding is on the device once, however many networks see it: rows are gathered by number and multiplied by the
network's gains. A network's batches are those that `CpuTrainer` would take.

Several epochs are begun at a time, as one launch, and the host waits once for all of them; networks that had already
met the stopping rule waste a few epochs. What epochs need is written to an `EpochBlock`, and what they bring is read
from there: each epoch's weights too, so decisions are those of one epoch at a time. A block has two halves: while the
device works on one, the next epochs' orders are drawn and written to the other, on a stream of its own. Only networks
that are still in training get blocks of threads.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewfire._cuda._compile import KernelSource, compiled
from fewfire._cuda._device import current_device, missing
from fewfire._cuda._launch import Kernel
from fewfire._dense.losses import TABLE_LOSSES
from fewfire._dense.network import Layout, PeriodicEmbedding, Rows
from fewfire._errors import EngineUnavailable, invalid
from fewfire._optional import require
from fewfire._threads import Helpers
from fewfire._types import AnyArray, FloatArray, IdArray
from fewfire.tabular._training import NEWEST, Advance, Task, TrainedNetwork

KERNELS = KernelSource(Path(__file__).parent / "cuda")
THREADS = 256
PER_MULTIPROCESSOR = 2  # blocks hide each other's waits
SPACE_BYTES = 2**30  # that layers of validation rows may take at a time
APART = 32  # numbers from one team's counter to the next
ALIGNED = 4  # numbers; rows of parameters begin at multiples of it
EPOCHS_AHEAD = 5  # that are run at a time; rungs are after multiples of five epochs
AHEAD_BYTES = 2**31  # that the weights of epochs run ahead may take
HELPERS = 3  # threads, at most, whose tasks are many small calls: more would wait for the interpreter's lock

MOST_OUTPUTS = 32  # lanes of a warp
ADDRESSES = (
    *("parameters", "first_state", "second_state", "average", "table", "targets", "weights", "gains"),
    *("held_rows", "held_gains", "rows", "factors", "newest", "losses", "outputs", "kept"),
    *("fed", "hidden0", "hidden1", "hidden2", "back0", "back1", "back2", "errors", "slopes", "row_losses"),
)
SIZES = (
    *("start", "inputs", "fed_width", "depth", "width0", "width1", "width2", "outputs_wide", "frequencies"),
    *("loss", "adam", "decayed", "size", "pitch", "at_hidden0", "at_hidden1", "at_hidden2", "at_output", "at_skip"),
    *("at_mix", "at_bias0", "at_bias1", "at_bias2", "at_offset", "at_frequency", "at_phase", "at_shift"),
    *("part", "batch", "steps", "block_steps", "block_batch", "networks", "kinds", "held", "held_most", "at_once"),
)
FIELDS = ADDRESSES + SIZES
"""Of `Network` in network.cuh, in its order."""
RECORD = np.dtype([(name, np.int64) for name in FIELDS])
WAVE_WORK = 24  # the cost of a cosine with its gradients, in weights


class GpuDevice:
    """The device that CuPy uses: the kernel, how many blocks of it run at a time, and two streams."""

    def __init__(self) -> None:
        self.arrays: Any = require("cupy", "cuda13", "device='cuda'")
        self.kernel, self.blocks = _loaded_kernel()
        cuda = self.arrays.cuda
        self._device = cuda.Device()
        self._work, self._copies = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """On the stream of the kernel, after what the current one has to do with its memory."""
        self._work.wait_event(self.arrays.cuda.get_current_stream().record())
        with self._work:
            yield

    @contextmanager
    def copying(self) -> Iterator[None]:
        """On the stream of copies, in any thread."""
        with self._device, self._copies:
            yield

    def wait_for_copies(self) -> None:
        """Let the kernel's stream wait for the copies begun so far."""
        self._work.wait_event(self._copies.record())

    def wait_for_work(self) -> None:
        """Let copies wait for what the kernel's stream has begun so far."""
        self._copies.wait_event(self._work.record())

    def finish(self) -> None:
        """Wait for all that was begun: memory that is given back then may be another's at once."""
        self._copies.synchronize()
        self._work.synchronize()

    def address(self, array: Any) -> int:
        """Where an array begins on the device."""
        return int(array.data.ptr)

    def to_host(self, array: Any) -> AnyArray:
        """A copy, once the current stream is done."""
        copied: AnyArray = self.arrays.asnumpy(array)
        return copied


_KERNELS: dict[int, tuple[Kernel, int]] = {}  # by number of the device
_LOADING = threading.Lock()


def _loaded_kernel() -> tuple[Kernel, int]:
    """The kernel, and how many blocks of it the current device runs at a time."""
    number = int(require("cupy", "cuda13", "device='cuda'").cuda.Device().id)
    with _LOADING:
        if number not in _KERNELS:
            device = current_device()
            kernel = Kernel(compiled(KERNELS, "epochs.cu", device.architecture), "train_epochs")
            per_multiprocessor = min(PER_MULTIPROCESSOR, kernel.blocks_per_multiprocessor(THREADS, 0))
            _KERNELS[number] = kernel, per_multiprocessor * device.multiprocessors
        return _KERNELS[number]


def check_gpu() -> None:
    """Raise where no GPU can train networks."""
    if (reason := missing("pass device='cpu'")) is not None:
        raise EngineUnavailable(f"device='cuda' cannot train networks: {reason}")


def refuse_unknown(layout: Layout) -> None:
    """Raise where the kernel does not know a part of a layout."""
    if layout.outputs > MOST_OUTPUTS:
        rule = f"must be 'cpu' for more than {MOST_OUTPUTS} classes or targets"
        raise invalid("device", rule, "cuda", "pass device='cpu'")
    if type(layout.embedding) not in (type(None), PeriodicEmbedding):  # a subclass may compute anything
        rule = f"must be 'cpu' for an embedding such as {type(layout.embedding).__name__}"
        raise invalid("device", rule, "cuda", "pass device='cpu'")


class Member(NamedTuple):
    """A network in the batch: its rows, and the orders of its next epochs."""

    network: TrainedNetwork
    part: Rows
    validation: Rows | None
    orders: deque[AnyArray]

    @property
    def batch(self) -> int:
        """Rows of a step."""
        return self.network.optimiser.rows_per_step(len(self.part))

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-len(self.part) // self.batch)

    def draw(self, epochs: int) -> None:
        """Have the orders of so many epochs ready, as `TrainedNetwork.train_epoch` would take them."""
        rows, absent = len(self.part), epochs - len(self.orders)
        if absent <= 0:
            return
        indices = self.part.indices().astype(np.int32)
        if self.batch == rows:
            self.orders.extend([indices] * absent)
        else:
            self.orders.extend(indices[self.network.order(rows)] for _ in range(absent))


class GpuTrainer:
    """Networks trained together with all others of a fit; their weights are handed back at the end.

    The state of their optimisers is not carried over: a later fit starts with a fresh one.
    """

    def __init__(self, networks: list[TrainedNetwork], parts: list[Rows], validation: list[Rows]) -> None:
        refuse_unknown(networks[0].layout)
        every: list[Rows | None] = [*validation] or [None] * len(networks)
        self.networks = networks
        self.members = [Member(*case, deque()) for case in zip(networks, parts, every, strict=True)]
        self.batch: GpuBatch | None = None
        self.number = 0  # of the group in the batch
        self.ahead: deque[GpuEpoch] = deque()
        self._drawn = [network.rows_drawn for network in networks]
        self._epochs = 0
        self._weights: Any = None
        self._kept: Any = None
        self._copied = True

    @property
    def steps(self) -> int:
        """Steps of the first network so far."""
        return self._epochs * self.members[0].steps

    def epoch(self) -> list[Task]:
        """One task, of the GPU: all networks advance together."""
        return [self.advance]

    def advance(self) -> list[Advance]:
        """One epoch of every network, from those that have been run ahead."""
        losses, outputs, self._weights = self.ahead.popleft()
        self._epochs += 1
        return [Advance(float(loss), values) for loss, values in zip(losses, outputs, strict=True)]

    def keep(self) -> None:
        """Remember the weights, which stay where they are until the next epochs are run."""
        self._kept, self._copied = self._weights, False

    def secure(self) -> None:
        """Copy what is remembered, before the device writes there again."""
        if not self._copied:
            self._kept, self._copied = self._kept.copy(), True

    def restore(self) -> None:
        """Go back to the weights remembered."""
        self._weights = self._kept

    def release(self) -> None:
        """Write the weights back to the networks; called once, however training ended."""
        if self.batch is not None:
            if self._weights is not None:
                for member, flat in zip(self.members, self.batch.gpu.to_host(self._weights), strict=True):
                    member.network.flat[:] = flat
            self.batch.leave(self.number)
        for member, before in zip(self.members, self._drawn, strict=True):
            # Orders drawn for epochs that did not take place are the next fit's.
            rows = len(member.part)
            member.network.rows_drawn = before + (self._epochs * rows if member.batch < rows else 0)
        self.batch, self.ahead, self._kept, self._weights, self._copied = None, deque(), None, None, True


class GpuRunner:
    """Runs the tasks of all `GpuTrainer`s of a fit together; `pool` draws the orders of rows."""

    def __init__(self, pool: Helpers) -> None:
        self._pool = pool

    def takes(self, task: Task) -> bool:
        """Whether a task is an epoch on the GPU."""
        return isinstance(getattr(task, "__self__", None), GpuTrainer)

    def run(self, tasks: Sequence[Any]) -> list[list[Advance]]:
        """The results of epochs on the GPU; trainers that have no batch yet get one together."""
        trainers: list[GpuTrainer] = [task.__self__ for task in tasks]
        waiting = [trainer for trainer in trainers if not trainer.ahead]
        if fresh := [trainer for trainer in waiting if trainer.batch is None]:
            batch = GpuBatch([trainer.members for trainer in fresh], GpuDevice(), self._pool)
            for number, trainer in enumerate(fresh):
                trainer.batch, trainer.number = batch, number
        by_batch: dict[GpuBatch, dict[int, GpuTrainer]] = {}
        for trainer in waiting:
            assert trainer.batch is not None
            trainer.secure()
            by_batch.setdefault(trainer.batch, {})[trainer.number] = trainer
        for batch, by_number in by_batch.items():
            for number, epochs in batch.advance(list(by_number)).items():
                by_number[number].ahead.extend(epochs)
        return [trainer.advance() for trainer in trainers]


class GpuEpoch(NamedTuple):
    """An epoch of some networks: mean losses (networks,), outputs at validation rows, weights (networks, size).

    Outputs are one array per network, None without validation rows; the weights, on the device, are the means that
    gave them, or the weights themselves.
    """

    losses: FloatArray
    outputs: list[FloatArray | None]
    weights: Any


@dataclass
class EpochBlock:
    """Epochs of a stack on the device: what they need, and what they bring.

    rows (epochs, steps, networks, batch) are numbers in the table, int32; factors (epochs, steps, kinds, networks);
    newest (epochs, networks), the share of the newest weights in their mean. Then sums of losses (epochs, networks),
    outputs at the validation rows (epochs, networks, rows, outputs) and what gave them (epochs, networks, row length).
    """

    rows: Any
    factors: Any
    newest: Any
    losses: Any
    outputs: Any
    weights: Any


class GpuStack:
    """Networks of one layout, loss and optimiser as rows of one matrix of parameters."""

    def __init__(self, gpu: GpuDevice, members: Sequence[Member]) -> None:
        self.gpu, self.members, arrays = gpu, members, gpu.arrays
        networks, parts = [member.network for member in members], [member.part for member in members]
        held = [member.validation for member in members if member.validation is not None]
        self.layout, self.loss, optimiser = networks[0].layout, networks[0].loss, networks[0].optimiser
        flats = np.stack([network.flat for network in networks])
        self.parameters = arrays.asarray(np.pad(flats, ((0, 0), (0, -self.layout.size % ALIGNED))))
        self.mean = arrays.zeros_like(self.parameters)
        self.rule = optimiser.start_stack(len(members))
        self.state = [arrays.zeros_like(self.parameters) for _ in range(self.rule.states)]
        self.shrinks = float(optimiser.learning_rate) * np.array([network.descent.decay for network in networks])
        table, starts = joined_tables([part.X for part in [*parts, *held]])
        targets, self.target_starts = joined_tables([part.target for part in parts])
        weights, self.weight_starts = joined_tables([part.weight for part in parts])
        self.table, self.starts = arrays.asarray(table), starts[: len(parts)]
        self.targets, self.weights = arrays.asarray(targets), arrays.asarray(weights)
        self.gains = arrays.asarray(np.stack([part.factors() for part in parts]))
        self.empty = np.array([len(part.X) for part in parts])
        longest = max(map(len, held), default=0)
        rows = np.zeros((len(members), longest), np.int32)  # the empty one behind those of short parts
        gains = np.ones((len(members), self.layout.inputs), np.float32)
        for number, (part, start) in enumerate(zip(held, starts[len(parts) :], strict=True)):
            rows[number] = start + len(part.X)
            rows[number, : len(part)] = start + part.indices()
            gains[number] = part.factors()
        self.validation, self.validation_gains = arrays.asarray(rows), arrays.asarray(gains)

    def __len__(self) -> int:
        return len(self.members)

    def prepare(self, epochs: int, steps: int, batch: int) -> None:
        """Make room for so many epochs at once, of so many steps and rows."""
        zeros, count = self.gpu.arrays.zeros, len(self)
        factors = self.factors(np.zeros((steps, count), np.int64))  # for its shape: no network moves
        self.block = EpochBlock(
            zeros((epochs, steps, count, batch), np.int32),
            zeros((epochs, *factors.shape), np.float32),
            zeros((epochs, count), np.float32),
            zeros((epochs, count), np.float32),
            zeros((epochs, *self.validation.shape, self.layout.outputs), np.float32),
            zeros((epochs if self.validation.shape[1] else 0, *self.parameters.shape), np.float32),
        )

    def factors(self, present: NDArray[np.int64], rate_factors: AnyArray | float = 1.0) -> FloatArray:
        """Factors of steps (steps, kinds, networks), given how many rows each network has in each.

        `rate_factors` (networks,) are learning-rate factors.
        """
        moves = present > 0
        shrink = 1 - self.shrinks * rate_factors * moves
        kinds = [1 / np.maximum(present, 1), shrink, *self.rule.factors(moves, rate_factors)]
        return np.stack(kinds, axis=1).astype(np.float32)

    def fill(self, into: slice, epochs: range, wanted: set[int]) -> None:
        """Write what epochs need to a part of the block; networks that are not wanted get no rows."""
        _, steps, count, size = self.block.rows.shape
        rows = np.empty((len(epochs), count, steps * size), np.int32)
        rows[:] = self.empty[:, None]
        present = np.zeros((steps, count), np.int64)
        for index, member in enumerate(self.members):
            if index not in wanted:
                continue
            batch, steps_taken = member.batch, member.steps
            present[:steps_taken, index] = batch
            present[steps_taken - 1, index] = len(member.part) - batch * (steps_taken - 1)
            padded = np.full((len(epochs), steps_taken * batch), self.empty[index], np.int32)
            for epoch in range(len(epochs)):
                padded[epoch, : len(member.part)] = member.orders.popleft()
            laid = rows[:, index].reshape(len(epochs), steps, size)
            laid[:, :steps_taken, :batch] = padded.reshape(len(epochs), steps_taken, batch)
        by_step = rows.reshape(len(epochs), count, steps, size).swapaxes(1, 2)
        rates = [np.array([member.network.rate_factor(epoch) for member in self.members]) for epoch in epochs]
        shares = np.array([max(NEWEST, 1 / (epoch + 1)) for epoch in epochs], np.float32)
        asarray = self.gpu.arrays.asarray
        self.block.rows[into] = asarray(np.ascontiguousarray(by_step))
        self.block.factors[into] = asarray(np.stack([self.factors(present, of_epoch) for of_epoch in rates]))
        self.block.newest[into] = asarray(np.repeat(shares[:, None], count, axis=1))


def joined_tables(arrays: list[AnyArray]) -> tuple[AnyArray, IdArray]:
    """The distinct arrays one below the other, a row of zeros after each; where each array begins."""
    starts: dict[int, int] = {}
    distinct, rows = [], 0
    for array in arrays:
        if id(array) not in starts:
            starts[id(array)] = rows
            distinct += [array, np.zeros((1, *array.shape[1:]), array.dtype)]
            rows += len(array) + 1
    return np.concatenate(distinct), np.array([starts[id(array)] for array in arrays], np.int64)


class GpuBatch:
    """Groups of networks in training on a GPU, of one loss and optimiser; all have validation rows, or none."""

    def __init__(self, groups: Sequence[list[Member]], gpu: GpuDevice, pool: Helpers) -> None:
        self.gpu, self._pool, self._validated = gpu, pool, groups[0][0].validation is not None
        self.groups = dict(enumerate(groups))
        self._present = set(self.groups)
        self._begun, self._half, self._under_way = 0, 0, False
        layouts = list({member.network.layout: None for members in groups for member in members})
        every = [(number, member) for number, members in self.groups.items() for member in members]
        stacked = [[(number, one) for number, one in every if one.network.layout == layout] for layout in layouts]
        self._owners = [[number for number, _ in some] for some in stacked]  # of each stack's networks the groups
        self._drawing = self._begin_draws([member for members in groups for member in members])
        self._filling: Future[None] | None = None
        self._shares: dict[tuple[int, ...], tuple[Any, Any, Any, int]] = {}
        with gpu.at_work():
            self.stacks = [GpuStack(gpu, [member for _, member in some]) for some in stacked]
            self._prepare()

    def advance(self, wanted: Sequence[int]) -> dict[int, list[GpuEpoch]]:
        """The next epochs of the wanted groups, by number; groups that are not wanted have stopped for good."""
        with self.gpu.at_work():
            if not self._under_way:
                self._launch(wanted)
            found, self._under_way = self._read(wanted), False
            if self._validated:
                self._launch(wanted)  # before the host has decided by what was read
            return found

    def leave(self, group: int) -> None:
        """A group has stopped: its orders are drawn no further."""
        self._present.discard(group)
        wait([*self._drawing, *([self._filling] if self._filling else [])])
        if not self._present:
            self.gpu.finish()

    def _prepare(self) -> None:
        """Make room for the next epochs, and describe every network to the kernel."""
        steps = max(member.steps for stack in self.stacks for member in stack.members)
        taken = sum(4 * stack.parameters.size for stack in self.stacks)
        self._epochs = max(1, min(EPOCHS_AHEAD, AHEAD_BYTES // taken)) if self._validated else 1
        networks, self._spaces, found = sum(map(len, self.stacks)), [], []
        for stack in self.stacks:
            longest = max(member.batch for member in stack.members)
            stack.prepare(2 * self._epochs, steps, longest)
            most = max(longest, SPACE_BYTES // (4 * workspace(stack.layout, 1, 0)[0] * networks))
            rows = max(longest, min(most, stack.validation.shape[1]))
            room, begins = workspace(stack.layout, rows, max(len(member.part) for member in stack.members))
            space = self.gpu.arrays.empty((len(stack), room), np.float32)
            self._spaces.append(space)  # kept as long as the kernel may write there
            found.append(records(stack, space, begins, rows))
        self._records = np.concatenate(found)
        # The cost of an epoch of each network, in some unit.
        costs = [s.layout.decayed + WAVE_WORK * s.layout.inputs * frequencies(s.layout) for s in self.stacks]
        members = [(member, cost) for stack, cost in zip(self.stacks, costs, strict=True) for member in stack.members]
        self._works = [float(len(member.part) * cost) for member, cost in members]
        self.gpu.wait_for_work()

    def _launch(self, wanted: Sequence[int]) -> None:
        """Begin the next epochs of these groups, in the half of the block that was not read last."""
        self._half = 1 - self._half
        if self._filling is None:
            self._fill(self._half, wanted)
        else:
            self._filling.result()
            self.gpu.wait_for_copies()
        groups = [number for owners in self._owners for number in owners]
        key = tuple(index for index, number in enumerate(groups) if number in set(wanted))
        if key not in self._shares:
            self._shares[key] = self._shared(key)
        chosen, shares, arrived, count = self._shares[key]
        arrived[:] = 0
        numbers = (np.int32(number) for number in (count, self._half * self._epochs, self._epochs))
        arguments = [*map(self.gpu.address, (chosen, shares, arrived)), *numbers]
        self.gpu.kernel.launch((len(shares),), THREADS, arguments, together=True)
        self._under_way = True
        self._drawing = self._begin_draws([member for number in wanted for member in self.groups[number]])
        self._filling = self._pool.submit(self._fill_ahead, 1 - self._half, wanted)

    def _shared(self, wanted: tuple[int, ...]) -> tuple[Any, Any, Any, int]:
        """On the device: records, shares of blocks, and counters for teams; and how many networks."""
        numbers = list(wanted)
        chosen = self._records[numbers].view(np.int64).reshape(len(numbers), -1)
        shares = share_blocks([self._works[number] for number in numbers], self.gpu.blocks)
        counters = np.zeros(APART * len(numbers), np.int32)
        return *map(self.gpu.arrays.asarray, (chosen, shares, counters)), len(numbers)

    def _begin_draws(self, members: Sequence[Member]) -> list[Future[None]]:
        """Draw the orders of the next epochs on other threads."""
        epochs = EPOCHS_AHEAD if self._validated else 1
        return [self._pool.submit(member.draw, epochs) for member in members]

    def _fill_ahead(self, half: int, wanted: Sequence[int]) -> None:
        """Write what epochs need while the device works."""
        with self.gpu.copying():
            self._fill(half, wanted)

    def _fill(self, half: int, wanted: Sequence[int]) -> None:
        """Write what the next epochs need to a half of the block."""
        for drawn in self._drawing:
            drawn.result()
        for number in wanted:
            for member in self.groups[number]:
                member.draw(self._epochs)
        into = slice(half * self._epochs, (half + 1) * self._epochs)
        epochs = range(self._begun, self._begun + self._epochs)
        self._begun += self._epochs
        for stack, owners in zip(self.stacks, self._owners, strict=True):
            stack.fill(into, epochs, {index for index, number in enumerate(owners) if number in wanted})

    def _read(self, wanted: Sequence[int]) -> dict[int, list[GpuEpoch]]:
        """What the epochs brought; here the host waits for the device."""
        block = slice(self._half * self._epochs, (self._half + 1) * self._epochs)
        to_host = self.gpu.to_host
        found = [(to_host(stack.block.losses[block]), to_host(stack.block.outputs[block])) for stack in self.stacks]
        read: dict[int, list[GpuEpoch]] = {}
        for number in wanted:
            at = next(index for index, owners in enumerate(self._owners) if number in owners)
            stack, (losses, outputs), members = self.stacks[at], found[at], self.groups[number]
            first = self._owners[at].index(number)  # networks of a group are one after another
            indices = slice(first, first + len(members))
            lengths = np.array([len(member.part) for member in members])
            source = stack.block.weights[block] if self._validated else stack.parameters[None]
            read[number] = [
                GpuEpoch(
                    losses[epoch, indices] / lengths,
                    [
                        None if member.validation is None else values[: len(member.validation)]
                        for member, values in zip(members, outputs[epoch, indices], strict=True)
                    ],
                    source[epoch, indices, : stack.layout.size],
                )
                for epoch in range(self._epochs)
            ]
        return read


def frequencies(layout: Layout) -> int:
    """Cosines per input, 0 without an embedding."""
    return layout.embedding.frequencies if isinstance(layout.embedding, PeriodicEmbedding) else 0


def part_starts(layout: Layout) -> dict[str, Any]:
    """Where the parts of a network's vector begin; −1 for a skip that is not there."""
    sizes = [math.prod(shape) for shape in [*layout.matrices, *layout.vectors]]
    parts = layout.group([sum(sizes[:index]) for index in range(len(sizes))])
    found: dict[str, Any] = {f"at_hidden{number}": start for number, start in enumerate(parts.hidden)}
    found |= {f"at_bias{number}": start for number, start in enumerate(parts.biases)}
    waves = dict(zip(("at_mix", "at_frequency", "at_phase", "at_shift"), parts.embedding, strict=False))
    skip = -1 if parts.skip is None else parts.skip
    return found | waves | {"at_output": parts.output, "at_offset": parts.offset, "at_skip": skip}


def workspace(layout: Layout, rows: int, losses: int) -> tuple[int, dict[str, int]]:
    """Numbers that a network's team shares between parts of a step, and where in them each part begins."""
    begins, taken = {}, 0
    lengths = {"fed": rows * layout.fed, "errors": rows * layout.outputs, "row_losses": losses}
    lengths |= {f"hidden{number}": rows * width for number, width in enumerate(layout.hidden)}
    lengths |= {f"back{number}": rows * width for number, width in enumerate(layout.hidden)}
    lengths["slopes"] = rows * layout.inputs if layout.embedding else 0
    for name, length in lengths.items():
        begins[name] = taken
        taken += -(-length // 32) * 32
    return taken, begins


def records(stack: GpuStack, space: Any, begins: dict[str, int], rows: int) -> Any:
    """A record per network of a stack, whose workspace of so many rows at a time is a row of `space`."""
    layout, block, count, address = stack.layout, stack.block, len(stack), stack.gpu.address
    found, numbers = np.zeros(count, RECORD), np.arange(count)
    _, block_steps, kinds, _ = block.factors.shape
    for name, array in {
        "parameters": stack.parameters,
        "first_state": stack.state[0],
        "second_state": stack.state[-1],
        "average": stack.mean,
        "gains": stack.gains,
        "held_gains": stack.validation_gains,
        "held_rows": stack.validation,
        "rows": block.rows[0, 0],
        "factors": block.factors[0, 0, 0],
        "newest": block.newest[0],
        "losses": block.losses[0],
        "outputs": block.outputs[0],
        "kept": block.weights[0] if len(block.weights) else stack.mean,
    }.items():
        found[name] = address(array) + numbers * array.strides[0]
    found["table"] = address(stack.table)
    found["targets"] = address(stack.targets) + 4 * stack.target_starts * layout.outputs
    found["weights"] = address(stack.weights) + 4 * stack.weight_starts
    for name, begin in begins.items():
        found[name] = address(space) + 4 * begin + numbers * space.strides[0]
    fixed = {f"width{number}": width for number, width in enumerate(layout.hidden)} | part_starts(layout)
    fixed |= {"inputs": layout.inputs, "fed_width": layout.fed, "frequencies": frequencies(layout)}
    fixed |= {"depth": len(layout.hidden), "loss": list(TABLE_LOSSES).index(stack.loss)}
    fixed |= {"outputs_wide": layout.outputs, "adam": int(len(stack.state) > 1)}
    fixed |= {"decayed": layout.decayed, "size": layout.size, "pitch": stack.parameters.shape[1]}
    fixed |= {"block_steps": block_steps, "block_batch": block.rows.shape[3], "networks": count, "kinds": kinds}
    fixed |= {"held_most": stack.validation.shape[1], "at_once": rows}
    for name, value in fixed.items():
        found[name] = value
    found["start"] = stack.starts
    members = stack.members
    found["part"], found["batch"] = [len(member.part) for member in members], [member.batch for member in members]
    found["steps"] = [member.steps for member in members]
    found["held"] = [len(member.validation or ()) for member in members]
    return found


def share_blocks(works: Sequence[float], blocks: int) -> NDArray[np.int32]:
    """Shares (blocks, 4) of the blocks of threads: a network, the block's rank, how many share it, how far the next is.

    Networks get blocks by what they cost, at least one each. More networks than blocks have one each in turns.
    """
    count = len(works)
    if count >= blocks:
        return np.array([(number, 0, 1, blocks) for number in range(blocks)], np.int32)
    cost = np.maximum(np.asarray(works, np.float64), 1e-9)
    parties = 1 + np.floor(cost / cost.sum() * (blocks - count)).astype(np.int64)
    for _ in range(blocks - int(parties.sum())):
        parties[np.argmax(cost / parties)] += 1
    shares = [(number, rank, of, count) for number, of in enumerate(parties.tolist()) for rank in range(of)]
    return np.array(shares, np.int32)
