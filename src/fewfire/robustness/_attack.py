"""Attacks on fitted models in the user's units: `attack` finds the worst points, `robust_score` scores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._random import as_stream
from fewfire._validate import check_number
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._search import PGD, find_worst
from fewfire.robustness._threats import Threat, ball, check_within

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._threats import Norm

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
    norm: Norm | None = None,
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
        A network or estimator of fewfire, a linear model or perceptron of scikit-learn, a Pipeline of scalers before
        one of these, a torch.nn.Module of tables, or anything that `register_adapter` has been told about.
    X, y : table of shape (rows, columns) and labels of shape (rows,)
    rho, norm, bounds
        The adversary, in the units of X; those of a RobustClassifier or RobustRegressor itself unless given. Norms are
        "l2" (default) and "linf"; bounds a pair (low, high) of numbers or arrays of shape (columns,).
    steps, step_size, restarts
        As in `PGD`.
    seed : int or Stream
        Of the random starts.
    """
    adapter = adapter_of(model, X, y)
    table = adapter.check_rows(X)
    labels, threat = adapter.labels(y, len(table)), choose_threat(adapter, rho, norm, bounds)
    check_within(table, threat)
    points, search, stream = adapter.points(table), PGD(steps, step_size, restarts), as_stream(seed, "attack")
    scores = adapter.scores.near(threat.rho)
    rows, found = max(1, BLOCK // scores.width), []
    with calm_products(min(rows, len(table)) * scores.width * scores.inputs):
        for start in range(0, len(table), rows):
            part = slice(start, start + rows)
            criterion = adapter.criterion(labels[part])
            worst = find_worst(scores, criterion, threat, points[part], search, stream.child(f"row {start}"))
            moved, clean = adapter.rows(worst.points, table[part]), criterion.value(worst.clean_scores)
            found.append((moved, -worst.value, -clean, adapter.predictions(worst.scores)))
    return AttackResult(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def robust_score(
    model: Any, X: object, y: object, rho: float | None = None, norm: Norm | None = None, **options: Any
) -> float:
    """The score of a model at the worst points an attack finds: accuracy of classifiers, R² of regressors.

    Parameters
    ----------
    model, X, y, rho, norm, **options
        As in `attack`.
    """
    result = attack(model, X, y, rho, norm, **options)
    if adapter_of(model, X, y).classes is None:
        return float(r2_score(np.asarray(y), result.prediction))
    return float(np.mean(result.prediction == np.asarray(y)))


def choose_threat(adapter: ModelAdapter, rho: float | None, norm: Norm | None, bounds: Any) -> Threat:
    """The adversary asked for, with a model's own where nothing is said."""
    if adapter.threat is not None:
        return adapter.threat(rho, norm, bounds)
    if rho is None:
        raise invalid("rho", "must be given for this model", None, "pass the radius of the adversary in the units of X")
    return ball(norm or "l2", check_number("rho", rho, 0.0), bounds, adapter.scores.inputs)
