"""Models and the batches they are fed: checks, calls, and a model left as it was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fewfire._errors import invalid
from fewfire._optional import require

torch: Any = require("torch", "torch", "fewfire.torch")


def check_model(model: object, devices: tuple[str, ...] = ("cpu", "cuda")) -> Any:
    """A module all of whose parameters are on devices of these kinds."""
    if not isinstance(model, torch.nn.Module):
        raise invalid("model", "must be a torch.nn.Module", f"a {type(model).__name__}", "pass the model itself")
    if isinstance(model, torch.jit.ScriptModule) or type(model).__name__ == "OptimizedModule":
        got = f"a {type(model).__name__}"
        raise invalid("model", "must not be compiled or scripted", got, "pass the model it was made from")
    for name, tensor in model.named_parameters():
        if tensor.device.type not in devices:
            rule = "must be on the CPU" + (" or a CUDA device" if "cuda" in devices else "")
            raise invalid("model", rule, f"a parameter {name} on {tensor.device}", "call model.cpu() first")
    return model


def check_batches(batches: object) -> Iterator[Any]:
    """An iterator over batches; a lone batch is refused, since its rows would be taken for batches."""
    if isinstance(batches, torch.Tensor | Mapping | str) or not isinstance(batches, Iterable):
        got = f"a {type(batches).__name__}"
        raise invalid("batches", "must be an iterable of what the model is called with", got, "pass [batch]")
    return iter(batches)


def feed(model: Any, batch: Any) -> Any:
    """Call a model on a batch: a tensor, a tuple or list of arguments, or a mapping of keywords."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """The model in evaluation mode and without gradients; every part's mode is as before at the end."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def hooked(handles: list[Any]) -> Iterator[None]:
    """Hooks that are removed at the end."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def tensors_in(output: Any, depth: int = 6) -> list[Any]:
    """The tensors of a model's output, in order, whatever holds them, caches of keys and values included."""
    if isinstance(output, torch.Tensor):
        return [output]
    parts: Iterable[Any] = ()
    if isinstance(output, Mapping):
        parts = output.values()
    elif isinstance(output, tuple | list):
        parts = output
    elif hasattr(output, "__dict__") and not isinstance(output, torch.nn.Module):
        parts = vars(output).values()
    return [tensor for part in parts for tensor in tensors_in(part, depth - 1)] if depth else []
