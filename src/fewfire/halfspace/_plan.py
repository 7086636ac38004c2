"""`method="auto"`: measure the methods on the user's own points and queries, keep the fastest, give the reason.

No rule of thumb decides: on isotropic points in high dimension a tree prunes nothing and the int8 screen wins, on
points of low intrinsic dimension the tree wins a hundredfold. A full tree is built only when one over a
sixteenth of the points leaves some of them untouched: tight clusters show only when there are enough points in each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fewfire._types import IdArray
    from fewfire.halfspace._methods import Reporter

    Build = Callable[[str, IdArray, NDArray[np.float32], NDArray[np.float32]], Reporter]

MANY: Final = 8
"""Queries from which on a call counts as a batch; single queries and batches are planned apart."""
SMALL: Final = 1 << 15
"""Coordinates below which a scan takes microseconds and measuring is not worth it."""
_SAMPLE: Final = 16
CHILDREN: Final = 16
"""Bounds read with a node of the tree."""
_PROMISING: Final = 0.9
_QUERIES: Final = 64
_SECONDS: Final = 0.02


@dataclass(frozen=True)
class IndexPlan:
    """Which method answers, and why.

    Parameters
    ----------
    method : str
        The method in use.
    reason : str
        One sentence.
    seconds : dict from method to float
        Measured seconds per query; empty where nothing was measured.
    size, queries : int
        Points there were and queries measured with.
    """

    method: str
    reason: str
    seconds: dict[str, float] = field(default_factory=dict)
    size: int = 0
    queries: int = 0

    def __str__(self) -> str:
        times = ", ".join(f"{name} {1e6 * value:.3g} µs" for name, value in self.seconds.items())
        return f"{self.method}: {self.reason}" + (f" ({times} a query)" if times else "")

    def stale(self, size: int) -> bool:
        """Whether the index has grown or shrunk fourfold since."""
        return not self.size / 4 <= size <= 4 * self.size


def measure(
    scan: Reporter, build: Build, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
) -> tuple[IndexPlan, Reporter]:
    """The fastest method for these queries, with the points of `scan` in it.

    Parameters
    ----------
    scan : Reporter
        All points, in the method "scan".
    build : function of method, ids, points and offsets
        Makes the other methods.
    rows : float32 array of shape (queries, d)
    thresholds : float32 array of shape (queries,)
    threads : int
    """
    many = len(rows) >= MANY
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), _QUERIES)).astype(int)
    rows, thresholds = np.ascontiguousarray(rows[chosen]), np.ascontiguousarray(thresholds[chosen])
    ids, points, offsets = scan.points()
    candidates: dict[str, Reporter] = {"scan": scan, "screen": build("screen", ids, points, offsets)}
    part = slice(None, None, max(1, min(_SAMPLE, len(ids) // 4096)))
    trial = build("tree", ids[part].copy(), points[part].copy(), offsets[part].copy())
    trial.query(rows, thresholds, threads)
    queries, _, touched, _, nodes, _ = trial.counters
    share = (touched + CHILDREN * nodes) / (queries * trial.size)
    if share < _PROMISING:
        candidates["tree"] = build("tree", ids, points, offsets) if trial.size < len(ids) else trial
    seconds = {name: _seconds(kept, rows, thresholds, threads, many) for name, kept in candidates.items()}
    best = min(seconds, key=lambda name: seconds[name])
    tree = f"a tree over {trial.size} of the points touches {share:.0%} of them"
    tree += "" if "tree" in candidates else ", so none was built"
    reason = f"fastest of {', '.join(seconds)} on {len(rows)} of your queries; {tree}"
    return IndexPlan(best, reason, seconds, len(ids), len(rows)), candidates[best]


def _seconds(
    kept: Reporter, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int, many: bool
) -> float:
    """Seconds per query, the best of at least three rounds, asked as the user does: in a batch, or one by one."""
    batches = [slice(0, len(rows))] if many else [slice(i, i + 1) for i in range(len(rows))]
    best, spent, rounds = np.inf, 0.0, 0
    while rounds < 3 or (spent < _SECONDS and rounds < 50):
        start = perf_counter()
        for batch in batches:
            kept.query(rows[batch], thresholds[batch], threads)
        taken = perf_counter() - start
        best, spent, rounds = min(best, taken), spent + taken, rounds + 1
    return float(best) / len(rows)
