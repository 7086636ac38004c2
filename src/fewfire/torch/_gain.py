"""What a sparse path would gain for blocks of a model, measured on copies: the model is not touched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fewfire._optional import require
from fewfire.torch._blocks import MlpBlock, split_kind
from fewfire.torch._kernel import SparseBlock, SparseDown, SparseUp
from fewfire.torch._layers import as_array, neuron_rows, why_not
from fewfire.torch._recognise import FULL
from fewfire.torch._timing import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

torch: Any = require("torch", "torch", "fewfire.torch")

MOST_BYTES = 512 * 2**20
"""Copies of weights that are held at a time."""


def measured_gains(
    model: Any, found: Sequence[tuple[MlpBlock, Any]], sizes: Sequence[int]
) -> dict[tuple[str, ...], dict[int, tuple[float, float]]]:
    """By a block's layers and by rows, the seconds of the sparse and of the dense path.

    Blocks that cannot be made sparse have no entry, and no block one for more rows than its sample has.
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
        for rows in sizes:
            ready = [(block, sample[:rows].clone(), ways) for block, sample, ways in built if len(sample) >= rows]
            calls = [[partial(way, x) for way in ways] for _, x, ways in ready]
            for (block, _, _), (sparse, dense) in zip(ready, in_turn(calls) if calls else [], strict=True):
                gains.setdefault(block.layers, {})[rows] = (sparse, dense)
    return gains


def _groups(found: Sequence[tuple[MlpBlock, Any]]) -> Iterator[list[tuple[MlpBlock, Any]]]:
    """Blocks that are measured in turn, as many as may be held at a time."""
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
    if block.activation in FULL and (block.whole or gate is not None):
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
