"""Networks on PyTorch: several multilayer ReLU networks of one shape, trained at once, on a GPU where there is one.

Imported on demand, and the only module that needs torch. Parameters are rows of one matrix in the order of the tabular
learners: all matrices, then all biases; member k's batch is block k of a batched product.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        "learning_rate", "weight_decay", and "betas" (AdamW) or "momentum" (SGD).
    device : str, optional
        "cuda" where there is one, else "cpu".
    """

    def __init__(
        self, matrices: Sequence[tuple[int, int]], others: Sequence[tuple[int, ...]], flats: Floats, skip: bool,
        waves: bool, loss: str, optimiser: dict[str, Any], device: str | None = None,
    ) -> None:  # fmt: skip
        self.torch = torch_module()
        self.device = device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self.shapes, self.skip, self.waves, self.loss = (list(matrices), list(others)), skip, waves, loss
        decayed = sum(math.prod(shape) for shape in matrices)
        tensor = self.torch.as_tensor(np.array(flats), device=self.device)
        self.matrices = tensor[:, :decayed].clone().requires_grad_()
        self.rest = tensor[:, decayed:].clone().requires_grad_()
        self.optimiser = self._optimiser(optimiser)

    def _optimiser(self, settings: dict[str, Any]) -> Any:
        rate, parameters = settings["learning_rate"], [self.matrices, self.rest]
        # Decay is done in `step`, before the gradient's move and apart from momentum, for both rules alike.
        self.shrink = 1 - rate * settings["weight_decay"]
        if "betas" in settings:
            return self.torch.optim.AdamW(parameters, lr=rate, betas=tuple(settings["betas"]), weight_decay=0.0)
        return self.torch.optim.SGD(parameters, lr=rate, momentum=settings["momentum"])

    def _values(self, X: Any) -> Any:
        """Outputs (members, rows, outputs) at X (members, rows, inputs)."""
        matrices, others = _split(self.matrices, self.shapes[0]), _split(self.rest, self.shapes[1])
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
        """Arrays on the device."""
        return [self.torch.as_tensor(array, device=self.device) for array in arrays]

    def epoch(self, rows: Sequence[Any], orders: NDArray[np.integer[Any]], size: int) -> float:
        """One pass over placed inputs, targets and weights (members, rows, ...), 0 the weight of a row that is none.

        Parameters
        ----------
        orders : array (members, length)
            Rows of each member in the order of its batches.
        size : int
            Rows a step.

        Returns
        -------
        The sum of the weighted losses met on the way.
        """
        order, total = self.place(orders)[0], 0.0
        of_member = self.torch.arange(len(order), device=self.device)[:, None]
        for start in range(0, order.shape[1], size):
            chosen = (of_member, order[:, start : start + size])
            total = total + self._step(*(part[chosen] for part in rows))
        return float(total)

    def _step(self, X: Any, target: Any, weight: Any) -> Any:
        """One step of every member on its own rows; the sum of the weighted losses, on the device."""
        self.optimiser.zero_grad()
        losses = self._losses(self._values(X), target) * weight
        rows = (weight > 0).sum(dim=1).clamp(min=1)
        (losses.sum(dim=1) / rows).sum().backward()
        with self.torch.no_grad():
            self.matrices.mul_(self.shrink)
        self.optimiser.step()
        return losses.detach().sum()

    def outputs(self, X: Any) -> Floats:
        """Outputs (members, rows, outputs) at placed inputs (members, rows, inputs)."""
        with self.torch.no_grad():
            return np.asarray(self._values(X).cpu().numpy())

    def keep(self) -> None:
        """Remember the parameters."""
        self._kept = [part.detach().clone() for part in (self.matrices, self.rest)]

    def restore(self) -> None:
        """Go back to the parameters remembered."""
        with self.torch.no_grad():
            for part, kept in zip((self.matrices, self.rest), self._kept, strict=True):
                part.copy_(kept)

    def flats(self) -> Floats:
        """The parameters (members, size)."""
        return np.asarray(self.torch.cat([self.matrices, self.rest], dim=1).detach().cpu().numpy())


def _split(flats: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Parts (members, *shape) of flats (members, size), one after another."""
    parts, start = [], 0
    for shape in shapes:
        parts.append(flats[:, start : start + math.prod(shape)].reshape(len(flats), *shape))
        start += math.prod(shape)
    return parts
