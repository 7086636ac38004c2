"""Where blocks have a sparse path, and what computes it: float32 on the CPU, half and single precision on a GPU."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

from fewfire._cuda._device import missing
from fewfire._optional import require
from fewfire.torch._kernel import SparseBlock
from fewfire.torch._layers import as_array, neuron_rows
from fewfire.torch.cuda._device_block import LARGEST_BATCH, DeviceBlock, check_not_capturing

torch: Any = require("torch", "torch", "fewfire.torch.sparsify")


class ArrayKernel:
    """A `SparseBlock`, `SparseUp` or `SparseDown` as a kernel of tensors on the CPU."""

    most_rows = sys.maxsize
    """Rows at once, at most."""

    def __init__(self, kernel: Any, threads: int | None) -> None:
        self._kernel, self._threads = kernel, threads  # None follows torch.get_num_threads()

    @property
    def extra_bytes(self) -> int:
        """Memory used in addition to the weights."""
        return int(self._kernel.extra_bytes)

    def __call__(self, x: Any) -> Any:
        """The outputs of rows, tensors of two dimensions both."""
        return torch.from_numpy(self._kernel(x.numpy(), self._threads or torch.get_num_threads()))

    def takes(self, x: Any) -> bool:
        """Whether a tensor has its dtype and device."""
        return bool(x.dtype is torch.float32 and x.device.type == "cpu")

    def renew(self) -> bool:
        """Look at changed weights again, keeping all memory where it is; False where it has to be built anew.

        So it is here: codes cannot be written while other threads read them.
        """
        return False


SparseKernel: TypeAlias = ArrayKernel | DeviceBlock
"""What a sparse forward calls: weights by reference, and what is computed from them."""


class Cpu:
    """A kind of device, as torch calls it, and the sparse blocks that it has: here by C++ or its reference in NumPy."""

    label = "the CPU"
    most_rows = sys.maxsize
    parts = True
    """Whether the layers of a block that is inlined in a larger forward have a sparse path of their own."""
    pinned = False
    """Whether weights must stay where they lie, because CUDA graphs hold their addresses."""

    def types(self, inputs: int, outputs: int) -> tuple[Any, ...]:
        """The dtypes that a block of these sizes may have."""
        return (torch.float32,)

    def absent(self) -> str | None:
        """What this machine lacks, with the remedy; None where it lacks nothing."""
        return None

    def check_free(self) -> None:
        """Refuse to build where that cannot be done at the moment."""

    def lacks(self, kind: dict[str, Any]) -> str | None:
        """Why there is no kernel for a kind of block; None where there is one."""
        return None

    def block(self, layers: tuple[Any, ...], kind: dict[str, Any], threads: int | None) -> SparseKernel:
        """The kernel of a block whose layers are up, down and perhaps the gate, laid out neuron by neuron."""
        up, down, *rest = layers
        arrays = (_array(up, True), as_array(up.bias), _array(down, False), as_array(down.bias))
        gates = {"gate": _array(rest[0], True), "gate_bias": as_array(rest[0].bias)} if rest else {}
        options: dict[str, Any] = {**gates, **kind}
        return ArrayKernel(SparseBlock(*arrays, **options), threads)


class Gpu(Cpu):
    """One CUDA kernel per call."""

    label, most_rows, parts, pinned = "a GPU", LARGEST_BATCH, False, True

    def types(self, inputs: int, outputs: int) -> tuple[Any, ...]:
        """Those whose rows are whole vectors of 16 bytes."""
        known = (torch.bfloat16, torch.float16, torch.float32)
        return tuple(dtype for dtype in known if all(n * dtype.itemsize % 16 == 0 for n in (inputs, outputs)))

    def absent(self) -> str | None:
        """CuPy, NVRTC, or a GPU that is new enough."""
        return missing("move the model to the CPU")

    def check_free(self) -> None:
        """While a CUDA graph is captured it cannot."""
        check_not_capturing("the codes of its weights have to be made, or made anew")

    def lacks(self, kind: dict[str, Any]) -> str | None:
        """Gates both of whose sides are activated by something else than a ReLU."""
        if kind["gated"] == "drelu" and kind["activation"] != "relu":
            return f"a gate with {kind['activation']} on both sides has no kernel on a GPU"
        return None

    def block(self, layers: tuple[Any, ...], kind: dict[str, Any], threads: int | None) -> SparseKernel:
        """A `DeviceBlock`, compiled for every number of rows."""
        up, down, *rest = layers
        screened = rest[0] if rest else up
        other = {"factor": neuron_rows(up, first=True), "factor_bias": up.bias} if rest else {}
        options: dict[str, Any] = {**other, **kind}
        first, second = neuron_rows(screened, first=True), neuron_rows(down, first=False)
        block = DeviceBlock(first, screened.bias, second, down.bias, **options)
        block.prepare()
        return block


def _array(layer: Any, first: bool) -> Any:
    return as_array(neuron_rows(layer, first=first))


PLATFORMS: dict[str, Cpu] = {"cpu": Cpu(), "cuda": Gpu()}
"""By torch's name for the kind of device."""
