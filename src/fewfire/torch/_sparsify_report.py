"""What `sparsify` tells of a model: what became of each of its MLP blocks, and what that takes."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewfire.torch._blocks import MlpBlock


@dataclass(frozen=True)
class BlockReport:
    """What became of one block.

    Parameters
    ----------
    block : MlpBlock
        `block.reason` says why nothing was replaced, or is None.
    form : "fused", "split" or None
        A module that is the block, or its two layers apart; None where nothing was replaced.
    activity : float or None
        Share of neurons that fire, over the rows it was calibrated on.
    dense_above : int or None
        More rows than this are computed densely.
    extra_bytes : int
        Memory held beside the weights.
    seconds : dict from rows to (sparse, dense)
        As measured at build; empty where `dense_above` was given.
    device : str
        Where its weights are.
    """

    block: MlpBlock
    form: str | None = None
    activity: float | None = None
    dense_above: int | None = None
    extra_bytes: int = 0
    seconds: dict[int, tuple[float, float]] = field(default_factory=dict)
    device: str = "cpu"


@dataclass(frozen=True)
class SparsifyReport:
    """What `sparsify` did: one entry per block, in the model's order.

    Parameters
    ----------
    blocks : tuple of BlockReport
    calibrated : bool
        Whether the rows came from batches; made-up rows otherwise.
    missed : tuple of str
        Modules whose layers are named as those of blocks are, but which were not seen at work.
    """

    blocks: tuple[BlockReport, ...]
    calibrated: bool
    missed: tuple[str, ...] = ()

    @property
    def replaced(self) -> tuple[BlockReport, ...]:
        """The blocks that have a sparse path now."""
        return tuple(entry for entry in self.blocks if entry.form is not None)

    @property
    def extra_bytes(self) -> int:
        """Memory held beside the weights, over all blocks."""
        return sum(entry.extra_bytes for entry in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "extra_bytes": self.extra_bytes}

    def __str__(self) -> str:
        rows = "calibrated on batches" if self.calibrated else "calibrated on made-up rows"
        extra = f"{self.extra_bytes / 2**20:.1f} MiB beside the weights"
        lines = [f"{len(self.replaced)} of {len(self.blocks)} blocks sparse, {extra}, {rows}"]
        lines += [f"  {entry.block.label}: {_told(entry)}" for entry in self.blocks]
        return "\n".join(lines + [f"  {name}: not seen at work; pass batches" for name in self.missed])


def _told(entry: BlockReport) -> str:
    if entry.form is None:
        return f"dense, because {entry.block.reason}"
    most = "any number of rows" if entry.dense_above == sys.maxsize else f"up to {entry.dense_above} rows"
    active = "" if entry.activity is None else f", {entry.activity:.1%} fire"
    where = "" if entry.device == "cpu" else f" on {entry.device}"
    return f"{entry.form}, {entry.block.activation}{active}, sparse for {most}{where}"
