"""How training's adversary moves a minibatch: one step up the gradient, then back into the adversary's set.

Balls of a norm are handled in the network's own coordinates and in float32: a step of the 2-norm leaves out coordinates
that would leave the box, and what lies outside is shrunk towards the centre, then clipped, which lands in ball and box,
though not always on their nearest point. Every other threat is asked for its own ascent and projection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from fewfire.robustness import L2Ball, LinfBall

if TYPE_CHECKING:
    from fewfire._types import FloatArray
    from fewfire.learners.robust._perceptron import Standardisation
    from fewfire.robustness import Threat

TINY = np.float32(1e-30)


class Moves(Protocol):
    """The adversary of a training."""

    def __call__(self, moved: FloatArray, centres: FloatArray, gradients: FloatArray, share: float) -> FloatArray:
        """Moved inputs (rows, inputs) after a step of a share of ρ up the gradients, within the set about `centres`."""


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
