"""The square attack: random search without gradients (Andriushchenko et al., 2020), for tables instead of images.

A point on the rim is changed in a random set of features at a time, the set shrinking as the search goes on, and kept
where the criterion rises. Features have no neighbours, so that a "square" is any set of them. One query per step: what
black boxes cost least, and what finds its way where gradients vanish or features are whole numbers.
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

HALVINGS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""The share is halved after these shares of the queries, as the authors do."""


def square(problem: AttackProblem, queries: int, stream: Stream) -> Worst:
    """The worst points found by `queries` evaluations per row, beginning at random points of the rim."""
    threat, centres = problem.threat, problem.centres
    columns = centres.shape[1]
    start = stream.child("start").normal(centres.shape).astype(centres.dtype)
    points = threat.extreme(start, centres)
    worst = Worst(points, problem.criterion.value(problem.scores.scores(points)))
    for query in range(1, queries):
        rows = worst.standing(problem)
        if not rows.size:
            break
        part, here = problem.take(rows), stream.child(f"query {query}")
        share = FIRST * 0.5 ** sum(query >= halving * queries for halving in HALVINGS)
        changed = here.uniform((len(rows), columns)) < max(share, 1.0 / columns)
        moved = worst.points[rows] - part.centres
        # Gradients that would have led to the point we are at, but for the features that are changed.
        typical = np.sqrt(np.mean(moved**2, axis=1, keepdims=True)) + np.finfo(moved.dtype).tiny
        random = here.child("signs").signs(moved.shape) * typical
        guide = np.where(changed, random, moved).astype(centres.dtype)
        trial = part.threat.extreme(guide, part.centres)
        worst.add(rows, trial, part.criterion.value(problem.scores.scores(trial)))
    return worst
