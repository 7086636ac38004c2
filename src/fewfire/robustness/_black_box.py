"""Models known by their values alone, and the square attack, a random search that needs no more.

Slopes of a black box come from differences, so it can be attacked but not certified. The square attack (Andriushchenko
et al., 2020) is made for tables instead of images: a point on the rim is changed in a random set of features at a time,
the set shrinking as the search goes on, and kept where the criterion rises. Features have no neighbours, so that a
"square" is any set of them. It takes one query per step, which suits black boxes, vanishing gradients and features that
are whole numbers. The rim is not the whole set: with few features every other query goes from the worst point known
towards a random point of the set, by steps of all lengths; with many, where moves of all features are worth little,
few do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewfire._errors import invalid
from fewfire._validate import counted
from fewfire.robustness._adapter import ModelAdapter, without_names
from fewfire.robustness._formula import Scores
from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._formula import Pull
    from fewfire.robustness._problem import AttackProblem

CHORD: Final = 0.1  # slopes are measured over this share of ρ to either side


@dataclass(frozen=True, eq=False)
class BlackBoxScores(Scores):
    """Scores known by their values alone; slopes are those of chords along every coordinate.

    A chord reaches CHORD·ρ to either side, so kinks and steps much finer than ρ are smoothed over; where the function
    is constant over all chords, only the random starts of an attack move. A step costs 2·inputs + 1 evaluations.
    """

    values: Callable[[Float64Array], AnyArray]  # of points (rows, columns): (rows, heads), or (rows,) for one head
    columns: int
    heads: int
    chord: float = 1e-3  # half the length of one

    @property
    def inputs(self) -> int:
        return self.columns

    @property
    def width(self) -> int:
        """As many rows are evaluated at once as a step needs, each taken to cost its model a hundred numbers."""
        return 100 * (2 * self.inputs + 1)

    def scores(self, points: Float64Array) -> Float64Array:
        table = np.asarray(self.values(points), dtype=np.float64).reshape(len(points), -1)
        if table.shape[1] != self.heads:
            rule = f"must give {counted(self.heads, 'score')} per row"
            raise invalid("model", rule, f"a table of {table.shape[1]} columns", "one label per row can be attacked")
        return table

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        moves = self.chord * np.eye(self.inputs)
        moves = np.concatenate([np.zeros((1, self.inputs)), moves, -moves])
        moved = (points[:, None, :] + moves).reshape(-1, self.inputs)
        table = self.scores(moved).reshape(len(points), 2 * self.inputs + 1, self.heads)
        slopes = (table[:, 1 : self.inputs + 1] - table[:, self.inputs + 1 :]) / (2.0 * self.chord)
        return table[:, 0], lambda weights: np.einsum("idk,ik->id", slopes, weights)

    def near(self, rho: float) -> BlackBoxScores:
        return replace(self, chord=CHORD * rho)

    def after(self, scale: Float64Array, shift: Float64Array) -> BlackBoxScores:
        """The box behind the scaling, so that chords are measured before it."""

        def values(points: Float64Array) -> AnyArray:
            return self.values((points * scale if scale.ndim == 1 else points @ scale) + shift)

        return replace(self, values=values, columns=len(scale))


def black_box(model: Any, X: object, y: object) -> ModelAdapter:
    """The adapter for any fitted estimator of scikit-learn's kind, by its predictions alone.

    Classifiers need `decision_function` or `predict_proba`, regressors `predict`. Attacks follow
    slopes measured over a tenth of ρ, so what they find is a weaker upper bound of the worst margin than where exact
    gradients lead; trees and forests, constant nearly everywhere, are attacked by little more than random points.

    >>> from fewfire.robustness import black_box, register_adapter
    >>> _ = register_adapter("sklearn.svm.SVC", "sklearn.svm.SVR")(black_box)
    """
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    heads = 1 if classes is None or len(classes) == 2 else len(classes)

    def values(points: Float64Array) -> AnyArray:
        if classes is None or hasattr(model, "decision_function"):
            return without_names(model.predict if classes is None else model.decision_function, points)
        probabilities = without_names(model.predict_proba, points)
        return np.asarray(probabilities[:, 1] - probabilities[:, 0] if heads == 1 else probabilities)

    return ModelAdapter(BlackBoxScores(values, int(model.n_features_in_), heads), classes, predict=model.predict)


FIRST: Final = 0.8  # share of the features changed at first
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
        rows = worst.open_rows(problem)
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
