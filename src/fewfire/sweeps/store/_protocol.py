"""What a store is: the protocol that every store follows, the records it holds, and how its cells are counted.

Rows are keyed by the hash of the run. Adding a run that is there already changes nothing, unless the old row is that
of a failed run, which the new one replaces; so a sweep can be stopped, repeated and extended at will.

What is read from a store is checked before it is used, since SQLite itself notices only some kinds of damage: the texts
of specs by their hashes, and all values by their kinds. A number that has become another number is not noticed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from fewfire._errors import FewfireError, FileFormatError, InvalidArgument, invalid
from fewfire._html import card, listed
from fewfire._validate import check_number
from fewfire.problems._base import PROBLEMS
from fewfire.sweeps.spec._run_spec import canonical, parse_data, parse_network, text_hash
from fewfire.sweeps.spec._tables import check_plain, check_work, parse_problem, parse_training
from fewfire.sweeps.store._row import final, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines import History
    from fewfire.sweeps.store._row import Row


_ALLOWED: dict[Any, set[type[Any]]] = {np.str_: {str}, np.int64: {int}, np.float64: {float, type(None)}}
_TABLES = {
    "data": ("samples", "test_samples"),
    "network": ("start",),
    "problem": ("name",),
    "training": ("phases", "stop_error"),
}
"""What a setting has at least."""


def are(values: Iterable[Any], kind: type[Any]) -> bool:
    """Whether values from SQLite are texts, integers, or reals of which some may be missing."""
    return set(map(type, values)) <= _ALLOWED[kind]


def table_of(text: Any, what: str) -> dict[str, Any]:
    """The JSON table in a text that a store holds; `what` names it."""
    try:
        table = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} is damaged: it is no JSON ({str(error).splitlines()[0]}).") from None
    if not isinstance(table, dict):
        raise FileFormatError(f"{what} is damaged: it is no table of JSON.")
    try:
        check_plain(table, "")
    except InvalidArgument as error:
        raise FileFormatError(f"{what} is damaged: {error}") from None
    return table


def setting_table(text: Any) -> dict[str, Any]:
    """The tables of a setting, each one such as a spec may have."""
    table = table_of(text, "a setting")
    for name, keys in _TABLES.items():
        part = table.get(name)
        missing = [key for key in keys if not isinstance(part, dict) or key not in part]
        if missing:
            raise FileFormatError(f"a setting is damaged: it lacks {name}.{missing[0]}.")
        _check_part(name, canonical(part))
    return table


def _problem(table: dict[str, Any]) -> None:
    """A problem that is known here, or a name and values: one from outside may be registered elsewhere."""
    if isinstance(table["name"], str) and table["name"] not in PROBLEMS:
        if any(isinstance(value, dict) for value in table.values()):
            raise FileFormatError("a setting is damaged: a value of its problem is a table.")
    else:
        parse_problem(table)


_PARSERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "data": parse_data,
    "network": parse_network,
    "problem": _problem,
    "training": lambda table: check_work(parse_training(table)),
}


@lru_cache(maxsize=4096)  # the parts of a grid's settings repeat
def _check_part(name: str, text: str) -> None:
    try:
        _PARSERS[name](json.loads(text))
    except InvalidArgument as error:
        raise FileFormatError(f"a setting is damaged: {error}") from None


def run_hash(setting: str, trial: int) -> str:
    """The hash of the run that a setting and a trial make."""
    head, _, tail = setting.rpartition(',"version":')
    return text_hash(f'{head},"trial":{trial},"version":{tail}')


@dataclass(frozen=True)
class Setting:
    """One cell of a grid: what its runs share, numbered from 1 in order of arrival in its store."""

    id: int
    text: str  # the canonical JSON of the spec of its runs without the trial

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
        """The number of neurons of the first hidden layer."""
        return int(self.layers.get("width") or self.layers["widths"][0])

    @property
    def layers(self) -> dict[str, Any]:
        """The network but for its start: `width`, with `depth` where that is not 1, or `widths`."""
        return {key: value for key, value in self.spec["network"].items() if key != "start"}

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
    """A spec that was run into a store: its name, the error that counts as success, the spec itself, what was noted."""

    name: str
    success_error: float
    spec: dict[str, Any]
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What makes two records the same sweep: the spec without its name and its success error."""
        return canonical({key: value for key, value in self.spec.items() if key not in ("name", "success_error")})

    def joined(self, other: SweepRecord) -> SweepRecord:
        """This one with the note and the tags of another in addition."""
        ours, theirs = (f"\n{note}\n" * bool(note) for note in (self.note, other.note))  # compared by whole lines
        note = self.note if theirs in ours else other.note if ours in theirs else f"{self.note}\n{other.note}"
        return replace(self, note=note, tags=tuple(sorted({*self.tags, *other.tags})))


def newest_success_error(sweeps: Sequence[SweepRecord]) -> float:
    """The test error that counts as success in the newest of these sweeps; 0.1 without any."""
    return sweeps[-1].success_error if sweeps else 0.1


@dataclass(frozen=True)
class Measurement:
    """One measured error of one model on one task: what a store keeps of experiments that are no sweep of networks.

    It is keyed by the hash of its spec, as a run is: canonical JSON of everything the error depends on. "failed" ones,
    of error NaN, are measured again when they are needed. `seconds` is the processor time of training; `message` is why
    it failed, or what else was measured, as JSON; `environment` is as `environment_text` gives it.
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
        """Keep a spec that is run into this store; one that is there gets this name, success error, note and tags."""

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


class StoreBase(Store):
    """The part of a store that does not depend on where its rows are; showing it never raises, whatever its file is."""

    def to_frame(self) -> Any:
        """All runs as a pandas DataFrame: a row per run sorted by hash, columns as `export` writes them."""
        from fewfire.sweeps.store._export import to_frame  # late: it counts cells

        return to_frame(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        file = getattr(self, "path", None)
        parts = [] if file is None else [repr(str(file))]
        return f"{type(self).__name__}({', '.join([*parts, self._summary()])})"

    def _repr_html_(self) -> str:
        file = getattr(self, "path", None)
        facts = ({} if file is None else {"file": str(file)}) | {"runs": self._summary()}
        with suppress(FewfireError):  # the line above names it
            facts |= {"settings": str(len(self.settings())), "sweeps": listed([one.name for one in self.sweeps()])}
        return card(type(self).__name__, facts)

    def _summary(self) -> str:
        try:
            counts = self.counts()
        except FewfireError as error:
            return "closed" if "is closed" in str(error) else "cannot be read"
        ended = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return f"{sum(counts.values())} runs" + (f": {ended}" if ended else "")


def unknown_run(hash: str) -> InvalidArgument:
    """The error of asking for a run that is not there."""
    return invalid("hash", "must be that of a run in this store", hash, "take it from columns()['hash']")


@dataclass(frozen=True)
class Cell:
    """The runs of one setting: how many are final, how many of these succeeded or diverged, how many failed."""

    setting: Setting
    runs: int
    successes: int
    diverged: int
    failed: int

    @property
    def success(self) -> float:
        """The share of successes among final runs; NaN when there are none."""
        return self.successes / self.runs if self.runs else float("nan")


def wilson_interval(successes: AnyArray | int, runs: AnyArray | int, level: float = 0.95) -> Float64Array:
    """Wilson's score interval: the probabilities p whose distance from the share is within the normal error of p.

    It makes sense at 0 of 5 and 5 of 5 too. Shape (2, ...), for counts of any one shape: lower and upper ends, 0 and 1
    where there are no runs.
    """
    from scipy.special import ndtri  # late: no run needs it

    check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
    won, total = np.asarray(successes, dtype=np.float64), np.asarray(runs, dtype=np.float64)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (won + z2 / 2) / (total + z2)
    reach = np.sqrt(z2 * (won * (total - won) / np.maximum(total, 1) + z2 / 4)) / (total + z2)
    share = won / np.maximum(total, 1)  # inside the interval, whatever the last digit says
    low = np.where(won > 0, np.minimum(centre - reach, share), 0.0)
    high = np.where(won < total, np.maximum(centre + reach, share), 1.0)
    return np.stack([low, high])


def cells(store: Store, success_error: float) -> list[Cell]:
    """One cell per setting, in order of the settings; see `succeeded` for what counts as success.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, Sweep, cells
    >>> spec = {
    ...     "problem": {"name": "parity", "n": 8, "k": 2},
    ...     "network": {"start": "dense", "width": 20},
    ...     "data": {"samples": [20, 200]},
    ...     "training": {"steps": 500},
    ...     "trials": 2,
    ... }
    >>> store = MemoryStore()
    >>> done = Sweep.from_dict(spec).run(store, executor="inline")
    >>> [(cell.setting.samples, cell.successes) for cell in cells(store, success_error=0.1)]
    [(20, 0), (200, 2)]
    """
    settings, columns = store.settings(), store.columns()
    setting_ids, status = columns["setting"], columns["status"]
    size = max((setting.id for setting in settings), default=0) + 1

    def count(chosen: AnyArray) -> AnyArray:
        return np.bincount(setting_ids[chosen], minlength=size)

    ended = final(status)
    good = succeeded(status, columns["best_test_error"], success_error)
    counts = [count(ended), count(good), count(status == "diverged"), count(~ended)]
    return [Cell(setting, *(int(numbers[setting.id]) for numbers in counts)) for setting in settings]
