"""Where results are kept: the protocol that every store follows, and the records it deals in.

Rows are keyed by the hash of the run. Adding a run that is there already changes nothing, unless the old row is that
of a failed run, which the new one replaces; so a sweep can be stopped, repeated and extended at will.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fewfire.experiments.spec import text_hash
from fewfire.experiments.store._checks import setting_table, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._types import AnyArray
    from fewfire.engines import History
    from fewfire.experiments.store._row import Row


@dataclass(frozen=True)
class Setting:
    """One cell of a grid: what its runs share.

    Parameters
    ----------
    id : int
        Its number in this store, from 1 in order of arrival.
    text : str
        Canonical JSON: the spec of its runs without the trial.
    """

    id: int
    text: str

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The nested tables `data`, `network`, `problem`, `training`, and `version`."""
        return setting_table(self.text)

    @property
    def problem(self) -> dict[str, Any]:
        """The name and the fields of the problem."""
        return dict(self.spec["problem"])

    @property
    def start(self) -> dict[str, Any]:
        """The name and the parameters of the initialiser."""
        return dict(self.spec["network"]["start"])

    @property
    def width(self) -> int:
        """The number of hidden neurons."""
        return int(self.spec["network"]["width"])

    @property
    def samples(self) -> int | None:
        """The size of the training set; None is online."""
        samples = self.spec["data"]["samples"]
        return None if samples == "online" else int(samples)

    @property
    def training(self) -> dict[str, Any]:
        """The schedule."""
        return dict(self.spec["training"])


@dataclass(frozen=True)
class SweepRecord:
    """A spec that was run into a store: its name, the error that counts as success, and the spec itself."""

    name: str
    success_error: float
    spec: dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One measured error of one model on one task: what a store keeps of experiments that are no sweep of networks.

    It is keyed by the hash of its spec, as a run is; the spec is any JSON table. "failed" ones are made again by
    whoever needs them.

    Parameters
    ----------
    spec : str
        Canonical JSON of everything the error depends on.
    status : "done" or "failed"
    error : float
        NaN for a failed one.
    seconds : float
        Processor time of training.
    message : str
        Why it failed; what else was measured, as JSON, or nothing otherwise.
    environment : str
        JSON of the versions and the machine; see `environment_text`.
    """

    spec: str
    status: str
    error: float
    seconds: float
    message: str
    environment: str

    @cached_property
    def hash(self) -> str:
        """128 bits of the BLAKE2b hash of the spec, in hexadecimal."""
        return text_hash(self.spec)

    @cached_property
    def table(self) -> dict[str, Any]:
        """The spec as a table."""
        return table_of(self.spec, "the spec of a measurement")


@runtime_checkable
class Store(Protocol):
    """Rows of finished runs, keyed by hash. Use as a context manager, or call `close`."""

    def add(self, rows: Sequence[Row]) -> None:
        """Keep these rows, all or none; rows that are there already stay as they are, failed ones are replaced."""

    def finished(self) -> set[str]:
        """The hashes of runs that are final: done or diverged."""

    def counts(self) -> dict[str, int]:
        """How many runs have each status."""

    def settings(self) -> list[Setting]:
        """Every cell, in order of arrival."""

    def columns(self) -> dict[str, AnyArray]:
        """All rows without histories, as one array of shape (runs,) per column of `COLUMNS`, sorted by hash.

        `setting` is the id of the row's `Setting`.
        """

    def rows(self, setting: int | None = None) -> Iterator[Row]:
        """All rows, or those of one setting, with histories, sorted by hash."""

    def history(self, hash: str) -> History:
        """The history of one run."""

    def record_sweep(self, record: SweepRecord) -> None:
        """Note a spec that is run into this store; a spec noted before gets its new name and success error."""

    def sweeps(self) -> list[SweepRecord]:
        """The specs that were run into this store, oldest first."""

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        """Keep these, all or none; those that are there already stay as they are, failed ones are replaced."""

    def measurements(self) -> Iterator[Measurement]:
        """All measurements, sorted by hash."""

    def close(self) -> None:
        """Let go of the store; closing twice is harmless."""

    def __enter__(self) -> Store: ...

    def __exit__(self, *error: object) -> None: ...
