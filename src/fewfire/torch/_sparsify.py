"""`sparsify`: a model's MLP blocks at the cost of the neurons that fire, in place, and undone when anything fails."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fewfire._errors import MissingDependency, invalid
from fewfire._optional import require
from fewfire._validate import check_choice, check_integer
from fewfire.torch._autoencoders import looks_like_autoencoder
from fewfire.torch._batches import check_model
from fewfire.torch._blocks import MlpBlock, found_with_rows, missed, sequence_of, split_kind, split_layers
from fewfire.torch._forwards import (
    DownForward,
    Fallback,
    FusedForward,
    Policy,
    SequenceForward,
    SparseForward,
    UpForward,
)
from fewfire.torch._layers import neuron_rows, put_back, why_not
from fewfire.torch._platforms import PLATFORMS
from fewfire.torch._timing import SIZES, in_turn, largest_faster
from fewfire.torch._watch import StandIn, put_in, stand_in, take_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

torch: Any = require("torch", "torch", "fewfire.torch.sparsify")

FASTER_DENSE = "the dense path is faster at its activity, for one row already"


@dataclass(frozen=True)
class BlockReport:
    """What became of one block.

    Parameters
    ----------
    block : MlpBlock
        `block.reason` is why nothing was replaced, or is None.
    form : "fused", "split" or None
        A module that is the block, or its two layers apart; None where nothing was replaced.
    activity : float or None
        Share of neurons that fire, over the rows it was calibrated on.
    dense_above : int or None
        More rows than this are computed densely.
    extra_bytes : int
        Memory used in addition to the weights.
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
        Modules whose layers are named as those of blocks are, but which did not run.
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
        """Memory used in addition to the weights, over all blocks."""
        return sum(entry.extra_bytes for entry in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "extra_bytes": self.extra_bytes}

    def __str__(self) -> str:
        rows = "calibrated on batches" if self.calibrated else "calibrated on made-up rows"
        extra = f"{self.extra_bytes / 2**20:.1f} MiB on top of the weights"
        lines = [f"{len(self.replaced)} of {len(self.blocks)} blocks sparse, {extra}, {rows}"]
        lines += [f"  {entry.block.label}: {_line(entry)}" for entry in self.blocks]
        return "\n".join(lines + [f"  {name}: did not run; pass batches" for name in self.missed])


def _line(entry: BlockReport) -> str:
    if entry.form is None:
        return f"dense, because {entry.block.reason}"
    most = "any number of rows" if entry.dense_above == sys.maxsize else f"up to {entry.dense_above} rows"
    active = "" if entry.activity is None else f", {entry.activity:.1%} fire"
    where = "" if entry.device == "cpu" else f" on {entry.device}"
    return f"{entry.form}, {entry.block.activation}{active}, sparse for {most}{where}"


def sparsify(
    model: Any,
    batches: Iterable[Any] | None = None,
    *,
    dense_above: int | None = None,
    gradients: Fallback = "dense",
    unsupported: Fallback = "dense",
    threads: int | None = None,
) -> SparsifyReport:
    """Give the MLP blocks of a model a path that costs what the firing neurons cost, in place; reports what it did.

    Only blocks whose zeros are exact are touched (ReLU, shifted and thresholded ReLU, ReLU², ReGLU, dReLU), and their
    outputs stay equal up to the rounding of sums; on a GPU only blocks that are a module of their own, or members of a
    `Sequential`. Modules, parameters and their names stay; the second layer's weight is stored neuron by neuron, as a
    transposed view. When anything fails, the model is left as it was.

    Parameters
    ----------
    model : torch.nn.Module
        float32 on the CPU; bfloat16, float16 or float32 on CUDA devices, for which CuPy has to be installed.
    batches : iterable, optional
        What the model is called with; the first finds the blocks and calibrates. Without it parts of the model are run
        on made-up rows, whose activity may be another.
    dense_above : int, optional
        More rows (tokens of all sequences of a call) than this are computed densely. By default measured per block, at
        up to 64 rows or as many as the first batch has; blocks that are faster densely at one row stay as they are. On
        a GPU more than 4 are computed densely in any case.
    gradients : {"dense", "error"}
        What a block does where gradients are wanted.
    unsupported : {"dense", "error"}
        What a block does with other dtypes and devices, and under autocast.
    threads : int, optional
        Of the sparse kernel; by default as many as torch uses at the time.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> generator = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).eval()
    >>> x = torch.randn(1, 64)
    >>> with torch.inference_mode():
    ...     dense = model(x)
    ...     report = ft.sparsify(model, [x], dense_above=16)  # in place
    ...     sparse = model(x)
    >>> bool(torch.allclose(dense, sparse, atol=1e-5))
    True
    >>> ft.densify(model)
    1
    """
    if dense_above is not None:
        check_integer("dense_above", dense_above, 1, sys.maxsize, "leave it out to have it measured")
    if threads is not None:
        check_integer("threads", threads, 1, 1024)
    check_choice("gradients", gradients, ("dense", "error"))
    check_choice("unsupported", unsupported, ("dense", "error"))
    if any(True for _ in sparse_forwards(check_model(model))):
        raise invalid("model", "must not be sparse already", "a sparsified model", "call densify first")
    found = found_with_rows(model, batches)
    passed_over = tuple(missed(model, [block for block, _ in found]))
    if not any(block.reason is None for block, _ in found):
        rule = "must hold an MLP block whose zeros are exact: Linear, ReLU, Linear, with or without a gate"
        got = "a model without a block" + (f" that could be seen ({', '.join(passed_over)})" if passed_over else "")
        if found:
            reasons = sorted({str(block.reason) for block, _ in found})
            got = f"a model whose {len(found)} blocks cannot be used: {'; '.join(reasons)}"
        remedy = "pass batches, so that the model can be watched running" if batches is None else "train it with a ReLU"
        if any(map(looks_like_autoencoder, model.modules())):
            remedy = "sparse autoencoders have an exact path of their own, fewfire.torch.SparseEncoder.of(module)"
        raise invalid("model", rule, got, remedy)
    policy = Policy(dense_above or sys.maxsize, gradients, unsupported, threads)
    with ExitStack() as undo, torch.no_grad():
        entries = _replace(model, found, policy, dense_above is None, undo)
        undo.pop_all()
    return SparsifyReport(tuple(entries), batches is not None, passed_over)


def densify(model: Any) -> int:
    """Undo `sparsify`: every block is computed by its module's class; gives the number of modules changed.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
    >>> report = ft.sparsify(model, [torch.randn(1, 8)], dense_above=16)
    >>> ft.densify(model)
    1
    """
    forwards = list(sparse_forwards(check_model(model)))
    for forward in forwards:
        forward.remove()
    return len(forwards)


def refresh(model: Any) -> int:
    """Look at the weights again: after they were changed through `.data`, which torch does not notice.

    On a GPU also after any change in place, before CUDA graphs that were captured earlier are replayed.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
    >>> report = ft.sparsify(model, [torch.randn(1, 8)], dense_above=16)
    >>> model[0].weight.data.mul_(2.0)  # doctest: +ELLIPSIS
    tensor(...)
    >>> ft.refresh(model)
    1
    """
    forwards = list(sparse_forwards(check_model(model)))
    for forward in forwards:
        forward.refresh()
    return len(forwards)


def sparse_forwards(model: Any) -> Iterator[SparseForward]:
    """The sparse forwards that modules of this model have."""
    for module in model.modules():
        forward = stand_in(module)
        if isinstance(forward, SequenceForward):
            yield from forward.parts
        elif isinstance(forward, SparseForward):
            yield forward


@contextmanager
def densely(model: Any) -> Iterator[None]:
    """The model with its modules' own forwards for a while, so that hooks see every layer."""
    inside = [
        (module, module.forward) for module in model.modules() if isinstance(vars(module).get("forward"), StandIn)
    ]
    for module, _ in inside:
        take_out(module)
    try:
        yield
    finally:
        for module, forward in inside:
            put_in(module, forward)


def _replace(
    model: Any, found: list[tuple[MlpBlock, Any]], policy: Policy, choose: bool, undo: ExitStack
) -> list[BlockReport]:
    """Replace what can be, measure, and take back what does not pay; `undo` takes all back."""
    entries, taken, live = [], set[str](), list[_Live]()
    for block, rows in found:
        device = model.get_submodule(block.up).weight.device
        reason = block.reason or _why_not(model, block, taken)
        if reason is None:
            absent = PLATFORMS[device.type].absent()
            if absent is not None:
                raise MissingDependency(f"sparse blocks on {PLATFORMS[device.type].label} cannot run: {absent}")
            own = undo.enter_context(ExitStack())
            forwards = _install(model, block, policy, own)
            kernels = [kernel for kernel in (forward.kernel() for forward in forwards) if kernel is not None]
            if len(kernels) < len(forwards):
                reason = next((one.reason for one in forwards if one.reason), "it has no kernel")
                own.close()
        if reason is not None:
            entries.append(BlockReport(replace(block, reason=reason), device=str(device)))
            continue
        taken.update(block.layers)
        most = min(kernel.most_rows for kernel in kernels)
        entry = BlockReport(
            block,
            form="fused" if block.whole else "split",
            activity=activity(model, block, rows),
            dense_above=min(policy.dense_above, most),
            extra_bytes=sum(kernel.extra_bytes for kernel in kernels),
            device=str(device),
        )
        live.append(_Live(len(entries), forwards, rows, own, most))
        entries.append(entry)
    if choose:
        for device in {one.rows.device for one in live}:
            _choose(entries, [one for one in live if one.rows.device == device], policy, device)
    return entries


class _Live(NamedTuple):
    """A block that was replaced: its number in the report, what stands in, rows to try, how to undo it, most rows."""

    number: int
    forwards: list[SparseForward]
    rows: Any
    undo: ExitStack
    most: int


def _why_not(model: Any, block: MlpBlock, taken: set[str]) -> str | None:
    shared = taken.intersection(block.layers)
    if shared:
        return f"its layer {min(shared)} belongs to the block before it"
    layers = {name: model.get_submodule(name) for name in block.layers}
    weight = layers[block.up].weight
    platform = PLATFORMS[weight.device.type]
    types = platform.types(block.inputs, block.outputs)
    if weight.dtype not in types and weight.dtype in platform.types(0, 0):
        sizes = f"{block.inputs} inputs and {block.outputs} outputs"
        return f"its {sizes} are not multiples of 16 bytes, as they must be on {platform.label}"
    types = types or platform.types(0, 0)
    addresses: dict[int, set[int]] = {}
    for parameter in model.parameters():
        addresses.setdefault(parameter.untyped_storage().data_ptr(), set()).add(id(parameter))
    for name, layer in layers.items():
        reason = why_not(layer, name != block.down, {weight.device.type: types})
        if reason is None and len(addresses[layer.weight.untyped_storage().data_ptr()]) > 1:
            reason = "its weight shares memory with another parameter"
        if reason is None and (layer.weight.dtype != weight.dtype or layer.weight.device != weight.device):
            reason = f"its weight is {layer.weight.dtype} on {layer.weight.device}, unlike that of {block.up}"
        if reason is not None:
            return f"of {name}: {reason}"
    if not block.whole and not platform.parts:
        return f"it is inlined in the forward of a larger module, which has no sparse path on {platform.label}"
    return platform.lacks(_kind(block)) if block.whole else _unsure(model, block)


def _unsure(model: Any, block: MlpBlock) -> str | None:
    """Why what lies between the scores of an inlined block and its activation may change with other weights.

    An adapter begins with zeros or ones, and is then as good as absent: only its parameters show that it is there.
    """
    owner, within = model.get_submodule(block.name), f"{block.name}." if block.name else ""
    own = {id(p) for name in block.layers for p in model.get_submodule(name).parameters()}
    for name in split_layers(block):
        path = name.removeprefix(within).split(".")
        for wrapper in (owner.get_submodule(".".join(path[:depth])) for depth in range(1, len(path))):
            if any(id(parameter) not in own for parameter in wrapper.parameters()):
                return f"its layer {name} is inside a {type(wrapper).__name__} that has weights of its own"
    for name, parameter in owner.named_parameters():
        if parameter.ndim > 1 and id(parameter) not in own and not bool(parameter.any()):
            return f"{within}{name} is all zeros, so it cannot be seen whether it adds to the scores"
    return None


def _kind(block: MlpBlock) -> dict[str, Any]:
    return {"activation": block.activation, "threshold": block.threshold, "gated": block.gated}


def _install(model: Any, block: MlpBlock, policy: Policy, undo: ExitStack) -> list[SparseForward]:
    """Put the sparse forwards of one block in place; `undo` gets how to take them out."""
    layers = {name: model.get_submodule(name) for name in block.layers}
    for layer in layers.values():
        undo.callback(put_back, layer, layer.weight.stride())
    forwards: list[SparseForward] = []
    if block.whole:
        parts = (layers[block.up], layers[block.down], *((layers[block.gate],) if block.gate else ()))
        owner = model.get_submodule(block.name)
        module, home = (sequence_of(owner, block.members), owner) if block.members else (owner, None)
        forwards.append(FusedForward(module, parts, _kind(block), block.ranks, policy, home, block.members))
    else:
        cut, owner = split_kind(block.kind), model.get_submodule(block.name)
        forwards += [UpForward(layers[name], *cut, policy, owner) for name in split_layers(block)]
        forwards.append(DownForward(layers[block.down], policy, owner))
    for forward in forwards:
        undo.callback(forward.remove)
    for forward in forwards:
        forward.kernel()
        forward.install()
    return forwards


def activity(model: Any, block: MlpBlock, rows: Any) -> float:
    """The share of neurons that fire on a sample of rows."""
    layer = model.get_submodule(block.screened)
    z = torch.nn.functional.linear(rows, neuron_rows(layer, first=True), layer.bias)
    return float((z > block.threshold).double().mean())


def _choose(entries: list[BlockReport], live: list[_Live], policy: Policy, device: Any) -> None:
    """Measure the replaced blocks of a device at growing numbers of rows, and keep sparse what is faster so."""
    going = list(live)
    for rows in SIZES:
        # The same row twice would fire the same neurons twice.
        going = [one for one in going if rows <= min(len(one.rows), one.most)]
        ways = [_ways(one.forwards, one.rows[:rows].clone()) for one in going]
        for one, (sparse, dense) in zip(going, in_turn(ways, device=device) if ways else [], strict=True):
            entries[one.number].seconds[rows] = (sparse, dense)
        going = [one for one in going if largest_faster(entries[one.number].seconds) == rows]
    for number, forwards, _, undo, _ in live:
        entry = entries[number]
        most = largest_faster(entry.seconds)
        if most == 0:
            undo.close()
            left = replace(entry.block, reason=FASTER_DENSE)
            entries[number] = replace(entry, block=left, form=None, dense_above=None, extra_bytes=0)
        else:
            for forward in forwards:
                forward.policy = replace(policy, dense_above=most)
            entries[number] = replace(entry, dense_above=most)


def _ways(forwards: list[SparseForward], rows: Any) -> list[Callable[[], Any]]:
    """The sparse and the dense way of one block."""
    if len(forwards) == 1:
        fused = forwards[0]
        return [lambda: fused.compute(rows), lambda: type(fused.module).forward(fused.module, rows)]
    *firsts, down = forwards

    def sparse() -> Any:
        return down.compute(math.prod(torch.relu(first.compute(rows)) for first in firsts))

    def dense() -> Any:
        scores = [type(first.module).forward(first.module, rows) for first in firsts]
        return type(down.module).forward(down.module, math.prod(map(torch.relu, scores)))

    return [sparse, dense]
