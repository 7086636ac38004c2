"""What a model is to attacks and certificates: scores of points, with gradients and, where there is one, a formula.

Scores have shape (rows, heads): one head for two classes (positive for the second) and for regression, one per class
for more. An attack needs values and gradients in the points; a certificate needs the formula as `ReluNetwork`s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fewfire.robustness._bounds import on_shared_neurons

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array
    from fewfire.robustness._bounds import ReluNetwork

    Pull = Callable[[Float64Array], Float64Array]


class Scores(ABC):
    """Scores of points of `inputs` coordinates, with their gradients and, where there is one, their exact formula."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many coordinates a point has."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that one row takes on the way to its scores; attacks take as many rows at once as memory allows."""

    @abstractmethod
    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, inputs): shape (rows, heads)."""

    @abstractmethod
    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k ∂score_k/∂x, shape (rows, inputs)."""

    def near(self, rho: float) -> Scores:
        """These scores for an adversary of radius ρ."""
        return self

    def single(self) -> Scores:
        """These scores in float32 where that is faster, to search on; verdicts are taken on the scores themselves."""
        return self

    def smoothed(self, distance: float) -> Scores:
        """With gradients that see jumps within `distance` of a point; these scores themselves where nothing jumps."""
        return self

    def after(self, scale: Float64Array, shift: Float64Array) -> Scores:
        """These scores at scale·x + shift, as scores of x; both arrays of shape (inputs,)."""
        return RescaledScores(self, scale, shift)

    def relu_networks(self) -> tuple[ReluNetwork, ...] | None:
        """The exact formula of every score, which a certificate needs; None where there is none to give."""
        return None


@dataclass(frozen=True, eq=False)
class RescaledScores(Scores):
    """Other scores at scale·x + shift, both arrays of shape (inputs,)."""

    inner: Scores
    scale: Float64Array
    shift: Float64Array

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return self.inner.inputs

    @property
    def width(self) -> int:
        """As of the inner scores."""
        return self.inner.width

    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, inputs): shape (rows, heads)."""
        return self.inner.scores(points * self.scale + self.shift)

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights (rows, heads) to gradients in x, by the chain rule."""
        scores, pull = self.inner.linearise(points * self.scale + self.shift)
        return scores, lambda weights: pull(weights) * self.scale

    def relu_networks(self) -> tuple[ReluNetwork, ...] | None:
        """The inner formulas with the scaling taken into their weights."""
        networks = self.inner.relu_networks()
        return None if networks is None else tuple(net.after(self.scale, self.shift) for net in networks)

    def near(self, rho: float) -> RescaledScores:
        """The inner scores for an adversary whose ρ is that of the largest scale."""
        return replace(self, inner=self.inner.near(rho * float(abs(self.scale).max())))

    def smoothed(self, distance: float) -> RescaledScores:
        """The inner scores with gradients that see jumps."""
        inner = self.inner.smoothed(distance * float(abs(self.scale).max()))
        return self if inner is self.inner else replace(self, inner=inner)


@dataclass(frozen=True, eq=False)
class LeadScores(Scores):
    """Two scores, one per class, as one: the second less the first, positive for the second class."""

    inner: Scores

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return self.inner.inputs

    @property
    def width(self) -> int:
        """As of the inner scores."""
        return self.inner.width

    def scores(self, points: Float64Array) -> Float64Array:
        """The lead at points (rows, inputs): shape (rows, 1)."""
        return _lead(self.inner.scores(points))

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """The lead, and the map from weights (rows, 1) to its gradients."""
        scores, pull = self.inner.linearise(points)
        return _lead(scores), lambda weights: pull(weights * np.array([-1.0, 1.0]))

    def near(self, rho: float) -> LeadScores:
        """The lead of the inner scores for an adversary of radius ρ."""
        return replace(self, inner=self.inner.near(rho))

    def single(self) -> LeadScores:
        """The lead in float32 where that is faster."""
        return replace(self, inner=self.inner.single())

    def smoothed(self, distance: float) -> LeadScores:
        """The lead with gradients that see jumps."""
        inner = self.inner.smoothed(distance)
        return self if inner is self.inner else replace(self, inner=inner)

    def after(self, scale: Float64Array, shift: Float64Array) -> LeadScores:
        """The lead behind the scaling."""
        return replace(self, inner=self.inner.after(scale, shift))

    def relu_networks(self) -> tuple[ReluNetwork, ...] | None:
        """The difference of the two formulas, on the neurons that they share."""
        networks = self.inner.relu_networks()
        if networks is None:
            return None
        first, second = on_shared_neurons(networks)
        return (second - first,)


def _lead(scores: Float64Array) -> Float64Array:
    return scores[:, 1:] - scores[:, :1]
