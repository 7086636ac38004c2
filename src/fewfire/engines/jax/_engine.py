"""The JAX engine: puts runs together that one compiled function trains, and trains batch after batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, get_args

from fewfire._errors import EngineUnavailable
from fewfire._optional import is_installed
from fewfire._progress import progress_callback
from fewfire._validate import check_choice
from fewfire.engines._result import OnDivergence
from fewfire.engines._run import check_float32

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from fewfire.engines._result import Result
    from fewfire.engines._run import Run
    from fewfire.engines.jax._steps import Precision

BATCH_BYTES = 1 << 30
"""Of drawn networks and examples in one batch of several runs."""


class JaxEngine:
    """Runs of one shape next to one another, compiled by JAX: the other engines' draws and updates, to rounding."""

    name: ClassVar[str] = "jax"
    precision: ClassVar[Precision] = "float32"
    draws_problems: ClassVar[frozenset[str]] = frozenset()
    draws_starts: ClassVar[frozenset[str]] = frozenset()
    # A minute or two of two cores: a function is compiled once per batch of another size.
    batch_cost: ClassVar = 4e12
    batch_runs: ClassVar = 1024
    side_by_side: ClassVar = True
    general: ClassVar = True

    def unusable(self) -> str | None:
        """None when JAX and Optax are installed."""
        missing = [package for package in ("JAX", "Optax") if not is_installed(package.lower())]
        return f"{missing[0]} is not installed. Remedy: pip install 'fewfire[jax]'." if missing else None

    def train(
        self,
        runs: Sequence[Run],
        *,
        keep_networks: bool = True,
        on_divergence: OnDivergence = "raise",
        progress: bool | Callable[[int, int], object] | None = None,
    ) -> list[Result]:
        """Train the runs; results come in the order of the runs, whatever order they end in."""
        notify = progress_callback(progress, "training") or (lambda done, total: None)
        check_choice("on_divergence", on_divergence, get_args(OnDivergence))
        check_float32(runs, self.name)
        reason = self.unusable()
        if reason is not None:
            raise EngineUnavailable(f"engine {self.name!r} cannot run here: {reason}")
        from fewfire.engines.jax._batch import RunBatch  # loads JAX

        results: dict[int, Result] = {}
        total, before = sum(run.schedule.steps for run in runs), 0
        for members in _batches(runs):

            def report(done: int, before: int = before) -> None:
                notify(before + done, total)

            batch = RunBatch([runs[index] for index in members], keep_networks, self)
            for number, result in batch.train(report):
                if result.divergence is not None and on_divergence == "raise":
                    raise result.divergence
                results[members[number]] = result
            before += sum(runs[index].schedule.steps for index in members)
            notify(before, total)
        return [results[index] for index in range(len(runs))]


class JaxTf32Engine(JaxEngine):
    """With products as the device takes them by default: tf32 on recent GPUs, float32 on processors."""

    name: ClassVar = "jax-tf32"
    precision: ClassVar = "tf32"


class JaxBf16Engine(JaxEngine):
    """With products of factors rounded to bfloat16; weights, sums and updates are float32."""

    name: ClassVar = "jax-bf16"
    precision: ClassVar = "bf16"


def _batches(runs: Sequence[Run]) -> Iterator[list[int]]:
    """The numbers of runs that train together."""
    groups: dict[Hashable, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(_shape(run), []).append(index)
    for members in groups.values():
        batch: list[int] = []
        used = 0
        for index in members:
            size = runs[index].array_bytes
            if batch and used + size > BATCH_BYTES:
                yield batch
                batch, used = [], 0
            batch.append(index)
            used += size
        yield batch


def _shape(run: Run) -> Hashable:
    """What runs of one batch have in common."""
    schedule = run.schedule
    rows = run.sample.rows if run.sample is not None else 0 if run.X is None else len(run.X)
    return (
        *(run.inputs, run.widths, run.outputs, run.source is None, run.X_test is None and run.test is None),
        *(
            schedule.optimiser,
            schedule.momentum,
            schedule.loss,
            schedule.sampling,
            schedule.evaluate,
            rows if schedule.sampling == "epochs" else None,
        ),
        *((phase.steps, phase.batch_size) for phase in schedule.phases),
    )
