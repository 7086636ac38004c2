"""From a user's table to the network's inputs, and back: part of the fitted model.

Three domains, each with the space of *points* in which the adversary moves:

==========  ==================================================================  =====================================
domain      network input                                                       points
==========  ==================================================================  =====================================
ball        ((x − centre)/scale, 1/2), with one scale for all columns           the table itself, in its own units
slice       x itself, with ‖x‖ = 1 and x_d = 1/2 (sublinear, section 3.2)       the slice
projected   columns standardised, rows given length √3/2, 1/2 appended          the slice
==========  ==================================================================  =====================================

On average ‖input‖² = 1 in "ball", exactly so in the others, as the paper assumes. The constant coordinate lets
training, which moves W alone, move the biases too. One scale for all columns keeps balls balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from fewfire._sphere import LAST, RADIUS, check_on_slice, on_slice
from fewfire._types import Float64Array
from fewfire.networks import TwoLayer

Domain: TypeAlias = Literal["ball", "slice", "projected"]
DOMAINS: Final = get_args(Domain)


@dataclass(frozen=True, eq=False)
class InputMap:
    """How rows become network inputs; centre and scale have shape (columns,)."""

    domain: Domain
    centre: Float64Array
    scale: Float64Array

    @classmethod
    def learn(cls, domain: Domain, X: Float64Array, weight: Float64Array) -> InputMap:
        """The map for a training table of shape (rows, columns) with weights (rows,)."""
        columns = X.shape[1]
        if domain == "slice":
            return cls(domain, np.zeros(columns), np.ones(columns))
        centre = np.average(X, axis=0, weights=weight)
        if domain == "projected":
            spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weight))
        else:
            lengths = np.average(np.sum((X - centre) ** 2, axis=1), weights=weight)
            spread = np.full(columns, np.sqrt(lengths) / RADIUS)
        return cls(domain, centre, np.where(spread > 0.0, spread, 1.0))

    @property
    def columns(self) -> int:
        """Columns of the user's table."""
        return len(self.centre)

    def points(self, X: Float64Array) -> Float64Array:
        """The points that the rows of X (rows, columns) are."""
        if self.domain == "ball":
            return X
        if self.domain == "projected":
            standard = (X - self.centre) / self.scale
            standard[~standard.any(axis=1), 0] = 1.0  # a row at the centre has no direction; any one does
            return on_slice(standard)
        check_on_slice("X", X, ' in domain="slice"', 'use domain="projected", or "ball" for ordinary columns')
        return on_slice(X[:, :-1])

    def rows(self, points: Float64Array, X: Float64Array) -> Float64Array:
        """The rows (rows, columns) that moved points stand for; in "projected" they keep the length of those of X."""
        if self.domain != "projected":
            return points
        lengths = np.linalg.norm((X - self.centre) / self.scale, axis=1, keepdims=True)
        return np.asarray(self.centre + self.scale * points[:, :-1] * (lengths / RADIUS))

    def embed(self, points: Float64Array) -> Float64Array:
        """Network inputs of shape (rows, inputs) of points."""
        if self.domain != "ball":
            return points
        return np.column_stack([(points - self.centre) / self.scale, np.full(len(points), LAST)])

    def pull(self, gradients: Float64Array) -> Float64Array:
        """Gradients in the points from gradients in the network inputs, both with one row per point."""
        return gradients if self.domain != "ball" else gradients[:, :-1] / self.scale

    def reach(self, distance: float) -> float:
        """How far network inputs move when points move by `distance` in the 2-norm."""
        return distance / float(self.scale[0]) if self.domain == "ball" else distance

    def on_points(self, net: TwoLayer) -> TwoLayer:
        """The network as a function of points, in float64."""
        net = net.astype(np.float64)
        if self.domain != "ball":
            return net
        hidden = net.hidden[:, :-1] / self.scale
        return net.with_parameters(hidden, net.bias + LAST * net.hidden[:, -1] - hidden @ self.centre)
