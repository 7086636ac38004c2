"""APGD: projected ascent with momentum whose step size halves itself (Croce and Hein, 2020, Algorithm 1).

The step starts at 2ρ. At checkpoints, ever closer, it is halved where too few steps have raised the score or nothing
has changed since the last one, and the search goes back to the best point. Three functions of the scores can be
climbed: the margin, the difference of logits (DLR: the margin over the gap between the first and the third score), or
one rival's lead, the targeted margin.

A climb that has not come above the problem's `floor` after two steps is ended: these are 2ρ long and cross the whole
set, so that most of what a start can give is known by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._criteria import Criterion
    from fewfire.robustness._problem import AttackProblem

MOMENTUM: Final = 0.75
"""Share of the new step, the rest being the last one's."""

RISING: Final = 0.75
"""The step is halved where fewer than this share of the steps since the last checkpoint raised the score."""

LOOK: Final = 2
"""Steps after which a climb is ended that has led nowhere."""


def checkpoints(steps: int) -> set[int]:
    """After which of the steps the step size is looked at: 22% of them first, then 3% fewer each time, at least 6%."""
    places, place, length = set[int](), 0.22, 0.22
    while place < 1.0:
        places.add(max(1, round(place * steps)))
        length = max(length - 0.03, 0.06)
        place += length
    return places


def apgd(
    problem: AttackProblem,
    climb: Callable[[AnyArray], Criterion],
    starts: Float64Array,
    steps: int,
    first: float = 2.0,
) -> Worst:
    """The worst points on the way up a criterion, from starts (rows, d); the first step is `first`·ρ long.

    `climb` gives the criterion of some rows by their numbers.
    """
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
        if step == steps or (problem.can_fall and (worst.value[rows] > 0.0).all()):
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
        if step == LOOK and problem.can_fall:
            on = (worst.value[rows] > problem.floor) & (worst.value[rows] <= 0.0)
            if not on.any():
                break
            problem, rows = problem.take(on), rows[on]
            threat, centres, climbed = problem.threat, problem.centres, climb(rows)
            size, points, last, gradients = size[on], points[on], last[on], gradients[on]
            height, rises, halved, top_before = height[on], rises[on], halved[on], top_before[on]
            top, top_points, top_gradients = top[on], top_points[on], top_gradients[on]
    return worst
