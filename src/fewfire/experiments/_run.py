"""One run is a pure function of its spec: spec → engine run → row, whatever else is in the batch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from fewfire._errors import EngineUnavailable
from fewfire.engines import Run
from fewfire.experiments.store import Row, environment_text, failed_row, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.engines import Engine
    from fewfire.experiments._run_spec import RunSpec


def build(spec: RunSpec) -> Run:
    """The engine's run: data, test data and initial weights drawn from the run's own streams."""
    problem = spec.problem
    network = spec.start(problem.inputs, spec.width, spec.stream("init"))
    X_test, y_test = problem.sample(spec.test_samples, spec.stream("test"))
    data: dict[str, Any] = {"source": problem}
    if spec.samples is not None:
        X, y = problem.sample(spec.samples, spec.stream("data"))
        data = {"X": X, "y": y}
    support = getattr(problem, "support", None)
    return Run(
        network, spec.schedule, X_test=X_test, y_test=y_test, seed=spec.stream("batches"), support=support, **data
    )


def run_batch(specs: Sequence[RunSpec], engine: Engine) -> list[Row]:
    """The rows of these runs, in their order; a run that raises an error becomes a failed row of its own.

    The reference engine's matrix products are kept on one thread, because their rounding may depend on it.
    """
    alone = threadpool_limits(1) if engine.name == "reference" else nullcontext()
    with alone:
        rows: dict[str, Row] = {}
        good: list[tuple[RunSpec, Run]] = []
        for spec in specs:
            try:
                good.append((spec, build(spec)))
            except Exception as error:
                rows[spec.hash] = failed_row(spec, error, engine.name, environment_text())
        rows |= {row.hash: row for row in _train(good, engine)}
        return [rows[spec.hash] for spec in specs]


def _train(pairs: list[tuple[RunSpec, Run]], engine: Engine) -> list[Row]:
    try:
        results = engine.train([run for _, run in pairs], on_divergence="record")
    except EngineUnavailable:
        raise  # no run's fault: every other one would end the same way
    except Exception as error:
        if len(pairs) > 1:  # find out whose fault it was
            return [row for pair in pairs for row in _train([pair], engine)]
        return [failed_row(pairs[0][0], error, engine.name, environment_text())]
    return [row_of(spec, result, environment_text()) for (spec, _), result in zip(pairs, results, strict=True)]
