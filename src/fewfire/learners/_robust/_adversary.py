"""How training's adversary moves a minibatch: one step up the gradient, then back into the adversary's set.

Balls of a norm are handled in the network's own coordinates and in float32: a step of the 2-norm leaves out coordinates
that would leave the box, and what lies outside is shrunk towards the centre, then clipped, which lands in ball and box,
though not always on their nearest point. Every other threat has its own ascent and projection.

`LineBounds` is a lower bound on the margin that lines prove, with its gradient in the parameters: training on it makes
proofs larger.

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

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire.robustness._threats import L2Ball, LinfBall, Threat, linear_minimum

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._dense.network import Parameters
    from fewfire._types import FloatArray
    from fewfire.learners._robust._minibatches import Standardisation

    Pull = Callable[[FloatArray], FloatArray]

TINY, TINY_LENGTH = np.float32(1e-30), np.float32(1e-20)


Moves: TypeAlias = "Callable[[FloatArray, FloatArray, FloatArray, float], FloatArray]"
"""Moved inputs (rows, inputs), centres, gradients and a share: after a step of that share of ρ up the gradients, within
the set about the centres."""


class BallMoves:
    """A ball of the 2-norm or the ∞-norm, within a box."""

    def __init__(self, threat: L2Ball | LinfBall, standardisation: Standardisation) -> None:
        self.radius = np.float32(float(threat.rho) / standardisation.scale)
        self.euclidean = isinstance(threat, L2Ball)
        ends = (np.asarray(end, dtype=np.float64) for end in (threat.low, threat.high))
        self.low, self.high = (
            ((end - standardisation.centre) / standardisation.scale).astype(np.float32) for end in ends
        )
        self.boxed = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def __call__(self, moved: FloatArray, centres: FloatArray, gradients: FloatArray, share: float) -> FloatArray:
        """One step."""
        if not self.euclidean:
            apart: FloatArray = moved - centres
            apart += np.sign(gradients) * np.float32(share * self.radius)
            np.clip(apart, -self.radius, self.radius, out=apart)
        else:
            if self.boxed:
                gradients[(moved <= self.low) & (gradients < 0)] = 0
                gradients[(moved >= self.high) & (gradients > 0)] = 0
            gradients *= (np.float32(share * self.radius) / (_lengths(gradients) + TINY))[:, None]
            gradients += moved
            gradients -= centres
            apart = gradients
            apart *= np.minimum(np.float32(1), self.radius / (_lengths(apart) + TINY))[:, None]
        apart += centres
        return np.clip(apart, self.low, self.high, out=apart) if self.boxed else apart


class ThreatMoves:
    """Any threat, by its own ascent and projection of points."""

    def __init__(self, threat: Threat, standardisation: Standardisation) -> None:
        self.threat, self.standardisation = threat, standardisation

    def __call__(self, moved: FloatArray, centres: FloatArray, gradients: FloatArray, share: float) -> FloatArray:
        """One step."""
        here, start = (self.standardisation.points(inputs) for inputs in (moved, centres))
        size = share * self.threat.rho
        up = self.threat.ascend(here, gradients.astype(np.float64), size)
        return self.standardisation(self.threat.project(up, start))


def moves_of(threat: Threat, standardisation: Standardisation) -> Moves:
    """The fast code for plain balls, the threat's own for any other."""
    if type(threat) in (L2Ball, LinfBall) and np.ndim(threat.rho) == 0:
        assert isinstance(threat, (L2Ball, LinfBall))
        return BallMoves(threat, standardisation)
    return ThreatMoves(threat, standardisation)


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


class LineBounds:
    """Bounds over a ball of the 2-norm or the ∞-norm within a box, in the network's coordinates; float32."""

    def __init__(self, moves: Moves) -> None:
        if not isinstance(moves, BallMoves):
            rule = "must be 'l2' or 'linf' where proof_weight is above 0"
            raise invalid("norm", rule, moves, "leave proof_weight out")
        self.moves = moves

    def __call__(self, network: Parameters, centres: FloatArray, margins: FloatArray) -> tuple[FloatArray, Pull]:
        """Bounds (rows,) of margins that weigh the scores by `margins` (rows, heads) around z (rows, inputs).

        Also the map from shares (rows,) to the gradient of the sum they weigh, in the flat parameters.
        """
        (weights,), (bias,) = network.hidden, network.biases
        # A product of one column and one row is dear as a matrix product.
        c = (np.multiply if margins.shape[1] == 1 else np.matmul)(margins, network.output)
        p = centres @ weights.T
        p += bias
        lengths = np.linalg.norm(weights, axis=1) if self.moves.euclidean else np.abs(weights).sum(axis=1)
        reach = self.moves.radius * lengths + TINY_LENGTH
        half = 0.5 / reach
        # Products with masks, since branches on random signs cost more than arithmetic.
        falling = (c < 0).astype(np.float32)
        s = np.clip(0.5 + p * half, 0, 1)
        spare = 2 * reach * s * (1 - s) * falling
        fires = (p > 0).astype(np.float32)
        s = fires + falling * (s - fires)
        cs, h = c * s, p * s + spare
        move = self._least(cs @ weights, centres)
        along = move @ weights.T
        h += s * along
        value = np.einsum("ij,ij->i", c, h) + margins @ network.offset

        def pull(shares: FloatArray) -> FloatArray:
            weighted = shares[:, None]
            # On a chord h = (p + ρ)/2 and s = (p + ρ)/2ρ; elsewhere neither depends on ρ, nor s on p.
            chord = weighted * c * (spare > 0)
            tilt = along * half
            slope = weighted * cs + chord * (0.5 + tilt - s)
            widths = (chord * (0.5 - tilt * p / reach)).sum(axis=0)
            longer = weights / (lengths + TINY_LENGTH)[:, None] if self.moves.euclidean else np.sign(weights)
            hidden = slope.T @ centres + (weighted * cs).T @ move + (self.moves.radius * widths)[:, None] * longer
            output = (weighted * margins).T @ h
            parts = (hidden, output, slope.sum(axis=0), shares @ margins)
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
        lengths = np.sqrt(np.einsum("ij,ij->i", weights, weights)) + TINY_LENGTH
        return np.asarray(weights * (-radius / lengths)[:, None])
