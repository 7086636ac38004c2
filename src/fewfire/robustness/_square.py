"""The square attack: random search without gradients (Andriushchenko et al., 2020), for tables instead of images.

A point on the rim is changed in a random set of features at a time, the set shrinking as the search goes on, and kept
where the criterion rises. Features have no neighbours, so that a "square" is any set of them. One query per step: what
black boxes cost least, and what finds its way where gradients vanish or features are whole numbers.

The rim is not the whole set. With few features every other query goes from the worst point known towards a random
point of the set instead, by steps of all lengths; with many, where moves of all features are worth little, few do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire.robustness._problem import AttackProblem

FIRST: Final = 0.8
"""Share of the features changed at first."""

INNER: Final = 4
"""One query in so many is made inside the set as there are features per this number, and at most every other one."""

HALVINGS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""The share is halved after these shares of the queries, as the authors do."""


def square(problem: AttackProblem, queries: int, stream: Stream) -> Worst:
    """The worst points found by `queries` evaluations per row, from random points of the rim or worse ones known."""
    threat, centres = problem.threat, problem.centres
    columns = centres.shape[1]
    start = stream.child("start").normal(centres.shape).astype(centres.dtype)
    points = threat.extreme(start, centres)
    worst = Worst(points, problem.criterion.value(problem.scores.scores(points)))
    found = np.flatnonzero((problem.starts != centres).any(axis=1))  # by the searches before
    if found.size:
        known = problem.take(found)
        worst.add(found, known.starts, known.criterion.value(problem.scores.scores(known.starts)))
    for query in range(1, queries):
        rows = worst.standing(problem)
        if not rows.size:
            break
        part, here = problem.take(rows), stream.child(f"query {query}")
        share = FIRST * 0.5 ** sum(query >= halving * queries for halving in HALVINGS)
        if query % max(2, columns // INNER) == 0:
            base, way = worst.points[rows], here.child("way").uniform((len(rows), 1)) ** 2
            inside = base + way * (part.threat.draw(part.centres, here) - base)
            trial = part.threat.project(inside.astype(centres.dtype), part.centres)
            worst.add(rows, trial, part.criterion.value(problem.scores.scores(trial)))
            continue
        changed = here.uniform((len(rows), columns)) < max(share, 1.0 / columns)
        moved = worst.points[rows] - part.centres
        # Gradients that would have led to the point we are at, but for the features that are changed.
        typical = np.sqrt(np.mean(moved**2, axis=1, keepdims=True)) + np.finfo(moved.dtype).tiny
        random = here.child("signs").signs(moved.shape) * typical
        guide = np.where(changed, random, moved).astype(centres.dtype)
        trial = part.threat.extreme(guide, part.centres)
        worst.add(rows, trial, part.criterion.value(problem.scores.scores(trial)))
    return worst
