"""The MLP blocks of a PyTorch model: a linear layer, an activation, perhaps a gate, and a second linear layer.

With batches the model is watched while it runs, which counts. Without, its parts are run by themselves on made-up
rows: a part that can be run so, such as an MLP or a whole transformer layer, shows its blocks in the same way.

A block is found in one of two forms. *Whole*: some module, or consecutive members of a `torch.nn.Sequential`, are the
block and nothing else; they were tried on rows of many sizes, and input, scores, activations and output agreed bit for
bit. *Inlined*: its layers are called in a larger
forward; the model was run a second time with the scores of all resting neurons replaced by what the sparse layer would
give, and its outputs did not change by a bit, so those scores go nowhere but to the activation.
"""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from fewfire._errors import InvalidArgument
from fewfire._optional import require
from fewfire.torch._batches import check_batches, check_model, evaluating, feed, hooked, tensors_in
from fewfire.torch._kernel import ACTIVATIONS, Gated, resting
from fewfire.torch._layers import is_linear, layer_shape
from fewfire.torch._recognise import ActivationKind
from fewfire.torch._trace import Match, Tracer, agrees, is_pointwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Look = Callable[[Any, str, Callable[[], Any]], list[tuple["MlpBlock", Any]]]

torch: Any = require("torch", "torch", "fewfire.torch")

INLINE_PAIRS = (
    *(("fc1", "fc2"), ("c_fc", "c_proj"), ("up_proj", "down_proj"), ("wi", "wo"), ("wi_0", "wo"), ("lin1", "lin2")),
    *(("linear1", "linear2"), ("dense_h_to_4h", "dense_4h_to_h"), ("w1", "w2")),
    ("intermediate.dense", "output.dense"),
)
"""Names that layers of a block have in common libraries; used only to report that a block may have been missed."""


@dataclass(frozen=True)
class MlpBlock:
    """A block of a model; layers are given by their dotted names.

    Parameters
    ----------
    name : str
        The module that is the block, or that holds its layers; "" is the model itself.
    up, down : str
        The first and the second linear layer.
    gate : str or None
        The layer whose activation multiplies `up`'s output.
    activation : str
        "relu", "shifted", "threshold", "relu2"; "zeros", another with exact zeros; else the name of a smooth one.
    threshold : float or None
        Scores up to it give 0; None where zeros are not exact. Read from values, a lower bound of the true one.
    gated : {None, "reglu", "drelu"}
        a(g)·z, or a(g)·a(z).
    inputs, width, outputs : int
    whole : bool
        Whether module `name`, or members of it, are the block and nothing else.
    members : tuple of str
        Of a whole block inside a longer `torch.nn.Sequential`: the names of its members in there.
    ranks : tuple of int
        Of a whole block: numbers of dimensions of inputs on which that was tried.
    reason : str or None
        Why the block cannot be made sparse; None where it can.
    """

    name: str
    up: str
    gate: str | None
    down: str
    activation: str
    threshold: float | None
    gated: Gated | None
    inputs: int
    width: int
    outputs: int
    whole: bool = False
    members: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    reason: str | None = None

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of its linear layers."""
        return (self.up, self.down) if self.gate is None else (self.up, self.gate, self.down)

    @property
    def label(self) -> str:
        """Its name for people: the module that it is, or that module with the layers inside it."""
        if self.whole and not self.members:
            return self.name or "(model)"
        inside = ", ".join(layer.removeprefix(f"{self.name}.") for layer in self.layers)
        return f"{self.name}[{inside}]"

    @property
    def screened(self) -> str:
        """The layer whose scores decide which neurons fire: the gate where there is one."""
        return self.gate or self.up

    @property
    def kind(self) -> ActivationKind:
        """The activation."""
        return ActivationKind(self.activation, float("nan") if self.threshold is None else self.threshold)


def find_blocks(model: Any, batches: Iterable[Any] | None = None) -> list[MlpBlock]:
    """The MLP blocks of a model, in the order in which its layers are named.

    Parameters
    ----------
    model : torch.nn.Module
        On the CPU or CUDA devices. It is run, in evaluation mode and without gradients, and left as it was.
    batches : iterable, optional
        What the model is called with: tensors, tuples of arguments or mappings of keywords. Only the first is used.
        Without them, parts of the model are run by themselves on made-up rows, and blocks may be missed.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    >>> [(block.activation, block.inputs, block.width) for block in ft.find_blocks(model)]
    [('relu', 8, 64)]
    """
    return [block for block, _ in found_with_rows(check_model(model), batches)]


def found_with_rows(model: Any, batches: Iterable[Any] | None) -> list[tuple[MlpBlock, Any]]:
    """The blocks, each with a sample of the rows that its first layer was given."""
    return _found(model, batches, _found_in_run)


def found_with_activations(
    model: Any, batches: Iterable[Any] | None
) -> tuple[list[tuple[MlpBlock, Match]], list[Any], dict[tuple[str, str], str]]:
    """The blocks as they were seen at work, the modules that may be activations and were called elsewhere, and the
    activations of packed gates by the names of the two layers."""
    elsewhere: list[Any] = []
    packed: dict[tuple[str, str], str] = {}

    def look(model: Any, name: str, run: Callable[[], Any]) -> list[tuple[MlpBlock, Any]]:
        found, tracer = _traced(model, name, run)
        inside = Counter(id(module) for _, match in found for module in match.activations)
        total = Counter(id(module) for module in tracer.activated)
        elsewhere.extend(module for module in tracer.activated if total[id(module)] > inside[id(module)])
        prefix = f"{name}." if name else ""
        packed.update({(prefix + up, prefix + down): kind for (up, down), kind in tracer.packed.items()})
        return found

    return _found(model, batches, look), elsewhere, packed


def _found(model: Any, batches: Iterable[Any] | None, look: Look) -> list[tuple[MlpBlock, Any]]:
    """What is seen when the model runs on a batch, or its parts do on made-up rows, in the model's order."""
    with evaluating(model):
        if batches is None:
            found = _found_in_parts(model, look)
        else:
            first = next(check_batches(batches), None)
            if first is None:
                raise InvalidArgument("batches must hold at least one batch; got none. Remedy: pass [batch].")
            found = look(model, "", lambda: feed(model, first))
    order = {name: index for index, (name, _) in enumerate(model.named_modules())}
    return sorted(found, key=lambda pair: order[pair[0].up])


def missed(model: Any, blocks: Iterable[MlpBlock]) -> list[str]:
    """Modules whose layers are named as blocks' layers are, and which are in none of the blocks."""
    taken = {layer for block in blocks for layer in block.layers}
    names = {name for name, module in model.named_modules() if is_linear(module)}
    found = []
    for up, down in INLINE_PAIRS:
        for name in names - taken:
            owner = name.removesuffix(up)
            if name.endswith(up) and (not owner or owner.endswith(".")) and owner + down in names - taken:
                found.append(owner.removesuffix("."))
    return sorted(found)


def _found_in_parts(model: Any, look: Look) -> list[tuple[MlpBlock, Any]]:
    """Run every part by itself, the smallest first, on rows of several sizes; those that cannot be are passed over."""
    found: dict[tuple[str, ...], tuple[MlpBlock, Any]] = {}
    for name, part in reversed(list(model.named_modules())):
        layers = [module for module in part.modules() if is_linear(module)]
        if len(layers) < 2:
            continue
        for rows in _made_up(layers[0]):
            try:
                results = look(model, name, lambda part=part, rows=rows: part(rows.clone()))  # type: ignore[misc]
            except Exception:  # the part is the user's, and the rows are not what it was made for
                continue
            for block, given in results:
                known = found.get(block.layers)
                if known is None or (known[0].reason and not block.reason):
                    found[block.layers] = (block, given)
            break
    return list(found.values())


def _made_up(layer: Any) -> list[Any]:
    """Rows for a layer, as a table and as one sequence: of several sizes, so that biases win on some and not on all."""
    seed = torch.Generator().manual_seed(0)
    rows = torch.randn((32, layer_shape(layer)[0]), generator=seed)
    rows = (rows * torch.tensor([1.0, -30.0, 0.01, 3.0]).repeat(8)[:, None]).to(layer.weight)
    return [rows, rows[None]]


def _traced(model: Any, name: str, run: Callable[[], Any]) -> tuple[list[tuple[MlpBlock, Match]], Tracer]:
    """What is seen while module `name` of the model runs."""
    tracer = Tracer(model.get_submodule(name))
    with hooked(tracer.hooks()):
        run()
    prefix = f"{name}." if name else ""
    return [(_block(model, prefix, match), match) for match in tracer.complete() if match.kind is not None], tracer


def _found_in_run(model: Any, name: str, run: Callable[[], Any]) -> list[tuple[MlpBlock, Any]]:
    """The blocks seen while module `name` of the model runs."""
    found = [(_try_whole(model, block, match.x), match.x) for block, match in _traced(model, name, run)[0]]
    inlined = [block for block, _ in found if not block.whole and block.reason is None]
    leaking = {block.layers for block in _leaking(model, inlined, run)} if inlined else set()
    reason = "its scores are used elsewhere too, or the model gives no tensors, or others each time"
    return [(replace(block, reason=reason) if block.layers in leaking else block, rows) for block, rows in found]


def _block(model: Any, prefix: str, match: Match) -> MlpBlock:
    assert match.kind is not None
    up, down = prefix + match.up, prefix + match.down
    gate = None if match.gate is None else prefix + match.gate
    inputs, width = layer_shape(model.get_submodule(up))
    outputs = layer_shape(model.get_submodule(down))[1]
    kind, reason = match.kind, None
    if not kind.exact:
        reason = f"{kind.name} has no exact zeros"
    elif match.weighed:
        reason = "its activation has weights of its own, which may change"
    owners = [layer.split(".")[:-1] for layer in (up, gate, down) if layer is not None]
    # The smallest module that holds all of them: how far their paths agree.
    name = ".".join(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*owners, strict=False)))
    threshold = kind.threshold if kind.exact else None
    sizes = (inputs, width, outputs)
    return MlpBlock(name, up, gate, down, kind.name, threshold, match.gating, *sizes, reason=reason)


def _try_whole(model: Any, block: MlpBlock, rows: Any) -> MlpBlock:
    """The block marked as whole where its owner, or members of that, compute it and nothing else."""
    if block.reason or block.activation not in ACTIVATIONS:
        return block
    owner, members = model.get_submodule(block.name), _members(model, block)
    if members and len(members) < len(owner._modules):
        owner, block = sequence_of(owner, members), replace(block, members=members)
    layers = [model.get_submodule(layer) for layer in block.layers]
    others = [m for m in owner.modules() if m is not owner and m not in layers]
    allowed = (torch.nn.Dropout, torch.nn.Identity)
    plain = all(isinstance(m, allowed) or is_pointwise(m) for m in others) and not owner._parameters
    if not plain or "forward" in vars(owner):
        return replace(block, members=())
    made_up = _made_up(layers[0])[0].to(rows)
    probe = torch.cat([rows[:12], 30 * rows[:12], 1e5 * rows[:12], made_up])[:64]  # caps far above the batch show too
    finite = torch.isfinite(probe).all(dim=1)  # in half precision large rows overflow, and prove nothing
    with suppress(Exception):  # it is the user's: whether it takes such rows is tried afterwards
        for part in (*layers[:-1], owner):
            finite &= torch.isfinite(part(probe.clone()).reshape(len(probe), -1)).all(dim=1)
    probe = probe[finite]
    if not len(probe):
        return replace(block, members=())
    probe = probe.repeat(-(-64 // len(probe)), 1)[:64]  # the same rows again where there are fewer
    shapes = {1: (block.inputs,), 2: (64, block.inputs), 3: (4, 16, block.inputs), 4: (2, 2, 16, block.inputs)}
    ranks = tuple(rank for rank, shape in shapes.items() if _is_block(owner, layers, block, probe, shape))
    return replace(block, whole=True, ranks=ranks) if 2 in ranks else replace(block, members=())


def _members(model: Any, block: MlpBlock) -> tuple[str, ...]:
    """The members of a `torch.nn.Sequential` from the first to the second layer of a block; empty where it is none."""
    owner = model.get_submodule(block.name)
    own = not isinstance(owner, torch.nn.Sequential) or type(owner).forward is not torch.nn.Sequential.forward
    if own or "forward" in vars(owner):
        return ()
    names = list(owner._modules)
    ends = [layer.rpartition(".")[2] for layer in (block.up, block.down)]
    if block.gate is not None or not all(end in names for end in ends):
        return ()
    return tuple(names[names.index(ends[0]) : names.index(ends[1]) + 1])


def sequence_of(owner: Any, members: tuple[str, ...]) -> Any:
    """Some members of a `torch.nn.Sequential` as one of their own."""
    return torch.nn.Sequential(*(owner._modules[name] for name in members))


def _is_block(owner: Any, layers: list[Any], block: MlpBlock, probe: Any, shape: tuple[int, ...]) -> bool:
    """Whether the owner computes the block and nothing else on a probe of this shape, bit for bit."""
    seen: dict[int, tuple[Any, Any]] = {}
    calls = [0]

    def hook(module: Any, args: tuple[Any, ...], output: Any) -> None:
        calls[0] += 1
        seen[id(module)] = (args[0].clone(), output.clone())

    x = (probe if len(shape) > 1 else probe[0]).reshape(shape)
    with hooked([layer.register_forward_hook(hook) for layer in layers]):
        try:
            y = owner(x.clone())
        except Exception:  # the user's code and a rank it was not made for
            return False
    if calls[0] != len(layers) or not isinstance(y, torch.Tensor) or y.shape != (*x.shape[:-1], block.outputs):
        return False
    (down_x, down_y), firsts = seen[id(layers[-1])], [seen[id(layer)] for layer in layers[:-1]]
    if not torch.equal(y, down_y) or not all(torch.equal(first, x) for first, _ in firsts):
        return False
    z, kind = firsts[0][1], block.kind
    if block.gate is None:
        return agrees(kind, z, down_x)
    return bool(torch.equal(kind.value(firsts[1][1]) * (z if block.gated == "reglu" else kind.value(z)), down_x))


def _leaking(model: Any, blocks: list[MlpBlock], run: Callable[[], Any]) -> list[MlpBlock]:
    """The inlined blocks whose resting scores have an effect on what the run gives."""
    plain = _outputs(model, blocks, (), run)
    if not plain or not _same(plain, _outputs(model, blocks, (), run)):
        return blocks
    if _same(plain, _outputs(model, blocks, blocks, run)):
        return []
    return [block for block in blocks if not _same(plain, _outputs(model, blocks, [block], run))]


def _outputs(model: Any, blocks: list[MlpBlock], rested: Iterable[MlpBlock], run: Callable[[], Any]) -> list[Any]:
    """What a run gives with the scores of resting neurons of some blocks replaced; all are hooked either way."""
    kinds = {layer: block.kind for block in rested for layer in split_layers(block)}

    def hook(kind: ActivationKind | None, _module: Any, _args: Any, z: Any) -> Any:
        if kind is None:
            return z
        return torch.where(z <= kind.threshold, torch.full_like(z, resting(*split_kind(kind))), z)

    names = [layer for block in blocks for layer in split_layers(block)]
    layers = [(model.get_submodule(name), kinds.get(name)) for name in names]
    with hooked([layer.register_forward_hook(partial(hook, kind)) for layer, kind in layers]):
        return copy.deepcopy(tensors_in(run()))


def split_layers(block: MlpBlock) -> tuple[str, ...]:
    """The layers of an inlined block whose scores may be left out where they rest."""
    return (block.up, block.gate) if block.gate and block.gated == "drelu" else (block.screened,)


def split_kind(kind: ActivationKind) -> tuple[str, float]:
    """How the sparse first layer of an inlined block cuts: by the threshold alone."""
    return ("shifted" if kind.threshold < 0 else "threshold"), kind.threshold


def _same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
        for a, b in zip(first, second, strict=True)
    )
