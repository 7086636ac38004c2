"""What every method of half-space reporting offers, and the names of the methods.

An implementation keeps points of one dimension under ids that the caller hands out. All of them report the
same ids for the same points, bit for bit: those whose score (`fewfire.halfspace.scores`) is above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fewfire._types import IdArray

METHODS: Final = ("auto", "scan", "tree", "screen", "layers")
"""How points may be kept; "layers" only in dimension 2 and without offsets."""


@dataclass(frozen=True)
class Counters:
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
        Bytes of points, codes and nodes read, once a batch where a batch shares them.
    """

    queries: int = 0
    reported: int = 0
    points: int = 0
    rechecks: int = 0
    nodes: int = 0
    bytes: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Reporter(Protocol):
    """One method's points. Ids of `insert` are new; changes return the position of the first id that is not
    what it has to be (known or unknown), with nothing changed, or −1."""

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
