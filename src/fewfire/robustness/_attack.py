"""Attacks on fitted models in the user's units: `attack` finds the worst points, `robust_score` scores them.

An attack is a sequence of searches, each on the rows whose prediction the ones before have not changed.

========================  ==========================================================================================
method                    what it does
========================  ==========================================================================================
pgd                       projected ascent of fixed steps on the margin, from the row and from random points
frank_wolfe               full steps to extreme points towards every rival; then smoothed ones where values jump
apgd                      APGD on the margin from the worst point known, with smoothed gradients too where values jump
apgd_targeted             APGD towards each of the three nearest rivals, from the row itself
apgd_dlr                  APGD from random points, on the difference of logits and on the margin in turns
certificate               the points at which the lines of a certificate are lowest, where the model has one
square                    random search without gradients
========================  ==========================================================================================

Searches run in float32 where that is precise enough. A prediction has changed when the model's own one is wrong at a
point that lies in the threat exactly; both are decided in float64.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from sklearn.metrics import r2_score

from fewfire._errors import FewfireWarning, invalid
from fewfire._html import card
from fewfire._progress import progress_callback
from fewfire._random import as_stream
from fewfire._threads import calm_products
from fewfire._validate import check_integer, did_you_mean
from fewfire.robustness._adapter import adapter_of, in_units
from fewfire.robustness._black_box import BlackBoxScores, square
from fewfire.robustness._bounds import shallow
from fewfire.robustness._formula import BLOCK
from fewfire.robustness._gradient import PGD, apgd, find_worst, frank_wolfe, lowest_of_lines
from fewfire.robustness._problem import AttackProblem, Criterion, Worst, criterion
from fewfire.robustness._threats import SliceCap, check_within, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire._progress import ProgressCallback
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._formula import Scores
    from fewfire.robustness._threats import Norm, Threat

    Search = Callable[[AttackProblem], Worst]
    Errs = Callable[[Float64Array, Float64Array, AnyArray], AnyArray]


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
    radius : str
        How far rows were moved, such as "ℓ₂ 0.3".
    regression : bool
        Whether the margins are errors of a regressor.
    distance : array of shape (rows,)
        How far each row was moved, in the norm and the units of ρ.
    targeted : bool
        Whether success is the prediction asked for instead of any wrong one.
    """

    X: Float64Array
    margin: Float64Array
    clean_margin: Float64Array
    prediction: AnyArray
    success: AnyArray
    found_by: AnyArray
    radius: str
    regression: bool
    distance: Float64Array
    targeted: bool = False

    def __repr__(self) -> str:
        if self.regression:
            clean, moved = -self.clean_margin.mean(), -self.margin.mean()
            return f"AttackResult: mean error {clean:.4g} as the rows are, {moved:.4g} within {self.radius}"
        counts = self.found_counts
        clean = counts.pop("clean", 0)
        by = ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
        rows, wrong = len(self.success), int(self.success.sum())
        moved = f"{sum(counts.values())} within {self.radius}" + (f" ({by})" if by else "")
        aim = "as their target" if self.targeted else "wrongly"
        return f"AttackResult: {wrong} of {rows} rows predicted {aim}: {clean} as they are, {moved}"

    def _repr_html_(self) -> str:
        title, _, sentence = repr(self).partition(": ")
        return card(title, {"": sentence, **self.found_counts})

    @property
    def found_counts(self) -> dict[str, int]:
        """How many rows' predictions each search changed."""
        names, counts = np.unique(self.found_by[self.found_by != ""], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))


def attack(
    model: Any,
    X: object,
    y: object,
    rho: Any = None,
    norm: Norm | None = None,
    *,
    units: Literal["std"] | None = None,
    bounds: Any = None,
    fixed: Any = None,
    integers: Any = None,
    onehot: Any = None,
    relations: Any = None,
    target: Any = None,
    method: Literal["auto", "minimum_norm"] | Method | Sequence[Method] = "auto",
    steps: int = 20,
    step_size: float | None = None,
    restarts: int = 2,
    seed: int | Stream = 0,
    progress: bool | ProgressCallback | None = None,
) -> AttackResult:
    """Look for the points within ρ of each row at which a model does worst.

    Several searches one after the other, each on the rows that are still predicted rightly. What they find is an upper
    bound of the true worst margin; `certify` gives a lower one. A prediction counts as changed only if the model's own
    is wrong at a point that lies within ρ and the bounds in exact arithmetic.

    Parameters
    ----------
    model : fitted model
        A network or estimator of fewfire, a linear model or perceptron of scikit-learn, a Pipeline of scalers before
        one of these, a torch.nn.Module of tables or images, or any kind given to `register_adapter`.
    X, y : table of shape (rows, columns) and labels of shape (rows,)
        Modules of PyTorch take images (rows, channels, height, width), or any other shape, too.
    rho : float or array of shape (columns,)
        The radius in the units of X, or one per feature: ‖((x_j − x₀_j)/ρ_j)_j‖ ≤ 1; a feature of radius 0 stays. That
        of a RobustClassifier or RobustRegressor itself unless given.
    norm : {"l2", "l1", "linf"} or 2, 1, np.inf
        "l2", or the model's own, unless given.
    units : "std", optional
        ρ is in standard deviations of the columns of X instead, those of the rows given.
    bounds : pair (low, high) of numbers or arrays of shape (columns,)
        That no column may leave.
    fixed : column numbers, or a mask of shape (columns,)
        Columns that the adversary cannot move, such as codes of categories.
    integers : column numbers, or a mask of shape (columns,)
        Columns that move by whole numbers only.
    onehot : list of groups of column numbers
        Of each group one column is 1 and the others are 0, also after the attack. Another category moves two columns
        by 1, as far as ρ lets it; with fixed columns it stays.
    relations : array of shape (relations, columns)
        Weights of sums of columns that stay what they are in each row, up to rounding.
    target : class, or array of shape (rows,), optional
        Look for points predicted as this class, other than the label, instead of any wrong prediction.
    method : {"auto", "minimum_norm", "frank_wolfe", "certificate", "apgd", …, "square", "pgd"} or a sequence
        "auto" makes Frank–Wolfe steps towards every rival class, with smoothed gradients too where the activation
        jumps; tries the points at which a certificate by lines fails, where the model has one; then APGD on the margin
        and, from random points, on the difference of logits. Black boxes, and rows at which gradients vanish, get the
        square attack, which needs no gradients. "pgd" is projected ascent of fixed steps. "minimum_norm" looks for the
        nearest point within ρ that fools the model, by "auto" within ever smaller radii; see `distance`.
    steps : int
        Gradients that a search takes from each start; 0 leaves the rows as they are.
    step_size : float, optional
        Of "pgd", in the units of ρ; 2.5·ρ/steps unless given.
    restarts : int
        Random starts for every row still predicted rightly; with few features each is the worst of several points.
    seed : int or Stream
        Of the random starts.
    progress : bool or callable (done, total)
        True shows one bar, in a notebook or on standard error; a callable gets the rows that are done.

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
    limits = {"fixed": fixed, "integers": integers, "onehot": onehot, "relations": relations}
    threat = adapter.adversary(in_units(rho, units, X), norm, bounds, **limits)
    if method == "minimum_norm":
        if adapter.classes is None:
            raise invalid("method", "can be 'minimum_norm' for classifiers only", f"a {type(model).__name__}")
        how = {"steps": steps, "restarts": restarts, "target": target}
        listener = progress_callback(progress, "attack: round") or (lambda done, total: None)
        found = nearest_mistakes(adapter, X, y, threat, ROUNDS, seed, lambda done: listener(done, ROUNDS + 1), **how)
    else:
        found = attack_adapted(adapter, X, y, threat, method, steps, step_size, restarts, seed, progress, target)
    return replace(found, X=found.X.reshape(np.asarray(X).shape))


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
    progress: bool | ProgressCallback | None = None,
    target: Any = None,
) -> AttackResult:
    """`attack` of a model whose adapter and threat are known."""
    table = adapter.check_rows(X)
    labels, truth, targeted = adapter.labels(y, len(table)), np.asarray(y), target is not None
    wanted = check_target(adapter, target, truth) if targeted else truth
    aims, errs = adapter.labels(wanted, len(table)), mistakes(adapter, table, wanted, targeted)
    check_within(table, threat)
    suite = check_suite(method, steps, step_size, restarts, adapter.scores)
    points, stream = adapter.points(table), as_stream(seed, "attack")
    scores = adapter.scores.near(float(np.max(threat.rho))).single()
    rows, found, listener = max(1, BLOCK // scores.width), [], progress_callback(progress, "attack: row")

    def report(done: float) -> None:
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
                    aims[part],
                    targeted,
                    lambda moved, values, some, part=part: errs(moved, values, part[some]),  # type: ignore[misc]
                    suite,
                    stream.child(f"row {start}"),
                    lambda share, part=part: report(part[0] + share * len(part)),  # type: ignore[misc]
                )
            )
            report(part[-1] + 1)
    moved, at_moved, clean, found_by = (np.concatenate(column) for column in zip(*found, strict=True))
    there, raised, regression = adapter.rows(moved, table), criterion(adapter, labels), adapter.classes is None
    margin, clean_margin = -raised.value(at_moved), -raised.value(clean)
    prediction = adapter.own_predictions(there, at_moved)
    success = np.asarray(margin < clean_margin if regression else (prediction == wanted) == targeted)
    distance = threat.length(moved - points)
    return AttackResult(
        there, margin, clean_margin, prediction, success, found_by, shown(threat), regression, distance, targeted
    )


def check_target(adapter: ModelAdapter, target: Any, truth: AnyArray) -> AnyArray:
    """The class that each row is to be predicted as, shape (rows,)."""
    if adapter.classes is None:
        raise invalid("target", "can be given for classifiers only", "a regressor", "leave it out")
    wanted = np.array(np.broadcast_to(target, truth.shape)) if np.ndim(target) == 0 else np.asarray(target)
    adapter.labels(wanted, len(truth), "target")
    same = np.flatnonzero(wanted == truth)
    if same.size:
        rule, got = "must differ from the label of each row", f"a {wanted[same[0]]} at row {same[0]}"
        raise invalid("target", rule, got, "leave rows of the target's own class out")
    return wanted


ROUNDS: Final = 7  # bisections of the radius
LINE_STEPS: Final = 20  # bisections on the way from a row to a point that fools the model
DESCENTS: Final = 3


def nearest_mistakes(
    adapter: ModelAdapter,
    X: object,
    y: object,
    threat: Any,
    rounds: int,
    seed: int | Stream,
    report: Callable[[int], object],
    **options: Any,
) -> AttackResult:
    """The nearest points found that fool a classifier: attacks within ever smaller radii, drawn back towards the rows.

    Each round halves what lies between the distance found and the largest radius at which an attack failed.
    """
    if isinstance(threat, SliceCap):
        remedy = 'of a robust estimator, use domain="ball"'
        raise invalid("model", "must be attacked in a ball to have a radius", "an adversary on the slice", remedy)
    table, truth, stream, rho = adapter.check_rows(X), np.asarray(y), as_stream(seed, "radius"), float(threat.rho)
    targeted = (target := options.pop("target", None)) is not None
    wanted = check_target(adapter, target, truth) if targeted else truth
    points, upper, missed = table.copy(), np.full(len(table), np.inf), np.zeros(len(table))
    rows, radii = np.arange(len(table)), np.full(len(table), rho)
    first: Any = None
    for attempt in range(rounds + 1):
        report(attempt)
        how = {"seed": stream.child(f"round {attempt}"), "target": wanted[rows] if targeted else None, **options}
        found = attack_adapted(adapter, table[rows], truth[rows], threat.resized(radii[:, None]), **how)
        first = found if first is None else first
        chosen = rows[found.success]
        errs = mistakes(adapter, table[chosen], wanted[chosen], targeted)
        raised = criterion(adapter, adapter.labels(wanted[chosen], len(chosen)), targeted)
        points[chosen] = _nearer(adapter, table[chosen], found.X[found.success], errs, raised, threat)
        upper[chosen] = threat.length(points[chosen] - table[chosen])
        missed[rows[~found.success]] = radii[~found.success]
        rows = np.flatnonzero(np.isfinite(upper) & (upper - missed > 2.0**-rounds * rho))
        if not rows.size:
            break
        radii = (upper[rows] + missed[rows]) / 2
    report(rounds + 1)
    points = np.where(first.success[:, None], points, first.X)
    values = _values(adapter.scores, adapter.points(points))
    margin = -criterion(adapter, adapter.labels(y, len(table))).value(values)
    prediction, distance = adapter.own_predictions(points, values), threat.length(points - table)
    nearest: AttackResult = replace(first, X=points, margin=margin, prediction=prediction, distance=distance)
    return nearest


def _nearer(
    adapter: ModelAdapter, rows: Float64Array, points: Float64Array, errs: Errs, raised: Criterion, threat: Any
) -> Float64Array:
    """Points nearer to the rows that still fool the model: on straight lines, then where gradients there lead."""

    if not len(rows):
        return points

    def fooled(there: Float64Array) -> AnyArray:
        return errs(there, _values(adapter.scores, adapter.points(there)), np.arange(len(rows)))

    points = np.where(fooled(rows)[:, None], rows, points)
    if not threat.convex:
        return points

    def bisected(reached: Callable[[Float64Array], Float64Array]) -> None:
        """Replace points by those that shares (rows, 1) of the way reach, where they are nearer and still do."""
        near, far = np.zeros((len(rows), 1)), np.ones((len(rows), 1))
        for step in range(LINE_STEPS):
            share = (near + far) / 2 if step else far
            there = threat.settle(reached(share), rows)
            wrong = fooled(there)[:, None]
            better = wrong[:, 0] & (threat.length(there - rows) < threat.length(points - rows))
            points[better] = there[better]
            near, far = np.where(wrong, near, share), np.where(wrong, share, far)

    straight = points - rows
    bisected(lambda share: rows + share * straight)
    for _ in range(DESCENTS if adapter.space is None else 0):
        scores, pull = adapter.scores.linearise(points)
        gradients = np.asarray(pull(raised.slope(scores)), dtype=np.float64)
        reach = threat.length(points - rows)[:, None]
        bisected(partial(lambda to, reach, share: threat.resized(share * reach).extreme(to, rows), gradients, reach))
    return points


def robust_score(model: Any, X: object, y: object, rho: Any = None, norm: Norm | None = None, **options: Any) -> float:
    """The score of a model at the worst points an attack finds: accuracy of classifiers, R² of regressors.

    Parameters
    ----------
    model, X, y, rho, norm, **options
        As in `attack`, bounds, fixed and integers among them.

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
    found = attack(model, X, y, rho, norm, **options)
    if found.regression:
        return float(r2_score(np.asarray(y), found.prediction))
    score, spread = float(np.mean(found.prediction == np.asarray(y))), np.std(np.asarray(X, dtype=np.float64), axis=0)
    if score == 0.0 and rho is not None and np.ndim(rho) == 0 and spread.any() and rho > np.median(spread[spread > 0]):
        text = f"rho is in the units of X: {rho:g} is beyond the standard deviation of half of its columns"
        remedy = "pass units='std', or a radius per column"
        warnings.warn(f"{text}, and no row stands. Remedy: {remedy}.", FewfireWarning, stacklevel=2)
    return score


def mistakes(adapter: ModelAdapter, table: Float64Array, wanted: AnyArray, targeted: bool) -> Errs:
    """Which points, with these scores, of these rows are predicted as wanted or, untargeted, not so; no regressor's."""

    def errs(points: Float64Array, scores: Float64Array, rows: AnyArray) -> AnyArray:
        if adapter.classes is None:
            return np.zeros(len(rows), dtype=bool)
        wrong = np.asarray((adapter.predictions(scores) == wanted[rows]) == targeted)
        chosen = np.flatnonzero(wrong)
        if chosen.size:
            there = adapter.rows(points[chosen], table[rows[chosen]])
            wrong[chosen] = (adapter.own_predictions(there, scores[chosen]) == wanted[rows[chosen]]) == targeted
        return wrong

    return errs


Method: TypeAlias = Literal["pgd", "frank_wolfe", "certificate", "apgd", "apgd_targeted", "apgd_dlr", "square"]
METHODS: Final = get_args(Method)

TARGETS: Final = 9  # rival classes that Frank–Wolfe steps try, those of the highest scores
NEAREST: Final = 3  # rival classes that dearer searches are spent on
WINDOWS: Final = (0.1, 0.03)  # jumps are smoothed over these shares of the adversary's reach, the wider first
SPENT: Final = 0.5
"""After other searches, APGD goes on from the worst point known where a row has lost this share of its margin, and
climbs from random points, which all rows get, go on where their first steps have taken as much."""

PROBES: Final = 512
"""A random start is the worst of this many random points over the square of the number of features: of 128 in two
dimensions, where random points show much, of one from 17 on, where they show next to nothing."""

FLAT: Final = 2.0**-20
"""Gradients vanish where the linearised score changes by less than this share of the score over the adversary's reach:
float32 rounds as much away."""

QUERIES: Final = 10  # queries of the square attack for every step of the others: it needs values alone


@dataclass(frozen=True)
class Suite:
    """Which searches are made, and how long; `attack` describes the arguments."""

    methods: tuple[Method, ...]
    steps: int
    step_size: float | None
    restarts: int
    flat_only: bool  # "square" is for rows at which gradients vanish

    def searches(self, scores: Scores, exact: Scores, reach: float, stream: Stream) -> Iterator[tuple[str, Search]]:
        """Names and searches, in order; those for jumps and for certificates only where there are any."""
        smooth = [scores.smoothed(reach * share) for share in WINDOWS]
        jumps = smooth[0] is not scores
        for method in self.methods:
            if method == "pgd":
                yield method, partial(self._pgd, stream=stream)
            elif method == "frank_wolfe":
                yield method, lambda problem: frank_wolfe(problem, self.steps, TARGETS)
                if jumps:
                    eased = _with_scores(lambda problem: frank_wolfe(problem, self.steps, NEAREST), smooth[0])
                    yield f"{method}_smoothed", eased
            elif method == "certificate":
                if (formula := shallow(exact)) is not None:
                    yield method, partial(lowest_of_lines, formula=formula)
            elif method == "apgd":
                if jumps:
                    yield f"{method}_smoothed", _with_scores(self._from_worst, smooth[1])
                yield method, self._from_worst
            elif method == "apgd_targeted":
                yield method, self._targeted
            elif method == "apgd_dlr":
                for restart in range(self.restarts):
                    scored = smooth[1] if restart % 4 >= 2 else scores
                    draw = _with_scores(self._random_start(restart, stream), scored)
                    yield method, draw
            else:
                yield method, lambda problem: square(problem, QUERIES * self.steps, stream.child("square"))

    def _pgd(self, problem: AttackProblem, stream: Stream) -> Worst:
        search = PGD(self.steps, self.step_size, self.restarts)
        found = find_worst(problem.scores, problem.criterion, problem.threat, problem.centres, search, stream)
        return Worst(found.points, found.value)

    def _from_worst(self, problem: AttackProblem) -> Worst:
        return apgd(problem, problem.raised, problem.starts, self.steps, first=1.0)

    def _targeted(self, problem: AttackProblem) -> Worst:
        weights, constants = problem.directions(problem.scores.scores(problem.starts), NEAREST)
        worst = Worst(problem.starts, np.full(len(problem), -np.inf))
        for k in range(weights.shape[1]):
            rows = worst.open_rows(problem)
            if not rows.size:
                break
            part = problem.take(rows)

            def lead(some: AnyArray, rows: AnyArray = rows, k: int = k) -> Criterion:
                """The lead of one rival over the true class, or the error on one side."""
                own, constant = weights[rows[some], k], constants[rows[some], k]
                return Criterion(lambda scores: np.einsum("ij,ij->i", own, scores) + constant, lambda scores: own)

            found = apgd(part, lead, part.centres, self.steps)
            worst.add(rows, found.points, found.value)
        return worst

    def _random_start(self, restart: int, stream: Stream) -> Search:
        here = stream.child(f"restart {restart}")

        def search(problem: AttackProblem) -> Worst:
            heads = 1 if problem.adapter.classes is None else problem.scores.scores(problem.centres[:1]).shape[1]
            ratio = restart % 2 == 0 and heads > 1
            all_rows, start = np.arange(len(problem)), None
            movable = np.broadcast_to(getattr(problem.threat, "scale", 1.0), problem.centres.shape[1]) != 0.0
            for probe in range(max(1, PROBES // max(1, int(np.count_nonzero(movable))) ** 2)):
                drawn = problem.threat.draw(problem.centres, here.child(f"probe {probe}") if probe else here)
                if probe % 2:  # the worst points are often on the rim, where few random points are
                    drawn = problem.threat.project(2.0 * drawn - problem.centres, problem.centres)
                value = problem.criterion.value(problem.scores.scores(drawn))
                if start is None:
                    start = Worst(drawn, value)
                start.add(all_rows, drawn, value)
            assert start is not None  # there is one probe at least

            return apgd(problem, lambda rows: problem.raised(rows, ratio), start.points, self.steps)

        return search


def _with_scores(search: Search, scores: Scores) -> Search:
    return lambda problem: search(replace(problem, scores=scores))


def check_suite(method: Any, steps: int, step_size: float | None, restarts: int, scores: Scores) -> Suite:
    """The searches of `method`; "auto" takes those that change predictions no other changes."""
    steps, restarts = check_integer("steps", steps, 0), check_integer("restarts", restarts, 0)
    names: Sequence[Any] = (method,) if isinstance(method, str) else method
    if method == "auto":
        names = ["frank_wolfe", "certificate", "apgd", "apgd_dlr", "square"]
        if isinstance(scores, BlackBoxScores):  # a gradient costs as much as dozens of values
            names = ["frank_wolfe", "square", "apgd_dlr"]
    try:
        unknown = [name for name in names if name not in METHODS]
    except TypeError:
        unknown, names = [method], ()
    if unknown or not names:
        rule = f"must be 'auto', 'minimum_norm', one of {', '.join(map(repr, METHODS))}, or a sequence of these"
        wrong = unknown[0] if unknown else method
        raise invalid("method", rule, wrong, did_you_mean(wrong, ("auto", "minimum_norm", *METHODS)))
    if method != "auto" and "certificate" in names and shallow(scores) is None:
        rule = "can be 'certificate' for linear models and one hidden layer of relu neurons only"
        raise invalid("method", rule, method, "use 'auto', which leaves it out where there is none")
    if step_size is not None and "pgd" not in names:
        remedy = "pass method='pgd', or leave step_size out: the others choose their steps themselves"
        raise invalid("step_size", "can be given for method='pgd' only", step_size, remedy)
    PGD(steps, step_size, restarts)  # checks the step size
    return Suite(tuple(names), steps, step_size, restarts, method == "auto" and not isinstance(scores, BlackBoxScores))


def run_suite(
    adapter: ModelAdapter,
    scores: Scores,
    threat: Threat,
    centres: Float64Array,
    labels: AnyArray,
    targeted: bool,
    errs: Errs,
    suite: Suite,
    stream: Stream,
    report: Callable[[float], None],
) -> tuple[AnyArray, ...]:
    """Attack rows with centres (rows, d); `errs` finds which points, with these scores, of these rows are mistaken.

    Gives points (rows, d), scores there and at the centres, and the search that changed each prediction ("" for none).
    `report` gets the share of the searches that are over.
    """
    exact = adapter.scores
    clean = _values(exact, centres)
    all_rows = np.arange(len(centres))
    changed = errs(centres, clean, all_rows)
    found_by = np.where(changed, "clean", "").astype("U20")
    points, at_points = centres.copy(), clean.copy()
    # float32 where it resolves moves of a thousandth of every radius at every centre; not on the sphere.
    radii = np.asarray(threat.rho) * getattr(threat, "scale", 1.0)
    fits = (np.abs(centres) * 2.0**-14 <= radii) | (radii == 0.0)
    single: Any = centres if isinstance(threat, SliceCap) or not fits.all() else centres.astype(np.float32)
    if single is centres:
        scores = exact.near(float(np.max(threat.rho)))
    known = criterion(adapter, labels, targeted).value(clean)
    halfway = (1.0 - SPENT) * known
    none = np.full(len(single), -np.inf)
    problem = AttackProblem(adapter, scores, threat, single, labels, single.copy(), none, targeted)

    def settle(rows: AnyArray, moved: Float64Array, name: str) -> None:
        """Keep what is worse in exact arithmetic."""
        there = threat.take(rows).settle(centres[rows] + (moved - single[rows]).astype(np.float64), centres[rows])
        values = _values(exact, there)
        wrong = errs(there, values, rows)
        raised = criterion(adapter, labels[rows], targeted)
        worse = raised.value(values) > raised.value(at_points[rows])
        if adapter.classes is not None:
            worse = np.where(changed[rows], worse & wrong, worse | wrong)
            found_by[rows[wrong & ~changed[rows]]] = name
            changed[rows] |= wrong
        points[rows[worse]], at_points[rows[worse]] = there[worse], values[worse]

    radius = np.max(threat.rho)
    if suite.steps == 0 or radius == 0.0:
        return points, at_points, clean, found_by
    with np.errstate(over="ignore", invalid="ignore"):
        reach = threat.reach(centres.shape[1])
        searches = list(suite.searches(scores, exact, reach, stream))
        for index, (name, search) in enumerate(searches):
            report(index / len(searches))
            # The first search takes in the rows that are wrong as they are: they need margins as well.
            rows = np.flatnonzero(~changed) if problem.is_classifier and index else all_rows
            if index and name in ("apgd", "apgd_smoothed") and problem.is_classifier:
                rows = rows[known[rows] > halfway[rows]]
            if name == "square" and suite.flat_only:
                rows = rows[_flat(problem.take(rows), reach)]
            if not rows.size:
                continue
            worst = search(problem.take(rows))
            problem.floor[:] = halfway  # of all searches but the first
            better = worst.value > known[rows]
            problem.starts[rows[better]], known[rows[better]] = worst.points[better], worst.value[better]
            down = worst.value > 0.0
            if problem.is_classifier and down.any():
                settle(rows[down], worst.points[down], name)
    settle(all_rows, problem.starts, suite.methods[0])
    if "frank_wolfe" in suite.methods:  # one more step, in float64
        values, pull = exact.near(float(radius)).linearise(points)
        gradients = np.asarray(pull(problem.criterion.slope(values)), dtype=np.float64)
        settle(all_rows, threat.extreme(gradients, centres) - centres + single, "frank_wolfe")
    return points, at_points, clean, found_by


def _flat(problem: AttackProblem, reach: float) -> AnyArray:
    """Rows (a mask) at whose worst point known the gradient vanishes."""
    if not len(problem):
        return np.zeros(0, dtype=bool)
    values, pull = problem.scores.linearise(problem.starts)
    gradients = np.linalg.norm(pull(problem.criterion.slope(values)), axis=1)
    return np.asarray(gradients * reach <= FLAT * np.abs(values).max(axis=1))


def _values(scores: Scores, points: Float64Array) -> Float64Array:
    return np.asarray(scores.scores(points), dtype=np.float64)
