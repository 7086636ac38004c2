"""The methods of half-space reporting: what each offers, and the one register of them.

An implementation keeps points of one dimension under ids that the caller hands out. All of them report the
same ids for the same points, bit for bit: those whose score (`fewfire.halfspace.scores`) is above the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fewfire._extension import core
from fewfire._registry import Registry
from fewfire._types import IdArray
from fewfire.halfspace._reference import ReferenceReporter

MethodName = Literal["auto", "scan", "tree", "screen", "layers"]
"""The methods that come with fewfire, and "auto", which measures them; `register_method` adds others."""


@dataclass(frozen=True)
class QueryCounters:
    """What the queries of an index have cost so far; exact, and the same on every machine.

    Parameters
    ----------
    queries, reported : int
        Queries answered and ids returned.
    points : int
        (Point, query) pairs whose coordinates, or their int8 codes, were read.
    rechecks : int
        Pairs that the int8 screen left open and the exact score decided.
    nodes : int
        Tree nodes whose children were bounded, or convex layers entered.
    bytes : int
        Bytes of points, codes and nodes read, once per batch where a batch shares them.
    """

    queries: int = 0
    reported: int = 0
    points: int = 0
    rechecks: int = 0
    nodes: int = 0
    bytes: int = 0

    def __add__(self, other: QueryCounters) -> QueryCounters:
        return QueryCounters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Reporter(Protocol):
    """One method's points: all that an index asks of it.

    Ids of `insert` are new, and no call repeats one. A change returns the position of the first id that is not what it
    has to be (known to `insert`; unknown to `remove` and `update`), with nothing changed, or −1. `query` returns where
    each query's ids start, one more than queries, and the ids, ascending for each query. `counters` are those of
    `QueryCounters`, in order. Arrays are contiguous and checked; `points` may come in any order. Queries may come from
    several threads at once, and changes while queries run.

    A reporter may also have `query_scores`, which takes what `query` takes and returns scores besides starts and ids:
    those of `fewfire.halfspace.scores`, bit for bit. An index finds those of other reporters itself, from `points`.
    """

    def insert(self, ids: IdArray, rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int) -> int: ...
    def remove(self, ids: IdArray, threads: int) -> int: ...
    def update(self, ids: IdArray, rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int) -> int: ...
    def query(
        self, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
    ) -> tuple[IdArray, IdArray]: ...
    def points(self) -> tuple[IdArray, NDArray[np.float32], NDArray[np.float32]]: ...
    @property
    def counters(self) -> Sequence[int]: ...
    @property
    def size(self) -> int: ...
    @property
    def memory(self) -> int: ...


@dataclass(frozen=True)
class Method:
    """How a method is made, and what it can hold.

    Parameters
    ----------
    factory : function of the dimension
        Makes a `Reporter` that holds nothing yet.
    dimension : int, optional
        The only dimension it serves; any by default.
    offsets : bool
        Whether points may have offsets other than 0.
    """

    factory: Callable[[int], Reporter]
    dimension: int | None = None
    offsets: bool = True


METHODS: Final[Registry[Method]] = Registry("auto")
"""Every method there is, by name: those that come with fewfire first, then as they were registered."""


def register_method(
    name: str, factory: Callable[[int], Reporter], *, dimension: int | None = None, offsets: bool = True
) -> None:
    """Add a method of half-space reporting, for `Index(points, method=name)`, for this process.

    A file of an index of this method is read where the method has been registered under the same name.

    Parameters
    ----------
    name : str
        A name that no method has.
    factory : function of the dimension
        Makes a `Reporter` that holds nothing yet, such as a class that follows that protocol.
    dimension : int, optional
        The only dimension the method serves; any by default.
    offsets : bool
        Whether points may have offsets other than 0.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.halfspace._reference import ReferenceReporter
    >>> ff.halfspace.register_method("plain", ReferenceReporter)  # or a class of yours that follows `Reporter`
    >>> ff.halfspace.Index([[1.0, 0.0], [0.0, 1.0]], method="plain").query([1.0, 0.0], threshold=0.5).tolist()
    [0]
    >>> ff.halfspace.unregister_method("plain")
    """
    METHODS.add(name, Method(factory, dimension, offsets))


def unregister_method(name: str) -> None:
    """Forget a method that was registered; indexes that use it go on."""
    METHODS.remove(name)


def _built_in(name: str, dimension: int) -> Reporter:
    """The C++ method of that name, or the reference implementation where the C++ part is missing."""
    module = core()
    if module is None:
        return ReferenceReporter(dimension)
    made: Reporter = module.HalfspaceIndex(name, dimension)
    return made


for _name in ("scan", "tree", "screen"):
    METHODS.add(_name, Method(partial(_built_in, _name)), own=True)
METHODS.add("layers", Method(partial(_built_in, "layers"), dimension=2, offsets=False), own=True)
