"""A block of two or three matrices on a GPU at the cost of the neurons that fire: exact, for one to four inputs.

The int8 codes of the first layer (of the gate, in a gated block) are all that is read in full: a quarter of a dense
block's bytes in half precision, a sixth of a gated one's. Rows that the codes' bound leaves open are scored by the
weights themselves, in float32; of the other matrices only the rows that fire are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewfire._cuda import Kernel, KernelSource, compiled, current_device, missing
from fewfire._errors import MissingDependency, invalid
from fewfire._optional import require
from fewfire.torch.cuda._codes import encode

torch: Any = require("torch", "torch", "fewfire.torch")

KERNELS = KernelSource(Path(__file__).parent)
LARGEST_BATCH = 4
"""Inputs at once, at most; dense products win beyond."""

ACTIVATIONS = ("relu", "shifted", "threshold", "relu2")
GATES = (None, "reglu", "drelu")
_TYPES = ("bfloat16", "float16", "float32")
_MOST_BLOCKS = 1024
_THREADS, _PER_MULTIPROCESSOR = 512, 2  # two blocks hide each other's waits, where they fit


class DeviceBlock:
    """y = second · value(first · x + bias) + second bias, reading what fires.

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
        absent = missing()
        if absent:
            raise MissingDependency(f"a sparse block on a GPU cannot run: {absent}")
        self.width, self.inputs = map(int, first.shape)
        self.outputs = int(second.shape[1])
        self.dtype, self.device = first.dtype, first.device
        name = str(first.dtype).removeprefix("torch.")
        if name not in _TYPES:
            raise invalid("first", f"must be of one of the types {', '.join(_TYPES)}", name)
        vector = 16 // first.element_size()
        if self.inputs % vector or self.outputs % vector:
            rule = f"must have a multiple of {vector} inputs and outputs"
            raise invalid("first", rule, f"{self.inputs} and {self.outputs}", "use the dense block")
        self._first, self._second, self._factor = first, second, factor
        self._codes, self._bounds = encode(first, bias)
        self._second_bias = _floats(second_bias, self.outputs, self.device)
        self._factor_bias = _floats(factor_bias, self.width if factor is not None else 1, self.device)
        self._threshold = np.float32(threshold)
        # Slices of the outputs as many as blocks, so that each block adds up one of them.
        blocks = _PER_MULTIPROCESSOR * current_device().multiprocessors
        self._lanes = next((lanes for lanes in (1, 2, 4) if self.outputs <= blocks * lanes * vector), 8)
        self._shape = {
            "INPUTS": self.inputs,
            "OUTPUTS": self.outputs,
            "TYPE": _TYPES.index(name),
            "GATED": GATES.index(gated),
            "ACTIVATION": ACTIVATIONS.index(activation),
            "THREADS": _THREADS,
            "LANES": self._lanes,
        }
        self._kernels: dict[int, tuple[Kernel, int, int]] = {}
        self._spaces: dict[tuple[int, int], tuple[Any, ...]] = {}

    @property
    def extra_bytes(self) -> int:
        """What it holds beside the weights."""
        return int(self._codes.nbytes + self._bounds.nbytes)

    def __call__(self, x: Any) -> Any:
        """Outputs of shape (batch, outputs) for inputs of shape (batch, inputs), batch at most 4."""
        batch = len(x)
        x = x.contiguous()
        y = torch.empty(batch, self.outputs, dtype=self.dtype, device=self.device)
        kernel, grid, shared = self._kernel(batch)
        stream = torch.cuda.current_stream(self.device).cuda_stream
        space = self._space(batch, stream, grid)
        tensors = (x, y, self._codes, self._bounds, self._first, self._factor, self._factor_bias, self._second)
        addresses = [0 if tensor is None else tensor.data_ptr() for tensor in (*tensors, self._second_bias)]
        numbers = (np.int32(self.width), self._threshold)
        arguments = (*addresses, *numbers, *(tensor.data_ptr() for tensor in space))
        kernel.launch((grid,), _THREADS, arguments, shared, stream, together=True)
        return y

    def listed(self, batch: int = 1) -> int:
        """How many rows of the second layer the last call with this batch on this stream read."""
        return int(self._spaces[batch, torch.cuda.current_stream(self.device).cuda_stream][0].sum())

    def _kernel(self, batch: int) -> tuple[Kernel, int, int]:
        """The kernel for so many inputs, its blocks and their shared memory."""
        if batch not in self._kernels:
            if not 1 <= batch <= LARGEST_BATCH:
                raise invalid("x", f"must have 1 to {LARGEST_BATCH} rows", batch, "use the dense block")
            device = current_device()
            code = compiled(KERNELS, "sparse_block.cu", device.architecture, {**self._shape, "BATCH": batch})
            kernel = Kernel(code, "sparse_block")
            fixed = kernel.numbers("shared_bytes", 1)[0]
            per_multiprocessor, grid, shared = _PER_MULTIPROCESSOR, 0, 0
            while per_multiprocessor:
                grid = min(_MOST_BLOCKS, per_multiprocessor * device.multiprocessors)
                rows = -(-self.width // grid)
                shared = fixed + 4 * (2 * batch + 1) * rows + 4 * batch * (_THREADS // 32)
                if shared <= device.shared_bytes:
                    kernel.allow_shared(shared)
                    if kernel.blocks_per_multiprocessor(_THREADS, shared) >= per_multiprocessor:
                        break
                per_multiprocessor -= 1
            if not per_multiprocessor:
                raise invalid("first", "must fit the GPU's shared memory with its lists", f"{self.width} neurons")
            self._kernels[batch] = kernel, grid, shared
        return self._kernels[batch]

    def _space(self, batch: int, stream: int, grid: int) -> tuple[Any, ...]:
        """What the blocks of a launch share; one per stream, since launches on one follow each other."""
        key = batch, stream
        if key not in self._spaces:
            per_slice = 16 * self._lanes // self._first.element_size()
            slices, rows = -(-self.outputs // per_slice), grid * -(-self.width // grid)
            sizes = (
                (grid, torch.int32),
                (rows, torch.int32),
                (rows * batch, torch.float32),
                (max(slices, grid) * batch * per_slice, torch.float32),
                (slices, torch.int32),
                (1, torch.int64),
            )
            self._spaces[key] = tuple(torch.zeros(size, dtype=dtype, device=self.device) for size, dtype in sizes)
        return self._spaces[key]


def _floats(values: Any, count: int, device: Any) -> Any:
    if values is None:
        return torch.zeros(count, dtype=torch.float32, device=device)
    return values.detach().float().contiguous()
