"""A lower bound on the margin that lines prove, with its gradient in the parameters: training that makes proofs larger.

The margin is m(z) = Σ_r c_r·max(⟨w_r, z⟩ + b_r, 0) + o, c = v_y − v_j for the right class y and a rival j, or ±v for
one score. Over z + d, ‖d‖ ≤ ρ, within the box, let p_r be the preactivation at z and ρ_r = ρ‖w_r‖ in the dual norm: its
range is [p_r − ρ_r, p_r + ρ_r]. Lines below c_r·max(·, 0) are those of CROWN (Zhang et al., 2018):

c_r ≥ 0   the line through 0 that the neuron is on at z: slope s_r = 1[p_r > 0], value h_r = max(p_r, 0) at z
c_r < 0   the chord of the range, of slope s_r = clip((p_r + ρ_r)/2ρ_r, 0, 1); h_r = p_r·s_r + 2ρ_r·s_r(1 − s_r) at z

and the bound is Σ_r c_r·h_r + o + min_d ⟨Σ_r c_r·s_r·w_r, d⟩, whose last term is exact over ball and box. Where it is
least, d, need not be differentiated (Danskin), so that the gradient takes two more products with W and two with inputs.
`certify(method="linear")` has ranges cut by the box too and proves more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire.learners.robust._moves import BallMoves
from fewfire.robustness._linear_range import linear_minimum

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import FloatArray
    from fewfire.learners.robust._moves import Moves
    from fewfire.learners.robust._perceptron import Perceptron

    Pull = Callable[[FloatArray], FloatArray]

TINY = np.float32(1e-20)


class LineBounds:
    """Bounds over a ball of the 2-norm or the ∞-norm within a box, in the network's coordinates; float32."""

    def __init__(self, moves: Moves) -> None:
        if not isinstance(moves, BallMoves):
            rule = "must be 'l2' or 'linf' where proof_weight is above 0"
            raise invalid("norm", rule, moves, "leave proof_weight out")
        self.moves = moves

    def __call__(self, net: Perceptron, centres: FloatArray, margins: FloatArray) -> tuple[FloatArray, Pull]:
        """Bounds (rows,) of margins that weigh the scores by `margins` (rows, heads) around z (rows, inputs).

        Also the map from weights (rows,) to the gradient of the weighted sum in the parameters, laid out as `net.flat`.
        """
        c = margins @ net.output.T
        p = centres @ net.hidden
        p += net.bias
        lengths = np.linalg.norm(net.hidden, axis=0) if self.moves.euclidean else np.abs(net.hidden).sum(axis=0)
        reach = self.moves.radius * lengths + TINY
        half = 0.5 / reach
        # Products with masks, since branches on random signs cost more than arithmetic.
        falling = (c < 0).astype(np.float32)
        s = np.clip(0.5 + p * half, 0, 1)
        spare = 2 * reach * s * (1 - s) * falling
        fires = (p > 0).astype(np.float32)
        s = fires + falling * (s - fires)
        cs, h = c * s, p * s + spare
        move = self._least(cs @ net.hidden.T, centres)
        along = move @ net.hidden
        h += s * along
        value = np.einsum("ij,ij->i", c, h) + margins @ net.offset

        def pull(weights: FloatArray) -> FloatArray:
            weighted = weights[:, None]
            # On a chord h = (p + ρ)/2 and s = (p + ρ)/2ρ; elsewhere neither depends on ρ, nor s on p.
            chord = weighted * c * (spare > 0)
            tilt = along * half
            slope = weighted * cs + chord * (0.5 + tilt - s)
            widths = (chord * (0.5 - tilt * p / reach)).sum(axis=0)
            longer = net.hidden / (lengths + TINY) if self.moves.euclidean else np.sign(net.hidden)
            hidden = centres.T @ slope + move.T @ (weighted * cs) + self.moves.radius * widths * longer
            output = h.T @ (weighted * margins)
            parts = (hidden, slope.sum(axis=0), output, weights @ margins)
            return np.concatenate([part.ravel() for part in parts])

        return value, pull

    def _least(self, weights: FloatArray, centres: FloatArray) -> FloatArray:
        """Where ⟨weights, d⟩ is least over ball and box, shape (rows, inputs)."""
        radius = self.moves.radius
        if self.moves.boxed or not self.moves.euclidean:
            down = np.minimum(np.maximum(self.moves.low - centres, -radius), 0)
            up = np.maximum(np.minimum(self.moves.high - centres, radius), 0)
            norm = "l2" if self.moves.euclidean else "linf"
            double = weights.astype(np.float64), down.astype(np.float64), up.astype(np.float64)
            return linear_minimum(norm, *double, float(radius))[1].astype(weights.dtype)
        lengths = np.sqrt(np.einsum("ij,ij->i", weights, weights)) + TINY
        return np.asarray(weights * (-radius / lengths)[:, None])
