"""What a sparse forward keeps beside the weights, and whether it is out of date.

Codes are made anew when a parameter was replaced, was changed in place (its version says so), or, on the CPU, changed
behind torch's back (`.data`: a few of its values are looked at per call, which finds changes of a whole weight; on a
GPU that would be a wait for the device at every call).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fewfire.torch._platforms import SparseKernel

_NOTHING = np.empty(0, dtype=np.float32)


class Held:
    """A kernel, and what its parameters were when it was made.

    Parameters
    ----------
    kernel : SparseKernel or None
        None where the parameters have no sparse path.
    layers : tuple of modules
    reason : str or None
        Why there is no kernel.
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
    """A dozen places of a parameter of an array's kind, by reference."""
    tensor = parameter.detach()
    if tensor.device.type != "cpu" or str(tensor.dtype) != "torch.float32":
        return _NOTHING
    flat = (tensor if tensor.is_contiguous() else tensor.t()).numpy().reshape(-1)
    return flat[:: max(1, len(flat) // 13)]


def _mark(parameter: Any) -> tuple[int, Any, int]:
    """Address, dtype and version: kernels hold the memory that they were built on, so no other gets its address."""
    if parameter is None:
        return 0, None, 0
    return parameter.data_ptr(), parameter.dtype, -1 if parameter.is_inference() else parameter._version
