"""A batch of runs: how specs are cut into batches that suit an engine, and what becomes of one.

One run is a pure function of its spec, whatever else is in the batch. Its cost is the dense multiply-adds to the last
step: 2·batch·width·(inputs + 1) per step, and a forward pass over what each checkpoint looks at. That is an upper bound
(early stops, inactive neurons), good for cutting and estimates.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fewfire._errors import EngineUnavailable
from fewfire.engines import MEASURED_ROWS
from fewfire.experiments.store import Row, environment_text, failed_row, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from fewfire.engines import Engine, Run, Schedule
    from fewfire.experiments.spec import RunSpec

FIRST_RUNS = 128
"""Of the first batch for a device."""


def batches(specs: Iterable[RunSpec], engine: Engine) -> Iterator[list[RunSpec]]:
    """The specs, in order, in batches as the engine likes them; a spec weighs nothing, whatever data it stands for.

    An engine with a device of its own gets runs of one shape at a time, and a few to begin with, soon described: the
    device is at work while the others are.
    """
    batch: list[RunSpec] = []
    spent, most = 0.0, min(FIRST_RUNS, engine.batch_runs) if engine.side_by_side else engine.batch_runs
    for spec in specs:
        if batch and engine.side_by_side and shape(spec) != shape(batch[0]):
            yield batch
            batch, spent, most = [], 0.0, engine.batch_runs
        batch.append(spec)
        spent += cost(spec)
        if spent >= engine.batch_cost or len(batch) >= most:
            yield batch
            batch, spent, most = [], 0.0, engine.batch_runs
    if batch:
        yield batch


def shape(spec: RunSpec) -> tuple[Hashable, ...]:
    """What runs have in common that a device trains side by side: sizes, fresh examples or a set, the schedule."""
    return spec.problem.inputs, spec.width, spec.samples is None, spec.schedule


def cost(spec: RunSpec) -> float:
    """The dense multiply-adds of a run that trains to its last step."""
    samples = spec.samples or 0
    examples, checks = _work(spec.schedule, samples)
    looked_at = checks * (min(samples, MEASURED_ROWS) + spec.test_samples)
    return spec.width * (spec.problem.inputs + 1) * (2.0 * examples + looked_at)


@lru_cache(maxsize=4096)
def _work(schedule: Schedule, samples: int) -> tuple[int, int]:
    """The examples seen by all updates, and the number of checkpoints."""
    examples = sum(phase.steps * (phase.batch_size or samples) for phase in schedule.phases)
    return examples, len(schedule.checkpoints())


def run_batch(
    specs: Sequence[RunSpec], engine: Engine, progress: Callable[[int, int], None] | None = None
) -> list[Row]:
    """The rows of these runs, in their order; a run that raises an error becomes a failed row of its own.

    `progress` is the engine's; what it raises ends the batch, unless it is an `Exception`.
    """
    rows: dict[str, Row] = {}
    good: list[tuple[RunSpec, Run]] = []
    for spec in specs:
        try:
            good.append((spec, spec.describe()))
        except Exception as error:
            rows[spec.hash] = failed_row(spec, error, engine.name, environment_text())
    rows |= {row.hash: row for row in _train(good, engine, progress)}
    return [rows[spec.hash] for spec in specs]


def _train(pairs: list[tuple[RunSpec, Run]], engine: Engine, progress: Callable[[int, int], None] | None) -> list[Row]:
    try:
        runs = [run for _, run in pairs]
        results = engine.train(runs, keep_networks=False, on_divergence="record", progress=progress)
    except EngineUnavailable:
        raise  # no run's fault: every other one would end the same way
    except Exception as error:
        if len(pairs) > 1:  # find out whose fault it was, by halves: a device's batches hold thousands
            middle = len(pairs) // 2
            return [row for part in (pairs[:middle], pairs[middle:]) for row in _train(part, engine, progress)]
        return [failed_row(pairs[0][0], error, engine.name, environment_text())]
    return [row_of(spec, result, environment_text()) for (spec, _), result in zip(pairs, results, strict=True)]
