"""Caps of the slice around its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.learners.robust._slice import RADIUS, cap_span, opening, project_to_cap, tangents, turn, units

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.learners.robust._threats import Span


@dataclass(frozen=True)
class SliceCap:
    """‖x − x₀‖₂ ≤ ρ on the slice ‖x‖ = 1, x_d = 1/2: ℬ₂(x₀, ρ) of sublinear, Definition 3.3."""

    rho: float

    def reach(self, dimensions: int) -> float:
        """ρ, or the slice's diameter √3."""
        return min(self.rho, 2.0 * RADIUS)

    def project(self, points: Float64Array, centers: Float64Array) -> Float64Array:
        """The nearest points of the caps."""
        return project_to_cap(points, centers, self.rho)

    def ascend(self, points: Float64Array, gradients: Float64Array, size: float) -> Float64Array:
        """Along the gradient's part on the slice."""
        return points + size * units(tangents(gradients, points))

    def draw(self, centers: Float64Array, stream: Stream) -> Float64Array:
        """A random direction and an angle that fills the cap evenly where it is nearly flat."""
        share = stream.child("radius").uniform(len(centers)) ** (1.0 / max(1, centers.shape[1] - 2))
        directions = units(tangents(stream.normal(centers.shape), centers))
        return turn(centers, directions, opening(self.rho) * share)

    def span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """The closed form of `cap_span`; the last coordinate does not move."""
        flat = weights[:, :-1]
        along = units(centers[:, :-1]) @ flat.T
        return cap_span(along, np.broadcast_to(np.linalg.norm(flat, axis=1), along.shape), self.rho)

    def row_span(self, weights: Float64Array, centers: Float64Array) -> Span:
        """The closed form of `cap_span`; the last coordinate does not move."""
        flat = weights[:, :-1]
        along = np.einsum("ij,ij->i", units(centers[:, :-1]), flat)
        return cap_span(along, np.linalg.norm(flat, axis=1), self.rho)
