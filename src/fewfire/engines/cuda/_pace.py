"""How fast the device trains runs of one shape when it is full of them: a fraction of a second of trying.

Two batches of as many runs as train side by side, twice over, and of as many steps: one looks at its examples at the
beginning and the end only, the other at nine checkpoints. What the second takes longer is the price of seven.
"""

from __future__ import annotations

from dataclasses import replace

from fewfire._cuda._device import Device
from fewfire.engines._protocol import Pace
from fewfire.engines._result import MEASURED_ROWS
from fewfire.engines._run import LAYERS, PerLayer, Phase, Run, Schedule, Start
from fewfire.engines.cuda._batch import Batch
from fewfire.engines.cuda._kernels import variant_of
from fewfire.engines.cuda._memory import plan_batches

WAVES = 2
FEWEST_STEPS, SECONDS = 64, 0.15
"""Steps of the first try, and what the others should take on the device."""

CHECKPOINTS = 9


def measure_pace(run: Run, device: Device) -> Pace:
    """Seconds of the device per step, and per row of a checkpoint, of one of many such runs."""
    variant = variant_of(run, device)
    first = _reseeded(run, 0, _shortened(run.schedule, FEWEST_STEPS, FEWEST_STEPS))
    at_once = Batch([first], variant).at_once
    runs = len(next(iter(plan_batches([first] * (WAVES * at_once), device))).members)

    def seconds(steps: int, every: int) -> float:
        schedule = _shortened(run.schedule, steps, every)
        batch = Batch([_reseeded(run, seed, schedule) for seed in range(runs)], variant)
        batch.draw()
        batch.train(lambda done: None)
        return batch.seconds / runs

    tried = max(seconds(FEWEST_STEPS, FEWEST_STEPS), 1e-12)
    # Eight checkpoints after the first: steps are multiples of eight.
    steps = 8 * max(8, min(run.schedule.steps // 8, int(FEWEST_STEPS * SECONDS / (tried * runs)) // 8))
    plain, looking = seconds(steps, steps), seconds(steps, steps // 8)
    check = max(0.0, (looking - plain) / (CHECKPOINTS - 2))
    rows = min(run.rows, MEASURED_ROWS) + run.test_rows
    return Pace(max(0.0, plain - 2 * check) / steps, check / rows if rows else 0.0)


def _shortened(schedule: Schedule, steps: int, every: int) -> Schedule:
    """So many steps under the rates of its first step, with no early stop."""
    phase = schedule.phases[0]
    rates, keeps, truncations = (PerLayer(*map(float, table[0])) for table in phase.tables())
    decay = PerLayer(*(1 - float(getattr(keeps, layer)) for layer in LAYERS))
    short = Phase(steps, rates, decay, truncations, "direct", phase.batch_size)
    return replace(schedule, phases=(short,), evaluate=every, stop_error=None)


def _reseeded(run: Run, seed: int, schedule: Schedule) -> Run:
    """Such a run, with weights, examples and minibatches of its own."""
    return replace(
        run,
        schedule=schedule,
        network=replace(run.network, seed=seed) if isinstance(run.network, Start) else run.network,
        sample=None if run.sample is None else replace(run.sample, seed=seed),
        seed=seed,
    )
