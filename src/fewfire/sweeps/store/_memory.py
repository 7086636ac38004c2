"""A store in memory: the reference implementation, for notebooks and tests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from fewfire.sweeps.store._protocol import Setting, StoreBase, unknown_run
from fewfire.sweeps.store._row import COLUMNS, STATUSES, final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._types import AnyArray
    from fewfire.engines import History
    from fewfire.sweeps.store._protocol import Measurement, SweepRecord
    from fewfire.sweeps.store._row import Row


class MemoryStore(StoreBase):
    """Rows in a dictionary, gone with the process.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore
    >>> MemoryStore()
    MemoryStore(0 runs)
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._settings: dict[str, int] = {}
        self._sweeps: dict[str, SweepRecord] = {}
        self._measurements: dict[str, Measurement] = {}

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            old = self._rows.get(row.hash)
            if old is None or not final(old.status):
                self._settings.setdefault(row.setting, len(self._settings) + 1)
                self._rows[row.hash] = row

    def finished(self) -> set[str]:
        return {hash for hash, row in self._rows.items() if final(row.status)}

    def counts(self) -> dict[str, int]:
        found = Counter(row.status for row in self._rows.values())
        return {status: found[status] for status in STATUSES}

    def settings(self) -> list[Setting]:
        return [Setting(number, text) for text, number in self._settings.items()]

    def columns(self) -> dict[str, AnyArray]:
        rows = list(self.rows())
        values = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
        values["setting"] = [self._settings[row.setting] for row in rows]
        return {name: np.array(values[name], dtype=kind) for name, kind in COLUMNS.items()}

    def rows(self, setting: int | None = None) -> Iterator[Row]:
        for hash in sorted(self._rows):
            if setting is None or self._settings[self._rows[hash].setting] == setting:
                yield self._rows[hash]

    def history(self, hash: str) -> History:
        if hash not in self._rows:
            raise unknown_run(hash)
        return self._rows[hash].history

    def record_sweep(self, record: SweepRecord) -> None:
        self._sweeps[record.key] = record

    def sweeps(self) -> list[SweepRecord]:
        return list(self._sweeps.values())

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        for new in measurements:
            old = self._measurements.get(new.hash)
            if old is None or old.status == "failed":
                self._measurements[new.hash] = new

    def measurements(self) -> Iterator[Measurement]:
        return iter([self._measurements[hash] for hash in sorted(self._measurements)])

    def close(self) -> None:
        """Nothing to let go of."""
