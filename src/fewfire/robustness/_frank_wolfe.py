"""Frank–Wolfe steps: to the point of the set where the linearised score is largest, and from there again.

Scores of networks of ReLUs are linear in pieces, and an adversary's set covers few of them: a full step to the extreme
point usually ends the search in three or four gradients, where projected ascent takes dozens. Every rival class is
tried, in the order in which the linearisation at the row itself says that they can be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.robustness._problem import AttackProblem

FAILURES: Final = 2
"""A row is left when this many steps in a row, each half as long as the one before, have not raised its score."""


def frank_wolfe(problem: AttackProblem, steps: int, targets: int) -> Worst:
    """The worst points found along `targets` directions, at most `steps` steps along each."""
    scores, pull = problem.scores.linearise(problem.centres)
    worst = Worst(problem.centres, problem.criterion.value(scores))
    directions = problem.directions(scores, targets)
    first = np.empty((len(directions), *problem.centres.shape), dtype=problem.centres.dtype)
    hope = np.empty((len(problem), len(directions)))
    for k in range(len(directions)):
        weights = directions.weights[:, k]
        gradients = pull(weights)
        first[k] = problem.threat.extreme(gradients, problem.centres)
        gain = np.einsum("ij,ij->i", gradients, first[k] - problem.centres)
        hope[:, k] = np.einsum("ij,ij->i", weights, scores) + directions.constants[:, k] + gain
    order = np.argsort(-hope, axis=1)
    for rank in range(len(directions)):
        # The most hopeful direction is followed to its end by all rows, so that margins of rows that fall are low too.
        rows = worst.standing(problem) if rank else np.arange(len(problem))
        if not rows.size:
            break
        which = order[rows, rank]
        found = _climb(problem.take(rows), directions.one(rows, which)[0], first[which, rows], steps, rank == 0)
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
        going = (failures[rows] < FAILURES) & ~((value > 0.0) & (problem.can_fall and not all_the_way))
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
