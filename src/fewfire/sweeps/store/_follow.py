"""The runs of a store that a sweep is writing, read as they come.

Each look opens the file, reads what is new in one short transaction and closes it, so that a writer can close its
log at any time; a look at a file that has not changed since the last one is two calls of the system. Rows never
change, except that a failed run gives way to its next try: the failed rows that are known are looked up again, by
their ids, which SQLite may give away anew. Where the number of rows still differs from what is known, as after the file
was replaced by another, everything is read again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewfire.sweeps.store._row import COLUMNS, FINAL
from fewfire.sweeps.store._sqlite import SqliteStore, damaged

if TYPE_CHECKING:
    from fewfire._types import AnyArray
    from fewfire.sweeps.store._protocol import Setting, SweepRecord

AMONG = "id IN (SELECT value FROM json_each(?))"
"""The condition of having one of the ids in a JSON list; the number of parameters is bounded."""


class StoreFollower:
    """What is known of a store file, which must exist: its settings and sweeps in order of arrival; `look` reads on."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.settings: list[Setting] = []
        self.sweeps: list[SweepRecord] = []
        self._parts: dict[str, list[AnyArray]] = {}
        self._forget()
        self._seen: tuple[object, ...] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._parts["id"]))

    def look(self) -> bool:
        """Read what is new; whether anything is."""
        stamp = self._stamp()  # before the file is read: what is written meanwhile is for the next look
        if stamp == self._seen:
            return False
        if self._seen is not None and stamp[0] != self._seen[0]:
            self._forget()
        with SqliteStore(self.path) as store:
            changed = self._read_on(store)
        self._seen = stamp
        return changed

    def column(self, name: str) -> AnyArray:
        """One of `COLUMNS`, `id` or `finished` (seconds since 1970), shape (runs,), in order of arrival."""
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def _stamp(self) -> tuple[object, ...]:
        """Which file it is, and what changes when it or its log is written."""
        found: list[object] = []
        for path in (self.path, Path(f"{self.path.resolve()}-wal")):
            try:
                stat = path.stat()
            except OSError:
                found += [None, None]
            else:
                found += [stat.st_ino, (stat.st_size, stat.st_mtime_ns)]
        return tuple(found)

    def _forget(self) -> None:
        kinds = COLUMNS | {"id": np.int64, "finished": np.float64}
        self.settings.clear()
        self._parts = {name: [np.empty(0, dtype=kind)] for name, kind in kinds.items()}

    def _read_on(self, store: SqliteStore) -> bool:
        list(store._read("BEGIN"))  # one look is one transaction
        ids = self.column("id")
        changed = self._drop_replaced(store) if len(ids) else []
        newest = int(ids.max()) if len(ids) else 0
        added = self._add(store, "id > ?", (newest,))
        if changed:
            added += self._add(store, AMONG, (json.dumps(changed),))
        if len(self) != next(store._read("SELECT count(*) FROM runs"))[0]:
            self._forget()
            self._add(store, "id > ?", (0,))
        self.settings += store.settings(after=len(self.settings))
        before, self.sweeps = self.sweeps, store.sweeps()
        return bool(added or changed) or before != self.sweeps

    def _drop_replaced(self, store: SqliteStore) -> list[int]:
        """Forget the failed rows that are no longer what they were; gives their ids."""
        ids = self.column("id")
        open_ = np.flatnonzero(~np.isin(self.column("status"), FINAL))
        texts = zip(self.column("hash")[open_].tolist(), self.column("message")[open_].tolist(), strict=True)
        known = dict(zip(ids[open_].tolist(), texts, strict=True))
        query = f"SELECT id, hash, message FROM runs WHERE {AMONG} AND status NOT IN {FINAL}"
        for id, hash, message in store._read(query, (json.dumps(list(known)),)) if known else ():
            if known[id] == (hash, message):
                del known[id]
        if known:
            kept = ~np.isin(ids, list(known))
            self._parts = {name: [self.column(name)[kept]] for name in self._parts}
        return list(known)

    def _add(self, store: SqliteStore, where: str, parameters: tuple[int | str, ...]) -> int:
        """Read rows; gives their number."""
        query = f"SELECT {', '.join(COLUMNS)}, id, finished FROM runs WHERE {where} ORDER BY id"
        rows = list(store._read(query, parameters))
        if not rows:
            return 0
        found = store._columns(row[: len(COLUMNS)] for row in rows)
        try:
            times = np.array([row[-1].removesuffix("Z") for row in rows], dtype="datetime64[s]")
        except (AttributeError, TypeError, ValueError):
            raise damaged(self.path, "the time at which a run finished is no time") from None
        found |= {"id": np.array([row[-2] for row in rows]), "finished": times.astype(np.int64).astype(np.float64)}
        for name, values in found.items():
            self._parts[name].append(values)
        return len(rows)
