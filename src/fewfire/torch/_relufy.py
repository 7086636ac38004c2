"""Relufication: ReLUs in place of the smooth activations of a model's MLP blocks.

GELU, SiLU and their like have no exact zeros, so nothing can be skipped; a ReLU, or a ReLU shifted by τ (sublinear,
section 3.2), has. It changes the function, and a few epochs of the user's own training win back most of what that
costs. Blocks are found by watching the model compute, so activations of attention, of gates and of convolutions stay.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_number
from fewfire.torch._batches import check_model
from fewfire.torch._blocks import found_with_activations
from fewfire.torch._recognise import is_smooth

if TYPE_CHECKING:
    from collections.abc import Iterable

torch: Any = require("torch", "torch", "fewfire.torch")

_BOUNDED = ("sigmoid", "tanh")
"""Activations without exact zeros that a ReLU does not resemble."""


def relufy(model: Any, threshold: float = 0.0, batches: Iterable[Any] | None = None) -> list[str]:
    """Replace the smooth activations of a model's MLP blocks by ReLUs, in place; gives the names of those replaced.

    All other activations stay. Smooth activations of blocks that cannot be replaced are named in a warning: functions
    that are called in `forward`, modules that something else uses too, and gates of which one layer gives both halves.

    Parameters
    ----------
    model : torch.nn.Module
        On the CPU or CUDA devices. It is run, in evaluation mode and without gradients.
    threshold : float
        τ ≥ 0: above 0, neurons fire at z > τ, and their value is z.
    batches : iterable, optional
        What the model is called with; only the first is used. Without it, parts of the model are run by themselves on
        made-up rows; smooth activations that did not run are then named in the warning.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> block = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    >>> ft.relufy(block)
    ['1']
    """
    check_model(model)
    tau = check_number("threshold", threshold, 0.0)
    found, elsewhere, packed = found_with_activations(model, batches)
    outside = {id(module) for module in elsewhere}
    names = {id(module): name for name, module in model.named_modules()}
    inside: set[int] = set()
    left: list[str] = []
    for block, match in found:
        if match.kind is None or match.kind.name in _BOUNDED:
            continue
        for module in {id(one): one for one in match.activations}.values():
            if module is None and not match.kind.exact:
                left.append(f"{block.label} (a {block.activation} that forward calls as a function)")
            elif module is not None and (is_smooth(module) or not match.kind.exact):
                if id(module) in outside:
                    left.append(f"{names[id(module)]} (it is called outside MLP blocks too)")
                else:
                    inside.add(id(module))
    left += [
        f"{up}, {down} (a {kind} gate, of which {up} gives both halves)"
        for (up, down), kind in packed.items()
        if kind not in _BOUNDED
    ]
    unseen = [name for name, part in model.named_modules() if is_smooth(part) and id(part) not in inside | outside]
    left += [f"{name} (it did not run; pass batches)" for name in unseen]
    if not inside:
        got = f"a {type(model).__name__} without one" + (f"; left are {', '.join(left)}" if left else "")
        rule = "must hold an MLP block with a smooth activation that is a module, such as torch.nn.GELU"
        raise invalid("model", rule, got, "write self.act = torch.nn.GELU() in __init__ and self.act(…) in forward")
    replaced = []
    for path, parent in model.named_modules():
        for name, child in parent._modules.items():
            if id(child) in inside:
                parent._modules[name] = torch.nn.Threshold(tau, 0.0) if tau > 0 else torch.nn.ReLU()
                replaced.append(f"{path}.{name}" if path else name)
    if left:
        warnings.warn(f"relufy left smooth activations as they are: {', '.join(left)}", UserWarning, stacklevel=2)
    return replaced
