"""Several stores in one: runs are keyed by their hash, so what two stores both have is kept once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from fewfire.experiments.store._row import final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire.experiments.store._protocol import Store

CHUNK = 1000
"""Rows of one transaction."""


def merge(target: Store, sources: Iterable[Store]) -> int:
    """Add the runs, sweeps and measurements of other stores to one; gives the number of runs that were new to it.

    Rows that are there already stay as they are, but for failed ones, which a finished one replaces.

    Examples
    --------
    >>> from fewfire.experiments import MemoryStore, merge
    >>> merge(MemoryStore(), [MemoryStore(), MemoryStore()])
    0
    """
    before = set(target.columns()["hash"].tolist())
    for source in sources:
        rows = source.rows()
        while chunk := list(islice(rows, CHUNK)):
            target.add([row for row in chunk if final(row.status) or row.hash not in before])
        for record in source.sweeps():
            target.record_sweep(record)
        target.add_measurements(list(source.measurements()))
    return len(set(target.columns()["hash"].tolist()) - before)
