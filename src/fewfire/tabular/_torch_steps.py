"""Steps of a stack of networks as batched products of PyTorch's, a network's batch a block of each.

Nothing here waits for the device: where an epoch stands, `epoch` and `cursor` say, counters on the device. So `begin`,
`step` and `finish` can be recorded as CUDA graphs and replayed (_torch_epochs.py). Gradients are written out; those of
an embedding, which may come from outside, are autograd's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import IdArray
    from fewfire.tabular._layout_stack import LayoutStack

JUDGED_BYTES = 2**28  # that the layers of held-out rows may take at a time


class TorchSteps:
    """What takes the networks of a prepared stack through an epoch of its block.

    Parameters
    ----------
    stack : LayoutStack
    """

    def __init__(self, stack: LayoutStack) -> None:
        self.torch, self.stack, self.layout, self.loss = stack.torch, stack, stack.layout, stack.loss
        self.parameters, self.block, self.gains = stack.parameters, stack.block, stack.gains
        _, steps, count, batch = stack.block.rows.shape
        new, outputs, integer = self.parameters.new_zeros, self.layout.outputs, self.torch.int32
        self._starts, self._places, self._weighed = map(self._column, (stack.starts, stack.places, stack.weighed))
        self._batches = new((steps, count, batch), dtype=integer)
        self._aims, self._values = new((steps, count, batch, outputs)), new((steps, count, batch, outputs))
        self._masses, self._pulls = new((steps, count, batch, 1)), new((steps, count, batch, 1))
        self._factors = new(stack.block.factors.shape[1:])
        self.gradient = self.torch.zeros_like(self.parameters)
        self._parts, self._slopes = self._split(self.parameters), self._split(self.gradient)
        self._averages = self._split(stack.mean)
        self.epoch = new((1,), dtype=self.torch.int64)
        self.cursor = self.torch.zeros_like(self.epoch)

    def _column(self, starts: IdArray) -> Any:
        return self.stack.placed(starts.astype(np.int32)[:, None])

    def begin(self) -> None:
        """Lay out the batches of the next epoch, with their targets and weights."""
        at, select = self.epoch, self.torch.index_select
        rows = select(self.block.rows, 0, at)[0]
        self._factors.copy_(select(self.block.factors, 0, at)[0])
        self.torch.add(rows, self._starts, out=self._batches)
        self._aims.copy_(select(self.stack.targets, 0, (rows + self._places).view(-1)).view(self._aims.shape))
        self._masses.copy_(select(self.stack.weights, 0, (rows + self._weighed).view(-1)).view(self._masses.shape))
        self.torch.mul(self._masses, self._factors[:, 0, :, None], out=self._pulls)
        self.cursor.zero_()

    def step(self) -> None:
        """One step of every network."""
        torch, parts, slopes, at = self.torch, self._parts, self._slopes, self.cursor
        rows, aims, pulls, factors = (
            torch.index_select(buffer, 0, at)[0] for buffer in (self._batches, self._aims, self._pulls, self._factors)
        )
        X, leaves, shown = self._shown(rows, self.gains), [], None
        fed, embedding = X, self.layout.embedding
        if embedding is not None:
            leaves = [part.detach().requires_grad_() for part in parts.embedding]
            with torch.enable_grad():
                shown = embedding.torch_values(torch, X, *leaves)
            fed = torch.cat([X, shown.detach()], dim=-1)
        layers, values = self._forward(fed, parts)
        self._values.index_copy_(0, at, values[None])
        errors = self._errors(values, aims).mul_(pulls)
        back = self._backward(layers, errors)
        if embedding is not None:
            beside = slice(self.layout.inputs, None)
            by_shown = torch.bmm(back, parts.hidden[0][:, :, beside])
            if parts.skip is not None:
                by_shown = torch.baddbmm(by_shown, errors, parts.skip[:, :, beside])
            for into, found in zip(slopes.embedding, torch.autograd.grad(shown, leaves, by_shown), strict=True):
                into.copy_(found)
        _, shrink, *others = factors
        self.parameters[:, : self.layout.decayed].mul_(shrink)
        self.stack.rule.step(self.parameters, self.gradient, *others)
        at.add_(1)

    def finish(self) -> None:
        """Sum the losses of the epoch; take the weights into their mean, and judge that by the rows held out."""
        torch, at = self.torch, self.epoch
        losses = self._losses(self._values, self._aims) * self._masses[..., 0]
        self.block.losses.index_copy_(0, at, losses.sum(dim=(0, 2))[None])
        if self.stack.judged.shape[1]:
            self.stack.mean.lerp_(self.parameters, torch.index_select(self.block.newest, 0, at)[0])
            self.block.weights.index_copy_(0, at, self.stack.mean[None])
            self.block.judged.index_copy_(0, at, self._judge()[None])
        at.add_(1)

    def _judge(self) -> Any:
        """Outputs (networks, rows, outputs) by the mean of the weights."""
        torch, layout, found = self.torch, self.layout, []
        kept = layout.embedding.kept(layout.inputs) if layout.embedding else 0
        numbers = len(self.stack) * (layout.inputs + layout.fed + 2 * kept + sum(layout.hidden))
        for rows in torch.split(self.stack.judged, max(16, JUDGED_BYTES // (4 * numbers)), dim=1):
            X = self._shown(rows, self.stack.judged_gains)
            if layout.embedding is not None:
                X = torch.cat([X, layout.embedding.torch_values(torch, X, *self._averages.embedding)], dim=-1)
            found.append(self._forward(X, self._averages)[1])
        return torch.cat(found, dim=1)

    def _shown(self, rows: Any, gains: Any) -> Any:
        """Inputs (networks, rows, inputs) of numbered rows (networks, rows)."""
        return self.torch.index_select(self.stack.table, 0, rows.reshape(-1)).view(*rows.shape, -1).mul_(gains)

    def _forward(self, fed: Any, parts: Any) -> tuple[list[Any], Any]:
        """What each layer sees, the first first, and the outputs (networks, rows, outputs)."""
        torch, layers = self.torch, [fed]
        for weights, bias in zip(parts.hidden, parts.biases, strict=True):
            layers.append(torch.baddbmm(bias[:, None], layers[-1], weights.mT).relu_())
        values = torch.baddbmm(parts.offset[:, None], layers[-1], parts.output.mT)
        return layers, values if parts.skip is None else torch.baddbmm(values, fed, parts.skip.mT)

    def _backward(self, layers: list[Any], errors: Any) -> Any:
        """Fill in the gradient; the derivative (networks, rows, width) by the first layer's scores."""
        torch, parts, slopes = self.torch, self._parts, self._slopes
        torch.sum(errors, dim=1, out=slopes.offset)
        if slopes.skip is not None:
            torch.bmm(errors.mT, layers[0], out=slopes.skip)
        torch.bmm(errors.mT, layers[-1], out=slopes.output)
        back = torch.bmm(errors, parts.output)
        for layer in reversed(range(len(parts.hidden))):
            back = torch.ops.aten.threshold_backward(back, layers[layer + 1], 0)
            torch.sum(back, dim=1, out=slopes.biases[layer])
            torch.bmm(back.mT, layers[layer], out=slopes.hidden[layer])
            if layer:
                back = torch.bmm(back, parts.hidden[layer])
        return back

    def _errors(self, values: Any, aims: Any) -> Any:
        """The derivative of the losses by the outputs."""
        if self.loss == "logistic":
            return self.torch.sigmoid(values).sub_(aims)
        if self.loss == "cross_entropy":
            return self.torch.softmax(values, dim=-1).sub_(aims)
        return (values - aims).div_(values.shape[-1])

    def _losses(self, values: Any, aims: Any) -> Any:
        """Losses (..., rows) of outputs (..., rows, outputs)."""
        functional = self.torch.nn.functional
        if self.loss == "logistic":
            return functional.binary_cross_entropy_with_logits(values, aims, reduction="none")[..., 0]
        if self.loss == "cross_entropy":
            return -(aims * functional.log_softmax(values, dim=-1)).sum(dim=-1)
        return 0.5 * ((values - aims) ** 2).mean(dim=-1)

    def _split(self, matrix: Any) -> Any:
        """`Parameters` of tensors (networks, *shape) in the memory of a matrix (networks, size)."""
        shapes = [*self.layout.matrices, *self.layout.vectors]
        sizes = [math.prod(shape) for shape in shapes]
        parts = self.torch.split(matrix[:, : self.layout.size], sizes, dim=1)
        return self.layout.group([part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True)])
