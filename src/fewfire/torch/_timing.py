"""How long blocks take, sparse and dense, measured as a model runs them: block after block.

One block called again and again would keep its weights in the cache, where the dense path is at its best and no model
ever is; so all candidates are called in turn, and of each the fastest of several rounds counts. On a GPU nothing waits
between them, as nothing does in a model. A block that is faster so is faster in a CUDA graph as well, because only
there the host's part vanishes, and the sparse path has the larger one.
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


def in_turn(
    candidates: Sequence[Sequence[Callable[[], Any]]], seconds: float = SECONDS, device: Any = None
) -> list[list[float]]:
    """The best time of every callable; `candidates` holds one list per block, all of one length, on one device."""
    best = [[float("inf")] * len(ways) for ways in candidates]
    clock = _seconds if device is None or device.type == "cpu" else _seconds_on_device
    deadline, rounds = time.perf_counter() + seconds, 0
    with torch.no_grad():
        while rounds < 3 or (rounds < 50 and time.perf_counter() < deadline):
            for way in range(len(candidates[0])):
                taken = clock([ways[way] for ways in candidates], device)
                for times, this in zip(best, taken, strict=True):
                    times[way] = min(times[way], this)
            rounds += 1
    return best


def _seconds(calls: Sequence[Callable[[], Any]], _device: Any) -> list[float]:
    taken = []
    for call in calls:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken


def _seconds_on_device(calls: Sequence[Callable[[], Any]], device: Any) -> list[float]:
    """Between marks on the stream: what the device takes, or the host, where it cannot keep the device busy."""
    with torch.cuda.device(device):
        marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in calls]
        for call, (begun, done) in zip(calls, marks, strict=True):
            begun.record()
            call()
            done.record()
        torch.cuda.synchronize()
        return [1e-3 * float(begun.elapsed_time(done)) for begun, done in marks]


def largest_faster(times: dict[int, tuple[float, float]]) -> int:
    """The number of rows up to which sparse is faster at every size tried, 0 if at none; (sparse, dense) by rows."""
    largest = 0
    for rows in sorted(times):
        sparse, dense = times[rows]
        if sparse > MARGIN * dense:
            break
        largest = rows
    return largest
