"""The torch twin: a group of networks whose epochs PyTorch computes, all groups of a fit in one batch.

A `TorchTrainer` asks for its epochs as any other does. `BatchRunner` runs the queue's tasks: it sees who asks at the
same time, and lets a `DeviceBatch` take all of them further at once. Other tasks, the starts of the networks, run on
threads. Imported on demand; the modules it stands on are the only ones that need PyTorch.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from fewfire._threads import Helpers
from fewfire.tabular._device_batch import DeviceBatch, DeviceEpoch, NetworkSeat
from fewfire.tabular._training import Advance

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from fewfire.tabular._queue import Task
    from fewfire.tabular._training import TrainedNetwork, TrainingRows

HELPERS = 3  # threads, at most, whose tasks are many small calls: more would wait for the interpreter's lock


class TorchTrainer:
    """Networks trained by PyTorch, which hands the weights back to them at the end.

    Parameters
    ----------
    networks : list of TrainedNetwork
        Their optimisers' state is not carried over: a later fit starts with a fresh one.
    parts, held : one TrainingRows per network
        What each trains on and, for early stopping, is judged by; `held` may be empty.
    """

    def __init__(self, networks: list[TrainedNetwork], parts: list[TrainingRows], held: list[TrainingRows]) -> None:
        judges: list[TrainingRows | None] = [*held] or [None] * len(networks)
        self.seats = [NetworkSeat(*case, deque()) for case in zip(networks, parts, judges, strict=True)]
        self.learning_rate = float(networks[0].optimiser.learning_rate)
        self.place: tuple[DeviceBatch, int] | None = None
        self.ahead: deque[DeviceEpoch] = deque()
        self._drawn = [network.rows_drawn for network in networks]
        self._epochs = 0
        self._weights: Any = None
        self._kept: Any = None
        self._copied = True

    @property
    def steps(self) -> int:
        """Steps the first network has done."""
        return self._epochs * self.seats[0].steps

    def epoch(self) -> list[Task]:
        """One task: all networks advance together."""
        return [self.advance]

    def advance(self) -> list[Advance]:
        """One epoch of every network, and their outputs at the rows they are judged by."""
        if not self.ahead:
            advance_together([self])
        losses, outputs, self._weights = self.ahead.popleft()
        self._epochs += 1
        return [Advance(float(loss), values) for loss, values in zip(losses, outputs, strict=True)]

    def keep(self) -> None:
        """Remember the weights, which stay where they are until the next epochs are run."""
        self._kept, self._copied = self._weights, False

    def secure(self) -> None:
        """Copy what is remembered, before the device writes there again."""
        if not self._copied:
            self._kept, self._copied = self._kept.clone(), True

    def restore(self) -> None:
        """Go back to the weights remembered."""
        self._weights = self._kept

    def release(self) -> None:
        """Write the weights back to the networks."""
        if self.place is not None:
            batch, number = self.place
            batch.leave(number)
        if self._weights is not None:
            for seat, flat in zip(self.seats, self._weights.cpu().numpy(), strict=True):
                seat.network.flat[:] = flat
        for seat, before in zip(self.seats, self._drawn, strict=True):
            # Orders drawn for epochs that were not to be are the next fit's.
            rows = len(seat.part)
            seat.network.rows_drawn = before + (self._epochs * rows if seat.batch < rows else 0)
        self.place, self.ahead, self._kept, self._weights, self._copied = None, deque(), None, None, True


def advance_together(trainers: Sequence[TorchTrainer], pool: Helpers | None = None) -> None:
    """Run the next epochs of trainers; those that have no batch yet get one together."""
    if fresh := [trainer for trainer in trainers if trainer.place is None]:
        batch = DeviceBatch([trainer.seats for trainer in fresh], pool=pool)
        for number, trainer in enumerate(fresh):
            trainer.place = batch, number
    numbers: dict[DeviceBatch, dict[int, TorchTrainer]] = {}
    for trainer in trainers:
        assert trainer.place is not None
        trainer.secure()
        batch, number = trainer.place
        numbers.setdefault(batch, {})[number] = trainer
    for batch, by_number in numbers.items():
        for number, epochs in batch.advance(list(by_number)).items():
            by_number[number].ahead.extend(epochs)


class BatchRunner:
    """Runs tasks of a queue: epochs of `TorchTrainer` together, all others on threads.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int) -> None:
        self._pool = Helpers(min(threads, HELPERS))

    def __enter__(self) -> BatchRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.__exit__(kind, error, trace)

    def __call__(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks as functions that only wait for what is done, or return it."""
        owners = [getattr(task, "__self__", None) for task in tasks]
        trainers = [owner for owner in owners if isinstance(owner, TorchTrainer)]
        if waiting := [trainer for trainer in trainers if not trainer.ahead]:
            advance_together(waiting, self._pool)
        return [
            task if isinstance(owner, TorchTrainer) else self._pool.submit(task).result
            for task, owner in zip(tasks, owners, strict=True)
        ]
