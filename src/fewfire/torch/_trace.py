"""Watching a model compute: which linear layers feed which through an activation, on the numbers of one call.

Every linear layer is hooked. When one is called, what it is given is compared, on a sample of rows, with an activation
of what the last few layers gave: equal bit for bit, they form a block, whether the activation is a module or a line of
a forward of the user's. Only those few layers' rows are kept, so memory does not grow with depth.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from fewfire._optional import require
from fewfire.torch._kernel import ACTIVATIONS, Gated
from fewfire.torch._layers import is_linear, layer_shape
from fewfire.torch._recognise import (
    RELU,
    RELU2,
    ActivationKind,
    from_gate,
    from_module,
    from_values,
    is_smooth,
)

torch: Any = require("torch", "torch", "fewfire.torch")

ROWS, RECENT = 64, 6
"""Rows compared per call (and measured on), and how many layers back a block may begin."""


@dataclass
class Call:
    """One call of a linear layer: its name, a sample of its rows, and the module that its output went to, if any.

    `weighed` where that module has parameters.
    """

    name: str
    x: Any
    z: Any
    rows: int
    address: int
    activation: Any = None
    weighed: bool = False


@dataclass
class Match:
    """A block seen at work; `kind` is None where its calls do not agree with each other.

    `activations` are the modules that computed its activation, one per call, None where it was a function; `weighed`
    where one has parameters.
    """

    up: str
    gate: str | None
    down: str
    kind: ActivationKind | None
    gating: Gated | None
    x: Any
    calls: int = 0
    activations: list[Any] = field(default_factory=list)
    weighed: bool = False


@dataclass
class Tracer:
    """Collects matches while a model runs; `handles` are its hooks."""

    model: Any
    matches: dict[tuple[str, str | None, str], Match] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    activated: list[Any] = field(default_factory=list)
    """Modules that may be activations, one entry per call."""
    packed: dict[tuple[str, str], str] = field(default_factory=dict)
    """Smooth gates whose one layer gives both gate and values, by that layer and the next: in no match."""
    recent: deque[Call] = field(default_factory=lambda: deque(maxlen=RECENT))

    def hooks(self) -> list[Any]:
        """Hook the model; the caller removes them."""
        handles = []
        for name, module in self.model.named_modules():
            if is_linear(module):
                handles.append(module.register_forward_hook(self._called(name), with_kwargs=True))
            elif is_pointwise(module):
                handles.append(module.register_forward_pre_hook(self._activates))
            elif module._parameters and not any(module.children()):
                handles.append(module.register_forward_pre_hook(self._weighs))
        return handles

    def complete(self) -> list[Match]:
        """The blocks whose every call was seen as such: no layer of theirs is also used in another way."""
        return [
            match
            for match in self.matches.values()
            if all(self.calls[name] == match.calls for name in (match.up, match.gate, match.down) if name)
        ]

    def _called(self, name: str) -> Any:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            x = args[0] if args else kwargs.get("input", kwargs.get("x"))
            inputs, outputs = layer_shape(module)
            usable = isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() and x.shape[-1] == inputs
            self.calls[name] += 1
            if not usable or not isinstance(output, torch.Tensor):
                return
            given, rows = sample(x, inputs)
            calls = len(self.activated)
            self._find(name, given, rows)
            del self.activated[calls:]  # those of `_find` are not the model's
            scores, _ = sample(output, outputs)
            self.recent.append(Call(name, given, scores, rows, output.data_ptr()))

        return hook

    def _activates(self, module: Any, args: tuple[Any, ...]) -> None:
        self.activated.append(module)
        for call in self._sources(args):
            call.activation = module

    def _weighs(self, module: Any, args: tuple[Any, ...]) -> None:
        for call in self._sources(args):
            call.weighed = True

    def _sources(self, args: tuple[Any, ...]) -> list[Call]:
        """The calls whose output a module is given: equal too, since freed memory may have the address of before."""
        given = args[0] if args and isinstance(args[0], torch.Tensor) else None
        return [
            call
            for call in self.recent
            if given is not None
            and given.data_ptr() == call.address
            and given.numel() == call.rows * call.z.shape[-1]
            and torch.equal(sample(given, call.z.shape[-1])[0], call.z)
        ]

    def _find(self, down: str, a: Any, rows: int) -> None:
        """The latest layer or pair of layers that `a` comes from."""
        ready = [
            call
            for call in reversed(self.recent)
            if call.z.shape == a.shape and call.rows == rows and call.z.device == a.device
        ]
        for call in ready:
            kind = _kind_of(call, a)
            if kind is not None:
                return self._add(call, None, down, kind, None, a)
        for gate in reversed(ready):
            for up in ready:
                if gate is not up and gate.x.shape == up.x.shape and gate.x.device == up.x.device:
                    found = _gated_kind_of(gate, up, a)
                    if found is not None:
                        return self._add(up, gate, down, *found, a)
        for call in reversed(self.recent):
            if call.z.shape == (len(a), 2 * a.shape[-1]) and call.rows == rows and call.z.device == a.device:
                kind = _packed_kind_of(call.z, a)
                if kind is not None:
                    self.packed[call.name, down] = kind.name
                    return None
        return None

    def _add(self, up: Call, gate: Call | None, down: str, kind: ActivationKind, gating: Gated | None, a: Any) -> None:
        key = (up.name, None if gate is None else gate.name, down)
        match = self.matches.setdefault(key, Match(*key, kind, gating, up.x))
        match.calls += 1
        screened = up if gate is None else gate
        match.activations.append(screened.activation if _activated(screened, None if gate is None else up, a) else None)
        match.weighed = match.weighed or screened.weighed
        if match.kind is None or match.kind.name != kind.name or match.gating != gating:
            match.kind = None
        elif kind.exact:  # thresholds read from values are lower bounds
            match.kind = ActivationKind(kind.name, max(kind.threshold, match.kind.threshold))


def is_pointwise(module: Any) -> bool:
    """Whether a module may be an activation: nothing inside, no parameters, and not one that leaves its input alone."""
    passive = (torch.nn.Dropout, torch.nn.Identity, torch.nn.Flatten, torch.nn.Embedding)
    if isinstance(module, passive) or "forward" in vars(module):
        return False
    return not any(module.children()) and not module._parameters and not module._buffers


def sample(tensor: Any, columns: int) -> tuple[Any, int]:
    """Up to `ROWS` rows of a tensor, evenly spread and copied, and how many there are."""
    flat = tensor.detach().reshape(-1, columns)
    rows = len(flat)
    if rows <= ROWS:
        return flat.clone(), rows
    return flat[torch.linspace(0, rows - 1, ROWS, device=flat.device).long()], rows


def agrees(kind: ActivationKind, z: Any, a: Any) -> bool:
    """Whether values agree with an activation: all of them where its formula is known, else its zeros."""
    if kind.name in ACTIVATIONS:
        return bool(torch.equal(kind.value(z), a))
    return kind.exact and not bool(a[z <= kind.threshold].any())


def _activated(call: Call, factor: Call | None, a: Any) -> bool:
    """Whether the module that took a layer's output computed `a` of it, up to the rounding of another order."""
    if call.activation is None:
        return False
    value = call.activation(call.z.clone())
    values = [value] if factor is None else [value * factor.z, value * call.activation(factor.z.clone())]
    return any(torch.allclose(one, a, rtol=1e-3, atol=1e-6) for one in values)


def _kind_of(call: Call, a: Any) -> ActivationKind | None:
    if call.activation is not None:
        kind = from_module(call.activation)
        if kind is not None and torch.equal(call.activation(call.z.clone()), a):
            return kind
    return from_values(call.z, a) or _named(call, None, a)


def _named(call: Call, factor: Call | None, a: Any) -> ActivationKind | None:
    """A smooth activation that is known by the name of its class alone."""
    if call.activation is None or not is_smooth(call.activation) or not _activated(call, factor, a):
        return None
    return ActivationKind(type(call.activation).__name__.lower(), float("nan"))


def _packed_kind_of(z: Any, a: Any) -> ActivationKind | None:
    """The smooth activation of a gate that is half of the scores z, the first, the second or every other."""
    for halves in (z.chunk(2, dim=-1), (z[:, ::2], z[:, 1::2])):
        for gate, values in (halves, halves[::-1]):
            found = from_gate(gate, values, a)
            if found is not None and not found[0].exact:
                return found[0]
    return None


def _gated_kind_of(gate: Call, up: Call, a: Any) -> tuple[ActivationKind, Gated | None] | None:
    kind = None if gate.activation is None else from_module(gate.activation)
    for known in (kind, RELU, RELU2):
        if known is not None and known.name in ACTIVATIONS and bool((gate.z <= known.threshold).any()):
            opened = known.value(gate.z)
            if torch.equal(opened * up.z, a):
                return known, "reglu"
            if bool((up.z <= known.threshold).any()) and torch.equal(opened * known.value(up.z), a):
                return known, "drelu"
    named = _named(gate, up, a)
    return from_gate(gate.z, up.z, a) or (None if named is None else (named, None))
