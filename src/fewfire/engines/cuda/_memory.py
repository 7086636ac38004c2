"""What batches take on the device, worked out before anything is allocated.

A run takes its weights, examples, tables and records; each of the runs that train side by side takes a mailbox and,
where weights stream or the general kernel serves, space of its own. Runs of one variant are put together until a share
of the memory is full. Three batches are there at a time: those that train, end or are prepared; hence the share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fewfire._cuda._device import Device
from fewfire._cuda._launch import order_bytes, rounded
from fewfire._errors import DeviceMemoryError
from fewfire.engines._run import Run, Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import general_groups, group_bytes, run_bytes
from fewfire.engines.cuda._kernels import KernelVariant, draws, draws_start, variant_of
from fewfire.engines.cuda._shared import ScheduleTables

SHARE = 0.3
"""Of the free memory, for one batch of several runs."""

ALONE = 0.9
"""Of the free memory, for a run that is alone."""

MOST_RUNS = 1 << 16
"""Of one batch."""

HOST_BYTES = 4 << 30
"""Of examples that only the host can draw, for one batch."""

MANY_ROWS = 1 << 62
"""How many an online run seems to have."""

_SLACK = 64 << 10


@dataclass(frozen=True)
class MemoryPlan:
    """A batch before it is made.

    Parameters
    ----------
    members : tuple of int
        Indices of its runs among those that were asked for, the longest trainings first.
    variant : KernelVariant
    at_once : int
        Runs that train side by side; the others wait for their turn on the device.
    nbytes : int
        An upper bound of what it takes there.
    """

    members: tuple[int, ...]
    variant: KernelVariant
    at_once: int
    nbytes: int

    def halves(self) -> tuple[MemoryPlan, MemoryPlan]:
        """Two batches with every other run each, so that both have long and short ones."""
        parts = self.members[::2], self.members[1::2]
        first, second = (
            replace(self, members=part, at_once=min(self.at_once, len(part)), nbytes=self.nbytes // 2) for part in parts
        )
        return first, second


def plan_batches(runs: Sequence[Run], device: Device) -> Iterator[MemoryPlan]:
    """Batches of runs of one variant that fit into the device's memory; a run that never fits is refused.

    Raises
    ------
    DeviceMemoryError
        Before the first batch is given.
    """
    groups: dict[KernelVariant, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(variant_of(run, device), []).append(index)
    sizes = [0] * len(runs)
    for variant, members in groups.items():
        for index in members:
            sizes[index] = planned_bytes(runs[index], variant)
            alone = sizes[index] + _side_by_side([runs[index]], variant, device)[1]
            if alone > ALONE * device.memory:
                raise too_large(runs[index], alone, device)
    for variant, members in groups.items():
        members.sort(key=lambda index: (*_turn(runs[index]), index))
        yield from _cut(runs, sizes, members, variant, device)


def _turn(run: Run) -> tuple[int, int]:
    """When a run's turn comes: first those that take longest, and of them those that see few examples.

    The latter rarely learn, so they rarely stop early; the short ones then fill the gaps at the end.
    """
    return -run.schedule.steps * run.width, run.rows or MANY_ROWS


def _cut(
    runs: Sequence[Run], sizes: Sequence[int], members: Sequence[int], variant: KernelVariant, device: Device
) -> Iterator[MemoryPlan]:
    """The members in batches, in order; what groups of blocks take is that of the widest."""
    at_once, shared = _side_by_side([runs[index] for index in members], variant, device)
    chosen: list[int] = []
    used, drawn, room = 0, 0, int(SHARE * device.memory) - shared
    for index in members:
        own = host_bytes(runs[index])
        full = used + sizes[index] > room or len(chosen) == MOST_RUNS or drawn + own > HOST_BYTES
        if chosen and full:
            yield MemoryPlan(tuple(chosen), variant, min(at_once, len(chosen)), used + shared)
            chosen, used, drawn = [], 0, 0
        chosen.append(index)
        used += sizes[index]
        drawn += own
    yield MemoryPlan(tuple(chosen), variant, min(at_once, len(chosen)), used + shared)


def planned_bytes(run: Run, variant: KernelVariant) -> int:
    """An upper bound of what a run takes on the device, with the examples that the host will draw for it."""
    size = run_bytes(run, variant.layout)
    if run.source is not None and not draws(run.source):
        positions = ScheduleTables.of(run.schedule).positions
        size += rounded(4 * positions * run.inputs) + 2 * rounded(4 * positions)  # rows, labels, order
    for sample in (run.sample, run.test):
        if sample is not None and not draws(sample.problem):
            size += rounded(4 * sample.rows * run.inputs)  # they may be real
    return size


def host_bytes(run: Run) -> int:
    """Bytes of a run's examples and weights that only the host can draw."""
    rows = sum(sample.rows for sample in (run.sample, run.test) if sample is not None and not draws(sample.problem))
    if run.source is not None and not draws(run.source):
        rows += ScheduleTables.of(run.schedule).positions
    weights = 0 if not isinstance(run.network, Start) or draws_start(run.network) else run.width * (run.inputs + 2)
    return 4 * (rows * run.inputs + weights)


def _side_by_side(runs: Sequence[Run], variant: KernelVariant, device: Device) -> tuple[int, int]:
    """How many runs train side by side, and what that takes besides the runs' own."""
    layout = variant.layout
    mailbox = 512 * layout.parts + 128 if layout.fast else records.SCRATCH.itemsize
    space = mailbox + group_bytes(runs, layout)
    at_once = layout.at_once(device) if layout.fast else general_groups(device, space)
    at_once = min(at_once, len(runs))
    by_epochs = [run for run in runs if run.source is None and run.schedule.sampling == "epochs"]
    rows = max((run.rows for run in by_epochs), default=0)
    return at_once, at_once * space + (order_bytes(rows) if by_epochs else 0) + _SLACK


def too_large(run: Run, needed: int, device: Device) -> DeviceMemoryError:
    """The error of a run that the device has no room for, even alone."""
    return DeviceMemoryError(
        f"a run of {run.inputs} inputs and width {run.width} takes {needed / 2**30:.2f} GiB on {device.name}, of which "
        f"{device.memory / 2**30:.2f} GiB are free. Remedy: use fewer examples or a smaller width, or engine='cpu'."
    )
