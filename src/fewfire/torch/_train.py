"""Exact training of a block at the cost of the neurons that fire: gradients and updates of their rows alone.

A neuron that does not fire on any row of a batch has gradient 0 in both layers, so plain stochastic gradient descent
leaves its rows as they are. Of Linear → ReLU → Linear, y = Σ_j h_j·v_j + c with h_j = max(⟨w_j, x⟩ + b_j, 0), let U be
the neurons that fire on some row, found by the screen as in inference. With g = ∂L/∂y, and dh = g·V_Uᵀ where h > 0,

    ∂L/∂V_U = hᵀ·g     ∂L/∂W_U = dhᵀ·x     ∂L/∂b_U = Σ dh     ∂L/∂c = Σ g     ∂L/∂x = dh·W_U,

and every other row of W and V is neither read nor written. The codes of the rows in U are made anew after each update.
Momentum and weight decay move rows that did not fire; they cannot be had this way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._threads import thread_count
from fewfire._validate import check_number
from fewfire.torch._kernel import SparseUp
from fewfire.torch._layers import as_array, is_linear, is_transposed, lay_out, layer_shape, neuron_rows, why_not

torch: Any = require("torch", "torch", "fewfire.torch")


class SparseTrainingBlock(torch.nn.Module):  # type: ignore[misc]
    """Linear → ReLU → Linear whose backward pass is a step of plain SGD on the rows of the neurons that fire.

    The step is made inside `backward`, so these parameters get no `.grad`, and an optimiser that holds them passes them
    over. In evaluation mode, or without gradients, it computes the output and nothing else. Weights and gradients equal
    those of dense SGD up to rounding. One call of the block per backward pass.

    Parameters
    ----------
    first, second : torch.nn.Linear
        The layers, float32 on the CPU; they are changed in place. The second one's weight is stored neuron by neuron,
        as a transposed view.
    learning_rate : float
        Of the next steps; may be set anew between them.
    threads : int, optional
        Of the screen; all cores by default.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> generator = torch.manual_seed(0)
    >>> first, second = torch.nn.Linear(32, 256), torch.nn.Linear(256, 32)
    >>> block = ft.SparseTrainingBlock(first, second, learning_rate=0.01)  # the layers are trained in place
    >>> before = first.weight.detach().clone()
    >>> block(torch.randn(1, 32)).square().mean().backward()  # a step
    >>> moved = (first.weight != before).any(dim=1).float().mean()
    >>> bool(0 < moved < 1)  # only rows of neurons that fired
    True
    """

    def __init__(self, first: Any, second: Any, *, learning_rate: float, threads: int | None = None) -> None:
        super().__init__()
        for name, layer, is_first in (("first", first, True), ("second", second, False)):
            if not isinstance(layer, torch.nn.Module) or not is_linear(layer) or is_transposed(layer):
                raise invalid(name, "must be a torch.nn.Linear", type(layer).__name__)
            if (reason := why_not(layer, is_first)) is not None:
                raise invalid(name, "must be float32 on the CPU", reason)
            if not all(torch.isfinite(parameter).all() for parameter in layer.parameters()):
                raise invalid(name, "must have finite weights", "one that is not", "look for divergence before")
        if layer_shape(first)[1] != layer_shape(second)[0]:
            got = f"{layer_shape(second)[0]} inputs"
            raise invalid("second", f"must take the {layer_shape(first)[1]} outputs of first", got)
        self.first, self.second = first, second
        self.learning_rate = check_number("learning_rate", learning_rate, 0.0)
        self.threads = thread_count(threads)
        lay_out(first, first=True)
        lay_out(second, first=False)
        self._steps = 0
        self._screen = SparseUp(*self._arrays())
        self._seen = self._versions()

    def forward(self, x: Any) -> Any:
        """The block's output for x of shape (..., inputs)."""
        if x.shape[-1:] != (layer_shape(self.first)[0],) or x.dtype != torch.float32:
            rule = f"must be float32 of shape (..., {layer_shape(self.first)[0]})"
            raise invalid("x", rule, f"shape {tuple(x.shape)} of {x.dtype}")
        rows = x.reshape(-1, x.shape[-1])
        y = _Step.apply(rows, self.first.weight, self) if self.training else self._firing(rows.detach())[0]
        return y.reshape(*x.shape[:-1], -1)

    def refresh(self) -> None:
        """Look at all weights again: call it after they were changed through `.data`; other changes are noticed."""
        self._screen = SparseUp(*self._arrays())
        self._seen = self._versions()

    def _arrays(self) -> tuple[Any, Any]:
        return as_array(self.first.weight), as_array(self.first.bias)

    def _versions(self) -> tuple[int, ...]:
        parameters = [self.first.weight] if self.first.bias is None else [self.first.weight, self.first.bias]
        return tuple(value for p in parameters for value in (p._version, p.data_ptr()))

    def _firing(self, rows: Any) -> tuple[Any, ...]:
        """The output, the neurons that fire on some row, their values (rows, firing) and their rows of both layers."""
        if self._versions() != self._seen:
            self.refresh()
        starts, ids, scores = self._screen.firing(rows.contiguous().numpy(), self.threads)
        if len(rows) == 1:
            union, h = ids, scores[None]
        else:
            union, index = np.unique(ids, return_inverse=True)
            h = np.zeros((len(rows), len(union)), dtype=np.float32)
            h[np.repeat(np.arange(len(rows)), np.diff(starts)), index] = scores
        where, values = torch.from_numpy(union), torch.from_numpy(h)
        up = neuron_rows(self.first, first=True).index_select(0, where)
        down = neuron_rows(self.second, first=False).index_select(0, where)
        y = values @ down if self.second.bias is None else torch.addmm(self.second.bias.detach(), values, down)
        return y, where, values, up, down

    def _update(self, x: Any, g: Any, where: Any, h: Any, up: Any, down: Any) -> Any:
        """Move the firing rows against their gradients; returns the gradient of x."""
        rate = self.learning_rate
        dh = torch.where(h > 0, g @ down.t(), 0.0)
        dx = dh @ up
        up.addmm_(dh.t(), x, alpha=-rate)
        down.addmm_(h.t(), g, alpha=-rate)
        if not bool(torch.isfinite(up.sum() + down.sum())):
            raise FloatingPointError("a weight of this block is no longer finite. Remedy: lower learning_rate")
        neuron_rows(self.first, first=True).index_copy_(0, where, up)
        neuron_rows(self.second, first=False).index_copy_(0, where, down)
        if self.first.bias is not None:
            self.first.bias.detach().index_add_(0, where, dh.sum(0), alpha=-rate)
        if self.second.bias is not None:
            self.second.bias.detach().sub_(g.sum(0), alpha=rate)
        self._screen.recode(where.numpy(), self.threads)
        self._seen = self._versions()
        self._steps += 1
        return dx

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_screen"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.refresh()


class _Step(torch.autograd.Function):  # type: ignore[misc]
    """Forward by the screen, backward with the update. The weight is an argument so that autograd runs it."""

    @staticmethod
    def forward(ctx: Any, rows: Any, weight: Any, block: SparseTrainingBlock) -> Any:
        y, *found = block._firing(rows.detach())
        ctx.kept, ctx.block, ctx.step = (rows.detach(), found), block, block._steps
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, g: Any) -> tuple[Any, None, None]:
        if ctx.kept is None or ctx.step != ctx.block._steps:
            raise RuntimeError(
                "this block has made a step since it computed that output. "
                "Remedy: call it once per backward pass, on all rows together"
            )
        x, (where, h, up, down) = ctx.kept
        ctx.kept = None
        return ctx.block._update(x, g.contiguous(), where, h, up, down), None, None
