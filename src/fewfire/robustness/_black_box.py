"""Models known by their values alone: slopes come from differences, so they can be attacked but not certified."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewfire._errors import invalid
from fewfire.robustness._adapter import ModelAdapter
from fewfire.robustness._score_function import Scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._score_function import Pull

CHORD: Final = 0.1
"""Slopes are measured over this share of ρ to either side."""


@dataclass(frozen=True, eq=False)
class BlackBoxScores(Scores):
    """Scores known by their values alone; slopes are those of chords along every coordinate.

    A chord reaches CHORD·ρ to either side, so kinks and steps much finer than ρ are smoothed over; where the function
    is constant over all chords, only the random starts of an attack move. A step costs 2·inputs + 1 evaluations.

    Parameters
    ----------
    values : function from points (rows, columns) to (rows, heads), or (rows,) for one head
    columns, heads : int
        Coordinates of a point, and scores.
    chord : float
        Half the length of a chord.
    """

    values: Callable[[Float64Array], AnyArray]
    columns: int
    heads: int
    chord: float = 1e-3

    @property
    def inputs(self) -> int:
        """How many coordinates a point has."""
        return self.columns

    @property
    def width(self) -> int:
        """As many rows are evaluated at once as a step needs, each taken to cost its model a hundred numbers."""
        return 100 * (2 * self.inputs + 1)

    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, inputs): shape (rows, heads)."""
        table = np.asarray(self.values(points), dtype=np.float64).reshape(len(points), -1)
        if table.shape[1] != self.heads:
            rule = f"must give {self.heads} score{'s' if self.heads > 1 else ''} per row"
            raise invalid("model", rule, f"a table of {table.shape[1]} columns", "one label per row can be attacked")
        return table

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Pull]:
        """Scores, and the map from weights c (rows, heads) to Σ_k c_k·(slopes of score k), shape (rows, inputs)."""
        moves = self.chord * np.eye(self.inputs)
        moves = np.concatenate([np.zeros((1, self.inputs)), moves, -moves])
        moved = (points[:, None, :] + moves).reshape(-1, self.inputs)
        table = self.scores(moved).reshape(len(points), 2 * self.inputs + 1, self.heads)
        slopes = (table[:, 1 : self.inputs + 1] - table[:, self.inputs + 1 :]) / (2.0 * self.chord)
        return table[:, 0], lambda weights: np.einsum("idk,ik->id", slopes, weights)

    def near(self, rho: float) -> BlackBoxScores:
        """With chords of an attack of radius ρ."""
        return replace(self, chord=CHORD * rho)

    def after(self, scale: Float64Array, shift: Float64Array) -> BlackBoxScores:
        """The box behind the scaling, so that chords are measured before it."""
        return replace(self, values=lambda points: self.values(points * scale + shift))


def black_box(model: Any, X: object, y: object) -> ModelAdapter:
    """The adapter for any fitted estimator of scikit-learn's kind, by its predictions alone.

    Classifiers are asked for `decision_function`, or else for `predict_proba`, regressors for `predict`. Attacks follow
    slopes measured over a tenth of ρ, so what they find is a weaker upper bound of the worst margin than where exact
    gradients lead; trees and forests, constant nearly everywhere, are attacked by little more than random points.

    >>> from fewfire.robustness import black_box, register_adapter
    >>> _ = register_adapter("sklearn.svm.SVC", "sklearn.svm.SVR")(black_box)
    """
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    heads = 1 if classes is None or len(classes) == 2 else len(classes)

    def values(points: Float64Array) -> AnyArray:
        with warnings.catch_warnings():  # the points have the columns of the fit, without their names
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            if classes is None:
                return np.asarray(model.predict(points))
            if hasattr(model, "decision_function"):
                return np.asarray(model.decision_function(points))
            shares = np.asarray(model.predict_proba(points))
            return np.asarray(shares[:, 1] - shares[:, 0] if heads == 1 else shares)

    return ModelAdapter(BlackBoxScores(values, int(model.n_features_in_), heads), classes, predict=model.predict)
