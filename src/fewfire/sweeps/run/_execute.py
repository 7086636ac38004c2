"""Running a sweep: what is not in the store yet goes to an executor, and each batch is kept as it ends.

"auto" takes an engine with a device of its own where one is there and the work is worth it. Runs that the device has no
room for, even alone, are then trained by the engine that "auto" takes without one; rows record which it was.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fewfire._errors import DeviceMemoryError, ExecutorError, invalid
from fewfire._threads import usable_cores
from fewfire._types import IdArray
from fewfire._validate import check_choice, check_integer, did_you_mean
from fewfire.engines import DeviceEngine, Engine, get_engine
from fewfire.engines._protocol import ENGINES
from fewfire.sweeps.executors._dask import DaskExecutor
from fewfire.sweeps.executors._device import DeviceExecutor
from fewfire.sweeps.executors._processes import ProcessExecutor
from fewfire.sweeps.executors._protocol import Executor, InlineExecutor
from fewfire.sweeps.run._plan import Plan, batches, cost, in_device_order, make_plan, one_of_each_shape
from fewfire.sweeps.run._progress import Progress
from fewfire.sweeps.run._search import SearchRounds, outcomes_of
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.spec._sweep import Sweep
from fewfire.sweeps.store._notes import check_tags
from fewfire.sweeps.store._protocol import Store, SweepRecord
from fewfire.sweeps.store._row import Row, final, succeeded
from fewfire.sweeps.store._sqlite import SqliteStore

NAMED: dict[str, Callable[[int | None], Executor]] = {
    "inline": InlineExecutor,
    "device": lambda workers: DeviceExecutor(),
    "processes": ProcessExecutor,
    "dask": lambda workers: DaskExecutor("local"),
}
SMALL = 1e11  # multiply-adds that are over before worker processes would have started


def choose_executor(executor: str | Executor, engine: Engine, work: float, workers: int | None = None) -> Executor:
    """The executor that was asked for; "local" is decided by the engine, its devices, the cores and the cost of all."""
    if isinstance(executor, Executor):
        return executor
    if executor in ("local", "processes") and isinstance(engine, DeviceEngine):
        devices = min(len(engine.devices()), workers or sys.maxsize)
        alone = devices == 1 and executor == "local"
        return DeviceExecutor() if alone else ProcessExecutor(devices, devices=True)
    if executor == "local":
        alone = engine.side_by_side or work < SMALL or (workers or usable_cores()) == 1
        return InlineExecutor(workers) if alone else ProcessExecutor(workers)
    if executor in NAMED:
        return NAMED[executor](workers)
    if isinstance(executor, str) and "://" in executor:
        return DaskExecutor(executor)
    choices = ("local", *NAMED)
    rule = f"must be one of {', '.join(map(repr, choices))} or the address of a Dask scheduler"
    raise invalid("executor", rule, executor, did_you_mean(executor, choices))


def execute(
    sweep: Sweep,
    store: Store | str | Path,
    engine: str,
    executor: str | Executor,
    workers: int | None,
    keep_going: bool,
    progress: Callable[[Progress], None] | None,
    note: str = "",
    tags: Iterable[str] = (),
) -> Progress:
    """Run what is missing; see `Sweep.run`."""
    check_choice("engine", engine, ("auto", *ENGINES))
    if workers is not None:
        check_integer("workers", workers, 1)
    tags = check_tags(tags)
    choose_executor(executor, _engine_for(engine, executor, sweep, 0.0), 0.0, workers)  # refused before a store is made
    opened: Any = SqliteStore(store, write=True) if isinstance(store, str | Path) else nullcontext(store)
    with opened as kept:
        plan = make_plan(sweep, kept)
        chosen = _engine_for(engine, executor, sweep, plan.cost)
        record = SweepRecord(sweep.name, sweep.success_error, sweep.to_dict(), note.strip(), tags)
        for before in kept.sweeps():
            if before.key == record.key:
                record = replace(record, note=before.note, tags=before.tags).joined(record)
        kept.record_sweep(record)
        carrier = choose_executor(executor, chosen, plan.cost, workers)
        share = 0.0 if len(plan.pending) else 1.0
        before = plan.total, plan.finished, 0, plan.successes, plan.diverged, 0, 0.0, share
        state = Progress(*before, chosen.name, carrier.name)
        going = _Going(sweep, plan, kept, keep_going, progress or (lambda state: None), state)
        going.progress(state)

        def train(numbers: Sequence[int] | IdArray, executor: str | Executor, work: float) -> None:
            carrier = choose_executor(executor, chosen, work, workers)
            going.state = replace(going.state, executor=carrier.name)
            going.carry_out(chosen, carrier, in_device_order(sweep, numbers) if chosen.side_by_side else numbers)
            if engine == "auto" and going.refused:
                other = get_engine(general=sweep.general)
                work = sum(cost(sweep.run_at(i)) for i in going.refused)
                going.carry_out(other, choose_executor(executor, other, work, workers), list(going.refused))

        if sweep.search is None:
            train(plan.pending, executor, plan.cost)
            return going.state
        rounds = SearchRounds(sweep, outcomes_of(kept, sweep.success_error))
        with carrier.lasting(chosen.name) if isinstance(carrier, DaskExecutor) else nullcontext(executor) as lasting:
            while numbers := rounds.missing():
                # The guess at the total is not below what is known.
                total = max(going.state.total, going.state.done + len(numbers))
                going.state = replace(going.state, total=total)
                train(numbers, lasting, sum(cost(sweep.run_at(i)) for i in numbers))
                rounds.learn(going.outcomes)
                going.outcomes.clear()
        return going.end(rounds)


def _engine_for(engine: str, executor: str | Executor, sweep: Sweep, work: float) -> Engine:
    """The engine by name; one that workers elsewhere have need not be able to run here."""
    elsewhere = "://" in executor if isinstance(executor, str) else isinstance(executor, DaskExecutor)
    if elsewhere and engine != "auto":
        return ENGINES[engine](None)
    return get_engine(engine, work=work, general=sweep.general)


@dataclass
class _Going:
    """A sweep that is running, with the runs that a device had no room for and, for a search, the outcomes by hash."""

    sweep: Sweep
    plan: Plan
    store: Store
    keep_going: bool
    progress: Callable[[Progress], None]
    state: Progress
    refused: dict[int, None] = field(default_factory=dict)
    outcomes: dict[str, bool] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)
    spent: float = 0.0

    def carry_out(self, engine: Engine, executor: Executor, numbers: Sequence[int] | IdArray) -> None:
        """Train these runs of the sweep and keep them."""
        if not len(numbers):
            return
        under_way: dict[str, tuple[int, float]] = {}  # number and cost by hash
        again = set(self.refused)
        self.refused.clear()

        def missing() -> Iterator[RunSpec]:
            for number in numbers:
                spec = self.sweep.run_at(int(number))
                under_way[spec.hash] = int(number), cost(spec)
                yield spec

        if isinstance(engine, DeviceEngine) and isinstance(executor, DeviceExecutor):
            engine.prepare([spec.describe() for spec in one_of_each_shape(self.sweep, numbers)])
        with closing(executor.run(batches(missing(), engine), engine.name)) as results:
            for rows in results:
                self.store.add(rows)
                for row in rows:
                    number, spent = under_way.pop(row.hash)
                    self.spent += 0.0 if number in again else spent
                    if row.message.startswith(DeviceMemoryError.__name__):
                        self.refused[number] = None
                self._count(rows, len(rows) if again else 0)
                self.progress(self.state)
                for row in () if self.keep_going else (row for row in rows if row.status != "done"):
                    where = f"Its spec, trial {row.trial}: {row.setting}. All finished runs are kept."
                    remedy = "Remedy: change the spec, or leave out fail-fast to go on without it."
                    raise ExecutorError(f"run {row.hash} {row.status}: {row.message.rstrip('.')}. {where} {remedy}")

    def _count(self, rows: list[Row], tried_again: int) -> None:
        """Take these rows into the state; runs that are tried again were counted as failed before."""
        state, error = self.state, self.sweep.success_error
        if self.sweep.search is not None:
            ended = (row for row in rows if final(row.status))
            self.outcomes |= {row.hash: succeeded(row.status, row.best_test_error, error) for row in ended}
        self.state = replace(
            state,
            ran=state.ran + len(rows) - tried_again,
            successes=state.successes + sum(succeeded(row.status, row.best_test_error, error) for row in rows),
            diverged=state.diverged + sum(row.status == "diverged" for row in rows),
            failed=state.failed - tried_again + sum(row.status == "failed" for row in rows),
            seconds=time.perf_counter() - self.start,
            share=min(1.0, self.spent / self.plan.cost) if self.plan.cost else 1.0,
        )

    def end(self, rounds: SearchRounds) -> Progress:
        """A search is over, or needs failed runs first: its total is known, and how many runs the store had."""
        trained, successes = len(rounds.trained()), rounds.successes()
        already = trained - (self.state.ran - self.state.failed)
        self.state = replace(
            self.state, already=already, successes=successes, total=already + self.state.ran, share=1.0
        )
        self.progress(self.state)
        return self.state
