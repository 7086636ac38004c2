"""Networks of one layout as rows of one matrix of parameters on a device: their steps as batched products.

Parameters are in the order of `Layout`, one row per network; a network's batch is a block of a batched product, in the
batches that `CpuTrainer` would take. The table of an encoding is on the device once, however many networks see it: rows
are gathered by number and multiplied by the network's gains.

Nothing here waits for the device: what an epoch needs is written to an `EpochBlock`, several epochs at once, and what
it brings is read from there. Where it stands, `epoch` and `cursor` say, counters on the device. So `begin`, `step` and
`finish` can be recorded as CUDA graphs and replayed (_device_batch.py). Gradients are written out; those of an
embedding, which may come from outside, are autograd's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.tabular._update_rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, FloatArray, IdArray
    from fewfire.tabular._training import TrainedNetwork, TrainingRows

ALIGNED = 4  # numbers; rows of parameters begin at multiples of it, as products like it
JUDGED_BYTES = 2**28  # that the layers of held-out rows may take at a time


@dataclass
class EpochBlock:
    """Epochs of a stack on the device: what they need, and what they bring.

    rows (epochs, steps, networks, batch) are numbers in the table, int32; factors (epochs, steps, kinds, networks, 1);
    newest (epochs, networks, 1), the share of the newest weights in their mean. Then sums of losses (epochs, networks),
    outputs at the rows held out (epochs, networks, rows, outputs) and what gave them (epochs, networks, row length).
    """

    rows: Any
    factors: Any
    newest: Any
    losses: Any
    judged: Any
    weights: Any


class LayoutStack:
    """Networks of one layout, loss and optimiser on one device.

    Parameters
    ----------
    torch : module
    device : str
    networks : list of TrainedNetwork
    parts, held : lists of TrainingRows
        What each trains on and is judged by; `held` may be empty.
    """

    def __init__(
        self,
        torch: Any,
        device: str,
        networks: Sequence[TrainedNetwork],
        parts: Sequence[TrainingRows],
        held: Sequence[TrainingRows],
    ) -> None:
        self.torch, self.device = torch, device
        self.layout, self.loss, optimiser = networks[0].layout, networks[0].loss, networks[0].optimiser
        flats = np.stack([network.flat for network in networks])
        self.parameters = self.placed(np.pad(flats, ((0, 0), (0, -self.layout.size % ALIGNED))))
        self.mean = torch.zeros_like(self.parameters)
        self.rule = rule_of(optimiser.get_params(), self.parameters)
        self.shrinks = float(optimiser.learning_rate) * np.array([network.descent.decay for network in networks])
        seen = [*parts, *held]
        table, starts = _joined([part.X for part in seen])
        self._table, self._starts = self.placed(table), self._column(starts[: len(parts)])
        targets, places = _joined([part.target for part in parts])
        weights, of_weight = _joined([part.weight for part in parts])
        self._targets, self._places = self.placed(targets), self._column(places)
        self._weights, self._weighed = self.placed(weights), self._column(of_weight)
        self._gains = self.placed(np.stack([part.factors() for part in parts]))[:, None]
        self.empty = np.array([len(part.X) for part in parts])
        self._judged, self._judged_gains = self._place_held(held, starts[len(parts) :])

    def placed(self, array: AnyArray) -> Any:
        """An array on the device."""
        return self.torch.as_tensor(array, device=self.device)

    def _column(self, starts: IdArray) -> Any:
        return self.placed(starts.astype(np.int32)[:, None])

    def _place_held(self, held: Sequence[TrainingRows], starts: IdArray) -> tuple[Any, Any]:
        """Numbers (networks, rows) of the rows held out, the empty one behind those of short parts, and gains."""
        longest = max(map(len, held), default=0)
        rows = np.zeros((len(self.parameters), longest), np.int32)
        gains = np.ones((len(self.parameters), 1, self.layout.inputs), np.float32)
        for number, (part, start) in enumerate(zip(held, starts, strict=True)):
            rows[number] = start + len(part.X)
            rows[number, : len(part)] = start + part.places()
            gains[number, 0] = part.factors()
        return self.placed(rows), self.placed(gains)

    def __len__(self) -> int:
        return len(self.parameters)

    def select(self, networks: list[int]) -> None:
        """Go on with these networks alone."""
        self.rule.select(networks)
        self.shrinks, self.empty = self.shrinks[networks], self.empty[networks]
        for name in ("parameters", "mean", "_gains", "_starts", "_places", "_weighed", "_judged", "_judged_gains"):
            setattr(self, name, getattr(self, name)[networks].contiguous())

    def prepare(self, epochs: int, steps: int, batch: int) -> None:
        """Make room for so many epochs at once, of so many steps and rows; as yet all stays as it is."""
        new, outputs = self.parameters.new_zeros, self.layout.outputs
        count, integer = len(self), self.torch.int32
        still = self.factors(np.zeros((steps, count), np.int64))
        self.block = EpochBlock(
            new((epochs, steps, count, batch), dtype=integer),
            self.placed(np.broadcast_to(still, (epochs, *still.shape)).copy()),
            new((epochs, count, 1)),
            new((epochs, count)),
            new((epochs, *self._judged.shape, outputs)),
            new((epochs if self._judged.shape[1] else 0, *self.parameters.shape)),
        )
        self._batches = new((steps, count, batch), dtype=integer)
        self._aims, self._values = new((steps, count, batch, outputs)), new((steps, count, batch, outputs))
        self._masses, self._pulls = new((steps, count, batch, 1)), new((steps, count, batch, 1))
        self._factors = new(still.shape)
        self.gradient = self.torch.zeros_like(self.parameters)
        self._parts, self._slopes = self._split(self.parameters), self._split(self.gradient)
        self._averages = self._split(self.mean)
        self.epoch = new((1,), dtype=self.torch.int64)
        self.cursor = self.torch.zeros_like(self.epoch)

    def factors(self, present: NDArray[np.int64]) -> FloatArray:
        """What steps multiply by (steps, kinds, networks, 1), given how many rows each network has in each."""
        moves = present > 0
        kinds = [1 / np.maximum(present, 1), 1 - self.shrinks * moves, *self.rule.factors(moves)]
        return np.stack(kinds, axis=1).astype(np.float32)[..., None]

    def begin(self) -> None:
        """Lay out the batches of the next epoch, with their targets and weights."""
        at, select = self.epoch, self.torch.index_select
        rows = select(self.block.rows, 0, at)[0]
        self._factors.copy_(select(self.block.factors, 0, at)[0])
        self.torch.add(rows, self._starts, out=self._batches)
        self._aims.copy_(select(self._targets, 0, (rows + self._places).view(-1)).view(self._aims.shape))
        self._masses.copy_(select(self._weights, 0, (rows + self._weighed).view(-1)).view(self._masses.shape))
        self.torch.mul(self._masses, self._factors[:, 0, :, None], out=self._pulls)
        self.cursor.zero_()

    def step(self) -> None:
        """One step of every network."""
        torch, parts, slopes, at = self.torch, self._parts, self._slopes, self.cursor
        rows, aims, pulls, factors = (
            torch.index_select(buffer, 0, at)[0] for buffer in (self._batches, self._aims, self._pulls, self._factors)
        )
        X, leaves, shown = self._shown(rows, self._gains), [], None
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
        self.rule.step(self.parameters, self.gradient, *others)
        at.add_(1)

    def finish(self) -> None:
        """Sum the losses of the epoch; take the weights into their mean, and judge that by the rows held out."""
        torch, at = self.torch, self.epoch
        losses = self._losses(self._values, self._aims) * self._masses[..., 0]
        self.block.losses.index_copy_(0, at, losses.sum(dim=(0, 2))[None])
        if self._judged.shape[1]:
            self.mean.lerp_(self.parameters, torch.index_select(self.block.newest, 0, at)[0])
            self.block.weights.index_copy_(0, at, self.mean[None])
            self.block.judged.index_copy_(0, at, self._judge()[None])
        at.add_(1)

    def _judge(self) -> Any:
        """Outputs (networks, rows, outputs) by the mean of the weights."""
        torch, layout, found = self.torch, self.layout, []
        kept = layout.embedding.kept(layout.inputs) if layout.embedding else 0
        numbers = len(self) * (layout.inputs + layout.fed + 2 * kept + sum(layout.hidden))
        for rows in torch.split(self._judged, max(16, JUDGED_BYTES // (4 * numbers)), dim=1):
            X = self._shown(rows, self._judged_gains)
            if layout.embedding is not None:
                X = torch.cat([X, layout.embedding.torch_values(torch, X, *self._averages.embedding)], dim=-1)
            found.append(self._forward(X, self._averages)[1])
        return torch.cat(found, dim=1)

    def _shown(self, rows: Any, gains: Any) -> Any:
        """Inputs (networks, rows, inputs) of numbered rows (networks, rows)."""
        return self.torch.index_select(self._table, 0, rows.reshape(-1)).view(*rows.shape, -1).mul_(gains)

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


def _joined(arrays: list[AnyArray]) -> tuple[AnyArray, IdArray]:
    """The distinct arrays one below the other, a row of zeros after each; where each array begins."""
    starts: dict[int, int] = {}
    distinct, rows = [], 0
    for array in arrays:
        if id(array) not in starts:
            starts[id(array)] = rows
            distinct += [array, np.zeros((1, *array.shape[1:]), array.dtype)]
            rows += len(array) + 1
    return np.concatenate(distinct), np.array([starts[id(array)] for array in arrays], np.int64)
