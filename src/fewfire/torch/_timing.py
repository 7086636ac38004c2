"""How long blocks take, sparse and dense, measured as a model runs them: block after block.

One block called again and again would keep its weights in the cache, where the dense path is at its best and no model
ever is; so all candidates are called in turn, and of each the fastest of several rounds counts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

torch: Any = require("torch", "torch", "fewfire.torch")

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of rows that are tried."""
SECONDS = 0.25
"""What one number of rows may take, over all blocks; three rounds are made in any case."""
MARGIN = 0.97
"""Sparse is chosen where it takes at most this share of the dense time."""


def in_turn(candidates: Sequence[Sequence[Callable[[], Any]]], seconds: float = SECONDS) -> list[list[float]]:
    """The best time of every callable; `candidates` holds one list per block, all of one length."""
    best = [[float("inf")] * len(ways) for ways in candidates]
    deadline, rounds = time.perf_counter() + seconds, 0
    with torch.no_grad():
        while rounds < 3 or (rounds < 50 and time.perf_counter() < deadline):
            for way in range(len(candidates[0])):
                for block, ways in enumerate(candidates):
                    start = time.perf_counter()
                    ways[way]()
                    best[block][way] = min(best[block][way], time.perf_counter() - start)
            rounds += 1
    return best


def largest_faster(times: dict[int, tuple[float, float]]) -> int:
    """The number of rows up to which sparse is faster at every size tried, 0 if at none; (sparse, dense) by rows."""
    largest = 0
    for rows in sorted(times):
        sparse, dense = times[rows]
        if sparse > MARGIN * dense:
            break
        largest = rows
    return largest
