"""The store in a file: SQLite with a write-ahead log, one transaction per batch of rows.

A process that is killed, or a machine that loses power, loses the rows that had not been handed over, and nothing else.
Readers never wait for the writer; there is one writer at a time (`WriterLock`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.spec import canonical
from fewfire.experiments.store._checks import are, run_hash, table_of
from fewfire.experiments.store._flat import to_frame
from fewfire.experiments.store._memory import sweep_key, unknown_run
from fewfire.experiments.store._protocol import Measurement, Setting, SweepRecord
from fewfire.experiments.store._row import COLUMNS, FINAL, STATUSES, Row, decode_history, encode_history
from fewfire.experiments.store._shown import store_card, store_text
from fewfire.experiments.store._sqlite_file import SqliteFile, damaged

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from fewfire._types import AnyArray
    from fewfire.engines import History

_REALS = tuple(name for name, kind in COLUMNS.items() if kind is np.float64)


class SqliteStore(SqliteFile):
    """A store file.

    Parameters
    ----------
    path : path of the file
    write : bool
        Whether rows may be added; the file is made when it does not exist. Otherwise it must exist, and nothing is
        changed, except that what a stopped writer left half done is undone: any number of readers may look on while a
        sweep runs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fewfire.experiments import SqliteStore
    >>> with TemporaryDirectory() as folder, SqliteStore(Path(folder) / "grid.sqlite", write=True) as store:
    ...     print(store.counts())
    {'done': 0, 'diverged': 0, 'failed': 0}
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self._setting_ids: dict[str, int] = {}
        self._environment_ids: dict[str, int] = {}
        super().__init__(path, write=write)

    def add(self, rows: Sequence[Row]) -> None:
        """Keep these rows, all or none."""
        with self._writing(f"The {len(rows)} newest runs were not kept; all others are.") as connection:
            for row in rows:
                connection.execute(f"DELETE FROM runs WHERE hash = ? AND status NOT IN {FINAL}", (row.hash,))
                values = {name: getattr(row, name) for name in COLUMNS} | {
                    "setting": self._setting_id(connection, row.setting),
                    "environment": self._environment_id(connection, row.environment),
                }
                names, marks = ", ".join(values), ", ".join("?" * len(values))
                statement = f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT (hash) DO NOTHING"
                done = connection.execute(statement, tuple(values.values()))
                if done.rowcount:
                    blobs = encode_history(row.history)
                    connection.execute("INSERT INTO histories VALUES (?, ?, ?)", (done.lastrowid, *blobs))

    def finished(self) -> set[str]:
        """The hashes of runs that are final: done or diverged."""
        found = {hash for (hash,) in self._read(f"SELECT hash FROM runs WHERE status IN {FINAL}")}
        self._check(are(found, np.str_), "a hash is no text")
        return found

    def counts(self) -> dict[str, int]:
        """How many runs have each status."""
        found = dict(self._read("SELECT status, count(*) FROM runs GROUP BY status"))
        self._check(found.keys() <= set(STATUSES), "a run has an unknown status")
        return {status: int(found.get(status, 0)) for status in STATUSES}

    def settings(self, after: int = 0) -> list[Setting]:
        """Every cell, in order of arrival; those after a number where one is given."""
        first = "FROM runs WHERE setting = settings.id ORDER BY id LIMIT 1"
        query = f"SELECT id, spec, (SELECT hash {first}), (SELECT trial {first}) FROM settings WHERE id > ? ORDER BY id"
        found = list(self._read(query, (after,)))
        numbers = list(range(after + 1, after + len(found) + 1))
        self._check([id for id, *_ in found] == numbers, "the settings are not 1, 2, 3, …")
        for _, spec, hash, trial in found:  # one run tells whether the text of its setting is what it was
            right = isinstance(spec, str) and (hash is None or run_hash(spec, trial) == hash)
            self._check(right, "the spec of a setting has changed")
        return [Setting(id, spec) for id, spec, *_ in found]

    def columns(self) -> dict[str, AnyArray]:
        """All rows without histories, one array per column, sorted by hash."""
        return self._columns(self._read(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY hash"))

    def _columns(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, AnyArray]:
        """Rows of the table, checked, as one array per column."""
        columns = dict(zip(COLUMNS, list(zip(*rows, strict=True)) or [()] * len(COLUMNS), strict=True))
        for name, kind in COLUMNS.items():
            self._check(are(columns[name], kind), f"a value of {name} has the wrong type")
        self._check(set(columns["status"]) <= set(STATUSES), "a run has an unknown status")
        known = {id for (id,) in self._read("SELECT id FROM settings")}
        self._check(set(columns["setting"]) <= known, "a run has no setting")
        # NULL is SQLite's NaN; numpy turns None into NaN where the type is a float.
        return {name: np.array(columns[name], dtype=kind) for name, kind in COLUMNS.items()}

    def rows(self, setting: int | None = None) -> Iterator[Row]:
        """All rows, or those of one setting, with histories, sorted by hash."""
        names = [name for name in COLUMNS if name != "setting"]
        query = (
            "SELECT settings.spec, environments.environment, histories.steps, curves, "
            + ", ".join(f"runs.{name}" for name in names)
            + " FROM runs LEFT JOIN settings ON settings.id = setting"
            " LEFT JOIN environments ON environments.id = runs.environment"
            " LEFT JOIN histories ON run = runs.id"
        )
        # Two queries, not one with "?1 IS NULL OR …", which would look at every row for one cell.
        query, wanted = (query, ()) if setting is None else (f"{query} WHERE setting = ?", (setting,))
        for spec, environment, steps, curves, *values in self._read(f"{query} ORDER BY hash", wanted):
            fields: dict[str, Any] = dict(zip(names, values, strict=True))
            for name, value in fields.items():
                self._check(are((value,), COLUMNS[name]), f"a value of {name} has the wrong type")
            self._check(are((spec, environment), np.str_), "a run has no setting or environment")
            self._check(fields["status"] in STATUSES, "a run has an unknown status")
            self._check(run_hash(spec, fields["trial"]) == fields["hash"], "the hash of a run is not that of its spec")
            fields |= {name: math.nan for name in _REALS if fields[name] is None}
            yield Row(setting=spec, environment=environment, history=decode_history(steps, curves), **fields)

    def to_frame(self) -> Any:
        """All runs as a pandas DataFrame, settings as flat columns; see `_flat`."""
        return to_frame(self)

    def history(self, hash: str) -> History:
        """The history of one run."""
        query = "SELECT histories.steps, curves FROM histories JOIN runs ON run = runs.id WHERE hash = ?"
        found = next(self._read(query, (hash,)), None)
        if found is None:
            raise unknown_run(hash)
        return decode_history(*found)

    def record_sweep(self, record: SweepRecord) -> None:
        """Note a spec that is run into this store; a spec noted before gets its new name and success error."""
        with self._writing("All runs are kept.") as connection:
            connection.execute(
                "INSERT INTO sweeps (spec, name, success_error) VALUES (?, ?, ?) ON CONFLICT (spec) "
                "DO UPDATE SET name = excluded.name, success_error = excluded.success_error",
                (sweep_key(record), record.name, record.success_error),
            )

    def sweeps(self) -> list[SweepRecord]:
        """The specs that were run into this store, oldest first."""
        found = []
        for name, error, spec in self._read("SELECT name, success_error, spec FROM sweeps ORDER BY id"):
            self._check(isinstance(name, str) and isinstance(error, float), "a sweep has no name or success error")
            self._check(0 <= error < math.inf, "the success error of a sweep is negative or infinite")
            table = table_of(spec, f"a sweep in {self.path}")
            found.append(SweepRecord(name, error, {**table, "name": name, "success_error": error}))
        return found

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        """Keep these, all or none."""
        with self._writing(f"The {len(measurements)} newest measurements were not kept; all others are.") as connection:
            for new in measurements:
                connection.execute("DELETE FROM measurements WHERE hash = ? AND status = 'failed'", (new.hash,))
                environment = self._environment_id(connection, new.environment)
                connection.execute(
                    "INSERT INTO measurements (hash, spec, status, error, seconds, message, environment) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING",
                    (new.hash, new.spec, new.status, new.error, new.seconds, new.message, environment),
                )

    def measurements(self) -> Iterator[Measurement]:
        """All measurements, sorted by hash; a file of the first version has none."""
        if next(self._read("SELECT count(*) FROM sqlite_master WHERE name = 'measurements'"))[0]:
            for hash, spec, status, error, seconds, message, environment in self._read(
                "SELECT hash, spec, status, error, seconds, message, environments.environment FROM measurements "
                "LEFT JOIN environments ON environments.id = measurements.environment ORDER BY hash"
            ):
                right = are((spec, message, environment), np.str_) and are((error,), np.float64)
                right = right and isinstance(seconds, float) and status in ("done", "failed")
                self._check(right, "a value of a measurement has the wrong type")
                found = Measurement(spec, status, math.nan if error is None else error, seconds, message, environment)
                self._check(found.hash == hash, "the hash of a measurement is not that of its spec")
                yield found

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return store_text(self, self.path)

    def _repr_html_(self) -> str:
        return store_card(self, self.path)

    def _check(self, right: bool, what: str) -> None:
        if not right:
            raise damaged(self.path, what)

    def _undone(self) -> None:
        self._setting_ids.clear()
        self._environment_ids.clear()

    def _setting_id(self, connection: sqlite3.Connection, text: str) -> int:
        if text not in self._setting_ids:
            setting = Setting(0, text)  # its number is not known yet
            connection.execute(
                "INSERT INTO settings (spec, problem, start, width, samples, test_samples, training) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (spec) DO NOTHING",
                (
                    text,
                    canonical(setting.problem),
                    canonical(setting.start),
                    setting.width,
                    setting.samples,
                    setting.spec["data"]["test_samples"],
                    canonical(setting.training),
                ),
            )
            found = connection.execute("SELECT id FROM settings WHERE spec = ?", (text,))
            self._setting_ids[text] = found.fetchone()[0]
        return self._setting_ids[text]

    def _environment_id(self, connection: sqlite3.Connection, text: str) -> int:
        if text not in self._environment_ids:
            connection.execute("INSERT INTO environments (environment) VALUES (?) ON CONFLICT DO NOTHING", (text,))
            found = connection.execute("SELECT id FROM environments WHERE environment = ?", (text,))
            self._environment_ids[text] = found.fetchone()[0]
        return self._environment_ids[text]
