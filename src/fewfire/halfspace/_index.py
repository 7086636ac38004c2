"""The index a user holds: points under stable ids, half-space queries, changes, and the choice of a method.

sublinear, Definition 6.1 and Algorithm 2, with a strict inequality and an offset per point: a query (a, threshold)
reports the ids with ⟨p, a⟩ + b > threshold, decided in float32 as `fewfire.halfspace.scores` sums it. Files are safe
archives (`fewfire._archive`) of ids, points and offsets; trees are built when loading.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, Final, Literal, overload
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewfire import _archive
from fewfire._compressed_rows import CompressedRows, ScoredRows
from fewfire._errors import InvalidArgument, invalid
from fewfire._extension import core
from fewfire._threads import thread_count
from fewfire._types import AnyArray, IdArray
from fewfire._validate import check_choice
from fewfire.halfspace._arguments import check_column, check_ids, check_rows, check_vector
from fewfire.halfspace._methods import METHODS, MethodName, QueryCounters, Reporter
from fewfire.halfspace._plan import MANY, SMALL, IndexPlan, measure
from fewfire.halfspace._reference import scores_of

_FORMAT: Final = "fewfire.halfspace.Index"
_VERSION: Final = 1
_FIELDS: Final = ("ids", "points", "offsets", "next_id", "method")
_AGAIN: Final = "write it again with index.save"
_MOST_IDS: Final = 2**63 - 2**40
"""Ids in files are below this, which leaves 2⁴⁰ of 64 bits for insertions."""


class Index:
    """Points that report which of them lie in a half-space: exactly, whatever the method.

    Queries may run in several threads at once; a change waits for them and has the index alone. A change that fails,
    also for lack of memory, has changed nothing.

    Parameters
    ----------
    points : array of shape (count, d)
        Kept as float32. They get the ids 0 … count − 1; `np.empty((0, d))` makes an empty index.
    offsets : array of shape (count,), or number, optional
        b, added to the product; 0 by default.
    method : "auto", "scan", "tree", "screen", "layers" or a name given to `register_method`
        "scan" reads every point, "screen" int8 codes of them, "tree" what ball and cone bounds leave; "layers" are the
        convex layers of the plane, slow to build and fastest to ask. "auto" measures on the first queries; see `plan`.
    threads : int, optional
        All cores by default.

    Examples
    --------
    >>> import fewfire as ff
    >>> import numpy as np
    >>> weights = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> index = ff.halfspace.Index(weights, method="tree")
    >>> ids = index.query([1.0, 0.0, 0.0], threshold=3.0)
    >>> ids.tolist() == np.flatnonzero(weights.astype(np.float32)[:, 0] > 3.0).tolist()
    True
    >>> index.counters.points < 2000  # of 10,000: the others were never looked at
    True
    """

    def __init__(
        self,
        points: ArrayLike,
        offsets: ArrayLike | None = None,
        method: MethodName | str = "auto",
        threads: int | None = None,
    ) -> None:
        rows = check_rows("points", points, None)
        shifts = check_column("offsets", 0.0 if offsets is None else offsets, len(rows))
        self._start(np.arange(len(rows), dtype=np.int64), rows, shifts, len(rows), method, threads)

    def _start(
        self,
        ids: IdArray,
        rows: NDArray[np.float32],
        offsets: NDArray[np.float32],
        next_id: int,
        method: str,
        threads: int | None,
    ) -> None:
        self.requested = check_choice("method", method, ("auto", *METHODS))
        self.threads = thread_count(threads)
        self.dimension = rows.shape[1]
        only = None if method == "auto" else METHODS[method].dimension
        if only not in (None, self.dimension):
            where = "in the plane" if only == 2 else f"of dimension {only}"
            raise invalid("method", f"may be {method!r} only for points {where}", f"a dimension of {self.dimension}")
        self._check_offsets(offsets)
        self._lock = RLock()
        self._next_id = next_id
        self._past = QueryCounters()
        first = "scan" if method == "auto" else method
        self._kept: dict[str, Reporter] = {first: self._build(first, ids, rows, offsets)}
        self._plans: dict[bool, IndexPlan] = {}
        _indexes.add(self)

    @overload
    def query(self, a: ArrayLike, threshold: float = 0.0, *, scores: Literal[False] = False) -> IdArray: ...
    @overload
    def query(
        self, a: ArrayLike, threshold: float = 0.0, *, scores: Literal[True]
    ) -> tuple[IdArray, NDArray[np.float32]]: ...
    def query(
        self, a: ArrayLike, threshold: float = 0.0, *, scores: bool = False
    ) -> IdArray | tuple[IdArray, NDArray[np.float32]]:
        """The ids with ⟨p, a⟩ + b > threshold, ascending, for one direction of shape (d,).

        Parameters
        ----------
        a : array of shape (d,)
        threshold : float
        scores : bool
            Return the pair (ids, their float32 scores), the very sums that decided; `counters` do not count them.
        """
        # C++ takes plain arrays, lists and numbers as they are; all else is converted or refused here, then asked.
        quick = getattr(self._reporter(1), "query_one", None)
        found = None if quick is None else quick(a, threshold, self.threads, scores)
        if found is not None:
            answer: IdArray | tuple[IdArray, NDArray[np.float32]] = found
            return answer
        row, above = check_vector("a", a, self.dimension)[None], check_column("threshold", threshold, 1)
        if not scores:
            return self._answer(row, above).indices
        report = self._answer_scored(row, above)
        return report.indices, report.scores

    @overload
    def query_batch(
        self, A: ArrayLike, thresholds: ArrayLike = 0.0, *, scores: Literal[False] = False
    ) -> CompressedRows: ...
    @overload
    def query_batch(self, A: ArrayLike, thresholds: ArrayLike = 0.0, *, scores: Literal[True]) -> ScoredRows: ...
    def query_batch(self, A: ArrayLike, thresholds: ArrayLike = 0.0, *, scores: bool = False) -> CompressedRows:
        """The same for each row of A, shape (queries, d), as compressed rows `indptr, indices`.

        Parameters
        ----------
        A : array of shape (queries, d)
        thresholds : array of shape (queries,), or number
        scores : bool
            Let the rows have `scores` besides `indices`.
        """
        rows = check_rows("A", A, self.dimension)
        above = check_column("thresholds", thresholds, len(rows))
        return self._answer_scored(rows, above) if scores else self._answer(rows, above)

    def insert(self, points: ArrayLike, offsets: ArrayLike | None = None) -> IdArray:
        """Add points of shape (count, d); returns their new ids, ascending."""
        rows = check_rows("points", points, self.dimension)
        shifts = check_column("offsets", 0.0 if offsets is None else offsets, len(rows))
        self._check_offsets(shifts)
        with self._lock:
            first = self._next_id
            ids = np.arange(first, first + len(rows), dtype=np.int64)
            self._next_id = first + len(rows)  # before: an insertion that Ctrl-C meets may have been made
            try:
                self._change("insert", ids, rows, shifts)
            except MemoryError:
                self._next_id = first
                raise
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Take points out; their ids are not used again."""
        self._change("remove", check_ids("ids", ids))

    def update(self, ids: ArrayLike, points: ArrayLike, offsets: ArrayLike | None = None) -> None:
        """Replace points, and their offsets (by 0 unless given), under the ids they have."""
        numbers = check_ids("ids", ids)
        rows = check_rows("points", points, self.dimension)
        if len(rows) != len(numbers):
            raise invalid("points", f"must have one row for each of the {len(numbers)} ids", f"shape {rows.shape}")
        shifts = check_column("offsets", 0.0 if offsets is None else offsets, len(rows))
        self._check_offsets(shifts)
        self._change("update", numbers, rows, shifts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to exactly this path, once it is complete; `fewfire.halfspace.load` reads it."""
        ids, points, offsets, next_id = self._state()
        parts: dict[str, AnyArray] = {
            "ids": ids,
            "points": points,
            "offsets": offsets,
            "next_id": np.array(next_id, dtype=np.int64),
            "method": np.array(self.requested),
        }
        _archive.write(path, _FORMAT, _VERSION, parts)

    @property
    def plan(self) -> IndexPlan:
        """The method in use and why; for "auto" that of the latest kind of call (single queries, batches)."""
        if self.requested != "auto":
            return IndexPlan(self.requested, "as asked", size=len(self))
        plans = self._plans
        if not plans:
            return IndexPlan("scan", "nothing measured yet; the first queries decide", size=len(self))
        return next(reversed(plans.values()))

    @property
    def method(self) -> str:
        """The method in use: `plan.method`."""
        return self.plan.method

    @property
    def counters(self) -> QueryCounters:
        """What queries have cost so far, for "auto" with those that measured the methods it keeps."""
        with self._lock:
            return sum((QueryCounters(*kept.counters) for kept in self._kept.values()), self._past)

    @property
    def ids(self) -> IdArray:
        """The ids of the points there are, ascending."""
        return self._state()[0]

    @property
    def memory(self) -> int:
        """Bytes of all structures together."""
        with self._lock:
            return sum(kept.memory for kept in self._kept.values())

    def __len__(self) -> int:
        return next(iter(self._kept.values())).size

    def __repr__(self) -> str:
        return f"Index({len(self)} points in dimension {self.dimension}, method {self.requested!r}: {self.method})"

    def __getstate__(self) -> dict[str, Any]:
        return {"points": self._state(), "method": self.requested, "threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ids, rows, offsets, next_id = state["points"]
        self._start(ids, rows, offsets, next_id, state["method"], state["threads"])

    def _state(self) -> tuple[IdArray, NDArray[np.float32], NDArray[np.float32], int]:
        """Ids ascending, points, offsets and the next id."""
        with self._lock:
            ids, rows, offsets = next(iter(self._kept.values())).points()
            order = np.argsort(ids)
            return ids[order], rows[order], offsets[order], self._next_id

    def _answer(self, rows: NDArray[np.float32], thresholds: NDArray[np.float32]) -> CompressedRows:
        return CompressedRows(*self._asked(rows, thresholds).query(rows, thresholds, self.threads))

    def _answer_scored(self, rows: NDArray[np.float32], thresholds: NDArray[np.float32]) -> ScoredRows:
        reporter = self._asked(rows, thresholds)
        scoring = getattr(reporter, "query_scores", None)
        if scoring is not None:
            return ScoredRows(*scoring(rows, thresholds, self.threads))
        with self._lock:  # no change between the two questions
            starts, ids = reporter.query(rows, thresholds, self.threads)
            return ScoredRows(starts, ids, scores_of(reporter.points(), rows, starts, ids))

    def _asked(self, rows: NDArray[np.float32], thresholds: NDArray[np.float32]) -> Reporter:
        """Who answers these queries; for "auto" planned with them where that is due."""
        reporter = self._reporter(len(rows))
        if reporter is None:
            with self._lock:  # another thread may have planned meanwhile
                reporter = self._reporter(len(rows)) or self._planned(rows, thresholds)
        return reporter

    def _reporter(self, queries: int) -> Reporter | None:
        """Where so many queries go, for "auto" as planned for calls of their kind; None when that has to be planned."""
        if self.requested != "auto" or queries == 0:
            return next(iter(self._kept.values()))
        with self._lock:
            plan = self._plans.get(queries >= MANY)
            return None if plan is None or plan.stale(len(self)) else self._kept.get(plan.method)

    def _planned(self, rows: NDArray[np.float32], thresholds: NDArray[np.float32]) -> Reporter:
        """Plan for calls of this kind, and keep what the plans there are use."""
        many = len(rows) >= MANY
        source = self._kept.get("scan") or self._build("scan", *next(iter(self._kept.values())).points())
        if core() is None or len(self) * self.dimension < SMALL:
            why = "the C++ part is missing" if core() is None else "few enough points for a scan of microseconds"
            plan, chosen = IndexPlan("scan", why, size=len(self)), source
        else:
            plan, chosen = measure(source, self._build, rows, thresholds, self.threads)
        # Both are replaced as a whole, since `plan` and `len` read them without the lock.
        plans = {kind: other for kind, other in self._plans.items() if kind != many} | {many: plan}
        in_use = {other.method for other in plans.values()}
        before = self._kept
        after = before | {plan.method: chosen}
        self._kept = {name: reporter for name, reporter in after.items() if name in in_use}
        for name, reporter in before.items():
            if self._kept.get(name) is not reporter:
                self._past += QueryCounters(*reporter.counters)
        self._plans = plans
        return chosen

    def _build(self, method: str, ids: IdArray, rows: NDArray[np.float32], offsets: NDArray[np.float32]) -> Reporter:
        kept = METHODS[method].factory(self.dimension)
        kept.insert(ids, rows, offsets, self.threads)
        return kept

    def _change(self, what: str, ids: IdArray, *arrays: NDArray[np.float32]) -> None:
        """Change every structure; the first one refuses unknown ids with nothing changed.

        Others, which "auto" may keep, are let go before and taken up again once they have changed as well: whatever
        comes between (Ctrl-C, a child process, no memory), those that are kept hold the same points.
        """
        with self._lock:
            size, kept = len(self), self._kept
            (first, reporter), *others = kept.items()
            self._kept = {first: reporter}
            try:
                wrong = getattr(reporter, what)(ids, *arrays, self.threads)
            except MemoryError:  # nothing is changed
                self._kept = kept
                raise
            except BaseException:  # of a signal, perhaps with the change made: the others are done without
                for _, other in others:
                    self._past += QueryCounters(*other.counters)
                raise
            if wrong >= 0:
                self._kept = kept
                remedy = f"index.ids lists the {size} it has; ids of removed points are not used again"
                raise invalid("ids", "must be in the index", int(ids[wrong]), remedy)
            after = {first: reporter}
            for name, other in others:
                try:
                    getattr(other, what)(ids, *arrays, self.threads)
                    after[name] = other
                except MemoryError:  # done without: the next queries of its kind measure anew
                    self._past += QueryCounters(*other.counters)
            self._kept = after

    def _check_offsets(self, offsets: NDArray[np.float32]) -> None:
        if self.requested != "auto" and not METHODS[self.requested].offsets and offsets.any():
            wrong = float(offsets[offsets != 0][0])
            raise invalid("offsets", f"must be 0 with method={self.requested!r}", wrong, "use method='tree'")


def _renew_locks() -> None:
    """In a child process (`os.fork`): what other threads had locked would stay locked for ever."""
    for index in _indexes:
        index._lock = RLock()


_indexes: Final[WeakSet[Index]] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def load(path: str | os.PathLike[str], threads: int | None = None) -> Index:
    """The index that `Index.save` wrote to this path: same ids, points, offsets and method.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.

    Examples
    --------
    >>> import fewfire as ff
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile(suffix=".npz") as file:
    ...     ff.halfspace.Index([[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]], method="scan").save(file.name)
    ...     index = ff.halfspace.load(file.name)
    >>> index.query([1.0, 1.0], threshold=1.1).tolist()
    [2]
    """
    source, arrays = _archive.read(path, _FORMAT, _VERSION, _FIELDS, "index.save")
    ids, points, offsets, next_id = (arrays[name] for name in _FIELDS[:4])
    method = _archive.text(arrays["method"])
    kinds = [array.dtype.str[1:] for array in (ids, points, offsets, next_id)]
    if kinds != ["i8", "f4", "f4", "i8"] or method is None or next_id.shape != () or points.ndim != 2:
        raise _archive.unreadable(source, "its arrays have the wrong type", _AGAIN)
    if ids.shape != (len(points),) or (np.diff(ids) <= 0).any() or (len(ids) and not 0 <= ids[0] <= ids[-1] < next_id):
        raise _archive.unreadable(source, "its ids are not ascending and below next_id", _AGAIN)
    if not 0 <= next_id <= _MOST_IDS:
        raise _archive.unreadable(source, f"its next id is {next_id}, beyond the {_MOST_IDS} there may be", _AGAIN)
    try:
        index = Index.__new__(Index)
        rows, shifts = check_rows("points", points, None), check_column("offsets", offsets, len(points))
        index._start(ids, rows, shifts, int(next_id), method, threads)
        return index
    except InvalidArgument as error:
        raise _archive.unreadable(source, f"its arrays do not fit together ({error})", _AGAIN) from error
