"""A block of two or three matrices on a GPU at the cost of the neurons that fire: exact, for one to four inputs.

The int8 codes of the first layer (of the gate, in a gated block) are all that is read in full: a quarter of a dense
block's bytes in half precision, a sixth of a gated one's. Rows that the codes' bound leaves open are scored by the
weights themselves, in float32; of the other matrices only the rows that fire are read.

A call is one launch on torch's current stream, with memory from torch's allocator and no wait for the device, so it can
be captured in a CUDA graph. Codes are made when the block is built; `renew` writes them again where they lie, so that
graphs captured before see changed weights too.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fewfire._cuda._compile import KernelSource, compiled
from fewfire._cuda._device import current_device, missing
from fewfire._cuda._launch import Kernel, rounded
from fewfire._errors import FewfireError, InvalidArgument, MissingDependency, invalid
from fewfire._optional import require
from fewfire.torch.cuda._codes import all_finite, empty_codes, encode

torch: Any = require("torch", "torch", "fewfire.torch")

KERNELS = KernelSource(Path(__file__).parent)
LARGEST_BATCH = 4
"""Inputs at once, at most; dense products win beyond."""

ACTIVATIONS = ("relu", "shifted", "threshold", "relu2")
GATES = (None, "reglu", "drelu")
TYPES = ("bfloat16", "float16", "float32")
_MOST_BLOCKS = 1024
_THREADS, _PER_MULTIPROCESSOR = 512, 2  # two blocks hide each other's waits, where they fit

STREAMS, CAPTURED = 8, 24
"""How many streams, and how many launches in graphs, have counters of their own."""

_LOADED: dict[tuple[Any, ...], tuple[Kernel, int, int]] = {}
_LOADING = threading.Lock()


class CaptureError(FewfireError, RuntimeError):
    """A sparse block was not ready when a CUDA graph was captured."""


class DeviceBlock:
    """y = second · value(first · x + bias) + second bias, reading what fires.

    Weights are kept by reference. Calls may come from several threads and on several streams.

    Parameters
    ----------
    first : tensor of shape (width, inputs)
        The layer whose activation decides what fires; the gate of a gated block. Half or single precision, on a GPU.
    bias : tensor of shape (width,), optional
    second : tensor of shape (width, outputs)
        Neuron by neuron: the transpose of a `torch.nn.Linear`'s weight, contiguous.
    second_bias : tensor of shape (outputs,), optional
    factor : tensor of shape (width, inputs), optional
        The other first layer of a gated block.
    factor_bias : tensor of shape (width,), optional
    activation : {"relu", "shifted", "threshold", "relu2"}
    threshold : float
    gated : {None, "reglu", "drelu"}
        value(gate) · up, or value(gate) · relu(up).
    """

    def __init__(
        self,
        first: Any,
        bias: Any,
        second: Any,
        second_bias: Any,
        *,
        factor: Any = None,
        factor_bias: Any = None,
        activation: Literal["relu", "shifted", "threshold", "relu2"] = "relu",
        threshold: float = 0.0,
        gated: Literal["reglu", "drelu"] | None = None,
    ) -> None:
        self.width, self.inputs = map(int, first.shape)
        self.outputs = int(second.shape[1])
        self.dtype, self.device = first.dtype, first.device
        self.most_rows = LARGEST_BATCH
        _check_weights({"first": first, "second": second, "factor": factor}, self.inputs, self.outputs)
        self._first, self._second, self._factor = first, second, factor
        # Their memory too is held, so that an address stands for it as long as this lives.
        self._biases = [None if one is None else one.detach() for one in (bias, second_bias, factor_bias)]
        with self._on_device():
            absent = missing()
            if absent:
                raise MissingDependency(f"a sparse block on a GPU cannot run: {absent}")
            # Slices of the outputs as many as blocks, so that each block adds up one of them.
            blocks = _PER_MULTIPROCESSOR * current_device().multiprocessors
            vector = 16 // first.element_size()
            self._lanes = next((lanes for lanes in (1, 2, 4) if self.outputs <= blocks * lanes * vector), 8)
            self._per_slice = self._lanes * vector
            self._slices = -(-self.outputs // self._per_slice)
            with torch.inference_mode(False), torch.no_grad():  # so that they can be written again in any mode
                self._codes, self._bounds = empty_codes(first)
                self._second_bias = torch.empty(self.outputs, dtype=torch.float32, device=self.device)
                self._factor_bias = torch.empty(
                    1 if factor is None else self.width, dtype=torch.float32, device=self.device
                )
                self._counters = LaunchCounters(2 * LARGEST_BATCH + self._slices, self.device)
            self.renew()
        self._shape = {
            "INPUTS": self.inputs,
            "OUTPUTS": self.outputs,
            "TYPE": TYPES.index(str(first.dtype).removeprefix("torch.")),
            "GATED": GATES.index(gated),
            "ACTIVATION": ACTIVATIONS.index(activation),
            "THREADS": _THREADS,
            "LANES": self._lanes,
        }
        tensors = (self._codes, self._bounds, first, factor, self._factor_bias, second, self._second_bias)
        addresses = [np.uint64(0 if tensor is None else tensor.data_ptr()) for tensor in tensors]
        self._fixed = (*addresses, np.int32(self.width), np.float32(threshold))  # arguments of every launch
        self._plans: dict[int, _Plan] = {}

    @property
    def extra_bytes(self) -> int:
        """Its memory apart from the weights."""
        held = (self._codes, self._bounds, self._second_bias, self._factor_bias, self._counters)
        return sum(int(part.nbytes) for part in held)

    def __call__(self, x: Any) -> Any:
        """Outputs of shape (batch, outputs) for inputs of shape (batch, inputs), batch at most 4."""
        return self._launch(x)[0]

    def listed(self, x: Any) -> int:
        """How many rows of the second layer a call with these inputs reads."""
        _, space = self._launch(x)
        return int(space[: 4 * self._plan(len(x)).grid].view(torch.int32).sum())

    def takes(self, x: Any) -> bool:
        """Whether a tensor has its dtype and device."""
        return bool(x.dtype is self.dtype and x.device == self.device)

    def renew(self) -> bool:
        """Look at the weights again; what is made of them stays where it is. Waits for the device; True."""
        check_not_capturing("the codes of its weights have to be made, or made anew")
        bias, second_bias, factor_bias = self._biases
        for name, weight in (("second", self._second), ("factor", self._factor)):
            if weight is not None and not all_finite(weight):
                # A dense block multiplies what rests by them too, and 0 times infinity is NaN.
                raise invalid(
                    name, "must be finite for a sparse block on a GPU", "NaN or infinity", "use the dense one"
                )
        with self._on_device(), torch.inference_mode(False), torch.no_grad():
            encode(self._first, bias, self._codes, self._bounds)
            for kept, given in ((self._second_bias, second_bias), (self._factor_bias, factor_bias)):
                kept.zero_() if given is None else kept.copy_(given)
            torch.cuda.current_stream(self.device).synchronize()  # calls on other streams may follow at once
        return True

    def prepare(self) -> int:
        """Compile and load what calls need, for every number of rows; gives the largest that the GPU has room for."""
        for batch in range(1, LARGEST_BATCH + 1):
            try:
                self._plan(batch)
            except InvalidArgument:
                if batch == 1:
                    raise
                self.most_rows = batch - 1
                break
        return self.most_rows

    def _launch(self, x: Any) -> tuple[Any, Any]:
        """The outputs, and what the blocks of threads shared: first, per block, how many rows it lists."""
        if x.ndim != 2 or x.shape[1] != self.inputs or x.dtype is not self.dtype or x.device != self.device:
            rule = f"must be of {self.dtype} and shape (1 to {LARGEST_BATCH}, {self.inputs}) on {self.device}"
            raise invalid("x", rule, f"shape {tuple(x.shape)} of {x.dtype} on {x.device}", "convert it")
        batch = len(x)
        with self._on_device():
            plan = self._plan(batch)
            x = x.contiguous()
            y = torch.empty(batch, self.outputs, dtype=self.dtype, device=self.device)
            space = torch.empty(plan.space, dtype=torch.uint8, device=self.device)
            stream = torch.cuda.current_stream(self.device).cuda_stream
            counters, kept = self._counters.take(stream, torch.cuda.is_current_stream_capturing())
            start = space.data_ptr()
            spaces = [start + offset for offset in plan.offsets]
            # Blocks that arrived are counted per number of rows, because launches of other grids count to others.
            arrived, finished = counters + 8 * (batch - 1), counters + 8 * LARGEST_BATCH
            arguments = (x.data_ptr(), y.data_ptr(), *self._fixed, *spaces, finished, arrived)
            plan.kernel.launch((plan.grid,), _THREADS, arguments, plan.shared, stream, together=True)
            del kept  # not before the launch: what is given back is used again only behind it
        return y, space

    def _on_device(self) -> AbstractContextManager[Any]:
        """The device made the current one, where it is not."""
        if self.device.type != "cuda" or torch.cuda.current_device() == self.device.index:
            return nullcontext()
        there: AbstractContextManager[Any] = torch.cuda.device(self.device)
        return there

    def _plan(self, batch: int) -> _Plan:
        """How so many inputs are computed."""
        plan = self._plans.get(batch)
        if plan is None:
            if not 1 <= batch <= LARGEST_BATCH:
                raise invalid("x", f"must have 1 to {LARGEST_BATCH} rows", batch, "use the dense block")
            kernel, grid, shared = self._kernel(batch)
            rows = grid * -(-self.width // grid)
            shares = max(self._slices, grid) * batch * self._per_slice
            parts = [rounded(4 * size) for size in (grid, rows, rows * batch, shares)]
            offsets = tuple(sum(parts[:index]) for index in range(len(parts)))
            plan = self._plans[batch] = _Plan(kernel, grid, shared, offsets, sum(parts))
        return plan

    def _kernel(self, batch: int) -> tuple[Kernel, int, int]:
        """The kernel for so many inputs, its blocks and their shared memory; blocks of one shape have the same."""
        key = (self.device, self.width, batch, *self._shape.values())
        with _LOADING, self._on_device():
            if key not in _LOADED:
                check_not_capturing(f"the kernel for {batch} rows is not loaded yet")
                _LOADED[key] = _load({**self._shape, "BATCH": batch}, self.width)
            return _LOADED[key]


class LaunchCounters:
    """Sets of `words` 32-bit counters that start at 0: never two running launches on the same ones.

    A launch leaves its counters as the next one needs them, so the launches of one stream, which follow each other, can
    share theirs. A CUDA graph may be replayed next to anything, so each launch that is captured gets counters of its
    own, for good. They lie in memory taken beforehand, because memory taken while a graph is captured belongs to the
    graph. Where they run out, counters are made for the one launch and zeroed before it, by one more small piece of
    work.
    """

    def __init__(self, words: int, device: Any) -> None:
        self._words = -(-words // 32) * 32  # lines of their own
        self._memory = torch.zeros(STREAMS + CAPTURED, self._words, dtype=torch.int32, device=device)
        self._start = int(self._memory.data_ptr())
        self._of_stream: dict[int, int] = {}
        self._captured = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return int(self._memory.nbytes)

    def take(self, stream: int, captured: bool) -> tuple[int, Any]:
        """The address of the counters for a launch on a stream, and what must be kept until it was launched."""
        index = None if captured else self._of_stream.get(stream)
        if index is None:
            index = self._next(stream, captured)
        if index is None:
            lone = torch.zeros(self._words, dtype=torch.int32, device=self._memory.device)
            return lone.data_ptr(), lone
        return self._start + 4 * self._words * index, self._memory

    def _next(self, stream: int, captured: bool) -> int | None:
        with self._lock:
            if captured:
                self._captured += 1
                return STREAMS + self._captured - 1 if self._captured <= CAPTURED else None
            if stream not in self._of_stream and len(self._of_stream) < STREAMS:
                self._of_stream[stream] = len(self._of_stream)
            return self._of_stream.get(stream)


class _Plan(NamedTuple):
    """A kernel, its blocks, their shared memory, and where the parts of what they share in global memory begin."""

    kernel: Kernel
    grid: int
    shared: int
    offsets: tuple[int, ...]
    space: int


def _load(shape: dict[str, int], width: int) -> tuple[Kernel, int, int]:
    """A kernel, as many blocks as the device holds at a time, and the shared memory of one."""
    device, batch = current_device(), shape["BATCH"]
    kernel = Kernel(compiled(KERNELS, "sparse_block.cu", device.architecture, shape), "sparse_block")
    fixed = kernel.numbers("shared_bytes", 1)[0]
    for per_multiprocessor in range(_PER_MULTIPROCESSOR, 0, -1):
        grid = min(_MOST_BLOCKS, per_multiprocessor * device.multiprocessors)
        rows = -(-width // grid)
        shared = fixed + 4 * (2 * batch + 1) * rows + 4 * batch * (_THREADS // 32)
        if shared <= device.shared_bytes:
            kernel.allow_shared(shared)
            if kernel.blocks_per_multiprocessor(_THREADS, shared) >= per_multiprocessor:
                return kernel, grid, shared
    raise invalid("first", "must fit the GPU's shared memory with its lists", f"{width} neurons", "use the dense block")


def _check_weights(weights: dict[str, Any], inputs: int, outputs: int) -> None:
    given = {name: weight for name, weight in weights.items() if weight is not None}
    first = given["first"]
    for name, weight in given.items():
        dtype = str(weight.dtype).removeprefix("torch.")
        if dtype not in TYPES or weight.dtype is not first.dtype or weight.device != first.device:
            rule = f"must be of one of the types {', '.join(TYPES)}, on one GPU and the same in all layers"
            raise invalid(name, rule, f"a tensor of {dtype} on {weight.device}")
        if not weight.is_contiguous() or weight.data_ptr() % 16:
            got = f"a tensor with strides {weight.stride()}"
            raise invalid(name, "must lie row by row, at a multiple of 16 bytes", got, "call clone().contiguous()")
    vector = 16 // int(first.dtype.itemsize)
    if inputs % vector or outputs % vector:
        rule = f"must have a multiple of {vector} inputs and outputs"
        raise invalid("first", rule, f"{inputs} and {outputs}", "use the dense block")


def check_not_capturing(what: str) -> None:
    """Refuse what a CUDA graph cannot hold, while one is captured."""
    if torch.cuda.is_current_stream_capturing():
        raise CaptureError(
            f"a sparse block must be ready before a CUDA graph is captured; {what}. "
            "Remedy: call fewfire.torch.refresh(model), or the model once with as many rows, before the capture."
        )
