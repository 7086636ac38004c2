"""What stands in for the forward of a module that was made sparse; the module itself stays where and what it was.

A module keeps its class, its children, its parameters and their names; only its instance gets a `forward`, an object
of one of the classes below, which decides per call. The sparse path is taken without gradients, for the dtypes that
the device of the weights has kernels for (`_platforms.py`), up to the number of rows where it was found to be faster.
Everything else goes to the forward of the module's class, with every argument as it came: that is the dense path, and
it is never a different function.

What the kernel computes from the weights (its codes) is made when first needed, and made anew when the weights were
changed or moved to another device. Where the modules themselves were changed, the dense path is taken (`_watch.py`).
"""

from __future__ import annotations

import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from itertools import compress
from operator import is_
from typing import TYPE_CHECKING, Any, Literal

from fewfire._errors import InvalidArgument, MissingDependency, invalid
from fewfire._optional import require
from fewfire.torch._kernel import SparseDown, SparseUp
from fewfire.torch._layers import as_array, is_flipped, lay_out, layer_shape, neuron_rows, put_back
from fewfire.torch._platforms import PLATFORMS, ArrayKernel
from fewfire.torch._watch import StandIn, Watch, WatchedKernel, around, put_in, stand_in, take_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.torch._platforms import SparseKernel

torch: Any = require("torch", "torch", "fewfire.torch.sparsify")

Fallback = Literal["dense", "error"]

_is_compiling = torch.compiler.is_compiling
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # from PyTorch 2.7 on
_is_tracing, _is_wrapped = torch.jit.is_tracing, torch._C._functorch.is_functorch_wrapped_tensor

_HANDLES = itertools.count()
_LIVE: weakref.WeakValueDictionary[int, SparseForward] = weakref.WeakValueDictionary()
"""The forwards that compiled graphs call by number."""


@dataclass(frozen=True)
class Policy:
    """When the sparse path is taken; `sparsify` describes the arguments."""

    dense_above: int
    gradients: Fallback = "dense"
    unsupported: Fallback = "dense"
    threads: int | None = None


class SparseForward(StandIn, ABC):
    """The forward of one module; subclasses choose the kernel that it calls."""

    what = "a sparse layer"
    parts = True
    """Whether it is for a part of a block, which not every platform has kernels for."""
    firsts: tuple[bool, ...]
    """Of `layers`, which are first layers."""
    _held: WatchedKernel | None
    _lent: list[weakref.ref[Any]]
    """The weights in a `state_dict`, which shares their memory."""
    _removed = False
    watch: Watch

    def __init__(self, module: Any, layers: tuple[Any, ...], policy: Policy) -> None:
        self.module, self.layers, self.policy = module, layers, policy
        self.inputs, self.outputs = sizes = self._sizes()
        self._handles: list[Any] = []
        usable = {kind: platform for kind, platform in PLATFORMS.items() if platform.parts or not self.parts}
        self._types = {kind: platform.types(*sizes) for kind, platform in usable.items()}
        names = [
            f"{', '.join(str(dtype).removeprefix('torch.') for dtype in dtypes)} on {PLATFORMS[kind].label}"
            for kind, dtypes in self._types.items()
            if dtypes
        ]
        self._supported = f"only {' and '.join(names)} {'is' if len(names) == 1 else 'are'} supported"
        self._start()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output: by the sparse kernel where the policy allows it, else by the module's class."""
        if self._removed:  # what others made of it may still call it
            return type(self.module).forward(self.module, *args, **kwargs)
        if _is_exporting():
            self.refuse_export()
        if len(args) == 1 and not kwargs and self._accepts(args[0]):
            x = args[0]
            if _is_compiling():
                if all(p.dtype == x.dtype and p.device == x.device for p in self._parameters()):
                    return _operator(x, self._handle, self.outputs)
            else:
                kernel = self.kernel()
                if kernel is not None and kernel.takes(x):
                    return self._run(kernel, x)
                if self.reason is not None:
                    self._refuses("unsupported", self.reason.rstrip("."), "do that")
            self._refuses("unsupported", self._supported, "convert model and input")
        return type(self.module).forward(self.module, *args, **kwargs)

    def compute(self, x: Any) -> Any:
        """The sparse path wherever there is one, whatever the policy."""
        kernel = self.kernel() if self.watch.holds() else None
        if kernel is None or not kernel.takes(x):
            return type(self.module).forward(self.module, x)
        return self._run(kernel, x)

    def _run(self, kernel: SparseKernel, x: Any) -> Any:
        if x.numel() > kernel.most_rows * self.inputs:  # as it was built, it has no room for more
            return type(self.module).forward(self.module, x)
        flat = x.detach() if x.requires_grad else x
        y = kernel(flat if flat.ndim == 2 else flat.reshape(-1, self.inputs))
        return y if x.ndim == 2 else y.reshape(*x.shape[:-1], self.outputs)

    def kernel(self) -> SparseKernel | None:
        """The kernel for the weights as they are now; None where they have none, for a `reason`."""
        held = self._held
        if held is None or not held.is_fresh() or (held.kernel is None and self._lent):
            with self._lock:
                held = self._held
                if held is None or not held.is_fresh() or (held.kernel is None and self._lent):
                    held = self._held = self._hold(held)
        return held.kernel

    @property
    def reason(self) -> str | None:
        """Why the weights as they were last seen have no kernel, where that is not for their dtype or device."""
        return None if self._held is None else self._held.reason

    def _hold(self, before: WatchedKernel | None) -> WatchedKernel:
        """A kernel for the weights as they are: that of before where it can look at them again, else a new one."""
        without = partial(WatchedKernel, None, self.layers)
        if any(layer._parameters.get("weight") is None for layer in self.layers):
            return without("a weight of it is no longer a parameter. Remedy: make it one again")
        self._lent = [lent for lent in self._lent if lent() is not None]
        if self._lent:
            return without("a state_dict that shares its weights is in use. Remedy: delete it")
        if self._sizes() != (self.inputs, self.outputs):
            return without("its weights have other sizes. Remedy: densify and sparsify again")
        parameters = self._parameters()
        other = next((type(p).__name__ for p in parameters if type(p) is not torch.nn.Parameter), None)
        if other is not None:  # of quantisation, for instance: it may stand for other numbers than its memory holds
            return without(f"a weight of it is a {other}. Remedy: put a torch.nn.Parameter there")
        dtype, device = parameters[0].dtype, parameters[0].device
        kind = device.type
        if dtype not in self._types.get(kind, ()) or any(p.dtype != dtype or p.device != device for p in parameters):
            return without()
        PLATFORMS[kind].check_free()
        for layer, first in self._sides():
            lay_out(layer, first=first)
        kernel = None if before is None or not before.is_in_place() else before.kernel
        try:
            if kernel is None or not kernel.renew():
                kernel = self._build(kind)
        except (InvalidArgument, MissingDependency) as error:
            return without(str(error))
        return WatchedKernel(kernel, self.layers)

    def install(self) -> None:
        """Stand in for the module's forward."""
        put_in(self.module, self)
        self._look_on()

    def _look_on(self) -> None:
        """Begin to watch the modules, and give out weights in their usual layout."""
        self.watch = self._watched()
        moved = [layer for layer, first in self._sides() if is_flipped(layer, first=first)]
        self._handles = [layer._register_state_dict_hook(self._lend) for layer in moved]

    def remove(self) -> None:
        """Give the module its own forward back, and its weights their usual layout."""
        self._removed = True
        take_out(self.module)
        for handle in self._handles:
            handle.remove()
        for layer, _ in self._sides():
            put_back(layer)

    def _lend(self, layer: Any, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
        """A `state_dict` holds weights row by row, as files need them; what is written to them must reach the model.

        So the weight itself is put back, and the dense path is taken as long as the tensor in there lives.
        """
        weight, given = layer._parameters.get("weight"), state.get(f"{prefix}weight")
        platform = None if weight is None or given is None else PLATFORMS.get(weight.device.type)
        if platform is None or platform.pinned:
            return
        with self._lock:
            put_back(layer)
            if given is not weight:
                state[f"{prefix}weight"] = given = weight.detach()
                self._lent.append(weakref.ref(given))
            self._held = None

    def refresh(self) -> None:
        """Look at the weights again, at once: on a GPU graphs that were captured before see it too."""
        with self._lock:
            self._held = self._hold(self._held)

    def _accepts(self, x: Any) -> bool:
        """Whether the policy takes this input, the parameters' dtype and device left aside."""
        if type(x) is not torch.Tensor:
            return False
        if _is_compiling():
            if not _holds_now(self._handle):
                return False
        elif _is_tracing() or _is_wrapped(x) or not self.watch.holds():  # a trace, or a transformation of torch.func
            return False
        kind = x.device.type
        if x.dtype not in self._types.get(kind, ()):
            if not x.is_floating_point():
                got = f"a tensor of {str(x.dtype).removeprefix('torch.')}"
                raise invalid("x", f"must hold floating-point numbers for {self.what}", got, "call x.float() first")
            return self._refuses("unsupported", self._supported, "convert model and input")
        if torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in self._parameters())):
            return self._refuses("gradients", "gradients are wanted", "use torch.no_grad() or inference_mode()")
        if torch.is_autocast_enabled(kind):
            return self._refuses("unsupported", "autocast changes the dtype", "leave autocast for this model")
        most = min(self.policy.dense_above, PLATFORMS[kind].most_rows)
        return self._fits(x) and 0 < x.numel() <= most * self.inputs

    def _fits(self, x: Any) -> bool:
        if x.ndim == 0 or x.shape[-1] != self.inputs:
            if self._sizes() != (self.inputs, self.outputs):  # weights were replaced by others
                return False
            rule = f"must have {self.inputs} columns for {self.what}"
            raise invalid("x", rule, f"shape {tuple(x.shape)}", "pass what the dense layer would take")
        return True

    def _refuses(self, option: Literal["gradients", "unsupported"], why: str, remedy: str) -> bool:
        """False, for the dense path; or an error where the policy is "error"."""
        if getattr(self.policy, option) == "error":
            raise InvalidArgument(
                f"{self.what} has no sparse path here: {why}, and {option}='error' was asked for. "
                f"Remedy: {remedy}, or sparsify with {option}='dense'."
            )
        return False

    def _sizes(self) -> tuple[int, int]:
        """Inputs and outputs of the layers as they are."""
        return layer_shape(self.layers[0])[0], layer_shape((self.layers * 2)[1])[1]

    def _parameters(self) -> list[Any]:
        return [p for layer in self.layers for p in layer._parameters.values() if p is not None]

    def _sides(self) -> Iterator[tuple[Any, bool]]:
        """The layers, each with whether it is a first layer."""
        return zip(self.layers, self.firsts, strict=False)

    @abstractmethod
    def _watched(self) -> Watch:
        """The modules that must stay as they are."""

    @abstractmethod
    def _build(self, kind: str) -> SparseKernel:
        """The kernel for weights on this kind of device."""

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._held = None
        self._lent = []
        self._handle = next(_HANDLES)
        _LIVE[self._handle] = self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_held", "_lent", "_handle")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()


class FusedForward(SparseForward):
    """The forward of a module that is a block: `layers` are up, down and perhaps the gate.

    In training mode, and where something inside was changed or has a hook, the module's own forward runs. For a block
    that is `members` of a longer `torch.nn.Sequential`, `home`, the module is a sequence of those alone.
    """

    what, parts, firsts = "a sparse block", False, (True, False, True)

    def __init__(
        self,
        module: Any,
        layers: tuple[Any, ...],
        kind: dict[str, Any],
        ranks: tuple[int, ...],
        policy: Policy,
        home: Any = None,
        members: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.ranks, self.home, self.members = kind, ranks, home, members
        self.covered = tuple(module._modules.values())
        super().__init__(module, layers, policy)

    def install(self) -> None:
        """Stand in for the module's forward, or for that of the sequence it is a part of."""
        if self.home is None:
            super().install()
            return
        whole = stand_in(self.home)
        if isinstance(whole, SequenceForward):
            whole.parts.append(self)
        else:
            put_in(self.home, SequenceForward(self.home, [self]))
        self._look_on()

    def remove(self) -> None:
        """Give the module, or the sequence, its own forward back."""
        super().remove()
        whole = None if self.home is None else stand_in(self.home)
        if isinstance(whole, SequenceForward):
            whole.parts = [part for part in whole.parts if part is not self]
            if not whole.parts:
                take_out(self.home)

    def _fits(self, x: Any) -> bool:
        return x.ndim in self.ranks and super()._fits(x)

    def _watched(self) -> Watch:
        outer = self.module if self.home is None else None
        parts = [part for part in self.module.modules() if part is outer or part is not self.module]
        return Watch(parts, self.layers, outer, fused=True)

    def _build(self, kind: str) -> SparseKernel:
        platform = PLATFORMS[kind]
        lacking = platform.lacks(self.kind)
        if lacking is not None:
            raise InvalidArgument(lacking)
        return platform.block(self.layers, self.kind, self.policy.threads)


class SequenceForward(StandIn):
    """The forward of a `torch.nn.Sequential` some of whose members are blocks: `parts` stand in for those members."""

    def __init__(self, module: Any, parts: list[FusedForward]) -> None:
        self.module, self.parts = module, parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the members in turn, the parts in place of theirs where these still follow each other."""
        forward = type(self.module).forward
        if forward is not torch.nn.Sequential.forward or len(args) != 1 or kwargs:
            return forward(self.module, *args, **kwargs)
        (input,) = args
        members = list(self.module._modules.values())
        index = 0
        while index < len(members):
            rest = members[index:]
            fits = (len(part.covered) <= len(rest) and all(map(is_, part.covered, rest)) for part in self.parts)
            part = next(compress(self.parts, fits), None)
            input = members[index](input) if part is None else part(input)
            index += 1 if part is None else len(part.covered)
        return input


class UpForward(SparseForward):
    """The forward of the first layer of an inlined block: scores of firing neurons, elsewhere one that gives 0.

    `owner` is the module in whose forward the block is. Where a hook looks at the scores, or where something between
    them and the activation was changed, all scores are computed.
    """

    what, firsts = "the sparse first layer of a block", (True,)

    def __init__(self, module: Any, activation: str, threshold: float, policy: Policy, owner: Any) -> None:
        self.activation, self.threshold, self.owner = activation, threshold, owner
        super().__init__(module, (module,), policy)

    def _watched(self) -> Watch:
        return Watch(around(self.owner, self.module), self.layers, self.owner, fused=False)

    def _build(self, kind: str) -> SparseKernel:
        activation: Any = self.activation
        rows, bias = as_array(neuron_rows(self.module, first=True)), as_array(self.module.bias)
        return ArrayKernel(SparseUp(rows, bias, activation=activation, threshold=self.threshold), self.policy.threads)


class DownForward(SparseForward):
    """The forward of the second layer of an inlined block: rows of neurons that give 0 are not read, for any input.

    `owner` is the module in whose forward the block is. Where that is torch's encoder layer, which in evaluation takes
    a fast path that reads weights and calls no layer, the path is switched off as long as this forward is in place.
    """

    what, firsts = "the sparse second layer of a block", (False,)

    def __init__(self, module: Any, policy: Policy, owner: Any) -> None:
        self.owner, self.fast = owner, None
        if isinstance(owner, torch.nn.TransformerEncoderLayer):
            self.fast, owner.activation_relu_or_gelu = owner.activation_relu_or_gelu, 0
        super().__init__(module, (module,), policy)

    def remove(self) -> None:
        """Give the module its own forward back, and its owner its fast path."""
        super().remove()
        if self.fast is not None:
            self.owner.activation_relu_or_gelu = self.fast

    def _watched(self) -> Watch:
        return Watch(self.layers, self.layers, self.module, fused=False)

    def _build(self, kind: str) -> SparseKernel:
        rows = as_array(neuron_rows(self.module, first=False))
        return ArrayKernel(SparseDown(rows, as_array(self.module.bias)), self.policy.threads)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _holds_now(handle: int) -> bool:
    """Whether the modules are as they were, when a graph is compiled; when it runs, `compute` looks again."""
    forward = _LIVE[handle]
    return forward.watch.holds() and forward._sizes() == (forward.inputs, forward.outputs)


@torch.library.custom_op(  # type: ignore[untyped-decorator]
    "fewfire::sparse_forward", mutates_args=(), schema="(Tensor x, SymInt handle, SymInt outputs) -> Tensor"
)
def _operator(x: Any, handle: int, outputs: int) -> Any:
    """The sparse path as one operator that compilers do not look into."""
    forward = _LIVE.get(handle)
    if forward is None:
        raise InvalidArgument(
            f"the sparse forward number {handle} must be alive in this process; it is not. "
            "Remedy: sparsify and compile the model again where it runs."
        )
    return forward.compute(x)


@_operator.register_fake  # type: ignore[untyped-decorator]
def _(x: Any, handle: int, outputs: int) -> Any:
    return x.new_empty((*x.shape[:-1], outputs))
