"""What stands in for a module's forward, and whether modules and weights are still those it was made for.

Adapters, quantisation, parametrisations and plain assignments replace modules, classes and values that
were looked at. Compared are classes and their `forward`, children, attributes of instances, versions of
tensors that are not the layers', training mode where it matters; and no hook may look inside. Weights and biases of the
layers are not compared: codes are made anew for them (`WatchedKernel`).

A call compares with what was seen last, list by list, in under 1 µs (`benchmarks/sparse_watch.py`). Only where that
differs is every module compared with what it was at first. Not seen are changes inside an object that an attribute
refers to, changes of tensors through `.data`, and functions that were replaced in a module of Python or in torch's own
classes.
"""

from __future__ import annotations

from operator import attrgetter, getitem
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from fewfire._errors import InvalidArgument
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fewfire.torch._platforms import SparseKernel

torch: Any = require("torch", "torch", "fewfire.torch.sparsify")


class _CannotLeave(InvalidArgument, AttributeError):
    """Also an AttributeError, so that `hasattr` may look for the code of a stand-in."""


class StandIn:
    """What stands in for the forward of a module."""

    def refuse_export(self) -> NoReturn:
        """Raise: what was made sparse cannot leave this process."""
        raise _CannotLeave(
            "model must be dense for torch.export and torch.jit.script; got a sparsified model. "
            "Remedy: call fewfire.torch.densify(model) first."
        )

    @property
    def __code__(self) -> NoReturn:
        """What torch.export reads of the outermost forward before it begins."""
        self.refuse_export()


SCRIPTED = "__prepare_scriptable__"
"""What torch.jit.script calls on every module before it compiles any."""


def put_in(module: Any, forward: StandIn) -> None:
    """Stand in for the forward of a module."""
    module.forward = forward
    setattr(module, SCRIPTED, forward.refuse_export)


def stand_in(module: Any) -> StandIn | None:
    """What stands in for the forward of a module, also where others have wrapped it since."""
    found = getattr(vars(module).get(SCRIPTED), "__self__", None)
    return found if isinstance(found, StandIn) else None


def take_out(module: Any) -> None:
    """Give a module its own forward back. What others have put there stays."""
    vars(module).pop(SCRIPTED, None)
    if isinstance(vars(module).get("forward"), StandIn):
        del module.forward


_USUAL = frozenset(vars(torch.nn.Module()))
"""Attributes that every module has."""
_IDLE = frozenset(
    {"inplace", SCRIPTED, "_compiled_call_impl", "_is_torch_compile", "_hf_hook", "_old_forward", "_is_hf_initialized"}
)
"""Attributes that torch and others leave on modules, and which do not change what these compute."""
_GLOBAL_HOOKS = (torch.nn.modules.module._global_forward_hooks, torch.nn.modules.module._global_forward_pre_hooks)


class _Seen(NamedTuple):
    """What a module was: its class, its children in order, its attributes."""

    kind: Any
    children: list[tuple[str, Any]]
    attributes: dict[str, Any]


class _Content(NamedTuple):
    """What no copy or file can keep: hooks by reference, functions of classes, versions of tensors."""

    hooks: list[Any]
    kinds: list[Any]
    forwards: list[Any]
    tensors: list[Any]
    versions: list[int]


class Watch:
    """Modules as they are now, to be compared with what they are later; for copies and files as well.

    `layers` are the linear layers among the parts; `outer` is the part whose own hooks make no difference. `fused`
    parts are computed at once, as in evaluation; the `forward` of `outer` is then not its own.
    """

    _content: _Content | None = None
    _last: tuple[list[Any], ...] | None = None
    """What a call looks at, and what was there when it was last compared; None where the modules were copied."""

    def __init__(self, parts: Iterable[Any], layers: Iterable[Any], outer: Any, fused: bool) -> None:
        self._parts, self._layers, self._outer, self._fused = list(parts), list(layers), outer, fused
        modes = [
            part
            for part in self._parts
            if part not in self._layers and (part is outer or _is_own(type(part)) or isinstance(part, torch.nn.Dropout))
        ]
        self._modes = (modes or self._layers[:1]) if fused else []
        self._seen = [self._look(part) for part in self._parts]
        self._changed = False
        self._content = self._contents()
        self._compare()

    def holds(self) -> bool:
        """Whether nothing has changed, and no hook looks inside."""
        try:
            hooks, parts, kinds, sized, sizes, owners, names, values, classes, forwards, tensors, marks = self._last  # type: ignore[misc]
            if (
                [*map(type, parts)] == kinds
                and [*map(len, sized)] == sizes
                and [*map(getitem, owners, names)] == values
                and (not classes or [*map(_forward, classes)] == forwards)
                and (not tensors or [*map(_version, tensors)] == marks)
            ):
                return self._same and not any(hooks)
        except Exception:  # nothing was compared yet, an attribute is gone, or what is there now cannot be compared
            pass
        self._compare()
        return self._same and not any(self._content.hooks)  # type: ignore[union-attr]

    def _compare(self) -> None:
        """Compare every module with what it was at first, and note what it is now."""
        now = [self._look(part) for part in self._parts]
        if self._content is None:
            self._content = self._contents()
        self._changed = self._changed or self._contents()[2:] != self._content[2:]
        self._same = (
            not self._changed
            and not any(part.training for part in self._modes)
            and all(_alike(*pair) for pair in zip(self._seen, now, strict=True))
        )
        sized = [vars(part) for part in self._parts]
        sized += [held for part in self._parts if _is_own(type(part)) for held in (part._parameters, part._buffers)]
        entries = [(held, name, held[name]) for part in self._parts for name, held in self._attributes(part)]
        entries += [(vars(part), "training", part.training) for part in self._modes]
        for part, seen in zip(self._parts, now, strict=True):
            if isinstance(vars(part).get("forward"), StandIn) and not (part is self._outer and self._fused):
                entries.append((vars(part), "forward", part.forward))
            if seen.children or _is_own(type(part)):
                entries.append((vars(part), "_modules", dict(seen.children)))
        looked = [list(column) for column in zip(*entries, strict=True)] or [[], [], []]
        hooks, *others = self._content
        kinds = [seen.kind for seen in now]
        self._last = (hooks, self._parts, kinds, sized, [len(held) for held in sized], *looked, *others)

    def _look(self, part: Any) -> _Seen:
        attributes = {name: held[name] for name, held in self._attributes(part)}
        return _Seen(type(part), list(part._modules.items()), attributes)

    def _attributes(self, part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """The attributes of a module that may change what it computes, each with the dictionary that holds it."""
        held = vars(part)
        plain, inside = type(part) is torch.nn.Linear, part is self._outer and self._fused
        for name in held:
            ours = name == "forward" and (inside or isinstance(held[name], StandIn))
            idle = name in _USUAL or name in _IDLE or name.startswith(("_torchdynamo", "_dynamo"))
            if not ours and (name in ("forward", "weight", "bias") if plain else not idle):
                yield name, held
        for tensors in () if plain else (held["_parameters"], held["_buffers"]):
            for name in tensors:
                if part not in self._layers or name not in ("weight", "bias"):
                    yield name, tensors

    def _contents(self) -> _Content:
        inner = [part for part in self._parts if part is not self._outer]
        hooks = [hooks for part in inner for hooks in (part._forward_hooks, part._forward_pre_hooks)]
        kinds = list({seen.kind: None for seen in self._seen if _is_own(seen.kind)})
        tensors = [value for seen in self._seen for value in seen.attributes.values() if _is_tensor(value)]
        return _Content(
            hooks + list(_GLOBAL_HOOKS if inner else ()),
            kinds,
            [kind.forward for kind in kinds],
            tensors,
            [_version(tensor) for tensor in tensors],
        )

    def __getstate__(self) -> dict[str, Any]:
        changed = self._changed or (self._content is not None and self._contents()[2:] != self._content[2:])
        return {**vars(self), "_changed": changed, "_content": None, "_last": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def around(owner: Any, layer: Any) -> list[Any]:
    """The owner of an inlined block, the modules on the way to a layer, the layer, and what has no parameters there."""
    name = next(name for name, module in owner.named_modules() if module is layer)
    path = [owner]
    for part in name.split("."):
        path.append(path[-1]._modules[part])
    siblings = [child for module in path[:-1] for child in module._modules.values() if child is not None]
    free = [child for child in siblings if child not in path and next(child.parameters(), None) is None]
    return list(dict.fromkeys(path + [module for child in free for module in child.modules()]))


def _is_own(kind: type) -> bool:
    """Whether a class of modules is not torch's."""
    return not kind.__module__.startswith("torch.nn.")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


_forward = attrgetter("forward")


def _version(tensor: Any) -> int:
    return -1 if tensor.is_inference() else int(tensor._version)


def _alike(before: _Seen, after: _Seen) -> bool:
    """Whether a module is what it was."""
    return (
        before.kind is after.kind
        and before.attributes.keys() == after.attributes.keys()
        and [name for name, _ in before.children] == [name for name, _ in after.children]
        and all(one is other for (_, one), (_, other) in zip(before.children, after.children, strict=True))
        and all(_equal(value, after.attributes[name]) for name, value in before.attributes.items())
    )


def _equal(before: Any, after: Any) -> bool:
    if before is after or _is_tensor(before) or _is_tensor(after):
        return before is after
    try:
        return bool(before == after)
    except Exception:  # the user's object, and how it compares
        return False


_NOTHING = np.empty(0, dtype=np.float32)


class WatchedKernel:
    """A kernel, and what its parameters were when it was made; None where they have no sparse path, for a reason.

    Codes are made anew when a parameter was replaced, was changed in place (its version says so), or, on the CPU,
    changed behind torch's back (`.data`: a few of its values are looked at per call, which finds changes of a whole
    weight; on a GPU that would be a wait for the device at every call).
    """

    def __init__(self, kernel: SparseKernel | None, layers: tuple[Any, ...], reason: str | None = None) -> None:
        self.kernel, self.reason = kernel, reason
        self._marks = []
        for layer in layers:
            for name, parameter in layer._parameters.items():
                seen = _NOTHING if kernel is None or parameter is None else _few_values(parameter)
                self._marks.append((layer._parameters, name, _mark(parameter), seen, seen.tobytes()))

    def is_fresh(self) -> bool:
        """Whether every parameter is still the same memory with the same content, as far as can be seen."""
        for owner, name, mark, peek, seen in self._marks:
            if _mark(owner.get(name)) != mark or peek.tobytes() != seen:
                return False
        return True

    def is_in_place(self) -> bool:
        """Whether every parameter is still the same memory, whatever it holds."""
        return all(_mark(owner.get(name))[:2] == mark[:2] for owner, name, mark, _, _ in self._marks)


def _few_values(parameter: Any) -> Any:
    """A dozen entries of a parameter that is an array, by reference."""
    tensor = parameter.detach()
    if tensor.device.type != "cpu" or str(tensor.dtype) != "torch.float32":
        return _NOTHING
    flat = (tensor if tensor.is_contiguous() else tensor.t()).numpy().reshape(-1)
    return flat[:: max(1, len(flat) // 13)]


def _mark(parameter: Any) -> tuple[int, Any, int]:
    """Address, dtype and version: kernels hold the memory that they were built on, so no other gets its address."""
    if parameter is None or type(parameter) is not torch.nn.Parameter:
        return 0, type(parameter), 0
    return parameter.data_ptr(), parameter.dtype, -1 if parameter.is_inference() else parameter._version
