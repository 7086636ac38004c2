"""Whether the modules that a sparse forward stands for are still those it was made for; asked at every call.

Adapters, quantisation, parametrisations and plain assignments put other modules, classes or values in the place of
those that were looked at. Compared are classes and their `forward`, children, attributes of instances, versions of
tensors beside the layers' own, training mode where it matters; and no hook may look inside. Weights and biases of the
layers are not compared: codes are made anew for them (`_held.py`).

A call compares with what was seen last, list by list, in under 1 µs (`benchmarks/sparse_watch.py`). Only where that
differs is every module compared with what it was at first. Not seen are changes inside an object that an attribute
refers to, changes of tensors through `.data`, and functions that were replaced in a module of Python.
"""

from __future__ import annotations

from operator import attrgetter, getitem
from typing import TYPE_CHECKING, Any, NamedTuple

from fewfire._optional import require
from fewfire.torch._stand_in import SCRIPTED, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

torch: Any = require("torch", "torch", "fewfire.torch.sparsify")

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

    Parameters
    ----------
    parts : iterable of modules
        Those that are compared.
    layers : iterable of modules
        The linear layers among them.
    outer : module or None
        The one whose own hooks make no difference.
    fused : bool
        Whether the parts are computed at once, as in evaluation; the `forward` of `outer` is then not its own.
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
        places = [(held, name, held[name]) for part in self._parts for name, held in self._attributes(part)]
        places += [(vars(part), "training", part.training) for part in self._modes]
        for part, seen in zip(self._parts, now, strict=True):
            if isinstance(vars(part).get("forward"), StandIn) and not (part is self._outer and self._fused):
                places.append((vars(part), "forward", part.forward))
            if seen.children or _is_own(type(part)):
                places.append((vars(part), "_modules", dict(seen.children)))
        looked = [list(column) for column in zip(*places, strict=True)] or [[], [], []]
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
    beside = [child for module in path[:-1] for child in module._modules.values() if child is not None]
    free = [child for child in beside if child not in path and next(child.parameters(), None) is None]
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
        and _same_children(before.children, after.children)
        and all(_equal(value, after.attributes[name]) for name, value in before.attributes.items())
    )


def _same_children(before: list[tuple[str, Any]], after: list[tuple[str, Any]]) -> bool:
    return len(before) == len(after) and all(
        old == new and one is other for (old, one), (new, other) in zip(before, after, strict=True)
    )


def _equal(before: Any, after: Any) -> bool:
    if before is after or _is_tensor(before) or _is_tensor(after):
        return before is after
    try:
        return bool(before == after)
    except Exception:  # the user's object, and how it compares
        return False
