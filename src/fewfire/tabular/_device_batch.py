"""All networks of a fit, of all encodings, trained as one batch on one device: a GPU where there is one.

Networks of one layout are a `LayoutStack`; the stacks of a batch go through their epochs side by side. On a GPU several
epochs are begun at a time, as one launch of a kernel (cuda) or as recorded steps of PyTorch's (_torch_epochs.py), and
the host waits once for all of them; whoever turns out to have stopped before has trained a few epochs in vain. Each
epoch's weights are at hand, so decisions are those of one epoch at a time. While the device works the next epochs'
orders are drawn and written beside. On a processor nothing is run ahead.

Networks that have stopped cost a kernel nothing. Recorded steps keep them, without moving, until they are so many that
recording afresh pays.
"""

from __future__ import annotations

from concurrent.futures import wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fewfire._optional import require
from fewfire.tabular._layout_stack import LayoutStack
from fewfire.tabular._torch_epochs import TorchEpochs
from fewfire.tabular._training import NEWEST

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from fewfire._threads import Helpers
    from fewfire._types import AnyArray, FloatArray
    from fewfire.tabular._network import Layout
    from fewfire.tabular._training import TrainedNetwork, TrainingRows

AHEAD_BYTES = 2**31  # that the weights of epochs run ahead may take


class BatchPace(NamedTuple):
    """How many epochs are run at a time, how many steps of them are one recording at most, and what is run in vain.

    A batch of which no more than the share `dense` is still in training is made afresh without the others. `early`: the
    next epochs are begun before the host has judged the last.
    """

    ahead: int
    steps: int
    dense: float
    early: bool


PACES = {
    "cuda": BatchPace(5, 1, 0.5, True),
    "cpu": BatchPace(1, 1, 1.0, False),
}  # meetings are after multiples of five epochs


class NetworkSeat(NamedTuple):
    """A network in the batch: its rows, and the orders of its next epochs."""

    network: TrainedNetwork
    part: TrainingRows
    held: TrainingRows | None
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
        rows, missing = len(self.part), epochs - len(self.orders)
        if missing <= 0:
            return
        places = self.part.places().astype(np.int32)
        if self.batch == rows:
            self.orders.extend([places] * missing)
        else:
            self.orders.extend(places[self.network.order(rows)] for _ in range(missing))


class DeviceEpoch(NamedTuple):
    """What an epoch brought some networks: mean losses (networks,), outputs at held-out rows, weights (networks, size).

    Outputs are one array per network, None without rows to judge by; the weights, on the device, are the means that
    gave them, or the weights themselves.
    """

    losses: FloatArray
    outputs: list[FloatArray | None]
    weights: Any


class EpochRunner(Protocol):
    """Who takes networks through epochs of their stacks' blocks."""

    def run(self, networks: Sequence[int], first: int, epochs: int) -> None:
        """Begin so many epochs, from a number on, of networks counted over all stacks; others may move or not."""


class DeviceBatch:
    """Groups of networks in training on a device.

    Parameters
    ----------
    groups : list of lists of NetworkSeat
        Of one loss and optimiser; all of them are judged by held-out rows, or none.
    device : str, optional
        "cuda" where there is one, else "cpu".
    pool : Helpers, optional
        Orders of rows are drawn there.
    """

    def __init__(
        self, groups: Sequence[list[NetworkSeat]], device: str | None = None, pool: Helpers | None = None
    ) -> None:
        self.torch: Any = require("torch", "torch", "engine='torch'")
        self.device = device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self._pace = PACES["cuda" if self.on_gpu else "cpu"]
        self._pool, self._judged = pool, groups[0][0].held is not None
        self.groups = {number: seats for number, seats in enumerate(groups) if seats}
        self._present = set(self.groups)
        self._begun, self._half, self._under_way = 0, 0, False
        if self.on_gpu:
            self._stream, self._copies = self.torch.cuda.Stream(), self.torch.cuda.Stream()
        layouts = list({seat.network.layout: None for seats in groups for seat in seats})
        self._kernel = self._load_kernel(layouts)
        self._members = [
            [(number, seat) for number, seats in self.groups.items() for seat in seats if seat.network.layout == layout]
            for layout in layouts
        ]
        self._drawing = self._begin_draws([seat for seats in groups for seat in seats])
        self._filling: Future[None] | None = None
        with self._at_work():
            self.stacks = [self._stack([seat for _, seat in members]) for members in self._members]
            self._prepare()

    @property
    def on_gpu(self) -> bool:
        """Whether steps are recorded and run ahead."""
        return self.device.startswith("cuda")

    def advance(self, wanted: Sequence[int]) -> dict[int, list[DeviceEpoch]]:
        """The next epochs of the wanted groups, by number; groups that are not wanted have stopped for good."""
        with self._at_work():
            if not self._under_way:
                self._launch(wanted)
            found, self._under_way = self._read(wanted), False
            if self._pace.early and self._judged:
                self._launch(wanted)
            return found

    def leave(self, group: int) -> None:
        """A group has stopped: its orders are drawn no further."""
        self._present.discard(group)
        wait([*self._drawing, *([self._filling] if self._filling else [])])
        if self.on_gpu and not self._present:  # what is free then is used again behind all that was begun
            self._stream.wait_stream(self._copies)

    def _launch(self, wanted: Sequence[int]) -> None:
        """Begin the next epochs of these groups, in the half of the block that was not read last."""
        self._half = 1 - self._half
        if self._filling is None:
            self._drop(set(wanted))
            self._fill(self._half, wanted)
        else:
            self._filling.result()
            self._stream.wait_stream(self._copies)
        assert self._runner is not None
        groups = [number for members in self._members for number, _ in members]
        networks = [place for place, number in enumerate(groups) if number in set(wanted)]
        self._runner.run(networks, self._half * self._epochs, self._epochs)
        self._under_way = True
        # For the next time, while the device works. What is recorded may be made afresh first, without some networks.
        self._drawing, self._filling = self._begin_draws(self._seats(wanted)), None
        if self._pool is not None and self._kernel is not None and self.on_gpu:
            self._filling = self._pool.submit(self._fill_beside, 1 - self._half, wanted)

    def _fill_beside(self, half: int, wanted: Sequence[int]) -> None:
        """Write what epochs need on a stream of its own."""
        with self.torch.no_grad(), self.torch.cuda.stream(self._copies):
            self._fill(half, wanted)

    def _seats(self, wanted: Sequence[int]) -> list[NetworkSeat]:
        return [seat for number in wanted for seat in self.groups[number]]

    def _load_kernel(self, layouts: Sequence[Layout]) -> tuple[Any, int] | None:
        """A kernel that trains such networks, and how many blocks of threads it has, if there is one."""
        if not self.on_gpu:
            return None
        from fewfire.tabular.cuda import load_kernel  # loads what finds NVRTC

        return load_kernel(layouts)

    def _stack(self, seats: list[NetworkSeat]) -> LayoutStack:
        held = [seat.held for seat in seats if seat.held is not None]
        return LayoutStack(
            self.torch, self.device, [seat.network for seat in seats], [seat.part for seat in seats], held
        )

    def _prepare(self) -> None:
        """Make room for the next epochs, and have someone to run them."""
        seats = [[seat for _, seat in members] for members in self._members]
        steps = max(seat.steps for some in seats for seat in some)
        taken = sum(4 * stack.parameters.numel() for stack in self.stacks)
        self._epochs = max(1, min(self._pace.ahead, AHEAD_BYTES // taken)) if self._judged else 1
        replays = -(-steps // self._pace.steps)
        recorded = -(-steps // replays)
        self._runner: EpochRunner | None = None  # its memory is free before another is made
        for stack, some in zip(self.stacks, seats, strict=True):
            stack.prepare(2 * self._epochs, recorded * replays, max(seat.batch for seat in some))
        if self._kernel is None:
            self._runner = TorchEpochs(self.torch, self.stacks, recorded, self.on_gpu)
        else:
            from fewfire.tabular.cuda import EpochKernel, NetworkLoad

            loads = [
                [NetworkLoad(len(seat.part), seat.batch, seat.steps, len(seat.held or ())) for seat in some]
                for some in seats
            ]
            self._runner = EpochKernel(*self._kernel, self.stacks, loads, self._stream if self.on_gpu else None)
        if self.on_gpu:
            self._copies.wait_stream(self._stream)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """On the batch's own stream, without autograd, after what others have to do with its weights."""
        with self.torch.no_grad():
            if not self.on_gpu:
                yield
                return
            outside = self.torch.cuda.current_stream()
            self._stream.wait_stream(outside)
            with self.torch.cuda.stream(self._stream):
                yield

    def _drop(self, wanted: set[int]) -> None:
        """Go on without the groups that stopped, if it pays; a kernel passes them over."""
        if self._kernel is not None:
            return
        counts = [[number in wanted for number, _ in members] for members in self._members]
        taken = [len(stack) * stack.layout.size for stack in self.stacks]
        left = sum(size * float(np.mean(stays)) for size, stays in zip(taken, counts, strict=True))
        if left == sum(taken) or left > self._pace.dense * sum(taken):
            return
        for stack, stays in zip(self.stacks, counts, strict=True):
            if any(stays) and not all(stays):
                stack.select([int(place) for place in np.flatnonzero(stays)])
        self.stacks = [stack for stack, stays in zip(self.stacks, counts, strict=True) if any(stays)]
        members = [[member for member in members if member[0] in wanted] for members in self._members]
        self._members = [some for some in members if some]
        self._prepare()

    def _begin_draws(self, seats: Sequence[NetworkSeat]) -> list[Future[None]]:
        """Draw the orders of the next epochs on other threads, if there are any."""
        epochs = self._pace.ahead if self._judged else 1
        return [] if self._pool is None else [self._pool.submit(seat.draw, epochs) for seat in seats]

    def _fill(self, half: int, wanted: Sequence[int]) -> None:
        """Write what the next epochs need to a half of the block; a network that has stopped gets no rows."""
        for drawn in self._drawing:
            drawn.result()
        for seat in self._seats(wanted):
            seat.draw(self._epochs)
        into = slice(half * self._epochs, (half + 1) * self._epochs)
        epochs = range(self._begun, self._begun + self._epochs)
        shares = np.array([max(NEWEST, 1 / (epoch + 1)) for epoch in epochs], np.float32)
        self._begun += self._epochs
        for stack, members in zip(self.stacks, self._members, strict=True):
            _, steps, count, size = stack.block.rows.shape
            rows = np.empty((self._epochs, count, steps * size), np.int32)
            rows[:] = stack.empty[:, None]
            present = np.zeros((steps, count), np.int64)
            for place, (number, seat) in enumerate(members):
                if number not in wanted:
                    continue
                batch, steps_taken = seat.batch, seat.steps
                present[:steps_taken, place] = batch
                present[steps_taken - 1, place] = len(seat.part) - batch * (steps_taken - 1)
                padded = np.full((self._epochs, steps_taken * batch), stack.empty[place], np.int32)
                for epoch in range(self._epochs):
                    padded[epoch, : len(seat.part)] = seat.orders.popleft()
                laid = rows[:, place].reshape(self._epochs, steps, size)
                laid[:, :steps_taken, :batch] = padded.reshape(self._epochs, steps_taken, batch)
            by_step = rows.reshape(self._epochs, count, steps, size).swapaxes(1, 2)
            paces = [np.array([seat.network.pace(epoch) for _, seat in members]) for epoch in epochs]
            factors = np.stack([stack.factors(present, of_epoch) for of_epoch in paces])
            stack.block.rows[into].copy_(stack.placed(np.ascontiguousarray(by_step)))
            stack.block.factors[into].copy_(stack.placed(factors))
            stack.block.newest[into].copy_(stack.placed(np.repeat(shares[:, None], count, axis=1))[..., None])

    def _read(self, wanted: Sequence[int]) -> dict[int, list[DeviceEpoch]]:
        """What the epochs brought; here the host waits for the device."""
        block = slice(self._half * self._epochs, (self._half + 1) * self._epochs)
        found = [
            (stack.block.losses[block].cpu().numpy(), stack.block.judged[block].cpu().numpy()) for stack in self.stacks
        ]
        read: dict[int, list[DeviceEpoch]] = {}
        for number in wanted:
            stack, places = self._places(number)
            losses, judged = found[self.stacks.index(stack)]
            seats = self.groups[number]
            lengths = np.array([len(seat.part) for seat in seats])
            source = stack.block.weights[block] if self._judged else stack.parameters[None]
            read[number] = [
                DeviceEpoch(
                    losses[epoch, places] / lengths,
                    [
                        None if seat.held is None else outputs[: len(seat.held)]
                        for seat, outputs in zip(seats, judged[epoch, places], strict=True)
                    ],
                    source[epoch, places, : stack.layout.size],
                )
                for epoch in range(self._epochs)
            ]
        return read

    def _places(self, group: int) -> tuple[LayoutStack, slice]:
        """The stack of a group, and its rows there, which stand together."""
        for stack, members in zip(self.stacks, self._members, strict=True):
            rows = [place for place, (number, _) in enumerate(members) if number == group]
            if rows:
                return stack, slice(rows[0], rows[-1] + 1)
        raise KeyError(group)
