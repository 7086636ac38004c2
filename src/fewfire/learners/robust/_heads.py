"""Two-layer networks side by side, one a score, with their gradients in the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array
    from fewfire.networks import TwoLayer


@dataclass(frozen=True, eq=False)
class Heads:
    """Scores f_k(x) of several two-layer networks on the same inputs, in float64."""

    networks: tuple[TwoLayer, ...]

    @property
    def width(self) -> int:
        """Hidden neurons of all networks together."""
        return sum(net.width for net in self.networks)

    @property
    def inputs(self) -> int:
        """How many coordinates an input has."""
        return self.networks[0].inputs

    def scores(self, points: Float64Array) -> Float64Array:
        """f_k at points (rows, inputs): shape (rows, heads)."""
        return np.column_stack([net(points) for net in self.networks])

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Callable[[Float64Array], Float64Array]]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k Σ_r a_r σ′(z_r) w_r, shape (rows, inputs)."""
        columns, slopes = [], []
        for net in self.networks:
            z = net.preactivations(points)
            columns.append(net.activation.value(z) @ net.output + net.offset)
            slopes.append(net.activation.slope(z) * net.output)

        def pull(weights: Float64Array) -> Float64Array:
            total = np.zeros_like(points)
            for k, (net, slope) in enumerate(zip(self.networks, slopes, strict=True)):
                total += weights[:, k, None] * (slope @ net.hidden)
            return total

        return np.column_stack(columns), pull

    def after(self, scale: Float64Array, shift: Float64Array) -> Heads:
        """These scores at scale·x + shift, as networks of x; both arrays of shape (inputs,)."""
        return Heads(
            tuple(net.with_parameters(net.hidden * scale, net.bias + net.hidden @ shift) for net in self.networks)
        )
