"""Modules of PyTorch that take a table (rows, columns) or rows of any shape, as images have: attacked by autograd.

They are in evaluation mode meanwhile. A `Sequential` of ReLUs and linear parts (layers, convolutions, means over
windows, batch norms) is also read as layers, in float64, which is what `certify` bounds: what is proved is of the same
weights without the rounding of the module's own precision.

One output is a score: of two classes when all labels are ±1, or 0 and 1; otherwise the number that a regressor
predicts. Several outputs are the scores of classes 0, 1, …, as in torch's cross-entropy.

A classifier that ends in a sigmoid, a softmax or their logarithms, as a module or as a function, is attacked by what
goes into it, since probabilities saturate; its class is the second where the probability is above ½, or the likeliest.
A single output within [0, 1] that is made otherwise is refused, as is one that comes near labels 0 and 1 themselves:
their signs have no meaning. Where it has one sign at all rows, of labels of both classes, a warning says so.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_inputs
from fewfire.robustness._adapter import ModelAdapter, check_score, register_adapter, two_classes
from fewfire.robustness._formula import Layers, Scores

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._formula import Pull

ROW = 4096  # numbers that a row is taken to cost a module, since that is unknown: 512 rows go through it at once

HEADS: Final[dict[str, float | None]] = {
    "sigmoid": 0.5,
    "log_sigmoid": math.log(0.5),
    "softmax": None,
    "log_softmax": None,
}
"""Functions that turn scores into probabilities, and the value of one output beyond which the class is the second."""


@register_adapter("torch.nn.Module", described="torch.nn.Module")
def torch_module(model: Any, X: object, y: object) -> ModelAdapter:
    """Its outputs, or what goes into a last sigmoid or softmax, by autograd."""
    rows = np.asarray(X)
    shape = rows.shape[1:] if rows.ndim > 2 else ()
    table = check_inputs("X", rows.reshape(len(rows), -1) if shape else X, None, np.dtype(np.float64))
    table = table.astype(np.float64)
    outputs, labels = TorchScores(model, table.shape[1], shape=shape), np.asarray(y)
    heads, head = outputs.scores(table[:1]).shape[1], outputs.head(table[:1])
    classes = np.arange(heads) if heads > 1 else two_classes(labels, probability=head is not None)
    if classes is None:
        values = np.unique(labels)
        if head == "sigmoid" and len(values) == 2 and (values[0] < 0 or values[1] > 1):
            rule = "must be ±1, 0 and 1, or numbers within [0, 1] for a model that ends in a sigmoid"
            raise invalid("y", rule, values, "encode the classes as 0 and 1")
        return ModelAdapter(_with_layers(outputs, table), None, shape=shape)
    if head is None:
        if heads == 1:
            check_score(outputs, table, labels, classes)
        return ModelAdapter(_with_layers(outputs, table), classes, shape=shape)

    half = HEADS[head]

    def predict(rows: Float64Array) -> AnyArray:
        values = outputs.scores(rows)
        index = values.argmax(axis=1) if heads > 1 or half is None else (values[:, 0] > half).astype(np.int64)
        return np.asarray(classes[index])

    return ModelAdapter(_with_layers(replace(outputs, before_head=True), table), classes, predict=predict, shape=shape)


@dataclass(frozen=True, eq=False)
class TorchScores(Scores):
    """A module's outputs, (rows,) or (rows, heads), in its own precision and on its own device."""

    module: Any
    columns: int
    before_head: bool = False  # what goes into the last sigmoid or softmax instead
    layers: Layers | None = None
    shape: tuple[int, ...] = ()  # of a row as the module takes it, where that is not (columns,)

    @property
    def inputs(self) -> int:
        return self.columns

    @property
    def width(self) -> int:
        """ROW, or 16 channels of an image."""
        return max(ROW, 16 * self.columns) if self.shape else ROW

    @property
    def formula(self) -> Layers | None:
        """The layers that give these scores, where the module is a Sequential of them; refused where it is sparse."""
        if self.layers is None:
            from fewfire.torch._sparsify import sparse_forwards

            if any(True for _ in sparse_forwards(self.module)):
                remedy = "call fewfire.torch.densify(model) first"
                raise invalid("model", "must be dense to be certified", "a sparsified model", remedy)
        return self.layers

    def scores(self, points: Float64Array) -> Float64Array:
        with _evaluating(self.module):
            return _numbers(self._run(self._tensor(points))[0])

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        torch = _torch()
        with _evaluating(self.module), torch.enable_grad():
            tensor = self._tensor(points).requires_grad_(True)
            outputs, _ = self._run(tensor)

        def pull(weights: Float64Array) -> Float64Array:
            if not outputs.requires_grad:  # nothing but steps on the way: the gradients are 0
                return np.zeros((len(tensor), self.columns))
            direction = torch.tensor(weights, dtype=outputs.dtype, device=outputs.device)
            (gradients,) = torch.autograd.grad(
                outputs, tensor, direction, retain_graph=True, materialize_grads=True
            )  # 0 where the outputs do not depend on the points
            return _numbers(gradients).reshape(len(gradients), -1)

        return _numbers(outputs), pull

    def head(self, points: Float64Array) -> str | None:
        """The function of HEADS that makes the outputs; None where it is another."""
        with _evaluating(self.module):
            return self._run(self._tensor(points))[1]

    def _tensor(self, points: Float64Array) -> Any:
        torch = _torch()
        weights = next((p for p in self.module.parameters() if p.is_floating_point()), torch.empty(0))
        shaped = points.reshape(len(points), *self.shape) if self.shape else points
        return torch.tensor(shaped, dtype=weights.dtype, device=weights.device)

    def _run(self, tensor: Any) -> tuple[Any, str | None]:
        """The outputs, or what goes into their head, of shape (rows, heads); and the head's name."""
        with _watch_heads() as watch:
            outputs = self.module(tensor)
        if outputs.ndim not in (1, 2) or len(outputs) != len(tensor):
            rule = f"must turn a table of shape {tuple(tensor.shape)} into one row of scores per row"
            raise invalid("model", rule, f"shape {tuple(outputs.shape)}", "wrap it, for example with torch.nn.Flatten")
        name, inward = watch.made(outputs)
        if self.before_head and name is None:
            rule = "must end in the same sigmoid or softmax at every call"
            raise invalid("model", rule, "a call without one", "return the scores before it")
        return (inward if self.before_head else outputs).reshape(len(tensor), -1), name


def _with_layers(scores: TorchScores, table: Float64Array) -> TorchScores:
    """The scores with their layers, where these are known, and give the scores of the first rows."""
    layers = _layers(scores.module, scores.shape or (scores.columns,))
    if layers is None or layers.inputs != scores.columns:
        return scores
    given, expected = scores.scores(table[:16]), layers.scores(table[:16])
    same = given.shape == expected.shape and np.allclose(given, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    return replace(scores, layers=layers) if same else scores


LARGEST: Final = 1 << 24
"""Weights from one layer to the next, or to itself, up to which other parts than one linear layer become a matrix."""


def _layers(module: Any, shape: tuple[int, ...]) -> Layers | None:
    """A Sequential of ReLUs and linear parts in float64, a head left out; None where it is anything else."""
    torch = _torch()
    nn, weights, biases, parts = torch.nn, [], [], _members(module)
    if type(parts[-1]) in (nn.Sigmoid, nn.LogSigmoid, nn.Softmax, nn.LogSoftmax):
        parts.pop()
    linear = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.AvgPool2d, nn.BatchNorm1d, nn.BatchNorm2d, nn.Flatten)
    parts = [part for part in parts if type(part) not in (nn.Identity, nn.Dropout)]
    ends = [i for i, part in enumerate(parts) if type(part) is nn.ReLU]
    for start, end in zip([-1, *ends], [*ends, len(parts)], strict=True):
        part = [deepcopy(step).double().cpu().eval() for step in parts[start + 1 : end] if type(step) in linear]
        if len(part) != end - start - 1 or all(type(step) is nn.Flatten for step in part):
            return None
        with torch.no_grad():
            try:
                zero = nn.Sequential(*part)(torch.zeros(1, *shape, dtype=torch.float64))
            except (RuntimeError, ValueError):  # rows of another shape
                return None
            steps, inputs = [step for step in part if type(step) is not nn.Flatten], math.prod(shape)
            if [type(step) for step in steps] == [nn.Linear]:
                weights.append(steps[0].weight.numpy().T)
            elif inputs * max(inputs, zero.numel()) > LARGEST:
                return None
            else:
                for step in part:  # nothing is added any more, so no weight is a difference of two large outputs
                    for added in (getattr(step, "bias", None), getattr(step, "running_mean", None)):
                        if added is not None:
                            added.zero_()
                unit = torch.eye(inputs, dtype=torch.float64).reshape(inputs, *shape)
                weights.append(nn.Sequential(*part)(unit).reshape(inputs, -1).numpy())
        biases.append(zero.reshape(-1).numpy())
        shape = tuple(zero.shape[1:])
    return Layers(tuple(weights), tuple(biases), "relu")


def _members(module: Any) -> list[Any]:
    """The members of a Sequential, of those in it as well; the module itself where more than they is called."""
    changed = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    if changed or not len(module._modules) or type(module) is not _torch().nn.Sequential:
        return [None if changed else module]
    return [part for member in module for part in _members(member)]


def _watch_heads() -> Any:
    """A mode of torch that notes the last call of a function of HEADS."""
    mode: Any = _torch().overrides.TorchFunctionMode

    class Watch(mode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.last: tuple[Any, ...] | None = None

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found, kwargs = func(*args, **(kwargs or {})), kwargs or {}
            name = getattr(func, "__name__", "")
            if name in HEADS:
                inward = args[0] if args else kwargs["input"]
                along = kwargs.get("dim", args[1] if len(args) > 1 else None)
                classes_last = inward.ndim == 2 and along in (1, -1) and inward.shape[1] > 1
                if HEADS[name] is not None or classes_last:
                    self.last = (name, inward, found, found._version)
            return found

        def made(self, outputs: Any) -> tuple[str | None, Any]:
            """Name and input of the call whose values the outputs are, seen in any shape."""
            if self.last is None:
                return None, None
            name, inward, found, version = self.last
            same = found.data_ptr() == outputs.data_ptr() and found.shape.numel() == outputs.shape.numel()
            return (name, inward) if same and outputs._version == version else (None, None)

    return Watch()


def _torch() -> Any:
    return require("torch", "torch", "an attack on a torch.nn.Module")


def _numbers(tensor: Any) -> Float64Array:
    """The numbers in the module's own precision: searches go on in it, and nothing is widened on the way."""
    tensor = tensor.detach().cpu()
    return np.asarray((tensor if tensor.dtype in (_torch().float32, _torch().float64) else tensor.float()).numpy())


def _evaluating(module: Any) -> AbstractContextManager[None]:
    """Evaluation mode without gradients: no dropout, fixed batch statistics."""
    from fewfire.torch._batches import evaluating

    return evaluating(module)
