"""Networks on PyTorch: several multilayer ReLU networks of one shape, trained at once, on a GPU where there is one.

Imported on demand, and the only module that needs torch. Parameters are rows of one matrix in the order of the tabular
learners: all matrices, then all biases; member k's batch is block k of a batched product.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import require
from fewfire.networks._torch_rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


def torch_module() -> Any:
    """The package torch, or an error that says how to get it."""
    return require("torch", "torch", "engine='torch'")


class TorchMembers:
    """Members in training on one device.

    Parameters
    ----------
    matrices, others : sequences of shapes
        What decays: hidden layers, output, the skip from inputs to outputs if `skip`, the sums of `waves`. The rest:
        biases, then frequencies, phases and biases of waves.
    flats : array (members, size)
        Starts.
    skip, waves : bool
    loss : {"logistic", "cross_entropy", "squared"}
    optimiser : mapping
        "learning_rate", and "betas" (AdamW) or "momentum" (SGD).
    decays : array (members,)
        Weight decay of each member.
    device : str, optional
        "cuda" where there is one, else "cpu".
    """

    def __init__(
        self, matrices: Sequence[tuple[int, int]], others: Sequence[tuple[int, ...]], flats: Floats, skip: bool,
        waves: bool, loss: str, optimiser: Mapping[str, Any], decays: Floats, device: str | None = None,
    ) -> None:  # fmt: skip
        self.torch = torch_module()
        self.device = device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self.shapes, self.skip, self.waves, self.loss = [*matrices, *others], skip, waves, loss
        self._matrices, self._decayed = len(matrices), sum(math.prod(shape) for shape in matrices)
        self.parameters = self.torch.tensor(flats, device=self.device, requires_grad=True)
        self._rule = rule_of(optimiser, self.parameters)
        self._shrinks = optimiser["learning_rate"] * np.asarray(decays)

    def _values(self, X: Any) -> Any:
        """Outputs (members, rows, outputs) at X (members, rows, inputs)."""
        parts = self._parts()
        matrices, others = parts[: self._matrices], parts[self._matrices :]
        layers = len(matrices) - int(self.skip) - int(self.waves)
        fed = self._fed(X, matrices[-1], *others[layers:]) if self.waves else X
        below, biases = fed, [bias[:, None] for bias in others[:layers]]
        for weights, bias in zip(matrices[: layers - 1], biases[:-1], strict=True):
            below = self.torch.relu(self.torch.baddbmm(bias, below, weights.mT))
        values = self.torch.baddbmm(biases[-1], below, matrices[layers - 1].mT)
        return values + fed @ matrices[layers].mT if self.skip else values

    def _fed(self, X: Any, mix: Any, frequency: Any, phase: Any, bias: Any) -> Any:
        """[X, sums of waves] (members, rows, 2·inputs)."""
        angles = 2 * math.pi * X[..., None] * frequency[:, None] + phase[:, None]
        sums = (self.torch.cos(angles) * mix[:, None]).sum(dim=-1) + bias[:, None]
        return self.torch.cat([X, sums], dim=-1)

    def _losses(self, values: Any, target: Any) -> Any:
        functional = self.torch.nn.functional
        if self.loss == "logistic":
            return functional.binary_cross_entropy_with_logits(values, target, reduction="none")[..., 0]
        if self.loss == "cross_entropy":
            return -(target * functional.log_softmax(values, dim=-1)).sum(dim=-1)
        return 0.5 * ((values - target) ** 2).mean(dim=-1)

    def place(self, *arrays: NDArray[Any]) -> list[Any]:
        """Arrays (members, ...) on the device; one of a single block is every member's, without copies."""
        placed = map(self._moved, arrays)
        return [tensor.expand(len(self.parameters), *tensor.shape[1:]) for tensor in placed]

    def _moved(self, array: NDArray[Any]) -> Any:
        return self.torch.as_tensor(array, device=self.device)

    def epoch(self, rows: Sequence[Any], batches: NDArray[np.integer[Any]]) -> Floats:
        """One pass over placed inputs, targets and weights (members, rows, ...), whose last row is empty, of weight 0.

        Parameters
        ----------
        batches : array (steps, members, size)
            Rows of each member in each step; −1, the empty row, where it has fewer. One that has none stays as it is.

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
            losses = self._losses(self._values(X), target) * weight
            (gradient,) = self.torch.autograd.grad((losses * share).sum(), self.parameters)
            with self.torch.no_grad():
                self.parameters[:, : self._decayed] *= shrink
                self._rule.step(self.parameters, gradient, *others)
            total = total + losses.detach().sum(dim=1)
        return np.asarray(total.cpu().numpy())

    def outputs(self, X: Any, rows: int) -> Floats:
        """Outputs (members, rows, outputs) at placed inputs (members, rows, inputs), so many rows at a time."""
        with self.torch.no_grad():
            blocks = [self._values(block).cpu().numpy() for block in self.torch.split(X, rows, dim=1)]
        return np.concatenate(blocks, axis=1)

    def keep(self) -> None:
        """Remember the parameters."""
        self._kept = self.parameters.detach().clone()

    def restore(self) -> None:
        """Go back to the parameters remembered."""
        with self.torch.no_grad():
            self.parameters.copy_(self._kept)

    def flats(self) -> Floats:
        """The parameters (members, size)."""
        return np.asarray(self.parameters.detach().cpu().numpy())

    def _parts(self) -> list[Any]:
        """Parts (members, *shape) of the parameters, one after another."""
        parts = self.torch.split(self.parameters, [math.prod(shape) for shape in self.shapes], dim=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
