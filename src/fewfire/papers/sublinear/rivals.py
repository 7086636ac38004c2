"""What people would train instead of `RobustClassifier`: perceptrons at the points that projected ascent finds, TRADES.

One hidden layer of ReLUs, both layers trained by Adam (rate 0.001, minibatches of 64) in float32, on one array of all
parameters.
"""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from fewfire._dense.optimisers import AdamW
from fewfire._types import AnyArray, Float64Array, FloatArray
from fewfire.robustness import Layers, ModelAdapter, register_adapter

RATE, BATCH, TINY = 0.001, 64, np.float32(1e-12)
REACH = 2.5  # how far all steps of the ascent together can go, in radii


@dataclass(eq=False)
class AdversarialPerceptron:
    """A perceptron trained at points of an adversary, for test and comparison; it has `fit` and `predict` alone.

    No column leaves `bounds` (low, high). `steps` are of projected ascent per minibatch, 0 trains on the rows
    themselves; `trades` is β of TRADES (Zhang et al., 2019), cross-entropy at the rows and β·KL(p(row) ‖ p(moved row)),
    0 is cross-entropy at the moved rows alone (Madry et al., 2018). No epoch begins after `seconds` of processor time.
    """

    rho: float
    width: int
    _: KW_ONLY
    norm: Literal["l2", "linf"] = "l2"
    bounds: tuple[float, float] | None = None
    epochs: int = 100
    steps: int = 10
    trades: float = 0.0
    seconds: float = np.inf
    seed: int = 0

    def fit(self, X: Float64Array, y: AnyArray) -> Self:
        """Train on a table (rows, columns) and class numbers (rows,) from 0."""
        started, rng, rows = time.process_time(), np.random.default_rng(self.seed), X.astype(np.float32)
        self.classes_ = np.arange(int(y.max()) + 1)
        inputs, width, classes = rows.shape[1], self.width, len(self.classes_)
        shapes = [(inputs, width), (width,), (width, classes), (classes,)]
        deviations = (np.sqrt(2 / inputs), 0.0, np.sqrt(2 / (width + classes)), 0.0)
        start = [(s * rng.normal(size=shape)).ravel() for s, shape in zip(deviations, shapes, strict=True)]
        flat = np.concatenate(start).astype(np.float32)
        ends = np.cumsum([part.size for part in start[:-1]])
        self.parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]  # views
        truth, descent = np.eye(classes, dtype=np.float32)[y], AdamW(RATE, 0.0).start(flat.size, 0)
        for _ in range(self.epochs):
            order = rng.permutation(len(rows))
            for begin in range(0, len(rows), BATCH):
                chosen = order[begin : begin + BATCH]
                gradient = self._gradient(rows[chosen], truth[chosen], rng)
                descent.step(flat, np.concatenate([part.ravel() for part in gradient]))
            if time.process_time() - started > self.seconds:
                break
        return self

    def _gradient(self, X: FloatArray, truth: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """Gradients of the mean loss at the points of the adversary, by `parts`."""
        clean = _softmax(self.scores(X)[1]) if self.trades else None
        at = X + np.float32(0.001) * rng.normal(size=X.shape).astype(np.float32) if self.trades else X
        size = np.float32(REACH * self.rho / max(1, self.steps))
        for _ in range(self.steps):
            hidden, scores = self.scores(at)
            back = (_softmax(scores) - (truth if clean is None else clean)) @ self.parts[2].T
            back *= hidden > 0
            ahead = at + size * steepest(back @ self.parts[0].T, self.norm)
            at = into_ball(ahead, X, self.rho, self.norm, self.bounds)
        hidden, scores = self.scores(at)
        moved = _softmax(scores)
        if clean is None:
            return _backpropagate(at, hidden, (moved - truth) / len(X), self.parts[2])
        # TRADES is differentiated at the row and at the moved row.
        beta = np.float32(self.trades)
        further = _backpropagate(at, hidden, beta * (moved - clean) / len(X), self.parts[2])
        ratio = np.log((clean + TINY) / (moved + TINY)) + 1
        pull = clean * (ratio - (clean * ratio).sum(axis=1, keepdims=True))
        own = _backpropagate(X, self.scores(X)[0], (clean - truth + beta * pull) / len(X), self.parts[2])
        return [part + other for part, other in zip(own, further, strict=True)]

    def scores(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Hidden values (rows, width) and scores (rows, classes)."""
        hidden = X @ self.parts[0]
        hidden += self.parts[1]
        np.maximum(hidden, 0, out=hidden)
        return hidden, hidden @ self.parts[2] + self.parts[3]

    def predict(self, X: Float64Array) -> AnyArray:
        """Class numbers (rows,)."""
        return np.asarray(self.scores(X.astype(np.float32))[1].argmax(axis=1))


@register_adapter(AdversarialPerceptron)
def _adapter(model: Any, X: object, y: object) -> ModelAdapter:
    first, bias, second, offset = (part.astype(np.float64) for part in model.parts)
    if len(model.classes_) == 2:  # one score, positive for the second class
        second, offset = second[:, 1:] - second[:, :1], offset[1:] - offset[:1]
    return ModelAdapter(Layers((first, second), (bias, offset), "relu"), model.classes_)


def steepest(gradients: FloatArray, norm: str) -> FloatArray:
    """The moves of length 1 up the gradients (rows, columns): units in the 2-norm, nearly, or signs."""
    if norm == "linf":
        return np.asarray(np.sign(gradients))
    return np.asarray(gradients / (np.sqrt(np.einsum("ij,ij->i", gradients, gradients)) + TINY)[:, None])


def into_ball(
    points: FloatArray, centres: FloatArray, rho: float, norm: str, bounds: tuple[float, float] | None
) -> FloatArray:
    """Points shrunk (2-norm) or clipped into the ball around their centres, then clipped to the box."""
    apart = points - centres
    if norm == "linf":
        np.clip(apart, -np.float32(rho), np.float32(rho), out=apart)
    else:
        lengths = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        apart *= np.minimum(1, np.float32(rho) / (lengths + TINY))[:, None]
    apart += centres
    return apart if bounds is None else np.clip(apart, *bounds)


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _backpropagate(X: FloatArray, hidden: FloatArray, errors: FloatArray, output: FloatArray) -> list[FloatArray]:
    back = errors @ output.T
    back *= hidden > 0
    return [X.T @ back, back.sum(axis=0), hidden.T @ errors, errors.sum(axis=0)]
