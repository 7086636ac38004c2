"""One hidden layer under many scores, in float32: what searches run on, several times as fast as net by net.

s(x) = σ(x Hᵀ + b) A + c with σ(z) = min(z·1[z > τ], ceiling): networks side by side are one such layer whose output
matrix A has a block per network. Rows go through in parts whose preactivations stay in cache.

The shifted ReLU jumps by τ at τ, which no gradient tells. Smoothed over a window of half-width h around τ, the jump is
a slope τ/2h there; h is how far a small move of the point can move that neuron.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fewfire.robustness._score_function import Scores

if TYPE_CHECKING:
    from fewfire._types import Float64Array, FloatArray
    from fewfire.robustness._score_function import Pull

CACHED: Final = 1 << 17
"""Preactivations computed at once: half a megabyte of float32."""


@dataclass(frozen=True, eq=False)
class ShallowScores(Scores):
    """Scores of one hidden layer, in the dtype of its weights.

    Parameters
    ----------
    hidden : array of shape (neurons, inputs)
    bias : array of shape (neurons,)
    output : array of shape (neurons, heads)
    offset : array of shape (heads,)
    threshold, ceiling : float
        τ, and the largest value a neuron takes.
    window : array of shape (neurons,), optional
        Half-widths over which gradients see the jump at τ; none unless given. Values are exact in any case.
    """

    hidden: FloatArray
    bias: FloatArray
    output: FloatArray
    offset: FloatArray
    threshold: float = 0.0
    ceiling: float = np.inf
    window: FloatArray | None = None

    @classmethod
    def single_precision(
        cls,
        hidden: FloatArray,
        bias: FloatArray,
        output: FloatArray,
        offset: FloatArray,
        threshold: float = 0.0,
        ceiling: float = np.inf,
    ) -> ShallowScores:
        """The layer in float32."""
        first, second, third, last = (
            np.ascontiguousarray(part, dtype=np.float32) for part in (hidden, bias, output, offset)
        )
        return cls(first, second, third, last, threshold, ceiling)

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return int(self.hidden.shape[1])

    @property
    def width(self) -> int:
        """Hidden neurons."""
        return len(self.hidden)

    @property
    def jumps(self) -> bool:
        """Whether a neuron's value jumps."""
        return self.threshold > 0.0

    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, inputs): shape (rows, heads)."""
        return np.concatenate([self._values(points[part])[1] for part in self._parts(points)])

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_r (A c)_r σ′(z_r) w_r, shape (rows, inputs)."""
        parts = self._parts(points)
        slopes, values = [], []
        for part in parts:
            z, score = self._values(points[part])
            slopes.append(self._slopes(z))
            values.append(score)

        def pull(weights: Float64Array) -> Float64Array:
            gradients: Any = np.empty((len(points), self.inputs), dtype=self.hidden.dtype)
            back, outward = weights.astype(self.hidden.dtype, copy=False), self.output.T
            for part, slope in zip(parts, slopes, strict=True):
                np.matmul((back[part] @ outward) * slope, self.hidden, out=gradients[part])
            return np.asarray(gradients)

        return np.concatenate(values), pull

    def smoothed(self, distance: float) -> ShallowScores:
        """With gradients that see the jump as far as points moved by `distance` in the 2-norm can meet it."""
        if not self.jumps:
            return self
        window = distance * np.linalg.norm(self.hidden, axis=1)
        return replace(self, window=np.maximum(window, 1e-6 * self.threshold).astype(self.hidden.dtype))

    def _parts(self, points: Float64Array) -> list[slice]:
        rows = max(16, CACHED // max(1, self.width))
        return [slice(start, start + rows) for start in range(0, max(1, len(points)), rows)]

    @cached_property
    def _inward(self) -> FloatArray:
        return np.ascontiguousarray(self.hidden.T)

    def _values(self, points: Float64Array) -> tuple[FloatArray, FloatArray]:
        """Preactivations and scores of a part of the rows."""
        z = points.astype(self.hidden.dtype, copy=False) @ self._inward
        z += self.bias
        values = np.maximum(z, self.hidden.dtype.type(0))
        if self.threshold > 0.0:
            values *= z > self.threshold
        if np.isfinite(self.ceiling):
            np.minimum(values, self.hidden.dtype.type(self.ceiling), out=values)
        return z, values @ self.output + self.offset

    def _slopes(self, z: FloatArray) -> Any:
        on = z > self.threshold
        if np.isfinite(self.ceiling):
            on &= z < self.ceiling
        if self.window is None:
            return on
        near = np.abs(z - self.hidden.dtype.type(self.threshold)) < self.window
        return on + near * (self.hidden.dtype.type(self.threshold / 2.0) / self.window)
