"""The CUDA engine: sorts runs by what serves them, plans memory, and turns what the device measured into results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fewfire._cuda import current_device, missing
from fewfire._errors import invalid
from fewfire._validate import check_choice
from fewfire.engines._result import MEASURED_ROWS, Counters, History, Result, divergence
from fewfire.engines._run import Run, Start, describe
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import Batch, KernelVariant, Walked, run_bytes
from fewfire.engines.cuda._layouts import GENERAL, choose_layout
from fewfire.engines.cuda._schedules import ScheduleTables
from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire._cuda import Device
    from fewfire._types import AnyArray
    from fewfire.engines._protocol import OnDivergence
    from fewfire.engines._result import Stopped

_MEMORY_SHARE = 0.8  # of what is free
_MOST_RUNS = 1 << 16  # of one batch


class CudaEngine:
    """Whole trainings inside kernels on one NVIDIA GPU: the other engines' draws and updates, exact to rounding."""

    name: ClassVar = "cuda"
    draws_problems: ClassVar[frozenset[str]] = frozenset(records.PROBLEMS)
    draws_starts: ClassVar[frozenset[str]] = frozenset({"dense", "sparse"})
    # Some seconds of a large GPU, and enough runs to fill it with the smallest layout several times over.
    batch_cost: ClassVar = 2e14
    batch_runs: ClassVar = 8192
    side_by_side: ClassVar = True

    def unusable(self) -> str | None:
        """What is missing here, with the remedy; None when the engine can run."""
        return missing()

    def train(
        self,
        runs: Sequence[Run],
        *,
        keep_networks: bool = True,
        on_divergence: OnDivergence = "raise",
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Result]:
        """Train the runs; results come in the order of the runs, whatever order they end in."""
        check_choice("on_divergence", on_divergence, ("raise", "record"))
        for run in runs:
            if isinstance(run.network, TwoLayer) and run.network.dtype != np.float32:
                rule, got = "must be float32 for the cuda engine", f"dtype {run.network.dtype}"
                raise invalid("network", rule, got, "use the reference engine, or cast the weights")
        device = current_device()
        total, before = sum(run.schedule.steps for run in runs), 0
        results: dict[int, Result] = {}
        for chosen, variant in _batches(runs, device):
            own = [_drawable(runs[index]) for index in chosen]
            steps = sum(run.schedule.steps for run in own)

            def report(done: int, before: int = before, steps: int = steps) -> None:
                if progress is not None:
                    progress(before + min(done, steps), total)

            batch = Batch(own, variant)
            batch.train(report)
            outcomes = batch.outcomes()
            for place, index in enumerate(chosen):
                results[index] = _result(batch, place, outcomes[place], keep_networks)
                if results[index].divergence is not None and on_divergence == "raise":
                    raise results[index].divergence  # type: ignore[misc]
            before += steps
            report(0, before, 0)
        return [results[index] for index in range(len(runs))]


def variant_of(run: Run, device: Device) -> KernelVariant:
    """What a run is served by."""
    schedule, network = run.schedule, run.network
    plain = _draws_start(network) if isinstance(network, Start) else network.activation.name == "relu"
    sources = [run.source, *(sample.problem for sample in (run.sample, run.test) if sample is not None)]
    plain = plain and all(source is None or _draws(source) for source in sources)
    signs = all(
        table is None or (table.dtype == np.int8 and bool(np.all(np.abs(table) == 1)) and bool(np.all(np.abs(y) == 1)))
        for table, y in ((run.X, run.y), (run.X_test, run.y_test))
        if y is not None
    )
    fast = ScheduleTables.of(schedule).fast and schedule.loss in ("hinge", "absolute", "logistic")
    if not (plain and signs and fast):
        return KernelVariant(GENERAL)
    layout = choose_layout(run.inputs, run.width, device)
    return KernelVariant(layout, schedule.loss, run.source is not None) if layout.fast else KernelVariant(GENERAL)


def _drawable(run: Run) -> Run:
    """The run with everything drawn here that the device cannot draw."""
    network = run.network
    if isinstance(network, Start) and not _draws_start(network):
        run = replace(run, network=network.draw())
    if any(sample is not None and not _draws(sample.problem) for sample in (run.sample, run.test)):
        run = run.drawn()
    if run.source is not None and not _draws(run.source):
        # A source that only the host can draw becomes the training set that its steps walk through once.
        X, y = run.source.sample(ScheduleTables.of(run.schedule).positions, run.stream.child("online"))
        run = Walked(
            run.network, run.schedule, X, y, run.X_test, run.y_test, test=run.test, seed=run.seed, support=run.support
        )
    return run


def _draws(source: object) -> bool:
    told = describe(source)  # type: ignore[arg-type]
    return told is not None and told.get("name") in records.PROBLEMS


def _draws_start(start: Start) -> bool:
    if start.init.name == "sparse":
        ones = start.init.parameters()["s"]
        return isinstance(ones, int) and ones <= min(records.MOST_ONES, start.inputs)
    return start.init.name == "dense"


def _batches(runs: Sequence[Run], device: Device) -> Iterator[tuple[list[int], KernelVariant]]:
    """Runs of one variant that fit into memory together; the longest trainings first."""
    groups: dict[KernelVariant, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(variant_of(run, device), []).append(index)
    for variant, members in groups.items():
        members.sort(key=lambda index: (-runs[index].schedule.steps * runs[index].width, index))
        chosen: list[int] = []
        held, room = 0, int(_MEMORY_SHARE * device.memory)
        for index in members:
            size = run_bytes(runs[index], variant.layout)
            if chosen and (held + size > room or len(chosen) == _MOST_RUNS):
                yield chosen, variant
                chosen, held = [], 0
            chosen.append(index)
            held += size
        yield chosen, variant


def _result(batch: Batch, place: int, outcome: AnyArray, keep_network: bool) -> Result:
    """What a run ended with; a diverged run gives back its initial network."""
    run, stopped = batch.runs[place], records.STOPPED[int(outcome["stopped"])]
    diverged = stopped == "diverged"
    error = divergence(int(outcome["steps"]), float(outcome["rate"])) if diverged else None
    network: TwoLayer | None = None
    if keep_network and diverged:
        network = run.network.draw() if isinstance(run.network, Start) else run.network
    elif keep_network:
        network = batch.network(place)
    steps = int(outcome["steps"]) - diverged
    kind: Stopped = "diverged" if diverged else "test_error" if stopped == "test_error" else "steps"
    counters = _counters(run, steps, int(outcome["active_pairs"]))
    return Result(network, _history(batch, place, int(outcome["records"])), counters, kind, CudaEngine.name, error)


def _counters(run: Run, steps: int, active_pairs: int) -> Counters:
    examples, left = 0, steps
    for phase in run.schedule.phases:
        size = phase.batch_size or (run.sample.rows if run.sample is not None else len(run.X))  # type: ignore[arg-type]
        examples += min(left, phase.steps) * size
        left -= min(left, phase.steps)
    return Counters(steps, examples, active_pairs, 2 * examples * run.width * (run.inputs + 1))


def _history(batch: Batch, place: int, count: int) -> History:
    run, table = batch.runs[place], batch.checkpoints(place, count)
    loss, error, test_error, hidden, output, mass, inside, fired = table.T
    rows = min(run.sample.rows if run.sample is not None else len(run.X) if run.X is not None else 0, MEASURED_ROWS)
    none = np.full(count, np.nan)
    active = fired / (rows * run.width) if rows and not isinstance(run, Walked) else none
    with np.errstate(invalid="ignore"):
        share = none if run.support is None else np.where(mass > 0, inside / mass, np.nan)
    steps = ScheduleTables.of(run.schedule).checkpoints[:count].astype(np.float64)
    columns = (steps, loss, error, test_error, np.sqrt(hidden), np.sqrt(output), active, share)
    return History.of(np.stack(columns, axis=1).tolist())
