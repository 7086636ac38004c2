"""Carrying out a sweep: what is not in the store yet goes to an executor, and each batch is kept as it ends.

"auto" takes an engine with a device of its own where one is there and the work is worth it. Runs that the device has no
room for, even alone, are then trained by the engine that "auto" takes without one; rows say which it was.
"""

from __future__ import annotations

import time
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._errors import DeviceMemoryError, ExecutorError
from fewfire._validate import check_choice, check_integer
from fewfire.engines import ENGINES, DeviceEngine, get_engine
from fewfire.experiments.executors import DaskExecutor, DeviceExecutor, choose_executor
from fewfire.experiments.executors._batch import batches, cost
from fewfire.experiments.run._plan import Plan, in_device_order, make_plan, one_of_each_shape
from fewfire.experiments.run._progress import Progress
from fewfire.experiments.run._search import SearchRounds, outcomes_of
from fewfire.experiments.store import SqliteStore, SweepRecord, final, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire._types import IdArray
    from fewfire.engines import Engine
    from fewfire.experiments.executors import Executor
    from fewfire.experiments.spec import RunSpec, Sweep
    from fewfire.experiments.store import Row, Store


def execute(
    sweep: Sweep,
    store: Store | str | Path,
    *,
    engine: str = "auto",
    executor: str | Executor = "local",
    workers: int | None = None,
    keep_going: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Run what is missing; see `Sweep.run`."""
    check_choice("engine", engine, ("auto", *ENGINES))
    if workers is not None:
        check_integer("workers", workers, 1)
    choose_executor(executor, _engine_for(engine, executor, 0.0), 0.0, workers)  # refused before a store is made
    opened: Any = SqliteStore(store, write=True) if isinstance(store, str | Path) else nullcontext(store)
    with opened as kept:
        plan = make_plan(sweep, kept)
        chosen = _engine_for(engine, executor, plan.cost)
        kept.record_sweep(SweepRecord(sweep.name, sweep.success_error, sweep.to_dict()))
        carrier = choose_executor(executor, chosen, plan.cost, workers)
        going = _Going(sweep, plan, kept, chosen, carrier, keep_going, progress or (lambda state: None))

        def train(numbers: Sequence[int] | IdArray, executor: str | Executor, work: float) -> None:
            carrier = choose_executor(executor, chosen, work, workers)
            going.state = replace(going.state, executor=carrier.name)
            going.carry_out(chosen, carrier, in_device_order(sweep, numbers) if chosen.side_by_side else numbers)
            if engine == "auto" and going.refused:
                other = get_engine()
                work = sum(cost(sweep.run_at(i)) for i in going.refused)
                going.carry_out(other, choose_executor(executor, other, work, workers), list(going.refused))

        if sweep.search is None:
            train(plan.pending, executor, plan.cost)
            return going.state
        rounds = SearchRounds(sweep, outcomes_of(kept, sweep.success_error))
        with carrier.lasting(chosen.name) if isinstance(carrier, DaskExecutor) else nullcontext(executor) as lasting:
            while numbers := rounds.missing():
                going.expect(len(numbers))
                train(numbers, lasting, sum(cost(sweep.run_at(i)) for i in numbers))
                rounds.learn(going.outcomes)
                going.outcomes.clear()
        return going.end(rounds)


def _engine_for(engine: str, executor: str | Executor, work: float) -> Engine:
    """The engine by name; one that workers elsewhere have need not be able to run here."""
    elsewhere = "://" in executor if isinstance(executor, str) else isinstance(executor, DaskExecutor)
    return ENGINES[engine](None) if elsewhere and engine != "auto" else get_engine(engine, work=work)


class _Going:
    """A sweep under way.

    `refused` holds the numbers of runs that a device had no room for, `outcomes` whether final runs succeeded, by hash,
    where a search has to know.
    """

    def __init__(
        self,
        sweep: Sweep,
        plan: Plan,
        store: Store,
        engine: Engine,
        executor: Executor,
        keep_going: bool,
        progress: Callable[[Progress], None],
    ) -> None:
        self._sweep, self._plan, self._store, self._keep_going, self._progress = (
            sweep,
            plan,
            store,
            keep_going,
            progress,
        )
        self._start, self._spent = time.perf_counter(), 0.0
        self.refused: dict[int, None] = {}
        self.outcomes: dict[str, bool] = {}
        before = plan.total, plan.finished, 0, plan.successes, plan.diverged, 0
        share = 0.0 if len(plan.pending) else 1.0
        self.state = Progress(*before, 0.0, share, engine.name, executor.name)
        progress(self.state)

    def carry_out(self, engine: Engine, executor: Executor, numbers: Sequence[int] | IdArray) -> None:
        """Train these runs of the sweep and keep them."""
        if not len(numbers):
            return
        under_way: dict[str, tuple[int, float]] = {}  # number and cost by hash
        again = set(self.refused)
        self.refused.clear()

        def missing() -> Iterator[RunSpec]:
            for number in numbers:
                spec = self._sweep.run_at(int(number))
                under_way[spec.hash] = int(number), cost(spec)
                yield spec

        if isinstance(engine, DeviceEngine) and isinstance(executor, DeviceExecutor):
            engine.prepare([spec.describe() for spec in one_of_each_shape(self._sweep, numbers)])
        with closing(executor.run(batches(missing(), engine), engine.name)) as results:
            for rows in results:
                self._store.add(rows)
                for row in rows:
                    number, spent = under_way.pop(row.hash)
                    self._spent += 0.0 if number in again else spent
                    if row.message.startswith(DeviceMemoryError.__name__):
                        self.refused[number] = None
                self._count(rows, len(rows) if again else 0)
                self._progress(self.state)
                if not self._keep_going:
                    _refuse_failures(rows)

    def _count(self, rows: list[Row], tried_again: int) -> None:
        """Take these rows into the state; runs that are tried again were counted as failed before."""
        state, error = self.state, self._sweep.success_error
        if self._sweep.search is not None:
            ended = (row for row in rows if final(row.status))
            self.outcomes |= {row.hash: succeeded(row.status, row.best_test_error, error) for row in ended}
        self.state = replace(
            state,
            ran=state.ran + len(rows) - tried_again,
            successes=state.successes + sum(succeeded(row.status, row.best_test_error, error) for row in rows),
            diverged=state.diverged + sum(row.status == "diverged" for row in rows),
            failed=state.failed - tried_again + sum(row.status == "failed" for row in rows),
            seconds=time.perf_counter() - self._start,
            share=min(1.0, self._spent / self._plan.cost) if self._plan.cost else 1.0,
        )

    def expect(self, runs: int) -> None:
        """So many runs come now: the guess at the total of a search must not be below what is known."""
        self.state = replace(self.state, total=max(self.state.total, self.state.done + runs))

    def end(self, rounds: SearchRounds) -> Progress:
        """A search is over, or waits for failed runs: its total is known, and what it found in the store on the way."""
        trained, successes = len(rounds.trained()), rounds.successes()
        already = trained - (self.state.ran - self.state.failed)
        self.state = replace(
            self.state, already=already, successes=successes, total=already + self.state.ran, share=1.0
        )
        self._progress(self.state)
        return self.state


def _refuse_failures(rows: list[Row]) -> None:
    for row in rows:
        if row.status != "done":
            raise ExecutorError(
                f"run {row.hash} {row.status}: {row.message.rstrip('.')}. Its spec, trial {row.trial}: {row.setting}. "
                "All finished runs are kept. Remedy: change the spec, or leave out fail-fast to go on without it."
            )
