"""Carrying out a sweep: what is not in the store yet goes to an executor, and each batch is kept as it ends."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._errors import ExecutorError
from fewfire.engines import get_engine
from fewfire.experiments.executors import choose_executor
from fewfire.experiments.executors._batch import batches, cost
from fewfire.experiments.run._plan import Plan, make_plan
from fewfire.experiments.run._progress import Progress
from fewfire.experiments.store import SqliteStore, SweepRecord, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    opened: Any = SqliteStore(store, write=True) if isinstance(store, str | Path) else nullcontext(store)
    with opened as kept:
        chosen = get_engine(engine)
        plan = make_plan(sweep, kept)
        kept.record_sweep(SweepRecord(sweep.name, sweep.success_error, sweep.to_dict()))
        carrier = choose_executor(executor, chosen, plan.cost, workers)
        return _carry_out(sweep, plan, kept, chosen, carrier, keep_going, progress or (lambda state: None))


def _carry_out(
    sweep: Sweep,
    plan: Plan,
    store: Store,
    engine: Engine,
    executor: Executor,
    keep_going: bool,
    progress: Callable[[Progress], None],
) -> Progress:
    start, spent = time.perf_counter(), 0.0
    before = plan.total, plan.finished, 0, plan.successes, plan.diverged, 0
    state = Progress(*before, 0.0, 0.0, engine.name, executor.name)
    progress(state)
    if not len(plan.pending):
        return replace(state, share=1.0)
    costs: dict[str, float] = {}  # of the runs under way

    def missing() -> Iterator[RunSpec]:
        for number in plan.pending:
            spec = sweep.run_at(int(number))
            costs[spec.hash] = cost(spec)
            yield spec

    with closing(executor.run(batches(missing(), engine), engine.name)) as results:
        for rows in results:
            store.add(rows)
            spent += sum(costs.pop(row.hash) for row in rows)
            state = replace(
                state,
                ran=state.ran + len(rows),
                successes=state.successes
                + sum(succeeded(row.status, row.best_test_error, sweep.success_error) for row in rows),
                diverged=state.diverged + sum(row.status == "diverged" for row in rows),
                failed=state.failed + sum(row.status == "failed" for row in rows),
                seconds=time.perf_counter() - start,
                share=min(1.0, spent / plan.cost),
            )
            progress(state)
            if not keep_going:
                _refuse_failures(rows)
    return state


def _refuse_failures(rows: list[Row]) -> None:
    for row in rows:
        if row.status != "done":
            raise ExecutorError(
                f"run {row.hash} {row.status}: {row.message.rstrip('.')}. Its spec, trial {row.trial}: {row.setting}. "
                "All finished runs are kept. Remedy: change the spec, or leave out fail-fast to go on without it."
            )
