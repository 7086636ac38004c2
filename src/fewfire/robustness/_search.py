"""The adversary's search: projected gradient ascent from the point itself and from random points of its set.

One step is the fast gradient method. The worst point met anywhere on the way is kept, the point itself included, so
more steps or restarts never give a milder one from the same starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.robustness._boxes import Radius
    from fewfire.robustness._criteria import Criterion
    from fewfire.robustness._threats import Threat


class Differentiable(Protocol):
    """Something with scores that can be differentiated in its inputs."""

    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, d): shape (rows, heads)."""

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Callable[[Float64Array], Float64Array]]:
        """Scores at points (rows, d), and the map from weights c (rows, heads) to Σ_k c_k ∂score_k/∂x (rows, d)."""


@dataclass(frozen=True)
class PGD:
    """Projected gradient ascent.

    Parameters
    ----------
    steps : int
        Of ascent from each start; 1 is the fast gradient method, 0 leaves the points as they are.
    step_size : float, optional
        In the units of ρ; 2.5·ρ/steps unless given.
    restarts : int
        Random starts besides the point itself.

    Examples
    --------
    >>> from fewfire.robustness import PGD
    >>> PGD(steps=20, restarts=2)
    PGD(steps=20, step_size=None, restarts=2)
    """

    steps: int = 10
    step_size: float | None = None
    restarts: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_integer("steps", self.steps, 0))
        object.__setattr__(self, "restarts", check_integer("restarts", self.restarts, 0))
        if self.step_size is not None:
            object.__setattr__(self, "step_size", check_number("step_size", self.step_size, 0.0, open_low=True))

    def size(self, rho: Radius) -> Radius:
        """How far one step goes."""
        return 2.5 * rho / max(1, self.steps) if self.step_size is None else self.step_size


@dataclass(frozen=True, eq=False)
class WorstPoints:
    """The worst points met.

    Parameters
    ----------
    points : array of shape (rows, d)
    value : array of shape (rows,)
        Of the criterion, at those points.
    scores, clean_scores : arrays of shape (rows, heads)
        At those points, and at the points that were attacked.
    """

    points: Float64Array
    value: Float64Array
    scores: Float64Array
    clean_scores: Float64Array


def check_adversary(adversary: object) -> PGD:
    """The search that a name or a `PGD` stands for."""
    if isinstance(adversary, PGD):
        return adversary
    if adversary == "pgd":
        return PGD()
    if adversary == "fgm":
        return PGD(steps=1)
    if adversary == "none":
        return PGD(steps=0)
    raise invalid("adversary", "must be 'pgd', 'fgm', 'none' or a PGD", adversary, "write adversary=PGD(steps=20)")


def find_worst(
    model: Differentiable, criterion: Criterion, threat: Threat, centres: Float64Array, search: PGD, stream: Stream
) -> WorstPoints:
    """For each row of centres (rows, d), the point of the threat at which the search found the criterion largest."""
    best: WorstPoints | None = None
    still = search.steps == 0 or float(np.max(threat.rho)) == 0.0
    for start in range(1 if still else search.restarts + 1):
        points = centres if start == 0 else threat.draw(centres, stream.child(f"restart {start}"))
        for _ in range(0 if still else search.steps):
            scores, pull = model.linearise(points)
            best = _worse(best, points, criterion.value(scores), scores)
            gradients = pull(criterion.slope(scores))
            points = threat.project(threat.ascend(points, gradients, search.size(threat.rho)), centres)
        scores = model.scores(points)
        best = _worse(best, points, criterion.value(scores), scores)
    assert best is not None  # the first start always counts
    return best


def _worse(best: WorstPoints | None, points: Float64Array, value: Float64Array, scores: Float64Array) -> WorstPoints:
    """The worse of two findings, row by row; the first one ever made is at the centres."""
    if best is None:
        return WorstPoints(points, value, scores, scores)
    worse = value > best.value
    return WorstPoints(
        np.where(worse[:, None], points, best.points),
        np.where(worse, value, best.value),
        np.where(worse[:, None], scores, best.scores),
        best.clean_scores,
    )
