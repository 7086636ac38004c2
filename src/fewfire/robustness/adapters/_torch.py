"""Modules of PyTorch that take a table (rows, columns): attacked by autograd, in evaluation mode; not certified.

One output is a score: of two classes when all labels are ±1, or integers or booleans of 0 and 1; otherwise the number
that a regressor predicts. Several outputs are the scores of classes 0, 1, …, as in torch's cross-entropy.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_inputs
from fewfire.robustness._adapter import ModelAdapter, register_adapter
from fewfire.robustness._score_function import Scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._score_function import Pull

ROW = 4096
"""Numbers that a row is taken to cost a module, which does not say: 512 rows go through it at once."""


@register_adapter("torch.nn.Module", described="torch.nn.Module")
def torch_module(model: Any, X: object, y: object) -> ModelAdapter:
    """Its outputs, by autograd."""
    first = check_inputs("X", X, None, np.dtype(np.float64))[:1].astype(np.float64)
    scores = TorchScores(model, first.shape[1])
    heads = scores.scores(first).shape[1]
    return ModelAdapter(scores, np.arange(heads) if heads > 1 else _two_classes(np.asarray(y)))


@dataclass(frozen=True, eq=False)
class TorchScores(Scores):
    """A module's outputs, (rows,) or (rows, heads), in its own precision and on its own device."""

    module: Any
    columns: int

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return self.columns

    @property
    def width(self) -> int:
        """ROW."""
        return ROW

    def scores(self, points: Float64Array) -> Float64Array:
        """Outputs at points (rows, inputs): shape (rows, heads)."""
        torch = _torch()
        with _evaluation(self.module), torch.no_grad():
            return _numbers(self._outputs(self._tensor(points)))

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Outputs, and the map from weights c (rows, heads) to Σ_k c_k ∂output_k/∂x, shape (rows, inputs)."""
        torch = _torch()
        with _evaluation(self.module), torch.enable_grad():
            tensor = self._tensor(points).requires_grad_(True)
            outputs = self._outputs(tensor)

        def pull(weights: Float64Array) -> Float64Array:
            direction = torch.as_tensor(weights, dtype=outputs.dtype, device=outputs.device)
            (gradients,) = torch.autograd.grad(outputs, tensor, direction, retain_graph=True)
            return _numbers(gradients)

        return _numbers(outputs), pull

    def _tensor(self, points: Float64Array) -> Any:
        torch = _torch()
        weights = next((p for p in self.module.parameters() if p.is_floating_point()), torch.empty(0))
        return torch.tensor(points, dtype=weights.dtype, device=weights.device)

    def _outputs(self, tensor: Any) -> Any:
        outputs = self.module(tensor)
        if outputs.ndim not in (1, 2) or len(outputs) != len(tensor):
            rule = f"must turn a table of shape {tuple(tensor.shape)} into one row of scores per row"
            raise invalid("model", rule, f"shape {tuple(outputs.shape)}", "wrap it, for example with torch.nn.Flatten")
        return outputs.reshape(len(tensor), -1)


def _two_classes(labels: AnyArray) -> AnyArray | None:
    """The classes of a single output, or None for a regressor."""
    if np.all(np.isin(labels, (-1, 1))):
        return np.array([-1, 1])
    return np.array([0, 1]) if labels.dtype.kind in "biu" and np.all(np.isin(labels, (0, 1))) else None


def _torch() -> Any:
    return require("torch", "torch", "an attack on a torch.nn.Module")


def _numbers(tensor: Any) -> Float64Array:
    """The numbers in the module's own precision: searches go on in it, and nothing is widened on the way."""
    tensor = tensor.detach().cpu()
    return np.asarray((tensor if tensor.dtype in (_torch().float32, _torch().float64) else tensor.float()).numpy())


@contextmanager
def _evaluation(module: Any) -> Iterator[None]:
    """Evaluation mode (no dropout, fixed batch statistics), with every part's own mode restored."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
