"""How much one run costs, and how runs are cut into batches that suit an engine.

The cost of a run is its dense multiply-adds to the last step: 2·batch·width·(inputs + 1) a step, and a forward pass
over both sets at each checkpoint. It is an upper bound (early stops, inactive neurons), good for cutting and estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fewfire.engines import Schedule
    from fewfire.experiments._run_spec import RunSpec

MEMORY = 1 << 28
"""Bytes of networks and data that one batch may hold."""


@dataclass(frozen=True)
class BatchSize:
    """When a batch is full: its cost or its number of runs."""

    cost: float
    runs: int


# About two seconds of one core, so that little is in flight when a sweep is stopped and scheduling costs nothing.
_SIZES = {"cpu": BatchSize(2e10, 64), "reference": BatchSize(4e9, 16)}
# Engines that train a whole batch side by side, on a device of their own.
_SIDE_BY_SIDE = BatchSize(float("inf"), 4096)


def side_by_side(engine: str) -> bool:
    """Whether the engine wants one caller with large batches rather than several with small ones."""
    return engine not in _SIZES


def batches(specs: Iterable[RunSpec], engine: str) -> Iterator[list[RunSpec]]:
    """The specs, in order, in batches sized for the engine."""
    size = _SIZES.get(engine, _SIDE_BY_SIDE)
    batch: list[RunSpec] = []
    spent, memory = 0.0, 0
    for spec in specs:
        batch.append(spec)
        spent += cost(spec)
        memory += _bytes(spec)
        if spent >= size.cost or len(batch) >= size.runs or memory >= MEMORY:
            yield batch
            batch, spent, memory = [], 0.0, 0
    if batch:
        yield batch


def cost(spec: RunSpec) -> float:
    """The dense multiply-adds of a run that trains to its last step."""
    samples = spec.samples or 0
    examples, checks = _work(spec.schedule, samples)
    return spec.width * (spec.problem.inputs + 1) * (2.0 * examples + checks * (samples + spec.test_samples))


@lru_cache(maxsize=4096)
def _work(schedule: Schedule, samples: int) -> tuple[int, int]:
    """The examples seen by all updates, and the number of checkpoints."""
    examples = sum(phase.steps * (phase.batch_size or samples) for phase in schedule.phases)
    return examples, len(schedule.checkpoints())


def _bytes(spec: RunSpec) -> int:
    inputs = spec.problem.inputs
    # Initial and final weights in float32; rows of ±1 as int8.
    return 8 * spec.width * (inputs + 2) + inputs * ((spec.samples or 0) + spec.test_samples)
