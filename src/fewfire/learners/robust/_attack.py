"""Attacks on fitted models in the user's units: `attack` finds the worst points, `robust_score` scores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score

from fewfire._errors import invalid
from fewfire._random import as_stream
from fewfire._validate import check_number
from fewfire.learners.robust._blas import calm_products
from fewfire.learners.robust._caps import SliceCap
from fewfire.learners.robust._models import Target, check_rows, recognise
from fewfire.learners.robust._search import PGD, find_worst
from fewfire.learners.robust._threats import Threat, ball, check_within

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array

BLOCK = 1 << 21
"""Rows × neurons attacked at once, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class AttackResult:
    """The worst points an attack found.

    Parameters
    ----------
    X : array of shape (rows, columns)
        The moved rows, in the user's units.
    margin : array of shape (rows,)
        At the moved rows: y·f for two classes, the true score less the largest other for more, −|f − y| for regressors.
    clean_margin : array of shape (rows,)
        At the rows themselves.
    prediction : array of shape (rows,)
        The class or number at the moved rows.
    """

    X: Float64Array
    margin: Float64Array
    clean_margin: Float64Array
    prediction: AnyArray

    @property
    def success(self) -> AnyArray:
        """Whether the margin became 0 or less, shape (rows,): for a classifier, whether it can be fooled."""
        return self.margin <= 0.0


def attack(
    model: Any,
    X: object,
    y: object,
    rho: float | None = None,
    norm: str | None = None,
    *,
    bounds: Any = None,
    steps: int = 20,
    step_size: float | None = None,
    restarts: int = 4,
    seed: int | Stream = 0,
) -> AttackResult:
    """Look for the points within ρ of each row at which a model does worst.

    Projected gradient ascent from the row and from random points. What it finds is an upper bound of the true worst
    margin; `certify` gives a lower one.

    Parameters
    ----------
    model : fitted model
        A fewfire network or estimator of one, scikit-learn's MLPClassifier or MLPRegressor, or a Pipeline of scalers
        before one of these.
    X, y : table of shape (rows, columns) and labels of shape (rows,)
    rho, norm, bounds
        The adversary, in the units of X; those of a RobustClassifier or RobustRegressor itself unless given. Norms are
        "l2" (default) and "linf"; bounds a pair (low, high) of numbers or arrays of shape (columns,).
    steps, step_size, restarts
        As in `PGD`.
    seed : int or Stream
        Of the random starts.
    """
    target = recognise(model, y)
    table = check_rows(target, X)
    labels, threat = target.labels(y, len(table)), choose_threat(target, rho, norm, bounds)
    check_within(table, threat)
    points, search, stream = target.points(table), PGD(steps, step_size, restarts), as_stream(seed, "attack")
    rows, found = max(1, BLOCK // target.scores.width), []
    with calm_products(min(rows, len(table)) * target.scores.width * target.scores.inputs):
        for start in range(0, len(table), rows):
            part = slice(start, start + rows)
            criterion = target.criterion(labels[part])
            worst = find_worst(target.scores, criterion, threat, points[part], search, stream.child(f"row {start}"))
            moved, clean = target.rows(worst.points, table[part]), criterion.value(worst.clean_scores)
            found.append((moved, -worst.value, -clean, predictions(target, worst.scores)))
    return AttackResult(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def robust_score(
    model: Any, X: object, y: object, rho: float | None = None, norm: str | None = None, **options: Any
) -> float:
    """The score of a model at the worst points an attack finds: accuracy of classifiers, R² of regressors.

    Parameters
    ----------
    model, X, y, rho, norm, **options
        As in `attack`.
    """
    result = attack(model, X, y, rho, norm, **options)
    if recognise(model, y).classes is None:
        return float(r2_score(np.asarray(y), result.prediction))
    return float(np.mean(result.prediction == np.asarray(y)))


def choose_threat(target: Target, rho: float | None, norm: str | None, bounds: Any) -> Threat:
    """The adversary asked for, with a robust estimator's own where nothing is said."""
    owner, columns = target.owner, target.scores.inputs
    if rho is None and owner is None:
        raise invalid("rho", "must be given for this model", None, "pass the radius of the adversary in the units of X")
    radius = check_number("rho", owner.rho if owner is not None and rho is None else rho, 0.0)
    if owner is None or owner.domain == "ball":
        own_norm, own_bounds = ("l2", None) if owner is None else (owner.norm, owner.bounds)
        return ball(norm or own_norm, radius, own_bounds if bounds is None else bounds, columns)
    if norm not in (None, "l2") or bounds is not None:
        got = norm if bounds is None else bounds
        raise invalid("norm and bounds", f"must be left out for domain={owner.domain!r}", got)
    return SliceCap(radius)


def predictions(target: Target, scores: Float64Array) -> AnyArray:
    """Classes or numbers (rows,) of scores (rows, heads)."""
    if target.classes is None:
        return scores[:, 0]
    place = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(target.classes[place])
