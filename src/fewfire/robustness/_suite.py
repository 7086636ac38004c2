"""A sequence of searches, each on the rows that the ones before have left standing, and who felled which row.

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

Searches run in float32 where that is precise enough. A row has fallen when the model's own prediction is wrong at a
point that lies in the threat exactly; both are decided in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, did_you_mean
from fewfire.robustness._apgd import apgd
from fewfire.robustness._black_box import BlackBoxScores
from fewfire.robustness._criteria import difference_of_logits, toward
from fewfire.robustness._frank_wolfe import frank_wolfe
from fewfire.robustness._lines import certifiable, lowest_of_lines
from fewfire.robustness._problem import AttackProblem, Worst
from fewfire.robustness._search import PGD, find_worst
from fewfire.robustness._square import square
from fewfire.robustness._threats import SliceCap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._criteria import Criterion
    from fewfire.robustness._score_function import Scores
    from fewfire.robustness._threats import Threat

    Search = Callable[[AttackProblem], Worst]

Method: TypeAlias = Literal["pgd", "frank_wolfe", "certificate", "apgd", "apgd_targeted", "apgd_dlr", "square"]
METHODS: Final = get_args(Method)

TARGETS: Final = 9
"""Rival classes that Frank–Wolfe steps try, those of the highest scores."""

NEAREST: Final = 3
"""Rival classes that dearer searches are spent on."""

WINDOWS: Final = (0.1, 0.03)
"""Jumps are smoothed over these shares of the adversary's reach, the wider first."""

SPENT: Final = 0.5
"""After other searches, APGD goes on from the worst point known where a row has lost this share of its margin, and
climbs from random points, which all rows get, go on where their first steps have taken as much."""

PROBES: Final = 512
"""A random start is the worst of this many random points over the square of the number of features: of 128 in two
dimensions, where random points say much, of one from 17 on, where they say next to nothing."""

FLAT: Final = 2.0**-20
"""Gradients vanish where the linearised score changes by less than this share of the score over the adversary's reach:
float32 rounds as much away."""

QUERIES: Final = 10
"""Queries of the square attack for every step of the others: it asks for values alone."""


@dataclass(frozen=True)
class Suite:
    """Which searches are made, and how long.

    Parameters
    ----------
    methods : tuple of str
        In this order.
    steps : int
        Gradients that a search takes from each start.
    step_size : float, optional
        Of "pgd" alone, in the units of ρ.
    restarts : int
        Random starts of those that have any.
    flat_only : bool
        Whether "square" is for rows at which gradients vanish.
    """

    methods: tuple[Method, ...]
    steps: int = 20
    step_size: float | None = None
    restarts: int = 2
    flat_only: bool = False

    def searches(self, scores: Scores, exact: Scores, reach: float, stream: Stream) -> Iterator[tuple[str, Search]]:
        """Names and searches, in order; those for jumps and for certificates only where there are any."""
        smooth = [scores.smoothed(reach * share) for share in WINDOWS]
        jumps = smooth[0] is not scores
        for method in self.methods:
            if method == "pgd":
                yield method, lambda problem: self._pgd(problem, stream)
            elif method == "frank_wolfe":
                yield method, lambda problem: frank_wolfe(problem, self.steps, TARGETS)
                if jumps:
                    eased = _with_scores(lambda problem: frank_wolfe(problem, self.steps, NEAREST), smooth[0])
                    yield f"{method}_smoothed", eased
            elif method == "certificate":
                if (networks := certifiable(exact)) is not None:
                    yield method, partial(lowest_of_lines, networks=networks)
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
        return apgd(problem, problem.criterion_of, problem.starts, self.steps, first=1.0)

    def _targeted(self, problem: AttackProblem) -> Worst:
        directions = problem.directions(problem.scores.scores(problem.starts), NEAREST)
        worst = Worst(problem.starts, np.full(len(problem), -np.inf))
        for k in range(len(directions)):
            rows = worst.standing(problem)
            if not rows.size:
                break
            part = problem.take(rows)

            def lead(some: AnyArray, rows: AnyArray = rows, k: int = k) -> Criterion:
                return toward(*directions.one(rows[some], np.full(len(some), k)))

            found = apgd(part, lead, part.centres, self.steps)
            worst.add(rows, found.points, found.value)
        return worst

    def _random_start(self, restart: int, stream: Stream) -> Search:
        here = stream.child(f"restart {restart}")

        def search(problem: AttackProblem) -> Worst:
            heads = 1 if problem.adapter.classes is None else problem.scores.scores(problem.centres[:1]).shape[1]
            ratio = restart % 2 == 0 and heads > 1
            everyone, start = np.arange(len(problem)), None
            for probe in range(max(1, PROBES // _movable(problem) ** 2)):
                drawn = problem.threat.draw(problem.centres, here.child(f"probe {probe}") if probe else here)
                if probe % 2:  # the worst points are often on the rim, where few random points are
                    drawn = problem.threat.project(2.0 * drawn - problem.centres, problem.centres)
                value = problem.criterion.value(problem.scores.scores(drawn))
                if start is None:
                    start = Worst(drawn, value)
                start.add(everyone, drawn, value)
            assert start is not None  # there is one probe at least
            return apgd(
                problem,
                lambda rows: difference_of_logits(problem.labels[rows], heads) if ratio else problem.criterion_of(rows),
                start.points,
                self.steps,
            )

        return search


def _movable(problem: AttackProblem) -> int:
    """Features that the adversary can move, at least 1."""
    columns = problem.centres.shape[1]
    return max(1, int(np.count_nonzero(np.broadcast_to(getattr(problem.threat, "scale", 1.0), columns))))


def _with_scores(search: Search, scores: Scores) -> Search:
    return lambda problem: search(replace(problem, scores=scores))


def check_suite(method: Any, steps: int, step_size: float | None, restarts: int, scores: Scores) -> Suite:
    """The searches asked for; "auto" takes those that felled rows no other did, random search where slopes are dear."""
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
        rule = f"must be 'auto', one of {', '.join(map(repr, METHODS))}, or a sequence of these"
        wrong = unknown[0] if unknown else method
        raise invalid("method", rule, wrong, did_you_mean(wrong, ("auto", *METHODS)))
    if method != "auto" and "certificate" in names and certifiable(scores) is None:
        rule = "can be 'certificate' for linear models and one hidden layer of relu neurons only"
        raise invalid("method", rule, method, "use 'auto', which leaves it out where there is none")
    if step_size is not None and "pgd" not in names:
        remedy = "pass method='pgd', or leave step_size out: the others choose their steps themselves"
        raise invalid("step_size", "can be given for method='pgd' only", step_size, remedy)
    PGD(steps, step_size, restarts)  # checks the step size
    return Suite(tuple(names), steps, step_size, restarts, method == "auto" and not isinstance(scores, BlackBoxScores))


@dataclass(frozen=True, eq=False)
class Findings:
    """What a suite found: points (rows, d), scores there and at the centres, who felled each row ("" for nobody)."""

    points: Float64Array
    scores: Float64Array
    clean_scores: Float64Array
    found_by: AnyArray


def run_suite(
    adapter: ModelAdapter,
    scores: Scores,
    threat: Threat,
    centres: Float64Array,
    labels: AnyArray,
    errs: Callable[[Float64Array, Float64Array, AnyArray], AnyArray],
    suite: Suite,
    stream: Stream,
    tell: Callable[[float], None] = lambda share: None,
) -> Findings:
    """Attack rows with centres (rows, d); `errs` says which points, with these scores, of these rows are mistaken.

    `tell` hears the share of the searches that are over.
    """
    exact = adapter.scores
    clean = _values(exact, centres)
    everyone = np.arange(len(centres))
    fallen = errs(centres, clean, everyone)
    found_by = np.where(fallen, "clean", "").astype("U20")
    points, at_points = centres.copy(), clean.copy()
    single: Any = centres.astype(np.float32) if _fits_single(centres, threat) else centres
    if single is centres:
        scores = exact.near(float(np.max(threat.rho)))
    known = adapter.criterion(labels).value(clean)
    halfway = (1.0 - SPENT) * known
    problem = AttackProblem(adapter, scores, threat, single, labels, single.copy(), np.full(len(single), -np.inf))

    def settle(rows: AnyArray, moved: Float64Array, name: str) -> None:
        """Take over what is worse in exact arithmetic."""
        there = threat.take(rows).settle(centres[rows] + (moved - single[rows]).astype(np.float64), centres[rows])
        values = _values(exact, there)
        wrong = errs(there, values, rows)
        worse = adapter.criterion(labels[rows]).value(values) > adapter.criterion(labels[rows]).value(at_points[rows])
        if adapter.classes is not None:
            worse = np.where(fallen[rows], worse & wrong, worse | wrong)
            found_by[rows[wrong & ~fallen[rows]]] = name
            fallen[rows] |= wrong
        points[rows[worse]], at_points[rows[worse]] = there[worse], values[worse]

    radius = np.max(threat.rho)
    if suite.steps == 0 or radius == 0.0:
        return Findings(points, at_points, clean, found_by)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = threat.reach(centres.shape[1])
        searches = list(suite.searches(scores, exact, reach, stream))
        for place, (name, search) in enumerate(searches):
            tell(place / len(searches))
            # The first search takes in the rows that are wrong as they are: their margins are asked for as well.
            rows = np.flatnonzero(~fallen) if problem.can_fall and place else everyone
            if place and name in ("apgd", "apgd_smoothed") and problem.can_fall:
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
            if problem.can_fall and down.any():
                settle(rows[down], worst.points[down], name)
    settle(everyone, problem.starts, suite.methods[0])
    if "frank_wolfe" in suite.methods:  # one more step, in float64
        values, pull = exact.near(float(radius)).linearise(points)
        gradients = np.asarray(pull(problem.criterion.slope(values)), dtype=np.float64)
        settle(everyone, threat.extreme(gradients, centres) - centres + single, "frank_wolfe")
    return Findings(points, at_points, clean, found_by)


def _flat(problem: AttackProblem, reach: float) -> AnyArray:
    """Rows (a mask) at whose worst point known the gradient vanishes."""
    if not len(problem):
        return np.zeros(0, dtype=bool)
    values, pull = problem.scores.linearise(problem.starts)
    gradients = np.linalg.norm(pull(problem.criterion.slope(values)), axis=1)
    return np.asarray(gradients * reach <= FLAT * np.abs(values).max(axis=1))


def _values(scores: Scores, points: Float64Array) -> Float64Array:
    return np.asarray(scores.scores(points), dtype=np.float64)


def _fits_single(centres: Float64Array, threat: Threat) -> bool:
    """Whether float32 can tell moves of a thousandth of every radius apart at every centre; not on the sphere."""
    if isinstance(threat, SliceCap):
        return False
    radii = np.asarray(threat.rho) * getattr(threat, "scale", 1.0)
    return bool(np.all((np.abs(centres) * 2.0**-14 <= radii) | (radii == 0.0)))
