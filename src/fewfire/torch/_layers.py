"""Linear layers of users' models as the sparse block needs them: neuron by neuron, without a second copy.

A layer is a `torch.nn.Linear`, whose weight has the shape (outputs, inputs), or a `Conv1D` of Hugging Face
transformers, whose weight is the transpose. A subclass with a forward of its own counts where it computes the same. The
first layer's storage must be (width, inputs) and the second's (width, outputs), both row by row. Where a weight is
stored the other way round, its parameter becomes a transposed view of a new storage: same parameter object, same name,
same shape, same values, only its strides differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Mapping

torch: Any = require("torch", "torch", "fewfire.torch")


def is_linear(module: Any) -> bool:
    """Whether a module is a linear layer with a weight of its own and nothing else."""
    weight = module._parameters.get("weight")
    if "forward" in vars(module) or not isinstance(weight, torch.nn.Parameter) or weight.ndim != 2:
        return False
    if isinstance(module, torch.nn.Linear):
        return type(module).forward is torch.nn.Linear.forward or _computes_linear(module)
    return is_transposed(module)


def _computes_linear(module: Any) -> bool:
    """Whether a subclass of `torch.nn.Linear` with a forward of its own gives what the original gives."""
    if any(module.children()) or set(module._parameters) - {"weight", "bias"} or module._buffers:
        return False
    scale = torch.linspace(-2, 3, 4, dtype=module.weight.dtype, device=module.weight.device)[:, None]
    rows = scale * torch.linspace(-1, 1, module.weight.shape[1], dtype=scale.dtype, device=scale.device)
    try:
        with torch.no_grad():
            return bool(torch.allclose(module(rows), torch.nn.functional.linear(rows, module.weight, module.bias)))
    except Exception:  # it is the user's: what does not take rows is no linear layer
        return False


def is_transposed(module: Any) -> bool:
    """Whether the weight has the shape (inputs, outputs), as in Hugging Face's `Conv1D`."""
    return type(module).__name__ == "Conv1D" and isinstance(getattr(module, "nf", None), int)


def layer_shape(module: Any) -> tuple[int, int]:
    """(inputs, outputs) of a linear layer."""
    first, second = module.weight.shape
    return (int(first), int(second)) if is_transposed(module) else (int(second), int(first))


def neuron_rows(module: Any, *, first: bool) -> Any:
    """The weight with one row per neuron: (width, inputs) of a first layer, (width, outputs) of a second."""
    weight = module.weight.detach()
    return weight.t() if is_flipped(module, first=first) else weight


def is_flipped(module: Any, *, first: bool) -> bool:
    """Whether the weight of a first or second layer is the transpose of its neurons' rows."""
    return is_transposed(module) == first


def lay_out(module: Any, *, first: bool) -> None:
    """Store the weight neuron by neuron, where it is not yet."""
    weight = module.weight
    if not neuron_rows(module, first=first).is_contiguous():
        _store(weight, (1, weight.shape[0]) if is_flipped(module, first=first) else (weight.shape[1], 1))


def put_back(module: Any, strides: tuple[int, ...] | None = None) -> None:
    """Undo `lay_out`: the weight stored with these strides, by default row by row.

    Where the weight is no parameter any more, those that a parametrisation has made of it are put back.
    """
    held = module._parameters.get("weight")
    for weight in module.parameters() if held is None else [held]:
        usual = torch.empty(weight.shape, device="meta").stride() if strides is None else strides
        if weight.stride() != usual:
            _store(weight, usual)


def _store(weight: Any, strides: tuple[int, ...]) -> None:
    """Move a weight to new memory with these strides, and its gradient, if it has one, to memory of the same form."""
    # In the mode in which the weight was made: in another, its memory could not be used for training afterwards.
    with torch.no_grad(), torch.inference_mode(weight.is_inference()):
        for tensor in (weight, weight.grad):
            if tensor is not None:
                new = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
                tensor.data = new.copy_(tensor.detach())


def as_array(tensor: Any) -> Any:
    """The memory of a tensor as an array; None stays None."""
    return None if tensor is None else tensor.detach().numpy()


def why_not(module: Any, first: bool, types: Mapping[str, tuple[Any, ...]] | None = None) -> str | None:
    """Why this layer cannot be used by a sparse block; None when it can.

    `types` are the dtypes that will do, by kind of device; float32 on the CPU unless given.
    """
    types = types or {"cpu": (torch.float32,)}
    weight, bias = module.weight, getattr(module, "bias", None)
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return f"its {name} is a {type(tensor).__name__}"
        if tensor.device.type not in types:
            return f"its {name} is on {tensor.device}, not on {'the CPU' if 'cpu' in types else 'a CUDA device'}"
        if tensor.dtype not in types[tensor.device.type]:
            names = " or ".join(str(dtype).removeprefix("torch.") for dtype in types[tensor.device.type])
            return f"its {name} is {str(tensor.dtype).removeprefix('torch.')}, not {names}"
        if tensor.dtype != weight.dtype or tensor.device != weight.device:
            return f"its bias is {tensor.dtype} on {tensor.device}, unlike its weight"
    if 0 in weight.shape:
        return "it is empty"
    moves = not neuron_rows(module, first=first).is_contiguous()
    if moves and weight.untyped_storage().nbytes() != weight.numel() * weight.element_size():
        return "its weight is a part of a larger storage, which cannot be laid out anew"
    return None
