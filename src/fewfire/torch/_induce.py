"""Making a model's neurons fire less by a penalty on what fires.

`ActivityPenalty` is a term for the user's loss, collected by hooks: ℓ1 on activations, with a weight that is given or
that follows a target activity, of all neurons or of those that a top-k teacher would silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from types import TracebackType


class ActivityPenalty:
    """A term for the loss that makes neurons fire less; call it once per step, after the forward pass.

    The term of a layer is its weight times the mean activation per neuron and row. With `target` each layer has a
    weight of its own, which is multiplied by (activity / target)^rate at every call, and the term by (activity /
    target)²: it grows until the layer fires as little as `target`, and fades below. Nothing pushes activity up again:
    expect the target or somewhat less. With `keep` the largest activations of each row are free: the term is what a
    top-k teacher would silence.

    Parameters
    ----------
    model : torch.nn.Module
        Its `torch.nn.ReLU` and `torch.nn.Threshold` modules are watched while they train (`model.train()`).
    weight : float
        At the start, where there is a target.
    target : float, optional
        The share of neurons that should fire, in (0, 1).
    keep : int, optional
        Neurons per row that may fire freely.
    rate : float
        How fast weights follow their target.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    >>> with ft.ActivityPenalty(model, target=0.1) as penalty:
    ...     loss = model(torch.ones(8, 4)).square().mean() + penalty()
    >>> list(penalty.activity)
    ['1']
    """

    def __init__(
        self,
        model: Any,
        weight: float = 0.1,
        *,
        target: float | None = None,
        keep: int | None = None,
        rate: float = 0.03,
    ) -> None:
        torch: Any = require("torch", "torch", "fewfire.torch.ActivityPenalty")
        if not isinstance(model, torch.nn.Module):
            raise invalid("model", "must be a torch.nn.Module", f"a {type(model).__name__}")
        self._torch = torch
        self.target = None if target is None else check_number("target", target, 1e-6, 1.0)
        self.keep = None if keep is None else check_integer("keep", keep, 0)
        self.rate = check_number("rate", rate, 0.0, 1.0)
        start = check_number("weight", weight, 0.0)
        watched = {
            name: module
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.ReLU | torch.nn.Threshold)
        }
        if not watched:
            got = f"a {type(model).__name__} without one"
            raise invalid("model", "must hold a torch.nn.ReLU or torch.nn.Threshold", got, "call relufy first")
        self.weights = dict.fromkeys(watched, start)
        """The weight of each layer, by the name of its activation."""
        self.activity: dict[str, float] = {}
        """The share of neurons that fired in the passes of the last call."""
        self._seen: dict[str, list[tuple[Any, Any]]] = {name: [] for name in watched}
        self._hooks = [module.register_forward_hook(self._watch(name)) for name, module in watched.items()]

    def __call__(self) -> Any:
        """The term of the passes since the last call, a scalar tensor with its gradient."""
        parts = {name: seen for name, seen in self._seen.items() if seen}
        if not parts:
            rule = "must have run in training mode since the last call"
            raise invalid("model", rule, "a model that has not", "call model.train() and the model first")
        total: Any = 0.0
        for name, seen in parts.items():
            mean = sum(term for term, _ in seen) / len(seen)
            self.activity[name] = float(sum(share for _, share in seen) / len(seen))
            if self.target is not None:
                # A layer that never fires has nothing left to penalise: its weight falls as if one neuron in 10⁴ fired.
                excess = max(self.activity[name], 1e-4) / self.target
                self.weights[name] *= excess**self.rate
                mean = mean * excess**2
            total = total + self.weights[name] * mean
            seen.clear()
        return total

    def close(self) -> None:
        """Take the hooks away; the model is as it was."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _watch(self, name: str) -> Any:
        def hook(module: Any, given: Any, out: Any) -> None:
            if not module.training or not self._torch.is_grad_enabled():
                return
            share = (out.detach() > 0).float().mean()
            paid = out
            if self.keep is not None:
                largest = out.detach().topk(min(self.keep, out.shape[-1]), dim=-1).indices
                paid = out.scatter(-1, largest, 0.0)
            self._seen[name].append((paid.mean(), share))

        return hook
