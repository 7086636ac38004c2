"""A store in memory: the obvious twin of the SQLite store, for notebooks and tests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import InvalidArgument, invalid
from fewfire.experiments.spec import canonical
from fewfire.experiments.store._flat import to_frame
from fewfire.experiments.store._protocol import Setting
from fewfire.experiments.store._row import COLUMNS, STATUSES, final
from fewfire.experiments.store._shown import store_card, store_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._types import AnyArray
    from fewfire.engines import History
    from fewfire.experiments.store._protocol import Measurement, SweepRecord
    from fewfire.experiments.store._row import Row


class MemoryStore:
    """Rows in a dictionary, gone with the process.

    Examples
    --------
    >>> from fewfire.experiments import MemoryStore
    >>> MemoryStore()
    MemoryStore(0 runs)
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._settings: dict[str, int] = {}
        self._sweeps: dict[str, SweepRecord] = {}
        self._measurements: dict[str, Measurement] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Keep these rows."""
        for row in rows:
            old = self._rows.get(row.hash)
            if old is None or not final(old.status):
                self._settings.setdefault(row.setting, len(self._settings) + 1)
                self._rows[row.hash] = row

    def finished(self) -> set[str]:
        """The hashes of runs that are final."""
        return {hash for hash, row in self._rows.items() if final(row.status)}

    def counts(self) -> dict[str, int]:
        """How many runs have each status."""
        found = Counter(row.status for row in self._rows.values())
        return {status: found[status] for status in STATUSES}

    def settings(self) -> list[Setting]:
        """Every cell, in order of arrival."""
        return [Setting(number, text) for text, number in self._settings.items()]

    def columns(self) -> dict[str, AnyArray]:
        """All rows without histories, one array per column."""
        rows = list(self.rows())
        values = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
        values["setting"] = [self._settings[row.setting] for row in rows]
        return {name: np.array(values[name], dtype=kind) for name, kind in COLUMNS.items()}

    def rows(self, setting: int | None = None) -> Iterator[Row]:
        """All rows, or those of one setting, sorted by hash."""
        for hash in sorted(self._rows):
            if setting is None or self._settings[self._rows[hash].setting] == setting:
                yield self._rows[hash]

    def to_frame(self) -> Any:
        """All runs as a pandas DataFrame, settings as flat columns; see `_flat`."""
        return to_frame(self)

    def __repr__(self) -> str:
        return store_text(self)

    def _repr_html_(self) -> str:
        return store_card(self)

    def history(self, hash: str) -> History:
        """The history of one run."""
        if hash not in self._rows:
            raise unknown_run(hash)
        return self._rows[hash].history

    def record_sweep(self, record: SweepRecord) -> None:
        """Note a spec that is run into this store."""
        self._sweeps[sweep_key(record)] = record

    def sweeps(self) -> list[SweepRecord]:
        """The specs that were run into this store."""
        return list(self._sweeps.values())

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        """Keep these."""
        for new in measurements:
            old = self._measurements.get(new.hash)
            if old is None or old.status == "failed":
                self._measurements[new.hash] = new

    def measurements(self) -> Iterator[Measurement]:
        """All measurements, sorted by hash."""
        return iter([self._measurements[hash] for hash in sorted(self._measurements)])

    def close(self) -> None:
        """Nothing to let go of."""

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def unknown_run(hash: str) -> InvalidArgument:
    """The error of asking for a run that is not there."""
    return invalid("hash", "must be that of a run in this store", hash, "take it from columns()['hash']")


def sweep_key(record: SweepRecord) -> str:
    """What makes two records the same sweep: the spec without its name and its success error."""
    return canonical({key: value for key, value in record.spec.items() if key not in ("name", "success_error")})
