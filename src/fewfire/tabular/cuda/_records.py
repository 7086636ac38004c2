"""What the kernel is told: a record per network, and how the blocks of threads are shared out among them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire.tabular._embeddings import PeriodicEmbedding
from fewfire.tabular._network import LOSSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire.tabular._layout_stack import LayoutStack
    from fewfire.tabular._network import Layout

MOST_LAYERS = 3
MOST_OUTPUTS = 32  # lanes of a warp
ADDRESSES = (
    *("parameters", "first_state", "second_state", "average", "table", "targets", "weights", "gains"),
    *("held_rows", "held_gains", "rows", "factors", "newest", "losses", "outputs", "kept"),
    *("fed", "hidden0", "hidden1", "hidden2", "back0", "back1", "back2", "errors", "slopes", "row_losses"),
)
SIZES = (
    *("start", "inputs", "fed_width", "depth", "width0", "width1", "width2", "outputs_wide", "frequencies"),
    *("loss", "adam", "decayed", "size", "pitch", "at_hidden0", "at_hidden1", "at_hidden2", "at_output", "at_skip"),
    *("at_mix", "at_bias0", "at_bias1", "at_bias2", "at_offset", "at_frequency", "at_phase", "at_shift"),
    *("part", "batch", "steps", "block_steps", "block_batch", "networks", "kinds", "held", "held_most", "at_once"),
)
FIELDS = ADDRESSES + SIZES
"""Of `Network` in network.cuh, in its order."""
RECORD = np.dtype([(name, np.int64) for name in FIELDS])
OF_WAVE = 24  # what a cosine with its gradients costs, in weights


class NetworkLoad(NamedTuple):
    """How many rows a network trains on, of a step, steps of an epoch, and rows it is judged by."""

    part: int
    batch: int
    steps: int
    held: int


def known(layout: Layout) -> bool:
    """Whether the kernel knows all parts of a layout."""
    small = len(layout.hidden) <= MOST_LAYERS and layout.outputs <= MOST_OUTPUTS
    return small and type(layout.embedding) in (type(None), PeriodicEmbedding)  # a subclass may compute anything


def frequencies(layout: Layout) -> int:
    """Cosines per input, 0 without an embedding."""
    return layout.embedding.frequencies if isinstance(layout.embedding, PeriodicEmbedding) else 0


def places_of(layout: Layout) -> dict[str, Any]:
    """Where the parts of a network's vector begin; −1 for a skip that is not there."""
    sizes = [math.prod(shape) for shape in [*layout.matrices, *layout.vectors]]
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    parts = layout.group(starts)
    found: dict[str, Any] = {f"at_hidden{number}": start for number, start in enumerate(parts.hidden)}
    found |= {f"at_bias{number}": start for number, start in enumerate(parts.biases)}
    waves = dict(zip(("at_mix", "at_frequency", "at_phase", "at_shift"), parts.embedding, strict=False))
    skip = -1 if parts.skip is None else parts.skip
    return found | waves | {"at_output": parts.output, "at_offset": parts.offset, "at_skip": skip}


class Workspace(NamedTuple):
    """Numbers that a network's team shares between parts of a step, and where in them each part begins."""

    numbers: int
    begins: dict[str, int]


def workspace(layout: Layout, rows: int, losses: int) -> Workspace:
    """Room for so many rows at a time, and for losses of all rows of an epoch."""
    begins, taken = {}, 0
    widths = dict(enumerate(layout.hidden))
    lengths = {"fed": rows * layout.fed, "errors": rows * layout.outputs, "row_losses": losses}
    lengths |= {f"hidden{number}": rows * width for number, width in widths.items()}
    lengths |= {f"back{number}": rows * width for number, width in widths.items()}
    lengths["slopes"] = rows * layout.inputs if layout.embedding else 0
    for name, length in lengths.items():
        begins[name] = taken
        taken += -(-length // 32) * 32
    return Workspace(taken, begins)


def records(stack: LayoutStack, loads: Sequence[NetworkLoad], space: Any, begins: dict[str, int], rows: int) -> Any:
    """A record per network of a stack, whose workspace of so many rows at a time is a row of `space`."""
    layout, block, count = stack.layout, stack.block, len(stack)
    found = np.zeros(count, RECORD)
    numbers = np.arange(count)
    first, second = stack.rule.state
    _, block_steps, kinds, _, _ = block.factors.shape
    for name, tensor in {
        "parameters": stack.parameters,
        "first_state": first,
        "second_state": first if second is None else second,
        "average": stack.mean,
        "gains": stack.gains[:, 0],
        "held_gains": stack.judged_gains[:, 0],
        "held_rows": stack.judged,
        "rows": block.rows[0, 0],
        "factors": block.factors[0, 0, 0],
        "newest": block.newest[0],
        "losses": block.losses[0][:, None],
        "outputs": block.judged[0].flatten(1),
        "kept": block.weights[0] if len(block.weights) else block.weights.new_zeros((count, 0)),
    }.items():
        found[name] = tensor.data_ptr() + 4 * numbers * tensor.stride(0)
    found["table"] = stack.table.data_ptr()
    found["targets"] = stack.targets.data_ptr() + 4 * stack.places * layout.outputs
    found["weights"] = stack.weights.data_ptr() + 4 * stack.weighed
    for name, begin in begins.items():
        found[name] = space.data_ptr() + 4 * (begin + numbers * space.stride(0))
    fixed = {f"width{number}": width for number, width in enumerate(layout.hidden)} | places_of(layout)
    fixed |= {"inputs": layout.inputs, "fed_width": layout.fed, "frequencies": frequencies(layout)}
    fixed |= {"depth": len(layout.hidden)}
    fixed |= {"outputs_wide": layout.outputs, "loss": list(LOSSES).index(stack.loss), "adam": int(second is not None)}
    fixed |= {"decayed": layout.decayed, "size": layout.size, "pitch": stack.parameters.shape[1]}
    fixed |= {"block_steps": block_steps, "block_batch": block.rows.shape[3], "networks": count, "kinds": kinds}
    fixed |= {"held_most": stack.judged.shape[1], "at_once": rows}
    for name, value in fixed.items():
        found[name] = value
    found["start"] = stack.starts
    for name, values in zip(NetworkLoad._fields, zip(*loads, strict=True), strict=True):
        found[name] = values
    return found


def work(layout: Layout, rows: int) -> float:
    """What an epoch over so many rows costs, in some unit."""
    return float(rows * (layout.decayed + OF_WAVE * layout.inputs * frequencies(layout)))


def share_blocks(works: Sequence[float], blocks: int) -> NDArray[np.int32]:
    """Shares (blocks, 4) of the blocks of threads: a network, the block's rank, how many share it, how far the next is.

    Networks get blocks by what they cost, at least one each. More networks than blocks have one each in turns.
    """
    count = len(works)
    if count >= blocks:
        return np.array([(number, 0, 1, blocks) for number in range(blocks)], np.int32)
    cost = np.maximum(np.asarray(works, np.float64), 1e-9)
    parties = 1 + np.floor(cost / cost.sum() * (blocks - count)).astype(np.int64)
    for _ in range(blocks - int(parties.sum())):
        parties[np.argmax(cost / parties)] += 1
    return np.array(
        [(number, rank, of, count) for number, of in enumerate(parties.tolist()) for rank in range(of)], np.int32
    )
