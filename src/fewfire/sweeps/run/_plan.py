"""What a sweep has to do: its runs against those a store has, what they cost, in which order and in which batches.

The cost of a run is the dense multiply-adds to its last step: 2·batch·weights per step, and a forward pass
over what each checkpoint looks at. That is an upper bound (early stops, inactive neurons), good for cutting and
estimates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fewfire._types import Float64Array, IdArray
from fewfire.engines import MEASURED_ROWS, Engine, Schedule
from fewfire.engines._run import products
from fewfire.sweeps.run._search import SearchRounds
from fewfire.sweeps.spec._run_spec import RunSpec, outputs_of
from fewfire.sweeps.spec._sweep import Sweep
from fewfire.sweeps.store._protocol import Store
from fewfire.sweeps.store._row import final, succeeded

BRIEF = 1e16  # multiply-adds that a device does within minutes


@dataclass(frozen=True, eq=False)
class Plan:
    """A sweep against a store; what is to do in a search is a guess, drawn from what is known.

    `finished` runs of the `total` are final in the store, successes and diverged ones among them. `pending` (runs to
    do,) are numbers, `sweep.run_at(number)`, and `costs` their multiply-adds, as `cost` counts them.
    """

    total: int
    finished: int
    successes: int
    diverged: int
    pending: IdArray
    costs: Float64Array

    @property
    def cost(self) -> float:
        """The multiply-adds of everything that is to do."""
        return float(self.costs.sum())


def make_plan(sweep: Sweep, store: Store | None = None) -> Plan:
    """Which runs are missing; all of them without a store.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, Sweep, make_plan
    >>> sweep = Sweep.from_dict(
    ...     {
    ...         "problem": {"name": "parity", "n": 10, "k": 2},
    ...         "network": {"start": "dense", "width": 10},
    ...         "data": {"samples": [50, 500]},
    ...         "training": {"steps": 100},
    ...         "trials": 3,
    ...     }
    ... )
    >>> len(make_plan(sweep, MemoryStore()).pending)
    6
    """
    known: dict[str, tuple[str, float]] = {}
    if store is not None:
        columns = store.columns()
        values = (columns[name].tolist() for name in ("hash", "status", "best_test_error"))
        known = {hash: (status, best) for hash, status, best in zip(*values, strict=True) if final(status)}
    if sweep.search is not None:
        error = sweep.success_error
        rounds = SearchRounds(sweep, {hash: succeeded(*found, error) for hash, found in known.items()})
        trained, to_do = rounds.trained(), np.array(rounds.foreseen(), dtype=np.int64)
        diverged = sum(known[sweep.run_at(number).hash][0] == "diverged" for number in trained)
        costs = np.array([cost(sweep.run_at(int(number))) for number in to_do])
        return Plan(len(trained) + len(to_do), len(trained), rounds.successes(), diverged, to_do, costs)
    cells = np.array([cost(sweep.run_at(cell)) for cell in range(sweep.settings)])  # trials cost the same
    if not known:
        return Plan(len(sweep), 0, 0, 0, np.arange(len(sweep)), np.tile(cells, sweep.trials))
    pending, successes, diverged = [], 0, 0
    for number, spec in enumerate(sweep.runs()):
        found = known.get(spec.hash)
        if found is None:
            pending.append(number)
        else:
            diverged += found[0] == "diverged"
            successes += succeeded(*found, sweep.success_error)
    to_do = np.array(pending, dtype=np.int64)
    return Plan(len(sweep), len(sweep) - len(to_do), successes, diverged, to_do, cells[to_do % sweep.settings])


def in_device_order(sweep: Sweep, numbers: Sequence[int] | IdArray) -> IdArray:
    """These runs, those of one shape together; in their order within a shape.

    The dearest shapes come first, so that what is left at the end is short and no device waits for one long run. Where
    all of it is much work the cheapest come first: there is something to look at long before it ends.
    """
    numbers = np.asarray(numbers, dtype=np.int64)
    rank = {name: number for number, name in enumerate(_shapes(sweep, numbers))}
    cells = (numbers % sweep.settings).tolist()
    specs = {cell: sweep.run_at(cell) for cell in dict.fromkeys(cells)}
    costs = {cell: cost(spec) for cell, spec in specs.items()}
    ranks = {cell: rank[shape(spec)] for cell, spec in specs.items()}
    sign = 1 if sum(costs[cell] for cell in cells) > BRIEF else -1
    return np.asarray(numbers[np.argsort([sign * ranks[cell] for cell in cells], kind="stable")])


def one_of_each_shape(sweep: Sweep, numbers: Sequence[int] | IdArray) -> list[RunSpec]:
    """A run of each shape among these, the cheapest first."""
    return [specs[len(specs) // 2] for specs in _shapes(sweep, numbers).values()]


def _shapes(sweep: Sweep, numbers: Sequence[int] | IdArray) -> dict[tuple[Hashable, ...], list[RunSpec]]:
    """The cells of these runs by shape, the cheapest shapes and cells first."""
    found: dict[tuple[Hashable, ...], list[RunSpec]] = {}
    for cell in sorted(set((np.asarray(numbers, dtype=np.int64) % sweep.settings).tolist())):
        spec = sweep.run_at(cell)
        found.setdefault(shape(spec), []).append(spec)
    for specs in found.values():
        specs.sort(key=cost)
    return dict(sorted(found.items(), key=lambda item: cost(item[1][0])))


FIRST_RUNS = 128  # of the first batch for a device


def batches(specs: Iterable[RunSpec], engine: Engine) -> Iterator[list[RunSpec]]:
    """The specs, in order, in batches as the engine likes them; a spec is small, whatever data it stands for.

    An engine with a device of its own gets runs of one shape at a time, and a few to begin with, soon described: the
    device trains while the others are.
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
    return spec.problem.inputs, spec.width, spec.samples is None, spec.resolved


def cost(spec: RunSpec) -> float:
    """The dense multiply-adds of a run that trains to its last step."""
    samples = spec.samples or 0
    examples, checks = _work(spec.resolved, samples)
    looked_at = checks * (min(samples, MEASURED_ROWS) + spec.test_samples)
    widths = (spec.width,) if isinstance(spec.width, int) else spec.width
    return products(spec.problem.inputs, widths, outputs_of(spec.problem)) * (2.0 * examples + looked_at)


@lru_cache(maxsize=4096)
def _work(schedule: Schedule, samples: int) -> tuple[int, int]:
    """The examples seen by all updates, and the number of checkpoints."""
    examples = sum(phase.steps * (phase.batch_size or samples) for phase in schedule.phases)
    return examples, len(schedule.checkpoints())
