"""How far must a row be moved to fool a model? The least radius, between what is proved and what is found.

From below, `certify` proves radii at which no point fools the model; from above, `attack` finds points that do, drawn
back along the straight line to the row as far as they still do. Both ends are found by bisection, and the true least
radius of every row lies between them; for linear models they meet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._progress import progress_callback
from fewfire._random import as_stream
from fewfire._validate import check_integer, check_number
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._attack import attack_adapted
from fewfire.robustness._bounds import certifiable
from fewfire.robustness._certify import certify
from fewfire.robustness._threats import FeatureBall, SliceCap, columns_mask

if TYPE_CHECKING:
    from fewfire._progress import ProgressCallback
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._threats import Norm

LINE_STEPS = 16  # bisections along the line from a row to the point that fooled the model


@dataclass(frozen=True, eq=False)
class AdversarialRadius:
    """Between which radii the least one lies at which a model can be fooled.

    Parameters
    ----------
    lower : array of shape (rows,)
        Proved: no point within less than this fools the model. 0 where the model cannot be certified.
    upper : array of shape (rows,)
        The distance of the nearest point found that does; 0 for rows that are predicted wrongly as they are, infinite
        where none was found within ρ.
    X : array of shape (rows, columns)
        Those points; the rows themselves where there is none.
    """

    lower: Float64Array
    upper: Float64Array
    X: Float64Array


def minimal_radius(
    model: Any,
    X: object,
    y: object,
    rho: float,
    norm: Norm | None = None,
    *,
    bounds: Any = None,
    fixed: Any = None,
    rounds: int = 7,
    steps: int = 20,
    restarts: int = 1,
    seed: int | Stream = 0,
    progress: bool | ProgressCallback | None = None,
) -> AdversarialRadius:
    """Bracket, for each row, the least radius at which a classifier can be fooled.

    Parameters
    ----------
    model, X, y, norm, bounds, fixed
        As in `attack`; classifiers only.
    rho : float
        The largest radius looked at.
    rounds : int
        Bisections of either end: proved radii are multiples of ρ/2^rounds.
    steps, restarts, seed
        As in `attack`, for every round.
    progress : bool or callable (done, total)
        True shows one bar, in a notebook or on standard error; a callable gets the rounds that are over.

    Examples
    --------
    >>> from fewfire.robustness import minimal_radius
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_moons(20, noise=0.1, random_state=0)
    >>> found = minimal_radius(LogisticRegression().fit(X, y), X, y, rho=2.0)
    >>> bool((found.lower <= found.upper).all())
    True
    """
    adapter = adapter_of(model, X, y)
    if adapter.classes is None:
        raise invalid("model", "must be a classifier to be fooled", f"a {type(model).__name__}", "use attack")
    rho, rounds = check_number("rho", rho, 0.0, open_low=True), check_integer("rounds", rounds, 1, 20)
    threat = adapter.adversary(rho, norm, bounds, fixed)
    if isinstance(threat, SliceCap):
        remedy = 'of a robust estimator, use domain="ball"'
        raise invalid("model", "must be attacked in a ball to have a radius", "an adversary on the slice", remedy)
    unscaled: Any = threat.inner if isinstance(threat, FeatureBall) else threat
    table, truth, stream = adapter.check_rows(X), np.asarray(y), as_stream(seed, "radius")
    upper, points = np.full(len(table), np.inf), table.copy()
    missed = np.zeros(len(table))  # the largest radius at which an attack failed
    rows, radii = np.arange(len(table)), np.full(len(table), rho)
    listener = progress_callback(progress, "radius: round") or (lambda done, total: None)
    for attempt in range(rounds + 1):
        listener(attempt, 2 * rounds + 1)
        inner = replace(unscaled, rho=radii[:, None])
        ball = replace(threat, inner=inner) if isinstance(threat, FeatureBall) else inner
        child = stream.child(f"round {attempt}")
        found = attack_adapted(adapter, table[rows], truth[rows], ball, steps=steps, restarts=restarts, seed=child)
        fooled = found.success
        nearest = _draw_back(adapter, table[rows[fooled]], found.X[fooled], truth[rows[fooled]], threat)
        points[rows[fooled]] = nearest
        upper[rows[fooled]] = np.linalg.norm(nearest - table[rows[fooled]], ord=unscaled.order, axis=1)
        missed[rows[~fooled]] = radii[~fooled]
        rows = np.flatnonzero(np.isfinite(upper) & (upper - missed > 2.0**-rounds * rho))
        if not rows.size:
            break
        radii = (upper[rows] + missed[rows]) / 2
    listener(rounds + 1, 2 * rounds + 1)  # what is left is proofs, in no more than as many rounds
    movable: Any = 1.0 if fixed is None else ~columns_mask("fixed", fixed, table.shape[1])

    lower = np.zeros(len(table), dtype=np.int64)  # the largest multiples of ρ/2^rounds that are proved, by bisection
    # Radii at which the proof must fail, or beyond ρ; radii are shared by rows.
    above = np.floor(np.minimum(upper, rho) / rho * 2**rounds).astype(np.int64) + 1
    known = certifiable(adapter.scores) is not None
    while known and (rows := np.flatnonzero(above - lower > 1)).size:
        middle = (lower[rows] + above[rows]) // 2
        for radius in np.unique(middle):
            chosen, size = rows[middle == radius], rho * float(radius) / 2**rounds * movable
            sure = certify(model, table[chosen], truth[chosen], size, norm, bounds=bounds).robust
            lower[chosen[sure]], above[chosen[~sure]] = radius, radius
    listener(2 * rounds + 1, 2 * rounds + 1)
    return AdversarialRadius(lower * (rho / 2**rounds), upper, points)


def _draw_back(
    adapter: ModelAdapter, rows: Float64Array, points: Float64Array, truth: AnyArray, threat: Any
) -> Float64Array:
    """The points nearest to the rows, on the lines to points that fool the model, at which it still is fooled."""
    near, far = np.zeros((len(rows), 1)), np.ones((len(rows), 1))
    for step in range(LINE_STEPS if len(rows) else 0):
        middle = np.zeros_like(near) if step == 0 else (near + far) / 2  # the row itself first: it may be wrong
        there = rows + middle * (points - rows)
        scores = np.asarray(adapter.scores.scores(adapter.points(there)), dtype=np.float64)
        wrong = (adapter.own_predictions(there, scores) != truth)[:, None]
        near, far = np.where(wrong, near, middle), np.where(wrong, middle, far)
    return np.where(far == 1.0, points, rows + far * (points - rows))
