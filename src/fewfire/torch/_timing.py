"""How long blocks take, sparse and dense, measured as a model runs them (block after block), or on copies.

One block called again and again would keep its weights in the cache, where the dense path is at its best and no model
ever is; so all candidates are called in turn, and of each the fastest of several rounds counts. On a GPU nothing waits
between them, as nothing does in a model. A block that is faster so is faster in a CUDA graph as well, because only
there the host's part vanishes, and the sparse path has the larger one.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from fewfire._optional import require
from fewfire.torch._blocks import MlpBlock, split_kind
from fewfire.torch._kernel import ACTIVATIONS, SparseBlock, SparseDown, SparseUp
from fewfire.torch._layers import as_array, neuron_rows, why_not

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


MOST_BYTES = 512 * 2**20
"""Bytes of copied weights at a time."""


def measured_gains(
    model: Any, found: Sequence[tuple[MlpBlock, Any]], sizes: Sequence[int] | None = None
) -> dict[tuple[str, ...], dict[int, tuple[float, float]]]:
    """By a block's layers and by rows, the seconds of the sparse and of the dense path.

    Without sizes, at the rows of its sample. Blocks that cannot be made sparse have no entry, and no block one for more
    rows than its sample has.
    """
    usable = [
        (block, sample)
        for block, sample in found
        if block.reason is None
        and all(why_not(model.get_submodule(name), name != block.down) is None for name in block.layers)
    ]
    gains: dict[tuple[str, ...], dict[int, tuple[float, float]]] = {}
    for group in _groups(usable):
        built = [(block, sample, _ways(model, block)) for block, sample in group]
        for rows in sizes or (None,):
            ready = [
                (block, sample[:rows].clone(), ways) for block, sample, ways in built if len(sample) >= (rows or 1)
            ]
            calls = [[partial(way, x) for way in ways] for _, x, ways in ready]
            for (block, x, _), (sparse, dense) in zip(ready, in_turn(calls) if calls else [], strict=True):
                gains.setdefault(block.layers, {})[len(x)] = (sparse, dense)
    return gains


def _groups(found: Sequence[tuple[MlpBlock, Any]]) -> Iterator[list[tuple[MlpBlock, Any]]]:
    """Blocks that are measured in turn, as many as memory allows at a time."""
    group: list[tuple[MlpBlock, Any]] = []
    held = 0
    for block, sample in found:
        size = 4 * block.width * (block.inputs + block.outputs)
        if group and held + size > MOST_BYTES:
            yield group
            group, held = [], 0
        group.append((block, sample))
        held += size
    if group:
        yield group


def _ways(model: Any, block: MlpBlock) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The sparse and the dense path of a block as functions of its rows."""
    linear = torch.nn.functional.linear
    up, down = model.get_submodule(block.up), model.get_submodule(block.down)
    first = neuron_rows(up, first=True).contiguous()
    second = neuron_rows(down, first=False).contiguous()
    arrays = (first.numpy(), as_array(up.bias), second.numpy(), as_array(down.bias))
    gate = None if block.gate is None else model.get_submodule(block.gate)
    opening = None if gate is None else neuron_rows(gate, first=True).contiguous()
    kind: Any = block.activation
    kernel: Callable[[Any, int], Any]
    if block.activation in ACTIVATIONS and (block.whole or gate is not None):
        options: dict[str, Any] = {"activation": kind, "threshold": block.threshold, "gated": block.gated}
        if gate is not None:
            options |= {"gate": as_array(opening), "gate_bias": as_array(gate.bias)}
        kernel = SparseBlock(*arrays, **options)
    else:
        kind, threshold = split_kind(block.kind)
        above = SparseUp(*arrays[:2], activation=kind, threshold=threshold)
        below = SparseDown(*arrays[2:])

        def kernel(x: Any, threads: int) -> Any:
            return below(torch.relu(torch.from_numpy(above(x, threads))).numpy(), threads)

    def sparse(x: Any) -> Any:
        return torch.from_numpy(kernel(x.numpy(), torch.get_num_threads()))

    def dense(x: Any) -> Any:
        z = linear(x, first, up.bias)
        h = torch.relu(z) if gate is None else torch.relu(linear(x, opening, gate.bias)) * z
        return linear(h, second.t(), down.bias)

    return sparse, dense
