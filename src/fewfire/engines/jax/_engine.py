"""The JAX engine: puts runs together that one compiled function trains, and trains batch after batch."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar

from fewfire._errors import DeviceMemoryError
from fewfire._optional import is_installed
from fewfire.engines._base import OwnEngine, Trained

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterator, Sequence

    from fewfire.engines._run import Run
    from fewfire.engines.jax._steps import Precision

BATCH_BYTES = 1 << 30
"""Of one batch of several runs, on devices that do not report their memory."""


class JaxEngine(OwnEngine):
    """Runs of one shape next to one another, compiled by JAX: the other engines' draws and updates, to rounding."""

    name: ClassVar[str] = "jax"
    precision: ClassVar[Precision] = "float32"
    # A minute or two of two cores: a function is compiled once per batch of another size.
    batch_cost: ClassVar = 4e12
    batch_runs: ClassVar = 1024
    side_by_side: ClassVar = True
    general: ClassVar = True

    def unusable(self) -> str | None:
        """None when JAX and Optax are installed."""
        missing = [package for package in ("JAX", "Optax") if not is_installed(package.lower())]
        return f"{missing[0]} is not installed. Remedy: pip install 'fewfire[jax]'." if missing else None

    def _train(self, runs: Sequence[Run], keep_networks: bool, notify: Callable[[int], object]) -> Trained:
        from fewfire.engines.jax._batch import RunBatch, keep_compiled, out_of_memory, room  # loads JAX

        keep_compiled()
        ended, waiting = set[int](), deque(_batches(runs, room() or BATCH_BYTES))
        while waiting:
            members = waiting.popleft()
            before, full = sum(runs[index].schedule.steps for index in ended), ""

            def report(done: int, before: int = before) -> None:
                notify(before + done)

            try:
                for number, result in RunBatch([runs[index] for index in members], keep_networks, self).train(report):
                    ended.add(members[number])
                    yield members[number], result
            except Exception as error:
                if not out_of_memory(error):
                    raise
                full = str(error).splitlines()[0]
            if full:  # what the batch took is free again
                waiting.extendleft(reversed(_halves(members, ended, runs, full)))
        notify(sum(run.schedule.steps for run in runs))


class JaxTf32Engine(JaxEngine):
    """With products as the device takes them by default: tf32 on recent GPUs, float32 on processors."""

    name: ClassVar = "jax-tf32"
    precision: ClassVar = "tf32"


class JaxBf16Engine(JaxEngine):
    """With products of factors rounded to bfloat16; weights, sums and updates are float32."""

    name: ClassVar = "jax-bf16"
    precision: ClassVar = "bf16"


def _halves(members: list[int], done: Container[int], runs: Sequence[Run], full: str) -> list[list[int]]:
    """Two batches of what is left of one that found less memory than was planned; one run alone cannot be split."""
    left = [index for index in members if index not in done]
    if len(members) == 1:
        run = runs[left[0]]
        raise DeviceMemoryError(
            f"a run of {run.inputs} inputs and widths {run.widths} takes about {_bytes(run) / 2**30:.2f} GiB, for "
            f"which the device has no room ({full}). Remedy: use fewer examples, smaller batches or smaller widths."
        )
    middle = -(-len(left) // 2)
    return [part for part in (left[:middle], left[middle:]) if part]


def _bytes(run: Run) -> int:
    """What a run takes on the device, generously: weights, slopes, an optimiser's memory, examples, and one batch."""
    batch = max(phase.batch_size or run.rows for phase in run.schedule.phases)
    weights = run.products + run.width + run.outputs
    return 4 * (8 * weights + run.inputs * (run.rows + run.test_rows) + 4 * batch * (run.width + run.inputs))


def _batches(runs: Sequence[Run], room: int) -> Iterator[list[int]]:
    """The numbers of runs that train together: of one shape, in batches of one size within the room."""
    groups: dict[Hashable, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(_shape(run), []).append(index)
    for members in groups.values():
        fitting = max(1, room // max(_bytes(runs[index]) for index in members))
        size = -(-len(members) // -(-len(members) // fitting))
        for start in range(0, len(members), size):
            yield members[start : start + size]


def _shape(run: Run) -> Hashable:
    """What runs of one batch have in common."""
    schedule = run.schedule
    sizes = run.inputs, run.widths, run.outputs, run.source is None, run.X_test is None and run.test is None
    rule = schedule.optimiser, schedule.momentum, schedule.loss, schedule.sampling, schedule.evaluate
    rows = run.rows if schedule.sampling == "epochs" else None
    return *sizes, *rule, rows, *((phase.steps, phase.batch_size) for phase in schedule.phases)
