"""Several stores in one: runs are keyed by their hash, so what two stores both have is kept once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from fewfire.sweeps.store._row import final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire.sweeps.store._protocol import Store, SweepRecord
    from fewfire.sweeps.store._row import Row

CHUNK = 1000  # rows of one transaction


@dataclass(frozen=True)
class Merged:
    """What a merge did with the runs and sweeps of the stores that it added.

    `new` runs are those that the target did not have. Of finished runs that both had, `same` are equal bit for bit, and
    `rounded` differ, trained by another engine or with another arithmetic: another `ARITHMETIC` revision, or for
    anything but the cpu engine on ±1 inputs another environment. Last digits differ then, and after many steps the
    rest. `contradicting` are the hashes of those that differ although engine and arithmetic are the same: a store was
    changed, or a machine computes wrongly. `sweeps` are those that both had under other names or success errors: the
    one kept, and the other.
    """

    new: int
    same: int
    rounded: int
    contradicting: tuple[str, ...]
    sweeps: tuple[tuple[SweepRecord, SweepRecord], ...]


def merge(target: Store, sources: Iterable[Store]) -> Merged:
    """Add the runs, sweeps and measurements of other stores to one.

    What is there already stays as it is, but for failed runs, which a finished one replaces; notes and tags of a sweep
    that both have are joined.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, merge
    >>> merge(MemoryStore(), [MemoryStore(), MemoryStore()])
    Merged(new=0, same=0, rounded=0, contradicting=(), sweeps=())
    """
    before = set(target.columns()["hash"].tolist())
    same, rounded = 0, 0
    contradicting: list[str] = []
    sweeps: list[tuple[SweepRecord, SweepRecord]] = []
    for source in sources:
        shared = target.finished() & source.finished()
        kept = {row.hash: _identity(row) for row in target.rows() if row.hash in shared} if shared else {}
        rows = source.rows()
        while chunk := list(islice(rows, CHUNK)):
            for row in chunk:
                if row.hash in kept:
                    (outcome, arithmetic), (theirs, other) = kept[row.hash], _identity(row)
                    same += outcome == theirs
                    rounded += outcome != theirs and arithmetic != other
                    if outcome != theirs and arithmetic == other:
                        contradicting.append(row.hash)
            target.add([row for row in chunk if final(row.status) or row.hash not in before])
        known = {record.key: record for record in target.sweeps()}
        for record in source.sweeps():
            mine = known.get(record.key)
            if mine is None or mine.joined(record) != mine:
                target.record_sweep(mine.joined(record) if mine else record)
            if mine and (mine.name, mine.success_error) != (record.name, record.success_error):
                sweeps.append((mine, record))
        target.add_measurements(list(source.measurements()))
    new = len(set(target.columns()["hash"].tolist()) - before)
    return Merged(new, same, rounded, tuple(dict.fromkeys(contradicting)), tuple(sweeps))


def _identity(row: Row) -> tuple[bytes, tuple[object, ...]]:
    """A digest of everything that was computed, and the arithmetic that decides its bits."""
    from fewfire.problems._base import PROBLEMS, SignProblem

    outcome = hashlib.blake2b(repr(row.outcome()).encode(), digest_size=16).digest()
    problem = json.loads(row.setting)["problem"]["name"]
    if row.engine == "cpu" and problem in PROBLEMS and issubclass(PROBLEMS[problem], SignProblem):
        return outcome, (row.engine, json.loads(row.environment).get("arithmetic", 1))
    return outcome, (row.engine, row.environment)
