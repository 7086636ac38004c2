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
    shapes : sequence of (int, int)
        Matrices: hidden layers, output, and the skip from inputs to outputs if `skip`.
    flats : array (members, size)
        Starts.
    skip : bool
    loss : {"logistic", "cross_entropy", "squared"}
    optimiser : mapping
        "learning_rate", "weight_decay", and "betas" (AdamW) or "momentum" (SGD).
    device : str, optional
        "cuda" where there is one, else "cpu".
    """

    def __init__(
        self, shapes: Sequence[tuple[int, int]], flats: Floats, skip: bool, loss: str, optimiser: dict[str, Any],
        device: str | None = None,
    ) -> None:  # fmt: skip
        self.torch = torch_module()
        self.device = device or ("cuda" if self.torch.cuda.is_available() else "cpu")
        self.shapes, self.skip, self.loss = list(shapes), skip, loss
        layers = len(shapes) - int(skip)
        self.biases = [shape[0] for shape in self.shapes[:layers]]
        decayed = sum(math.prod(shape) for shape in shapes)
        tensor = self.torch.as_tensor(np.array(flats), device=self.device)
        self.matrices = tensor[:, :decayed].clone().requires_grad_()
        self.rest = tensor[:, decayed:].clone().requires_grad_()
        self.optimiser = self._optimiser(optimiser)

    def _optimiser(self, settings: dict[str, Any]) -> Any:
        rate, decay = settings["learning_rate"], settings["weight_decay"]
        groups = [{"params": [self.matrices], "weight_decay": decay}, {"params": [self.rest], "weight_decay": 0.0}]
        if "betas" in settings:
            return self.torch.optim.AdamW(groups, lr=rate, betas=tuple(settings["betas"]))
        return self.torch.optim.SGD(groups, lr=rate, momentum=settings["momentum"])

    def _values(self, X: Any) -> Any:
        """Outputs (members, rows, outputs) at X (members, rows, inputs)."""
        members, start, parts = len(X), 0, []
        for shape in self.shapes:
            parts.append(self.matrices[:, start : start + math.prod(shape)].reshape(members, *shape))
            start += math.prod(shape)
        biases, start = [], 0
        for width in self.biases:
            biases.append(self.rest[:, None, start : start + width])
            start += width
        below, layers = X, len(self.biases)
        for weights, bias in zip(parts[: layers - 1], biases[:-1], strict=True):
            below = self.torch.relu(self.torch.baddbmm(bias, below, weights.mT))
        values = self.torch.baddbmm(biases[-1], below, parts[layers - 1].mT)
        return values + X @ parts[layers].mT if self.skip else values

    def _losses(self, values: Any, target: Any) -> Any:
        functional = self.torch.nn.functional
        if self.loss == "logistic":
            return functional.binary_cross_entropy_with_logits(values, target, reduction="none")[..., 0]
        if self.loss == "cross_entropy":
            return -(target * functional.log_softmax(values, dim=-1)).sum(dim=-1)
        return 0.5 * ((values - target) ** 2).mean(dim=-1)

    def step(self, X: Floats, target: Floats, weight: Floats) -> list[float]:
        """One step of every member on its own rows; weights (members, rows), 0 where a batch is padded.

        Returns
        -------
        The sum of the weighted losses of each member.
        """
        batch = [self.torch.as_tensor(part, device=self.device) for part in (X, target, weight)]
        self.optimiser.zero_grad()
        losses = self._losses(self._values(batch[0]), batch[1]) * batch[2]
        rows = (batch[2] > 0).sum(dim=1).clamp(min=1)
        (losses.sum(dim=1) / rows).sum().backward()
        self.optimiser.step()
        return [float(value) for value in losses.detach().sum(dim=1).cpu()]

    def outputs(self, X: Floats) -> Floats:
        """Outputs (members, rows, outputs) at X (members, rows, inputs)."""
        with self.torch.no_grad():
            return np.asarray(self._values(self.torch.as_tensor(X, device=self.device)).cpu().numpy())

    def flats(self) -> Floats:
        """The parameters (members, size)."""
        return np.asarray(self.torch.cat([self.matrices, self.rest], dim=1).detach().cpu().numpy())
