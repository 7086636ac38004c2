"""Attacks on fitted models in the user's units: `attack` finds the worst points, `robust_score` scores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.metrics import r2_score

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._progress import told
from fewfire._random import as_stream
from fewfire._validate import check_number
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._features import check_radii, restrict
from fewfire.robustness._suite import check_suite, run_suite
from fewfire.robustness._threats import ball, check_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._progress import Told
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._suite import Method
    from fewfire.robustness._threats import Norm, Threat

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
        The class or number at the moved rows, as the model itself predicts it.
    success : boolean array of shape (rows,)
        Whether that is not the label; of a regressor, whether its error grew.
    found_by : array of str of shape (rows,)
        The search that fooled the model: "frank_wolfe", "apgd", … (`attack` names them), those on smoothed gradients
        with "_smoothed" added; "clean" where the row itself is predicted wrongly, "" where nothing fooled it.
    """

    X: Float64Array
    margin: Float64Array
    clean_margin: Float64Array
    prediction: AnyArray
    success: AnyArray
    found_by: AnyArray

    @property
    def felled(self) -> dict[str, int]:
        """How many rows each search fooled, those that stand left out."""
        names, counts = np.unique(self.found_by[self.found_by != ""], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))


def attack(
    model: Any,
    X: object,
    y: object,
    rho: Any = None,
    norm: Norm | None = None,
    *,
    bounds: Any = None,
    fixed: Any = None,
    integers: Any = None,
    method: Literal["auto"] | Method | Sequence[Method] = "auto",
    steps: int = 20,
    step_size: float | None = None,
    restarts: int = 2,
    seed: int | Stream = 0,
    progress: bool | Told | None = None,
) -> AttackResult:
    """Look for the points within ρ of each row at which a model does worst.

    Several searches one after the other, each on the rows that still stand. What they find is an upper bound of the
    true worst margin; `certify` gives a lower one. A classifier's row counts as fallen only if the model's own
    prediction is wrong at a point that lies within ρ and the bounds in exact arithmetic.

    Parameters
    ----------
    model : fitted model
        A network or estimator of fewfire, a linear model or perceptron of scikit-learn, a Pipeline of scalers before
        one of these, a torch.nn.Module of tables, or anything that `register_adapter` has been told about.
    X, y : table of shape (rows, columns) and labels of shape (rows,)
    rho : float or array of shape (columns,)
        The radius in the units of X, or one per feature: ‖((x_j − x₀_j)/ρ_j)_j‖ ≤ 1; a feature of radius 0 stays. That
        of a RobustClassifier or RobustRegressor itself unless given.
    norm : {"l2", "l1", "linf"}
        "l2", or the model's own, unless given.
    bounds : pair (low, high) of numbers or arrays of shape (columns,)
        That no column may leave.
    fixed : column numbers, or a mask of shape (columns,)
        Columns that the adversary cannot move, such as codes of categories.
    integers : column numbers, or a mask of shape (columns,)
        Columns that move by whole numbers only.
    method : {"auto", "frank_wolfe", "certificate", "apgd", "apgd_targeted", "apgd_dlr", "square", "pgd"} or a sequence
        "auto" makes Frank–Wolfe steps towards every rival class, with smoothed gradients too where the activation
        jumps; tries the points at which a certificate by lines fails, where the model has one; then APGD on the margin
        and, from random points, on the difference of logits. Black boxes, and rows at which gradients vanish, get the
        square attack, which needs no gradients. "pgd" is projected ascent of fixed steps.
    steps : int
        Gradients that a search takes from each start; 0 leaves the rows as they are.
    step_size : float, optional
        Of "pgd", in the units of ρ; 2.5·ρ/steps unless given.
    restarts : int
        Random starts, which every row that still stands gets; with few features each is the worst of several points.
    seed : int or Stream
        Of the random starts.
    progress : bool or callable (done, total)
        True shows one bar, in a notebook or on standard error; a callable is told the rows that are done.

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> found = ff.attack(model, X, y, rho=0.2)
    >>> bool((model.predict(found.X[found.success]) != y[found.success]).all())
    True
    """
    adapter = adapter_of(model, X, y)
    threat = choose_threat(adapter, rho, norm, bounds, fixed, integers)
    return attack_adapted(adapter, X, y, threat, method, steps, step_size, restarts, seed, progress)


def attack_adapted(
    adapter: ModelAdapter,
    X: object,
    y: object,
    threat: Threat,
    method: Any = "auto",
    steps: int = 20,
    step_size: float | None = None,
    restarts: int = 2,
    seed: int | Stream = 0,
    progress: bool | Told | None = None,
) -> AttackResult:
    """`attack` of a model whose adapter and threat are known."""
    table = adapter.check_rows(X)
    labels, truth = adapter.labels(y, len(table)), np.asarray(y)
    check_within(table, threat)
    suite = check_suite(method, steps, step_size, restarts, adapter.scores)
    points, stream = adapter.points(table), as_stream(seed, "attack")
    scores = adapter.scores.near(float(np.max(threat.rho))).single()
    rows, found, listener = max(1, BLOCK // scores.width), [], told(progress, "attack: row")

    def tell(done: float) -> None:
        if listener is not None:
            listener(int(done), len(table))

    with calm_products(min(rows, len(table)) * scores.width * scores.inputs):
        for start in range(0, len(table), rows):
            part = np.arange(start, min(start + rows, len(table)))
            found.append(
                run_suite(
                    adapter,
                    scores,
                    threat.take(part),
                    points[part],
                    labels[part],
                    _judge(adapter, table[part], truth[part]),
                    suite,
                    stream.child(f"row {start}"),
                    lambda share, part=part: tell(part[0] + share * len(part)),  # type: ignore[misc]
                )
            )
            tell(part[-1] + 1)
    moved, at_moved, clean, found_by = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("points", "scores", "clean_scores", "found_by")
    )
    criterion, there = adapter.criterion(labels), adapter.rows(moved, table)
    margin, clean_margin = -criterion.value(at_moved), -criterion.value(clean)
    prediction = adapter.own_predictions(there, at_moved)
    success = margin < clean_margin if adapter.classes is None else prediction != truth
    return AttackResult(there, margin, clean_margin, prediction, np.asarray(success), found_by)


def robust_score(model: Any, X: object, y: object, rho: Any = None, norm: Norm | None = None, **options: Any) -> float:
    """The score of a model at the worst points an attack finds: accuracy of classifiers, R² of regressors.

    Parameters
    ----------
    model, X, y, rho, norm, **options
        As in `attack`.

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> ff.robust_score(model, X, y, rho=0.2) < model.score(X, y)
    True
    """
    adapter = adapter_of(model, X, y)
    features = {name: options.pop(name, None) for name in ("bounds", "fixed", "integers")}
    threat = choose_threat(adapter, rho, norm, *features.values())
    prediction = attack_adapted(adapter, X, y, threat, **options).prediction
    if adapter.classes is None:
        return float(r2_score(np.asarray(y), prediction))
    return float(np.mean(prediction == np.asarray(y)))


def choose_threat(
    adapter: ModelAdapter, rho: Any, norm: Norm | None, bounds: Any, fixed: Any = None, integers: Any = None
) -> Threat:
    """The adversary asked for, with a model's own where nothing is said."""
    columns = adapter.scores.inputs
    radii = None if rho is None or np.ndim(rho) == 0 else check_radii(rho, columns)
    radius = rho if radii is None else float(radii.max())
    if adapter.threat is not None:
        threat = adapter.threat(radius, norm, bounds)
    elif radius is None:
        raise invalid("rho", "must be given for this model", None, "pass the radius of the adversary in the units of X")
    else:
        threat = ball(norm or "l2", check_number("rho", radius, 0.0), bounds, columns)
    return restrict(threat, radii, fixed, integers, columns)


def _judge(
    adapter: ModelAdapter, table: Float64Array, truth: AnyArray
) -> Callable[[Float64Array, Float64Array, AnyArray], AnyArray]:
    """Which points, with these scores, of these rows the model predicts wrongly; no regressor's are."""

    def errs(points: Float64Array, scores: Float64Array, rows: AnyArray) -> AnyArray:
        if adapter.classes is None:
            return np.zeros(len(rows), dtype=bool)
        wrong = np.asarray(adapter.predictions(scores) != truth[rows])
        chosen = np.flatnonzero(wrong)
        if chosen.size:
            there = adapter.rows(points[chosen], table[rows[chosen]])
            wrong[chosen] = adapter.own_predictions(there, scores[chosen]) != truth[rows[chosen]]
        return wrong

    return errs
