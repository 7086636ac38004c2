"""The CUDA engine: plans memory, trains batch after batch, and splits a batch that does not fit after all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from fewfire._cuda._device import all_devices, current_device, device_errors, missing, take_device
from fewfire._errors import DeviceMemoryError, EngineUnavailable
from fewfire.engines._base import OwnEngine, Trained
from fewfire.engines._protocol import Pace
from fewfire.engines._result import Result
from fewfire.engines._run import Run, Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import Batch, Walked
from fewfire.engines.cuda._kernels import compile_ahead, draws, draws_start, variant_of
from fewfire.engines.cuda._memory import MemoryPlan, plan_batches, too_large
from fewfire.engines.cuda._pace import measure_pace
from fewfire.engines.cuda._shared import ScheduleTables

_PREPARING = threading.Lock()
"""Locked while a batch is described: two that are described at once would both be ready late."""


class CudaEngine(OwnEngine):
    """Whole trainings inside kernels on one NVIDIA GPU: the other engines' draws and updates, exact to rounding.

    Several threads may call `train`: while the runs of one train, the others prepare theirs and read them back, and the
    last runs of one share the chip with the first of the next.
    """

    name: ClassVar = "cuda"
    draws_problems: ClassVar[frozenset[str]] = frozenset(records.PROBLEMS)
    draws_starts: ClassVar[frozenset[str]] = frozenset({"dense", "sparse"})
    # Some seconds of a large GPU, and enough runs to fill it with the smallest layout several times over.
    batch_cost: ClassVar = 4e14
    batch_runs: ClassVar = 8192
    side_by_side: ClassVar = True

    def unusable(self) -> str | None:
        """What is missing here, with the remedy; None when the engine can run."""
        return missing()

    def devices(self) -> list[str]:
        """Name, architecture and free memory of each GPU that CUDA_VISIBLE_DEVICES lets this process see."""
        return [
            f"{device.name} (sm_{device.architecture}, {device.memory / 2**30:.0f} GiB free)"
            for device in all_devices()
        ]

    def use_device(self, number: int) -> None:
        """Train on that GPU from now on, in this thread."""
        take_device(number)

    def prepare(self, runs: Sequence[Run]) -> None:
        """Begin to compile what runs of such shapes need."""
        device = current_device()
        compile_ahead("draw.cu", device.architecture)
        for variant in dict.fromkeys(variant_of(run, device) for run in runs):
            file, definitions = variant.source()
            compile_ahead(file, device.architecture, definitions)

    def pace(self, run: Run) -> Pace:
        """How fast this GPU trains runs of such a shape when it is full of them, and of nothing else."""
        return measure_pace(_drawable(run), current_device())

    def _train(self, runs: Sequence[Run], keep_networks: bool, notify: Callable[[int], object]) -> Trained:
        before = 0
        try:
            with _PREPARING:
                waiting = deque(plan_batches(runs, current_device()))
            self.prepare([runs[plan.members[0]] for plan in waiting])
            while waiting:
                plan = waiting.popleft()
                steps = sum(runs[index].schedule.steps for index in plan.members)

                def report(done: int, before: int = before, steps: int = steps) -> None:
                    notify(before + min(done, steps))

                try:
                    found = _results(plan, runs, report, keep_networks)
                except DeviceMemoryError as full:
                    if len(plan.members) == 1:  # one run alone cannot be split
                        raise too_large(runs[plan.members[0]], plan.nbytes, current_device()) from full
                    waiting.extendleft(reversed(plan.halves()))
                    continue
                yield from found.items()
                before += steps
                notify(before)
        except device_errors() as error:
            # Most of them leave the device unusable for this process: no run's fault, and no use in going on.
            raise EngineUnavailable(
                f"engine 'cuda' cannot go on: the GPU answered {str(error).rstrip('.')}. Finished runs of a sweep are "
                "kept. Remedy: start the program again; if it comes back, use engine='cpu'."
            ) from error


def _results(
    plan: MemoryPlan, runs: Sequence[Run], report: Callable[[int], None], keep_networks: bool
) -> dict[int, Result]:
    """Train a batch; its memory is free again at the end."""
    with _PREPARING:
        batch = Batch([_drawable(runs[index]) for index in plan.members], plan.variant)
        batch.draw()
    batch.train(report)
    outcomes = batch.outcomes()
    return {index: batch.result(place, outcomes[place], keep_networks) for place, index in enumerate(plan.members)}


def _drawable(run: Run) -> Run:
    """The run with everything drawn here that the device cannot draw."""
    network = run.network
    if isinstance(network, Start) and not draws_start(network):
        run = replace(run, network=network.draw())
    if any(sample is not None and not draws(sample.problem) for sample in (run.sample, run.test)):
        run = run.drawn()
    if run.source is not None and not draws(run.source):
        # A source that only the host can draw becomes the training set that its steps walk through once.
        X, y = run.source.sample(ScheduleTables.of(run.schedule).positions, run.stream.child("online"))
        run = Walked(
            run.network, run.schedule, X, y, run.X_test, run.y_test, test=run.test, seed=run.seed, support=run.support
        )
    return run
