"""`profile`: how many neurons of each MLP block of a model fire, and what a sparse path would gain here.

Counts are kept, not activations: per block the number of tokens by how many neurons fired on them, and per neuron the
number of tokens it fired on. So memory does not grow with the batches, and percentiles are exact.

In sparse-activations, Definition 1, a network of H(n, s, k) has n inputs, s neurons and at most k of them firing on any
input. Here k is the most seen on one token. By the argument of `fewfire.networks.check_sparsity`, with 95% confidence
over N tokens drawn independently at most a share 1 − 0.05^(1/N) of all tokens has more; neighbouring tokens are not
independent, so take it as a guide. W and B are those of Definition 2.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_integer
from fewfire.torch._batches import check_batches, check_model, evaluating, feed, hooked
from fewfire.torch._blocks import MlpBlock, found_with_rows, missed
from fewfire.torch._layers import neuron_rows
from fewfire.torch._sparsify import densely
from fewfire.torch._timing import in_turn, measured_gains

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire._types import IdArray

torch: Any = require("torch", "torch", "fewfire.torch.profile")

PERCENTILES = (5, 25, 50, 75, 95, 99)
GROUP = 16
"""Tokens that would be decoded together, for the union over a small batch."""


@dataclass(frozen=True)
class BlockProfile:
    """What was seen of one block. Shares are of its neurons.

    Parameters
    ----------
    block : MlpBlock
    tokens, calls : int
        Rows and calls of the block that were counted.
    mean : float
        Share that fires on a token; where zeros are not exact, share of activations other than 0.
    percentiles : dict
        Of the share that fires on a token, over tokens.
    union : float
        Share that fires on some token of a call, averaged over calls.
    union_of_16 : float or None
        The same for 16 consecutive tokens; None where no call had as many.
    dead : int
        Neurons that fired on no token.
    concentration : float
        The smallest share of neurons that makes 90% of all firing; 0 where nothing fired.
    k : int
        The most neurons that fired on one token.
    exceed_probability : float
        A 95% upper bound on the share of tokens on which more than k fire, were tokens independent.
    W, B : float or None
        ‖u‖_∞·max‖w_j‖ and ‖u‖_∞·max|b_j|; None for gated blocks and activations other than a (shifted) ReLU.
    seconds : dict from rows to (sparse, dense)
        What the block takes here, at 1 and 16 rows as far as the first batch has them; empty where it cannot be sparse.
    """

    block: MlpBlock
    tokens: int
    calls: int
    mean: float
    percentiles: dict[int, float]
    union: float
    union_of_16: float | None
    dead: int
    concentration: float
    k: int
    exceed_probability: float
    W: float | None = None
    B: float | None = None
    seconds: dict[int, tuple[float, float]] = field(default_factory=dict)

    def gain(self, rows: int) -> float | None:
        """How many times faster the sparse path is at this number of rows; None where that was not measured."""
        return self.seconds[rows][1] / self.seconds[rows][0] if rows in self.seconds else None


@dataclass(frozen=True)
class ModelProfile:
    """The blocks of a model, in its order; `print` shows a table.

    Parameters
    ----------
    blocks : tuple of BlockProfile
    model : str
        The name of the model's class.
    batches : int
        How many were run.
    threads : int
        Of torch, when gains were measured.
    missed : tuple of str
        Modules whose layers are named as those of blocks are, but which did not run.
    seconds : (sparse, dense) or None
        What the whole model takes on the first batch: measured dense, and less what blocks gain that are faster sparse.
    """

    blocks: tuple[BlockProfile, ...]
    model: str
    batches: int
    threads: int
    missed: tuple[str, ...] = ()
    seconds: tuple[float, float] | None = None

    @property
    def gain(self) -> float | None:
        """How many times faster the whole model becomes, about; None where that was not measured."""
        return None if self.seconds is None else self.seconds[1] / self.seconds[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON takes, with the gains by rows."""
        data = asdict(self) | {"gain": self.gain}
        for entry, one in zip(data["blocks"], self.blocks, strict=True):
            entry["gains"] = {str(rows): one.gain(rows) for rows in one.seconds}
            entry["seconds"] = {str(rows): list(pair) for rows, pair in one.seconds.items()}
            entry["percentiles"] = {str(p): share for p, share in one.percentiles.items()}
            entry["block"] |= {"layers": list(one.block.layers), "label": one.block.label}
        return data

    def rows(self) -> list[tuple[str, ...]]:
        """The table as texts, heads first."""
        heads = ("block", "shape", "activation", "fire", "5% – 95%", "union", "dead", "90% by", "k", "×1", "×16")
        return [heads, *(_texts(one) for one in self.blocks)]

    def __str__(self) -> str:
        table = self.rows()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join(line.rstrip() for line in lines)


def _texts(one: BlockProfile) -> tuple[str, ...]:
    block = one.block
    gains = [one.gain(1), one.gain(16)]
    return (
        block.label,
        f"{block.inputs}→{block.width}→{block.outputs}",
        block.activation + (f" {block.gated}" if block.gated else " gated" if block.gate else ""),
        f"{one.mean:.1%}",
        f"{one.percentiles[5]:.1%} – {one.percentiles[95]:.1%}",
        f"{one.union:.0%}",
        str(one.dead),
        f"{one.concentration:.0%}",
        str(one.k),
        *("–" if gain is None else f"{gain:.1f}×" for gain in gains),
    )


def profile(model: Any, batches: Iterable[Any], *, gains: bool = True, max_batches: int | None = None) -> ModelProfile:
    """Count which neurons of a model's MLP blocks fire, and measure what a sparse path would gain on this machine.

    Parameters
    ----------
    model : torch.nn.Module
        On the CPU; run in evaluation mode without gradients and left as it was. A sparse model is run densely.
    batches : iterable
        What the model is called with: tensors, tuples of arguments or mappings of keywords. They are taken one by one.
        From a loader that also gives labels, pass `(x for x, y in loader)`.
    gains : bool
        Whether to measure gains, at 1 and at 16 rows.
    max_batches : int, optional
        Stop after this many.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    >>> seen = ft.profile(model, [torch.randn(100, 20)], gains=False)
    >>> seen.blocks[0].tokens, seen.blocks[0].block.width
    (100, 64)
    """
    check_model(model, ("cpu",))
    if max_batches is not None:
        check_integer("max_batches", max_batches, 1)
    stream = itertools.islice(check_batches(batches), max_batches)
    first = list(itertools.islice(stream, 1))
    with densely(model):
        found = found_with_rows(model, first)
        passed_over = tuple(missed(model, [block for block, _ in found]))
        if not found:
            seen = (
                f"a model without one, {', '.join(passed_over)} among its parts" if passed_over else "a model without"
            )
            rule = "must hold an MLP block: Linear, an activation, Linear, with or without a gate"
            raise invalid("model", rule, seen, "check that the batches reach its MLP blocks")
        counters = [_Counter(model, block) for block, _ in found]
        ran = 0
        with evaluating(model), hooked([counter.hook() for counter in counters]):
            for batch in itertools.chain(first, stream):
                feed(model, batch)
                ran += 1
        measured = measured_gains(model, found, (1, GROUP)) if gains else {}
        whole = _whole(model, first[0], found) if measured else None
    entries = tuple(counter.summary(measured.get(counter.block.layers, {})) for counter in counters)
    return ModelProfile(entries, type(model).__name__, ran, torch.get_num_threads(), passed_over, whole)


def _whole(model: Any, batch: Any, found: list[tuple[MlpBlock, Any]]) -> tuple[float, float]:
    """Seconds of the model on a batch, with the blocks sparse that gain by it and without."""
    with evaluating(model):
        dense = in_turn([[lambda: feed(model, batch)]])[0][0]
    pairs = [pair for times in measured_gains(model, found).values() for pair in times.values()]
    dense = max(dense, sum(slow for _, slow in pairs))  # a model takes no less than its blocks
    return dense - sum(max(slow - fast, 0.0) for fast, slow in pairs), dense


class _Counter:
    """The running counts of one block."""

    def __init__(self, model: Any, block: MlpBlock) -> None:
        self.model, self.block = model, block
        self.histogram = torch.zeros(block.width + 1, dtype=torch.int64)
        self.per_neuron = torch.zeros(block.width, dtype=torch.int64)
        self.calls, self.union, self.groups, self.union_of_groups = 0, 0, 0, 0

    def hook(self) -> Any:
        """Count what the deciding layer gives; without exact zeros, what the second layer is given."""
        if self.block.threshold is None:
            return self.model.get_submodule(self.block.down).register_forward_pre_hook(
                lambda _module, args: self._count(args[0] != 0)
            )
        return self.model.get_submodule(self.block.screened).register_forward_hook(
            lambda _module, _args, z: self._count(~(z <= self.block.threshold))
        )

    def _count(self, fires: Any) -> None:
        fires = fires.reshape(-1, self.block.width)
        if not len(fires):
            return
        self.histogram += torch.bincount(fires.sum(1), minlength=self.block.width + 1)
        self.per_neuron += fires.sum(0)
        self.calls += 1
        self.union += int(fires.any(0).sum())
        whole = len(fires) // GROUP
        self.groups += whole
        self.union_of_groups += int(fires[: whole * GROUP].reshape(whole, GROUP, self.block.width).any(1).sum())

    def summary(self, seconds: dict[int, tuple[float, float]]) -> BlockProfile:
        """The counts as shares."""
        width = self.block.width
        histogram, per_neuron = self.histogram.numpy(), self.per_neuron.numpy()
        tokens, fired = int(histogram.sum()), int(per_neuron.sum())
        reached = np.cumsum(histogram)
        W, B = _norms(self.model, self.block)
        return BlockProfile(
            block=self.block,
            tokens=tokens,
            calls=self.calls,
            mean=fired / (tokens * width),
            percentiles={p: float(np.searchsorted(reached, p / 100 * tokens) / width) for p in PERCENTILES},
            union=self.union / (self.calls * width),
            union_of_16=self.union_of_groups / (self.groups * width) if self.groups else None,
            dead=int((per_neuron == 0).sum()),
            concentration=_concentration(per_neuron),
            k=int(np.flatnonzero(histogram)[-1]),
            exceed_probability=-math.expm1(math.log(0.05) / tokens),
            W=W,
            B=B,
            seconds=seconds,
        )


def _concentration(per_neuron: IdArray, share: float = 0.9) -> float:
    """The smallest share of neurons that makes this share of all firing."""
    total = int(per_neuron.sum())
    if not total:
        return 0.0
    reached = np.cumsum(np.sort(per_neuron)[::-1])
    return float(np.searchsorted(reached, share * total) + 1) / len(per_neuron)


def _norms(model: Any, block: MlpBlock) -> tuple[float | None, float | None]:
    if block.gate is not None or block.activation not in ("relu", "shifted"):
        return None, None
    up = model.get_submodule(block.up)
    largest = float(model.get_submodule(block.down).weight.detach().abs().max())
    rows = float(neuron_rows(up, first=True).double().norm(dim=1).max())
    bias = torch.zeros(block.width) if up.bias is None else up.bias.detach()
    return largest * rows, largest * float((bias.double() - (block.threshold or 0.0)).abs().max())
