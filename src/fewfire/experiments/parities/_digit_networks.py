"""ReLU and gated linear networks trained alike: Adam on the logistic loss, fresh examples at every step.

Both compute Σ_j u_j g_j(x) (⟨v_j, x⟩ + c_j). In the ReLU network the gate g_j is open where ⟨v_j, x⟩ + c_j > 0, so it
moves with the weights. In the gated linear network (GaLU) it stays where the same start puts it, and u stays too: the
network is then linear in v and c, a linear classifier on (n + 1) · width features that were fixed by the start.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import FloatArray

Gates: TypeAlias = Literal["learned", "fixed"]
Examples: TypeAlias = Callable[[int], tuple["FloatArray", "FloatArray"]]
"""step -> inputs of shape (batch, n) and labels ±1 of shape (batch,)."""

MEAN, SQUARE, TINY = 0.9, 0.999, 1e-8
"""Adam's own constants."""


def train_gated(
    examples: Examples, width: int, steps: int, *, gates: Gates, learning_rate: float, stream: Stream
) -> Callable[[FloatArray], FloatArray]:
    """Train, and return the function from inputs of shape (rows, n) to scores.

    Parameters
    ----------
    examples : Examples
    width, steps : int
    gates : "learned" or "fixed"
        ReLU or GaLU.
    learning_rate : float
        Of the first step; it falls to 0 along a line.
    stream : Stream
        Of the start, which is the same for both.
    """
    n = examples(0)[0].shape[1]
    hidden = (stream.child("hidden").normal((n + 1, width)) * sqrt(2 / n)).astype(np.float32)
    hidden[-1] = 0
    output = (stream.child("output").signs(width) / sqrt(width)).astype(np.float32)
    start = hidden.copy()
    states = [(part, *(np.zeros_like(part) for _ in range(3))) for part in (hidden, output)]  # means, and room for more
    moving = states if gates == "learned" else states[:1]

    def forward(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = np.ones((len(X), n + 1), dtype=np.float32)
        rows[:, :n] = X
        scores = rows @ hidden
        gate = ((scores if gates == "learned" else rows @ start) > 0).astype(np.float32)
        scores *= gate
        return rows, gate, scores

    for step in range(steps):
        X, y = examples(step)
        rows, gate, passed = forward(X)
        slope = (-y / (1 + np.exp(np.clip(y * (passed @ output), -30, 30))) / len(y)).astype(np.float32)
        gate *= output
        gate *= slope[:, None]
        slopes = rows.T @ gate, slope @ passed
        rate = learning_rate * (1 - step / steps) / (1 - MEAN ** (step + 1))
        for (part, first, second, room), gradient in zip(moving, slopes, strict=False):
            np.subtract(gradient, first, out=room)
            room *= 1 - MEAN
            first += room
            np.multiply(gradient, gradient, out=room)
            room -= second
            room *= 1 - SQUARE
            second += room
            np.divide(second, 1 - SQUARE ** (step + 1), out=room)
            np.sqrt(room, out=room)
            room += TINY
            np.divide(rate * first, room, out=room)
            part -= room
    return lambda X: np.asarray(forward(X)[2] @ output)
