"""How far must a row be moved to fool a model? The least radius, between what is proved and what is found.

From below, `certify` proves radii at which no point fools the model; from above, `attack` finds points that do, drawn
back along the straight line to the row as far as they still do. Both ends are found by bisection, and the true least
radius of every row lies between them; for linear models they meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._progress import progress_callback
from fewfire._validate import check_integer, check_number
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._attack import nearest_mistakes
from fewfire.robustness._bounds import certifiable
from fewfire.robustness._certify import certify

if TYPE_CHECKING:
    from fewfire._progress import ProgressCallback
    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.robustness._threats import Norm


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
    threat = adapter.adversary(rho, norm, bounds, fixed=fixed)
    listener, total = progress_callback(progress, "radius: round") or (lambda done, total: None), 2 * rounds + 1
    options: Any = {"steps": steps, "restarts": restarts}  # of the attacks; what is left then is as many proofs at most
    near = nearest_mistakes(adapter, X, y, threat, rounds, seed, lambda done: listener(done, total), **options)
    table, truth = adapter.check_rows(X), np.asarray(y)
    whole = table.reshape(len(table), *adapter.shape) if adapter.shape else table
    upper = np.where(near.success, near.distance, np.inf)
    points = np.where(near.success[:, None], near.X, table)
    lower = np.zeros(len(table), dtype=np.int64)  # the largest multiples of ρ/2^rounds that are proved, by bisection
    # Radii at which the proof must fail, or beyond ρ; radii are shared by rows.
    above = np.floor(np.minimum(upper, rho) / rho * 2**rounds).astype(np.int64) + 1
    known = certifiable(adapter.scores) is not None
    while known and (rows := np.flatnonzero(above - lower > 1)).size:
        middle = (lower[rows] + above[rows]) // 2
        for radius in np.unique(middle):
            chosen, size = rows[middle == radius], rho * float(radius) / 2**rounds
            sure = certify(model, whole[chosen], truth[chosen], size, norm, bounds=bounds, fixed=fixed).robust
            lower[chosen[sure]], above[chosen[~sure]] = radius, radius
    listener(total, total)
    return AdversarialRadius(lower * (rho / 2**rounds), upper, points.reshape(whole.shape))
