"""What thousands of runs of a sweep share, worked out once: schedules as tables, sources as descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fewfire._types import AnyArray
from fewfire.engines._run import Schedule, Source, describe
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._layouts import BATCH


class Same:
    """An object as a key: equal only to itself, because schedules and problems may hold what cannot be hashed."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.of is other.of


def description_of(source: Source) -> tuple[dict[str, Any] | None, str]:
    """The description of a source, and that as a text: made once per object."""
    return _description(Same(source))


@lru_cache(maxsize=1024)
def _description(same: Same) -> tuple[dict[str, Any] | None, str]:
    description = describe(same.of)
    return description, repr(description)


@dataclass(frozen=True, eq=False)
class ScheduleTables:
    """A schedule as the kernels read it.

    Parameters
    ----------
    checkpoints : int32 array of shape (checks,)
    segments : array of SEGMENT records, one per phase
    rates : float32 array of shape (rows, 12)
        Learning rate, 1 − decay and truncation, each of hidden, bias, output and offset.
    positions : int
        How many examples a run draws, those of full batches not counted.
    fast : bool
        Whether tensor cores can follow it: batches of 32, no truncation, and for the hidden layer, by whose rate and
        decay the kernels divide, a rate that is not 0 and a factor between 1/2 and 1.
    """

    checkpoints: AnyArray
    segments: AnyArray
    rates: AnyArray
    positions: int
    fast: bool

    @classmethod
    def of(cls, schedule: Schedule) -> ScheduleTables:
        """The tables of a schedule; the same object for the same schedule, as long as it is among the last used."""
        return _tables(Same(schedule))

    @property
    def nbytes(self) -> tuple[int, int, int]:
        """Bytes of each array."""
        return self.checkpoints.nbytes, self.segments.nbytes, self.rates.nbytes


@lru_cache(maxsize=1024)
def _tables(same: Same) -> ScheduleTables:
    schedule, segments, tables, row, fast = same.of, [], [], 0, True
    for phase in schedule.phases:
        rates, keeps, truncations = phase.tables()
        table = np.concatenate([rates, keeps, truncations], axis=1).astype(np.float32)
        segments.append((phase.steps, phase.batch_size or 0, row, int(len(table) > 1)))
        tables.append(table)
        row += len(table)
        fast &= phase.batch_size == BATCH and not truncations.any() and bool((rates[:, 0] != 0).all())
        fast &= bool(((keeps[:, 0] >= 0.5) & (keeps[:, 0] <= 1)).all())
    return ScheduleTables(
        np.array(schedule.checkpoints(), np.int32),
        np.array(segments, records.SEGMENT),
        np.concatenate(tables),
        sum(phase.steps * (phase.batch_size or 0) for phase in schedule.phases),
        fast,
    )
