"""The torch twin: all networks of one layout trained at once as batched products, on a GPU where there is one.

Imported on demand, and the only module of the package that needs PyTorch. Parameters are rows of one matrix in the
order of `Layout`; member k's batch is block k of a batched product, in the same batches as those of `CpuTrainer`.

torch.optim moves all rows of a tensor alike; here a network that has no rows in a step stays as it is, and each counts
its own steps. The update rules are those of `AdamW` and `SGD`. Weight decay is not theirs: it comes before, and apart
from momentum, for both alike. A rule is asked for its factors of an epoch first, arrays (steps, members) computed at
once from who moves when, so that a step waits for nothing but the device; the factors of a network that does not move
make every change 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fewfire._optional import require
from fewfire.tabular._network import rows_at_once
from fewfire.tabular._training import NEWEST, Advance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fewfire._types import FloatArray, IdArray
    from fewfire.tabular._network import Layout, TabularLoss
    from fewfire.tabular._queue import Task
    from fewfire.tabular._training import TrainedNetwork, TrainingRows

    Moves = NDArray[np.bool_]

NO_ROW = -1  # the last row of a stack, which is empty


class TorchTrainer:
    """Networks trained by PyTorch, which hands the weights back to them at the end.

    Parameters
    ----------
    networks : list of TrainedNetwork
        Their optimisers' state is not carried over: a later fit starts with a fresh one.
    parts, held : one TrainingRows per network
        Moved to the device once.
    """

    def __init__(self, networks: list[TrainedNetwork], parts: list[TrainingRows], held: list[TrainingRows]) -> None:
        self.networks, self.parts, self.held = networks, parts, held
        first = networks[0]
        self.learning_rate, self.steps = float(first.optimiser.learning_rate), 0
        flats = np.stack([network.flat for network in networks])
        decays = np.array([network.descent.decay for network in networks])
        self._torch = TorchNetworks(first.layout, flats, first.loss, first.optimiser.get_params(), decays)
        self._rows = self._torch.place(*_stack(parts))
        self._judged = self._torch.place(_stack(held)[0]) if held else []

    def epoch(self) -> list[Task]:
        """One task: all networks advance together."""
        return [self.advance]

    def advance(self) -> list[Advance]:
        """One epoch of every network, and their outputs at the rows they are judged by."""
        losses = self.train_epoch()
        outputs: list[FloatArray | None] = [None] * len(losses)
        if self.held:
            self._torch.average()
            outputs = [*self.held_out()]
        return [Advance(float(loss), values) for loss, values in zip(losses, outputs, strict=True)]

    def train_epoch(self) -> FloatArray:
        """One epoch of every network; their mean losses (members,)."""
        batches = [_batches(network, len(part)) for network, part in zip(self.networks, self.parts, strict=True)]
        self.steps += len(batches[0])
        steps, size = np.max([batch.shape for batch in batches], axis=0)
        together = np.full((steps, len(batches), size), NO_ROW)
        for number, batch in enumerate(batches):
            together[: batch.shape[0], number, : batch.shape[1]] = batch
        return np.asarray(self._torch.epoch(self._rows, together) / list(map(len, self.parts)))

    def held_out(self) -> list[FloatArray]:
        """Outputs of each network at its held-out rows."""
        values = self._torch.outputs(self._judged[0], rows_at_once(self.networks[0].layout, 4))
        return [rows[: len(part)] for rows, part in zip(values, self.held, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        self._torch.keep()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        self._torch.restore()

    def release(self) -> None:
        """Write the weights back to the networks."""
        for network, flat in zip(self.networks, self._torch.flats(), strict=True):
            network.flat[:] = flat


def _batches(network: TrainedNetwork, rows: int) -> IdArray:
    """Rows (steps, size) of a network's next epoch, as `TrainedNetwork.train_epoch` would take them."""
    size = network.optimiser.rows_per_step(rows)
    order = np.arange(rows) if size == rows else network.order(rows)
    return np.pad(order, (0, -rows % size), constant_values=NO_ROW).reshape(-1, size)


def _stack(parts: list[TrainingRows]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs, targets and weights of several parts, padded by rows of weight 0 to one more than the longest has.

    Of a part that all networks share there is one block.
    """
    if all(part is parts[0] for part in parts):
        parts = parts[:1]
    parts = [part.copied() for part in parts]
    rows = 1 + max(map(len, parts))
    padded = [(rows - len(part), part) for part in parts]
    return (
        np.stack([np.pad(part.X, ((0, more), (0, 0))) for more, part in padded]),
        np.stack([np.pad(part.target, ((0, more), (0, 0))) for more, part in padded]),
        np.stack([np.pad(part.weight, (0, more)) for more, part in padded]),
    )


class TorchNetworks:
    """Networks of one layout on one device.

    Parameters
    ----------
    layout : Layout
    flats : array (members, layout.size)
        Starts.
    loss : {"logistic", "cross_entropy", "squared"}
    optimiser : mapping
        "learning_rate", and "betas" (AdamW) or "momentum" (SGD).
    decays : array (members,)
        Weight decay of each network.
    device : str, optional
        "cuda" where there is one, else "cpu".
    """

    def __init__(
        self,
        layout: Layout,
        flats: FloatArray,
        loss: TabularLoss,
        optimiser: Mapping[str, Any],
        decays: FloatArray,
        device: str | None = None,
    ) -> None:
        self.torch: Any = require("torch", "torch", "engine='torch'")
        self.device = device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self.layout, self.loss = layout, loss
        self._shapes = [*layout.matrices, *layout.vectors]
        self._decayed = layout.decayed
        self.parameters = self.torch.tensor(flats, device=self.device, requires_grad=True)
        self._rule = _rule_of(optimiser, self.parameters)
        self._shrinks = optimiser["learning_rate"] * np.asarray(decays)
        self._mean: Any = None
        self._averaged = 0

    def _values(self, X: Any, parameters: Any) -> Any:
        """Outputs (members, rows, outputs) at X (members, rows, inputs)."""
        torch, parts, embedding = self.torch, self.layout.group(self._parts(parameters)), self.layout.embedding
        fed = X
        if embedding is not None:
            fed = torch.cat([X, embedding.torch_values(torch, X, *parts.embedding)], dim=-1)
        below = fed
        for weights, bias in zip(parts.hidden, parts.biases, strict=True):
            below = torch.relu(torch.baddbmm(bias[:, None], below, weights.mT))
        values = torch.baddbmm(parts.offset[:, None], below, parts.output.mT)
        return values if parts.skip is None else values + fed @ parts.skip.mT

    def _losses(self, values: Any, target: Any) -> Any:
        functional = self.torch.nn.functional
        if self.loss == "logistic":
            return functional.binary_cross_entropy_with_logits(values, target, reduction="none")[..., 0]
        if self.loss == "cross_entropy":
            return -(target * functional.log_softmax(values, dim=-1)).sum(dim=-1)
        return 0.5 * ((values - target) ** 2).mean(dim=-1)

    def place(self, *arrays: NDArray[Any]) -> list[Any]:
        """Arrays (members, ...) on the device; one of a single block is every network's, without copies."""
        placed = map(self._moved, arrays)
        return [tensor.expand(len(self.parameters), *tensor.shape[1:]) for tensor in placed]

    def _moved(self, array: NDArray[Any]) -> Any:
        return self.torch.as_tensor(array, device=self.device)

    def epoch(self, rows: Sequence[Any], batches: NDArray[np.integer[Any]]) -> FloatArray:
        """One pass over placed inputs, targets and weights (members, rows, ...), whose last row is empty, of weight 0.

        Parameters
        ----------
        batches : array (steps, members, size)
            Rows of each network in each step; −1, the empty row, where it has fewer. One that has none stays as it is.

        Returns
        -------
        The sums (members,) of the weighted losses met on the way.
        """
        present = (batches >= 0).sum(axis=2)
        moves = present > 0
        factors = [1 / np.maximum(present, 1), 1 - self._shrinks * moves, *self._rule.factors(moves)]
        placed = self._moved(np.stack(factors, axis=1).astype(np.float32))[..., None]
        of_member = self.torch.arange(batches.shape[1], device=self.device)[:, None]
        total = self.parameters.new_zeros(batches.shape[1])
        for chosen, (share, shrink, *others) in zip(self._moved(batches), placed, strict=True):
            X, target, weight = (part[of_member, chosen] for part in rows)
            losses = self._losses(self._values(X, self.parameters), target) * weight
            (gradient,) = self.torch.autograd.grad((losses * share).sum(), self.parameters)
            with self.torch.no_grad():
                self.parameters[:, : self._decayed] *= shrink
                self._rule.step(self.parameters, gradient, *others)
            total = total + losses.detach().sum(dim=1)
        return np.asarray(total.cpu().numpy())

    def outputs(self, X: Any, rows: int) -> FloatArray:
        """Outputs (members, rows, outputs) at placed inputs (members, rows, inputs), so many rows at a time.

        By the mean of the parameters, or by the parameters where none was taken.
        """
        judged = self._judged()
        with self.torch.no_grad():
            blocks = [self._values(block, judged).cpu().numpy() for block in self.torch.split(X, rows, dim=1)]
        return np.concatenate(blocks, axis=1)

    def average(self) -> None:
        """Take the parameters into their mean over epochs, as `TrainedNetwork.average` does."""
        self._averaged += 1
        parameters = self.parameters.detach()
        if self._mean is None:
            self._mean = parameters.clone()
        else:
            self._mean += max(NEWEST, 1 / self._averaged) * (parameters - self._mean)

    def _judged(self) -> Any:
        return self.parameters.detach() if self._mean is None else self._mean

    def keep(self) -> None:
        """Remember what `outputs` goes by."""
        self._kept = self._judged().clone()

    def restore(self) -> None:
        """Make what is remembered the parameters."""
        with self.torch.no_grad():
            self.parameters.copy_(self._kept)

    def flats(self) -> FloatArray:
        """The parameters (members, size)."""
        return np.asarray(self.parameters.detach().cpu().numpy())

    def _parts(self, parameters: Any) -> list[Any]:
        """Parts (members, *shape) of parameters (members, size), one after another."""
        parts = self.torch.split(parameters, [math.prod(shape) for shape in self._shapes], dim=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, self._shapes, strict=True)]


class UpdateRule(Protocol):
    """How parameters follow their gradient."""

    def factors(self, moves: Moves) -> list[FloatArray]:
        """Arrays (steps, members) for `step`, given which network moves in which of the next steps."""

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Change parameters (members, size) in place; factors are (members, 1)."""


class AdamRule:
    """Adam; each network's means are corrected by its own number of steps.

    Parameters
    ----------
    parameters : tensor (members, size)
        The state has its shape and place.
    learning_rate : float
    betas : (float, float)
    """

    def __init__(self, parameters: Any, learning_rate: float, betas: tuple[float, float]) -> None:
        self.learning_rate, self.betas = learning_rate, betas
        self.mean, self.square = parameters.new_zeros(parameters.shape), parameters.new_zeros(parameters.shape)
        self.steps = np.zeros(len(parameters), np.int64)

    def factors(self, moves: Moves) -> list[FloatArray]:
        """Shares of the gradient and of its square that are taken in, rate, and what keeps from dividing by 0."""
        counted = self.steps + np.cumsum(moves, axis=0)
        self.steps = counted[-1]
        beta1, beta2 = self.betas
        since = np.maximum(counted, 1)  # a network yet to move has nothing to correct
        of_square = np.sqrt(1 - beta2**since)
        rate = self.learning_rate * of_square / (1 - beta1**since)
        return [(1 - beta1) * moves, (1 - beta2) * moves, rate * moves, 1e-8 * of_square]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move along −mean / √square."""
        of_mean, of_square, rate, tiny = factors
        self.mean += of_mean * (gradient - self.mean)
        self.square += of_square * (gradient * gradient - self.square)
        parameters -= rate * self.mean / (self.square.sqrt() + tiny)


class MomentumRule:
    """Gradient descent with momentum; parameters as of `AdamRule`.

    Parameters
    ----------
    parameters, learning_rate
    momentum : float
    """

    def __init__(self, parameters: Any, learning_rate: float, momentum: float) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocity = parameters.new_zeros(parameters.shape)

    def factors(self, moves: Moves) -> list[FloatArray]:
        """Share of the velocity that is kept, rate, and whether the network moves."""
        return [np.where(moves, self.momentum, 1.0), self.learning_rate * moves, 1.0 * moves]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move by the velocity."""
        kept, rate, moves = factors
        self.velocity *= kept
        self.velocity -= rate * gradient
        parameters += moves * self.velocity


def _rule_of(settings: Mapping[str, Any], parameters: Any) -> UpdateRule:
    """The rule with "learning_rate" and "betas" (Adam) or "momentum"."""
    if "betas" in settings:
        return AdamRule(parameters, settings["learning_rate"], settings["betas"])
    return MomentumRule(parameters, settings["learning_rate"], settings["momentum"])
