"""Searches that follow gradients: projected ascent, APGD, Frank–Wolfe steps, and the points a certificate proposes.

PGD          projected ascent of fixed steps from the point itself and from random points of its set; one step is the
             fast gradient method. The worst point met anywhere on the way is kept, the point itself included, so more
             steps or restarts never give a milder one from the same starts.
APGD         ascent with momentum whose step size halves itself (Croce and Hein, 2020, Algorithm 1). The step starts at
             2ρ. At checkpoints, ever closer, it is halved where too few steps have raised the score or nothing has
             changed since the last one, and the search goes back to the best point. A climb that has not come above
             the problem's `floor` after two steps is ended: these are 2ρ long and cross the whole set, so that most of
             what a start can give is known by then.
Frank–Wolfe  steps to the point of the set where the linearised score is largest, and from there again. Scores of
             networks of ReLUs are linear in pieces, and an adversary's set covers few of them: a full step usually
             ends the search in three or four gradients, where projected ascent takes dozens. Every rival class is
             tried, in the order in which the linearisation at the row itself says that they can be reached.
certificate  the points at which the lines that bound a rival's lead from above are highest. A gradient is that of the
             neurons which fire at one point; the lines of `_bounds` hold over the whole set: an open neuron that helps
             the rival counts with the slope u/(u − l) of its chord. The point at which a proof by these lines fails is
             a candidate for an attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._formula import Layers
    from fewfire.robustness._problem import AttackProblem, Criterion
    from fewfire.robustness._threats import Radius, Threat


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
    """The worst points met."""

    points: Float64Array  # (rows, d)
    value: Float64Array  # (rows,): the criterion there
    scores: Float64Array  # (rows, heads)
    clean_scores: Float64Array  # (rows, heads): at the points that were attacked


def check_adversary(adversary: object) -> PGD:
    """The search that a name or a `PGD` stands for."""
    if isinstance(adversary, PGD):
        return adversary
    named = {"pgd": PGD(), "fgm": PGD(steps=1), "none": PGD(steps=0)}
    if isinstance(adversary, str) and adversary in named:
        return named[adversary]
    raise invalid("adversary", "must be 'pgd', 'fgm', 'none' or a PGD", adversary, "write adversary=PGD(steps=20)")


def find_worst(
    model: Any, criterion: Criterion, threat: Threat, centres: Float64Array, search: PGD, stream: Stream
) -> WorstPoints:
    """For each row of centres (rows, d), the point of the threat at which the search found the criterion largest."""
    best: WorstPoints | None = None

    def meet(points: Float64Array, scores: Float64Array) -> None:
        nonlocal best
        value = criterion.value(scores)
        if best is None:  # at the centres
            best = WorstPoints(points, value, scores, scores)
            return
        worse = value > best.value
        best = WorstPoints(
            np.where(worse[:, None], points, best.points),
            np.where(worse, value, best.value),
            np.where(worse[:, None], scores, best.scores),
            best.clean_scores,
        )

    still = search.steps == 0 or float(np.max(threat.rho)) == 0.0
    for start in range(1 if still else search.restarts + 1):
        points = centres if start == 0 else threat.draw(centres, stream.child(f"restart {start}"))
        for _ in range(0 if still else search.steps):
            scores, pull = model.linearise(points)
            meet(points, scores)
            gradients = pull(criterion.slope(scores))
            points = threat.project(threat.ascend(points, gradients, search.size(threat.rho)), centres)
        meet(points, model.scores(points))
    assert best is not None  # the first start always counts
    return best


MOMENTUM: Final = 0.75  # share of the new step, the rest being the last one's
RISING: Final = 0.75
"""The step is halved where fewer than this share of the steps since the last checkpoint raised the score."""

LOOK: Final = 2  # steps after which a climb is ended that has led nowhere


def checkpoints(steps: int) -> set[int]:
    """After which of the steps the step size is looked at: 22% of them first, then 3% fewer each time, at least 6%."""
    places, place, length = set[int](), 0.22, 0.22
    while place < 1.0:
        places.add(max(1, round(place * steps)))
        length = max(length - 0.03, 0.06)
        place += length
    return places


def apgd(
    problem: AttackProblem, climb: Callable[[AnyArray], Criterion], starts: Float64Array, steps: int, first: float = 2.0
) -> Worst:
    """The worst points on the way up a criterion of rows, from starts (rows, d); the first step is `first`·ρ long."""
    rows = np.arange(len(problem))
    threat, centres, climbed = problem.threat, problem.centres, climb(rows)
    rho = np.broadcast_to(np.asarray(threat.rho, dtype=centres.dtype), (len(problem), 1))
    size, points, last = first * rho, starts, starts
    scores, pull = problem.scores.linearise(points)
    worst = Worst(points, problem.criterion.value(scores))
    height = climbed.value(scores)
    top, top_points, top_gradients = height, points, pull(climbed.slope(scores))
    gradients = top_gradients
    rises, since = np.zeros(len(problem), dtype=np.int64), 0
    halved, top_before = np.ones(len(problem), dtype=bool), top
    marks = checkpoints(steps)
    for step in range(1, steps + 1):
        ahead = threat.project(threat.ascend(points, gradients, size), centres)
        if step > 1:
            ahead = threat.project(points + MOMENTUM * (ahead - points) + (1.0 - MOMENTUM) * (points - last), centres)
        last, points = points, ahead
        scores, pull = problem.scores.linearise(points)
        worst.add(rows, points, problem.criterion.value(scores))
        now = climbed.value(scores)
        rises, since = rises + (now > height), since + 1
        height = now
        if step == steps or (problem.is_classifier and (worst.value[rows] > 0.0).all()):
            break
        gradients = pull(climbed.slope(scores))
        up = (now > top)[:, None]
        top, top_points = np.maximum(now, top), np.where(up, points, top_points)
        top_gradients = np.where(up, gradients, top_gradients)
        if step in marks:
            stuck = (rises < RISING * since) | (~halved & (top <= top_before))
            size = np.where(stuck[:, None], size / 2, size)
            points, last = (np.where(stuck[:, None], top_points, table) for table in (points, last))
            gradients = np.where(stuck[:, None], top_gradients, gradients)
            rises, since, halved, top_before = np.zeros_like(rises), 0, stuck, top
        if step == LOOK and problem.is_classifier:
            on = (worst.value[rows] > problem.floor) & (worst.value[rows] <= 0.0)
            if not on.any():
                break
            problem, rows = problem.take(on), rows[on]
            threat, centres, climbed = problem.threat, problem.centres, climb(rows)
            size, points, last, gradients = size[on], points[on], last[on], gradients[on]
            height, rises, halved, top_before = height[on], rises[on], halved[on], top_before[on]
            top, top_points, top_gradients = top[on], top_points[on], top_gradients[on]
    return worst


FAILURES: Final = 2
"""A row is left when this many steps in a row, each half as long as the one before, have not raised its score."""

PROMISING: Final = 0.5
"""A second rival is tried where the linearisation leaves at most this share of the lead that the true class has."""


def frank_wolfe(problem: AttackProblem, steps: int, targets: int) -> Worst:
    """The worst points found along `targets` directions, at most `steps` steps along each."""
    scores, pull = problem.scores.linearise(problem.centres)
    worst = Worst(problem.centres, problem.criterion.value(scores))
    directions, constants = problem.directions(scores, targets)
    count = directions.shape[1]
    first = np.empty((count, *problem.centres.shape), dtype=problem.centres.dtype)
    lead, predicted = np.empty((2, len(problem), count))
    for k in range(count):
        weights = directions[:, k]
        gradients = pull(weights)
        first[k] = problem.threat.extreme(gradients, problem.centres)
        gain = np.einsum("ij,ij->i", gradients, first[k] - problem.centres)
        lead[:, k] = np.einsum("ij,ij->i", weights, scores) + constants[:, k]
        predicted[:, k] = lead[:, k] + gain
    order = np.argsort(-predicted, axis=1)
    for rank in range(count):
        # The most promising direction is followed to its end by all rows, so that margins of changed rows are low too.
        rows = worst.open_rows(problem) if rank else np.arange(len(problem))
        which = order[rows, rank]
        if rank and problem.is_classifier:
            promising = predicted[rows, which] > PROMISING * lead[rows, which]
            rows, which = rows[promising], which[promising]
        if not rows.size:
            continue
        found = _climb(problem.take(rows), directions[rows, which], first[which, rows], steps, rank == 0)
        worst.add(rows, found.points, found.value)
    return worst


def _climb(problem: AttackProblem, weights: Float64Array, target: Float64Array, steps: int, all_the_way: bool) -> Worst:
    """The worst points on the way up ⟨weights, s⟩, from the centres towards `target` at first."""
    base, trial = problem.centres.copy(), target.copy()
    target = target.copy()
    height, failures = np.full(len(problem), -np.inf), np.zeros(len(problem), dtype=np.int64)
    worst = Worst(trial, height)
    rows, part = np.arange(len(problem)), problem
    for step in range(steps):
        scores, pull = problem.scores.linearise(trial[rows])
        value = part.criterion.value(scores)
        worst.add(rows, trial[rows], value)
        raised = np.einsum("ij,ij->i", weights[rows], scores)
        better = raised > height[rows] + 1e-6 * np.abs(raised)
        failures[rows] = np.where(better, 0, failures[rows] + 1)
        height[rows[better]], base[rows[better]] = raised[better], trial[rows[better]]
        going = (failures[rows] < FAILURES) & ~((value > 0.0) & (problem.is_classifier and not all_the_way))
        if step == steps - 1 or not going.any():
            break
        extreme = part.threat.extreme(pull(weights[rows]), part.centres)
        target[rows[better]] = extreme[better]
        moved = target[rows] if better.all() else np.where(better[:, None], extreme, (trial[rows] + base[rows]) / 2)
        going &= (moved != trial[rows]).any(axis=1)
        trial[rows] = moved
        rows, part = rows[going], part.take(going)
        if not rows.size:
            break
    return worst


def lowest_of_lines(problem: AttackProblem, formula: Layers) -> Worst:
    """The points at which the upper line of the nearest rival's lead is highest; of a regressor's error, either way."""
    centres, kind = problem.centres, problem.centres.dtype
    hidden, bias = formula.hidden.astype(kind), formula.bias.astype(kind)
    last = np.ascontiguousarray(formula.weights[-1].T, dtype=kind)
    z = centres @ hidden.T + bias
    # Exact ranges take as long as three gradients; these hold as well, and a point need not be proved.
    most = (problem.threat.reach(centres.shape[1]) * np.linalg.norm(hidden, axis=1)).astype(kind)
    low, high = z - most, z + most
    fires, may_fire = z > formula.threshold, high > formula.threshold
    chord = np.where(low > 0.0, 1.0, high / np.where(high > low, high - low, 1.0)) * may_fire
    scores = problem.scores.scores(centres)
    worst, (directions, _) = Worst(centres, problem.criterion.value(scores)), problem.directions(scores, 1)
    for k in range(directions.shape[1]):
        weights = directions[:, k].astype(kind)
        gradients: Any = weights @ last
        if len(formula.weights) > 1:
            gradients = (gradients * np.where(gradients > 0.0, chord, fires)).astype(kind) @ hidden
        points = problem.threat.extreme(gradients, centres)
        worst.add(np.arange(len(problem)), points, problem.criterion.value(problem.scores.scores(points)))
    return worst
