"""The law of data: how many examples half of the runs need, by n, k, width and start, fitted to a store's frontiers.

Its form is that of pareto's Theorems 4 and 5. There width and samples are powers of n with constants that depend on k
alone, tied by the sparsity s: m = n²(s/k)^(k−1) at width (n/s)^k, or m = (n/k)^(k−s−1) at width (n/k)^s. With s
eliminated, samples are a product of powers of n and of the width, whose exponents depend on k:

    log m* = a_k + b_k·log n + c_k·log width + (d + e·log width, per start) + f·log n·log width + g·log² width + u.

f and g let the exponent of the width change, which the theorems' do not: measured frontiers level off in wide networks,
later at larger n. Terms that do not vary in the store are left out. u is what the form leaves open about a frontier:
normal, its variance estimated by restricted maximum likelihood given the known errors of the frontiers (a
random-effects regression), and a part of every predictive interval.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from math import exp, inf, log
from typing import Any

import numpy as np

from fewfire._errors import FileFormatError, invalid
from fewfire._types import Float64Array
from fewfire._validate import check_choice, check_integer, check_number, counted
from fewfire.sweeps.frontiers import estimate_frontier
from fewfire.sweeps.laws._cells import ParityCell, parity_cells, start_of
from fewfire.sweeps.store._protocol import Store

LEVEL = 0.9  # of predictive intervals, unless another is asked for
FEWEST_SPARE = 3  # frontiers beyond the number of terms that a fit needs at least


@dataclass(frozen=True)
class FrontierPoint:
    """One measured frontier: log m* with its standard error, and where it was measured."""

    n: int
    k: int
    start: str
    width: int
    log_samples: float
    error: float
    runs: int

    @property
    def samples(self) -> float:
        """m*, at which half of the runs succeed."""
        return exp(self.log_samples)


@dataclass(frozen=True)
class LawPrediction:
    """m* with its predictive interval; `outside` names what lies beyond the values that were fitted."""

    samples: float
    low: float
    high: float
    level: float
    outside: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.samples:,.0f} examples, {self.level:.0%} interval {self.low:,.0f} to {self.high:,.0f}"
        return text + (f"; extrapolated: {', '.join(self.outside)}" if self.outside else "")

    __repr__ = __str__


@dataclass(frozen=True)
class HeldOutFrontier:
    """What a law fitted without some frontiers predicts for one of them."""

    left_out: str
    point: FrontierPoint
    prediction: LawPrediction
    inside: bool


@dataclass(frozen=True, eq=False)
class FrontierLaw:
    """A fitted law, made by `fit_law`.

    Parameters
    ----------
    terms : tuple of str
    coefficients : array of shape (terms,)
    covariance : array of shape (terms, terms)
    spread : float
        The standard deviation of u.
    steps : int or None
        Within which runs had to succeed; None: within those that each had.
    points : tuple of FrontierPoint
        What it was fitted to.
    unlocated : int
        Lines of the store whose frontier lies beyond their values, or is open on one side: they say nothing here.
    """

    terms: tuple[str, ...]
    coefficients: Float64Array
    covariance: Float64Array
    spread: float
    steps: int | None
    points: tuple[FrontierPoint, ...]
    unlocated: int

    @property
    def starts(self) -> tuple[str, ...]:
        """The starts that were fitted."""
        return tuple(sorted({point.start for point in self.points}))

    @property
    def residuals(self) -> Float64Array:
        """log of measured over fitted, one per frontier: shape (points,)."""
        fitted = [_row(self.terms, point) @ self.coefficients for point in self.points]
        return np.array([point.log_samples for point in self.points]) - np.array(fitted)

    def intervals(self, level: float = LEVEL) -> Float64Array:
        """Confidence intervals of the coefficients: shape (2, terms)."""
        reach = self._quantile(level) * np.sqrt(np.diag(self.covariance))
        return np.stack([self.coefficients - reach, self.coefficients + reach])

    def outside(self, n: int, k: int, width: int, init: str) -> list[str]:
        """What lies beyond what was fitted, in words."""
        found = []
        for name, value in (("n", n), ("width", width)):
            seen = [getattr(point, name) for point in self.points]
            if not min(seen) <= value <= max(seen):
                found.append(f"{name} = {value:,} (fitted: {min(seen):,} to {max(seen):,})")
        bits, starts = sorted({point.k for point in self.points}), self.starts
        if k not in bits:
            found.append(f"k = {k} (fitted: {', '.join(map(str, bits))})")
        if start_of(init) not in starts:
            found.append(f"start {start_of(init)} (fitted: {', '.join(starts)})")
        return found

    def predict(
        self, n: int, k: int, width: int, init: str = "dense", *, level: float = LEVEL, extrapolate: bool = False
    ) -> LawPrediction:
        """m* of a frontier that was not measured, with an interval that holds it with probability `level`.

        Parameters
        ----------
        n, k, width : int
        init : str
            One of `starts`; "sparse" is "sparse(2)".
        level : float
        extrapolate : bool
            Whether n and width may lie beyond what was fitted, where the interval assumes that the powers go on.
        """
        n = check_integer("n", n, 2)
        k = check_integer("k", k, 1, n, "a parity has at most n bits")
        width = check_integer("width", width, 1)
        check_number("level", level, 0.5, 0.999)
        beyond = self.outside(n, k, width, init)
        if unknown := [one for one in beyond if not one.startswith(("n =", "width ="))]:
            raise invalid(
                "law", "must have been fitted for what is asked", "; ".join(unknown), "fit a store that has it"
            )
        if beyond and not extrapolate:
            remedy = "fit a store that reaches there, or ask beyond with extrapolate=True"
            raise invalid("n and width", "must lie inside what was fitted", "; ".join(beyond), remedy)
        return self._predict(FrontierPoint(n, k, start_of(init), width, 0.0, 0.0, 0), level)

    def _predict(self, point: FrontierPoint, level: float) -> LawPrediction:
        row = _row(self.terms, point)
        middle, wide = float(row @ self.coefficients), self.spread**2 + float(row @ self.covariance @ row)
        reach = self._quantile(level) * np.sqrt(wide + point.error**2)
        beyond = tuple(self.outside(point.n, point.k, point.width, point.start))
        return LawPrediction(exp(middle), exp(middle - reach), exp(middle + reach), level, beyond)

    def _quantile(self, level: float) -> float:
        from scipy.special import stdtrit  # late: the workers of a sweep load this package and need no SciPy

        return float(stdtrit(len(self.points) - len(self.terms), (1 + level) / 2))

    def held_out(self, by: str = "frontier", level: float = LEVEL) -> list[HeldOutFrontier]:
        """Every frontier with the prediction of a law fitted without it, or without all that share its n or width.

        The interval here has the frontier's own error of measurement added, since it predicts a measured one.

        Parameters
        ----------
        by : "frontier", "n" or "width"
        level : float
        """
        check_choice("by", by, ("frontier", "n", "width"))
        found = []
        for name in dict.fromkeys(_part(point, by) for point in self.points):
            rest = [point for point in self.points if _part(point, by) != name]
            try:
                law = _fit(rest, self.steps, 0)
            except ValueError:  # what is left does not decide the terms
                continue
            for point in self.points:
                beyond = law.outside(point.n, point.k, point.width, point.start)
                if _part(point, by) == name and not {"k", "start"} & {text.split()[0] for text in beyond}:
                    made = law._predict(point, level)
                    found.append(HeldOutFrontier(name, point, made, made.low <= point.samples <= made.high))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `FrontierLaw.from_dict` reads it."""
        return {
            "law": "m*(n, k, width, start)",
            "terms": list(self.terms),
            "coefficients": self.coefficients.tolist(),
            "covariance": self.covariance.tolist(),
            "spread": self.spread,
            "steps": self.steps,
            "unlocated": self.unlocated,
            "points": [asdict(point) for point in self.points],
        }

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> FrontierLaw:
        """The law that `to_dict` wrote."""
        try:
            points = tuple(FrontierPoint(**point) for point in table["points"])
            coefficients, covariance = (
                np.array(table[key], dtype=np.float64) for key in ("coefficients", "covariance")
            )
            terms = tuple(table["terms"])
            if coefficients.shape != (len(terms),) or covariance.shape != (len(terms), len(terms)):
                raise ValueError(f"{len(terms)} terms, {coefficients.shape} coefficients")
            return cls(terms, coefficients, covariance, table["spread"], table["steps"], points, table["unlocated"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"this is no law: {type(error).__name__}: {error}.") from None


def fit_law(
    source: Store | Iterable[ParityCell], *, steps: int | None = None, success_error: float | None = None
) -> FrontierLaw:
    """The law of a store's frontiers, or of cells.

    Parameters
    ----------
    source : Store, or ParityCells
    steps : int, optional
        Count successes within so many steps, and leave out lines that were not looked at then; by default each line is
        taken at its end.
    success_error : float, optional
        As in `parity_cells`.

    Raises
    ------
    InvalidArgument
        When too few frontiers could be located for the terms that vary.
    """
    cells = list(source) if not hasattr(source, "settings") else parity_cells(source, success_error)  # type: ignore[arg-type]
    if not cells:
        rule = "must hold runs of noiseless parities with one phase of training"
        raise invalid("store", rule, "a store without any", "look for another problem's frontier with [search]")
    points, unlocated = frontier_points(cells, steps)
    if steps is not None and not points and not unlocated:
        looked = sorted({t for cell in cells for t in cell.steps})
        rule = "must be a number of steps after which runs were evaluated"
        raise invalid("steps", rule, steps, f"pass one of {looked}")
    return _fit(points, steps, unlocated)


@cache
def shipped_law() -> FrontierLaw:
    """The law of the shipped sweeps: `fit_law` of their cells from width 10 on.

    Examples
    --------
    >>> from fewfire.sweeps.laws import shipped_law
    >>> prediction = shipped_law().predict(n=50, k=3, width=300, init="sparse")
    >>> prediction.low < prediction.samples < prediction.high
    True
    """
    return FrontierLaw.from_dict(json.loads((files(__package__) / "frontier_law.json").read_text(encoding="utf-8")))


def frontier_points(cells: Iterable[ParityCell], steps: int | None) -> tuple[list[FrontierPoint], int]:
    """The frontiers of the lines that were looked at after so many steps, and how many of them could not be located.

    Without a number of steps, each line is taken after the most that all its cells were looked at.

    Success may fall again where there are many examples; a frontier is where it first rises, so cells beyond the last
    of the most successful ones are left out.
    """
    from scipy.special import ndtri

    lines: dict[tuple[int, int, str, int], list[ParityCell]] = {}
    for cell in cells:
        if cell.samples is not None and (steps is None or steps in cell.steps):
            lines.setdefault(cell.line, []).append(cell)
    points, unlocated = [], 0
    for (n, k, start, width), line in sorted(lines.items()):
        time = steps or max(set.intersection(*(set(cell.steps) for cell in line)), default=0)
        if not time:
            line_of = f"({n}, {k}), width {width}, {start}"
            rule = f"must be given: cells of {line_of} were evaluated after no common number of steps"
            raise invalid("steps", rule, None, f"pass one of {sorted({t for cell in line for t in cell.steps})}")
        counts = sorted((cell.samples or 0, cell.at(time) or 0, cell.runs) for cell in line)
        share = [won / runs for _, won, runs in counts]
        counts = counts[: len(share) - share[::-1].index(max(share))]
        samples, won, runs = (np.array(part) for part in zip(*counts, strict=True))
        found = estimate_frontier(samples, won, runs, precision=0.1)
        if max(share) < 0.5 or found.factor == inf:
            unlocated += 1
            continue
        error = log(found.factor) / (2 * ndtri((1 + found.level) / 2))
        points.append(FrontierPoint(n, k, start, width, log(found.value), float(error), int(runs.sum())))
    return points, unlocated


def _fit(points: Sequence[FrontierPoint], steps: int | None, unlocated: int) -> FrontierLaw:
    from scipy.optimize import minimize_scalar

    terms = _terms(points)
    if len(points) < len(terms) + FEWEST_SPARE:
        fewest = max(len(terms), 1) + FEWEST_SPARE
        need = f"must have at least {fewest} frontiers" + (f" for the {len(terms)} terms that vary" if terms else "")
        got = f"a store with {counted(len(points), 'frontier')}, and {unlocated} outside the samples that were run"
        raise invalid("store", need, got, "add widths, or samples around the frontiers")
    design = np.array([_row(terms, point) for point in points])
    values, errors = np.array([point.log_samples for point in points]), np.array([point.error for point in points])

    def solve(variance: float) -> tuple[Float64Array, Float64Array, float]:
        weights = 1 / (variance + errors**2)
        information = design.T @ (design * weights[:, None])
        covariance = np.linalg.inv(information)
        solution = covariance @ (design.T @ (weights * values))
        left = values - design @ solution
        loss = (weights * left**2).sum() - np.log(weights).sum() + np.linalg.slogdet(information)[1]
        return np.asarray(solution), np.asarray(covariance, dtype=np.float64), float(loss)

    found = minimize_scalar(lambda spread: solve(spread**2)[2], bounds=(0.0, 2.0), method="bounded")
    coefficients, covariance, _ = solve(float(found.x) ** 2)
    return FrontierLaw(terms, coefficients, covariance, float(found.x), steps, tuple(points), unlocated)


_NUMBERS: dict[str, Callable[[FrontierPoint], float]] = {
    "1": lambda point: 1.0,
    "log n": lambda point: log(point.n),
    "log width": lambda point: log(point.width),
    "log n·log width": lambda point: log(point.n) * log(point.width),
    "log² width": lambda point: log(point.width) ** 2,
}


def _terms(points: Sequence[FrontierPoint]) -> tuple[str, ...]:
    """The terms of the form that these points distinguish, in order."""
    bits, starts = (sorted({getattr(point, name) for point in points}) for name in ("k", "start"))
    groups = [f"k = {k}" for k in bits[1:]] + starts[1:]
    if not points:
        return ()
    names = [*_NUMBERS, *groups, *(f"{name}, {group}" for name in ("log n", "log width") for group in groups)]
    kept: list[str] = []
    for name in names:
        if name in (f"log n, {start}" for start in starts):
            continue  # the theorems' power of n is the same at every start of one kind
        trial = np.array([_row((*kept, name), point) for point in points]).reshape(len(points), -1)
        scaled = trial / np.maximum(np.abs(trial).max(axis=0, initial=0.0), 1e-12)
        if np.linalg.matrix_rank(scaled, tol=1e-6) == len(kept) + 1:
            kept.append(name)
    return tuple(kept)


def _row(terms: Sequence[str], point: FrontierPoint) -> Float64Array:
    """The values of the terms: those of a group, such as "log n, k = 3", are 0 outside it."""
    row = []
    for term in terms:
        name, _, group = term.partition(", ")
        if name not in _NUMBERS:
            name, group = "1", name
        row.append(_NUMBERS[name](point) if group in ("", f"k = {point.k}", point.start) else 0.0)
    return np.array(row, dtype=np.float64)


def _part(point: FrontierPoint, by: str) -> str:
    if by == "frontier":
        return f"({point.n}, {point.k}), width {point.width}, {point.start}"
    return f"{by} = {getattr(point, by)}"
