"""The probability of success of practical SGD on a parity: enough data, times enough width, times enough steps.

For one k and one start, with L = log(n/30) and R = log(width/30), the share of runs that succeed within T steps is

    Φ(x/σ) · (1 − 2^−(width/r*)^γ) · Φ(log(T/T*)/ς),    x = log(m/m*),

that is: the training set is large enough for these weights (m*, pareto's frontier of width and data); one of the
neurons finds the parity, each with the same probability (r*, pareto's luck that width buys); and training is long
enough (T*, which grows as x comes near 0). Training sets of one size differ by σ in x, so near the frontier runs also
differ in time by as much as T* does within σ: this is added to ς. `fresh` goes from 0 to 1 where examples hardly repeat
any more. With weight decay they then teach more slowly than a small set that does, and at large n only wide networks
keep going until they have learned, by a second lottery of the same form: this is why success is not monotone in the
samples (pareto, C.1, finding 4). log m*, log r*, log T* and the others are linear in the features of `PRIORS`.

No cell follows the law exactly: each has a log T* of its own, and a log m* and log r* that are better or worse
together, normal around those of the law with standard deviations τ. Without them a fit takes the misses of cells for
differences between runs, and is too flat in the steps. Fitted by maximum likelihood to counts by time, the shifts of
cells integrated out by quadrature, with weak normal priors that keep what a k was not swept for near a usual value; τ
is then scaled by cells at other n (`SuccessLaw.spread`). A prediction is one for a cell that was not seen: laws drawn
from the posterior (taken as normal), each with shifts of its own, and runs that succeed at random.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray, Float64Array
    from fewfire.sweeps.laws._cells import ParityCell

PRIORS: dict[str, dict[str, tuple[float, float]]] = {
    "data": {"1": (5.5, 9.0), "L": (1.5, 1.5), "L²": (0.0, 0.3), "R": (-0.15, 0.5), "R²": (0.0, 0.1), "RL": (0.0, 0.3)},
    "log σ": {"1": (-1.2, 1.0), "R": (-0.1, 0.3), "L": (0.0, 0.5)},
    "width": {"1": (1.4, 1.5), "L": (1.0, 2.0)},
    "log γ": {"1": (0.0, 0.7)},
    "fresh width": {"1": (0.0, 2.0), "L": (3.0, 2.0)},
    "log fresh γ": {"1": (0.0, 0.7)},
    "steps": {"1": (7.0, 9.0), "L": (1.0, 2.0), "L²": (0.0, 0.3), "R": (-0.2, 0.5), "R²": (0.0, 0.1), "RL": (0.0, 0.3)},
    "fresh steps": {"1": (0.0, 1.0), "L": (0.0, 1.0), "R": (0.0, 0.3)},
    "slow": {"1": (0.0, 1.5)},
    "log slow rate": {"1": (0.0, 0.7), "R": (0.0, 0.2)},
    "log ς": {"1": (-0.7, 1.0), "R": (0.0, 0.2), "L": (0.0, 0.3)},
    "fresh log ς": {"1": (0.0, 0.5)},
    "fresh": {"1": (10.0, 1.5), "L": (1.5, 1.0), "R": (0.0, 0.3)},
    "log τ data": {"1": (-2.0, 0.7)},
    "log τ steps": {"1": (-1.6, 0.7), "R": (0.0, 0.2), "L": (0.0, 0.5)},
    "log τ width": {"1": (-1.2, 0.7), "L": (0.0, 0.5)},
}
"""Every quantity of the law by its features, with mean and standard deviation of the prior of each coefficient."""

NAMES = tuple(name if feature == "1" else f"{name}·{feature}" for name, terms in PRIORS.items() for feature in terms)

MOST_SAMPLES = 3e6  # online is taken as so many examples: no run of the sweeps sees more than that
LAPSE = 0.004  # share of runs whose outcome says nothing: keeps one odd run from deciding a fit
SHARPEST = 0.06  # the smallest σ: how unequal training sets of one size are, whatever the width
DRAWS = 1000  # laws drawn from the posterior for a prediction
MOST_RUNS = 1000
"""The most runs that an interval is for: the noise of more is small compared to the differences between cells."""

NODES = (9, 5)  # points of Gauss and Hermite for the shifts of a cell in steps, and in data and width


@dataclass(frozen=True)
class Range:
    """What the cells of one n reach."""

    n: int
    width: tuple[int, int]
    samples: tuple[int, float]
    steps: tuple[int, int]


@dataclass(frozen=True, eq=False)
class SuccessLaw:
    """The fitted probability of success for one k and one start, with the ranges of its cells by n."""

    k: int
    start: str
    parameters: Float64Array  # as `NAMES` has them
    factor: Float64Array  # a square root of their covariance
    ranges: tuple[Range, ...]

    def draws(self, n: int, width: int, samples: int | None, steps: int) -> Float64Array:
        """Probabilities that a run succeeds, one per drawn law and cell, shape (draws,)."""
        laws, shifts = self._drawn
        cell_features = _CellFeatures(np.array([float(n)]), np.array([float(width)]), np.array([_size(samples)]))
        values = {name: laws[:, columns] @ cell_features.features[name][0] for name, columns in _columns().items()}
        values = {name: value[:, None] for name, value in values.items()}
        return cell_features.probabilities(values, shifts, np.zeros(1, dtype=np.intp), np.array([float(steps)]))[:, 0]

    def probability(self, n: int, width: int, samples: int | None, steps: int) -> float:
        """The probability that a run succeeds."""
        return float(self.draws(n, width, samples, steps).mean())

    @cached_property
    def _drawn(self) -> tuple[Float64Array, Float64Array]:
        """Laws, shape (draws, parameters), and shifts of a cell, shape (2, draws, 1)."""
        size = len(self.parameters)
        normal = Stream(0, "laws/drawn").normal((DRAWS, size + len(NODES)))
        return self.parameters + normal[:, :size] @ self.factor.T, normal[:, size:].T[:, :, None]

    def outside(self, n: int, width: int, samples: int | None, steps: int) -> str:
        """What lies beyond the calibrated range, in words; empty inside it.

        Fewer examples or steps than were tried are inside: success can only be rarer there, and is rare already.
        """
        below = [one for one in self.ranges if one.n <= n]
        above = [one for one in self.ranges if one.n >= n]
        if not below or not above:
            return f"n = {n} (calibrated: {self.ranges[0].n} to {self.ranges[-1].n})"
        around = (below[-1], above[0])
        widths = max(one.width[0] for one in around), min(one.width[1] for one in around)
        if not widths[0] <= width <= widths[1]:
            return f"width {width:,} (calibrated at this n: {widths[0]:,} to {widths[1]:,})"
        most = min(one.samples[1] for one in around)
        if _size(samples) > most:
            size = "online" if samples is None else f"{samples:,} examples"
            return f"{size} (calibrated at this n: up to {most:,.0f})"
        longest = min(one.steps[1] for one in around)
        return f"{steps:,} steps (calibrated at this n: up to {longest:,})" if steps > longest else ""

    def spread(self, cells: Sequence[ParityCell]) -> SuccessLaw:
        """This law with the shifts of cells, τ, scaled so that cells which it was not fitted to are likeliest.

        A fit bends to its own cells, so only others say how far a new one lies from it.
        """
        from scipy.optimize import minimize_scalar
        from scipy.stats import binom

        shifts = np.array([float(name.startswith("log τ") and "·" not in name) for name in NAMES])

        def scaled(by: float) -> SuccessLaw:
            return replace(self, parameters=self.parameters + by * shifts)

        def loss(by: float) -> float:
            law = scaled(by)
            drawn = [law.draws(cell.n, cell.width, cell.samples, cell.steps[-1]) for cell in cells]
            seen = [np.mean(binom.pmf(c.successes[-1], c.runs, d)) for c, d in zip(cells, drawn, strict=True)]
            return -float(np.log(seen).sum())

        return scaled(minimize_scalar(loss, bounds=(-1.5, 1.5), method="bounded", options={"xatol": 0.02}).x)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        ranges = [
            {"n": r.n, "width": r.width, "samples": [low, None if np.isinf(most) else int(most)], "steps": r.steps}
            for r in self.ranges
            for low, most in [r.samples]
        ]
        return {
            "k": self.k,
            "start": self.start,
            "parameters": {name: float(f"{value:.5g}") for name, value in zip(NAMES, self.parameters, strict=True)},
            "factor": [[float(f"{value:.4g}") for value in row[: at + 1]] for at, row in enumerate(self.factor)],
            "ranges": ranges,
        }

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> SuccessLaw:
        """The law that `to_dict` wrote."""
        ranges = tuple(
            Range(r["n"], tuple(r["width"]), (r["samples"][0], r["samples"][1] or np.inf), tuple(r["steps"]))
            for r in table["ranges"]
        )
        parameters = np.array([table["parameters"][name] for name in NAMES])
        factor = np.zeros((len(parameters), len(parameters)))
        for at, row in enumerate(table["factor"]):
            factor[at, : at + 1] = row
        return cls(table["k"], table["start"], parameters, factor, ranges)


def check_runs(runs: int) -> int:
    """A number of runs that an interval can be for."""
    return check_integer("runs", runs, 1, MOST_RUNS, f"the interval of {MOST_RUNS} is hardly wider than that of more")


def predicted_shares(probabilities: Float64Array, runs: int, level: float = 0.9) -> tuple[float, float]:
    """The narrowest range of shares of runs that holds the outcome with at least this probability.

    Each of the `probabilities` (draws,) of success is as likely as the others to be that of the runs.
    """
    from scipy.special import bdtr

    runs = check_runs(runs)
    below = np.concatenate([[0.0], bdtr(np.arange(runs + 1.0)[:, None], runs, probabilities).mean(axis=1)])
    low = np.flatnonzero(below[-1] - below[:-1] >= level)
    high = np.searchsorted(below, below[low] + level) - 1
    best = np.lexsort((below[low] - below[high + 1], high - low))[0]  # of equally wide ones that which holds most
    return float(low[best] / runs), float(high[best] / runs)


def _size(samples: int | None) -> float:
    return np.inf if samples is None else float(samples)


@cache
def shipped_success_laws() -> dict[tuple[int, str], SuccessLaw]:
    """The laws fitted to the shipped cells, by k and start."""
    table = json.loads((files(__package__) / "success_laws.json").read_text(encoding="utf-8"))
    laws = [SuccessLaw.from_dict(one) for one in table]
    return {(law.k, law.start): law for law in laws}


def fit_success_law(cells: Sequence[ParityCell]) -> SuccessLaw:
    """The law of cells that share k and start."""
    from scipy.optimize import minimize

    kinds = {(cell.k, cell.start) for cell in cells}
    if len(kinds) != 1:
        raise invalid("cells", "must share k and start", sorted(kinds), "fit each kind by itself")
    ((k, start),) = kinds
    counts = _Counts(cells)
    means, spreads = np.array([prior for terms in PRIORS.values() for prior in terms.values()]).T
    scales = np.minimum(spreads, 0.1)
    located = [np.log(cell.samples) for cell in cells if cell.samples and 0.2 < cell.successes[-1] / cell.runs < 0.8]
    found = means.copy()
    found[0] = float(np.median(located)) if located else found[0]
    for nodes in ((1, 1), NODES):  # first as if cells followed the law, which is quick and comes near

        def loss(moved: Float64Array, at: Float64Array = found, nodes: tuple[int, ...] = nodes) -> Any:
            each, slopes = counts.likelihood(at + scales * moved, nodes)
            off = (at + scales * moved - means) / spreads
            return 0.5 * off @ off - each.sum(), scales * (off / spreads - slopes.sum(axis=0))

        moved = minimize(loss, np.zeros_like(found), jac=True, method="BFGS", options={"maxiter": 400, "gtol": 0.05}).x
        found = found + scales * moved
    # The information as products of slopes, which unlike second derivatives is never negative in a flat direction.
    slopes = scales * counts.likelihood(found, NODES)[1]
    covariance = np.linalg.inv(slopes.T @ slopes + np.diag((scales / spreads) ** 2))
    factor = scales[:, None] * np.linalg.cholesky(covariance)
    return SuccessLaw(k, start, found, factor, _ranges(cells))


def _ranges(cells: Sequence[ParityCell]) -> tuple[Range, ...]:
    found = []
    for n in sorted({cell.n for cell in cells}):
        here = [cell for cell in cells if cell.n == n]
        widths = [cell.width for cell in here]
        samples = [_size(cell.samples) for cell in here]
        steps = [t for cell in here for t in cell.steps]
        sizes = (int(min(samples)), float(max(samples)))
        found.append(Range(n, (min(widths), max(widths)), sizes, (min(steps), max(steps))))
    return tuple(found)


@cache
def _columns() -> dict[str, slice]:
    """Where the coefficients of each quantity are among the parameters."""
    found, start = {}, 0
    for name, terms in PRIORS.items():
        found[name] = slice(start, start + len(terms))
        start += len(terms)
    return found


class _CellFeatures:
    """The features of every quantity of cells, shape (cells, features)."""

    def __init__(self, n: Float64Array, width: Float64Array, samples: Float64Array) -> None:
        L, R = np.log(n / 30), np.log(width / 30)
        known = {"1": np.ones_like(L), "L": L, "L²": L**2, "R": R, "R²": R**2, "RL": R * L}
        self.features = {name: np.stack([known[one] for one in terms], axis=1) for name, terms in PRIORS.items()}
        self.log_width, self.log_samples = np.log(width), np.log(np.minimum(samples, MOST_SAMPLES))
        self.online = np.isinf(samples)

    def values(self, parameters: Float64Array) -> dict[str, Float64Array]:
        """Every quantity of the law, shape (cells,)."""
        return {name: self.features[name] @ parameters[columns] for name, columns in _columns().items()}

    def probabilities(
        self, values: dict[str, Float64Array], shifts: Float64Array, row: AnyArray, steps: Float64Array
    ) -> Float64Array:
        """The probability of success of cells `row` (points,) after so many `steps`: shape (draws, points).

        `values` have the shape (cells,) or (draws, cells). `shifts` (2, draws, 1) are those of a cell in steps, and in
        data and width, by their standard deviations.
        """
        from scipy.special import expit, ndtr  # late: the workers of a sweep load this package and need no SciPy

        v, (late, good) = values, shifts
        x = np.where(self.online, 50.0, self.log_samples - v["data"]) + _exp(v["log τ data"]) * good
        spread = SHARPEST + _exp(v["log σ"])
        fresh = expit(2 * (self.log_samples - v["fresh"]))
        width = self.log_width + _exp(v["log τ width"]) * good
        finds = _lottery(v["log γ"], width - v["width"])
        holds = _lottery(v["log fresh γ"], width - v["fresh width"])
        ever = ndtr(x / spread) * finds * (1 - fresh * (1 - holds))
        rate = _exp(v["log slow rate"])
        slow = v["slow"] - rate * x
        middle = v["steps"] + fresh * v["fresh steps"] + np.logaddexp(0.0, slow) + _exp(v["log τ steps"]) * late
        turn = np.hypot(_exp(v["log ς"] + fresh * v["fresh log ς"]), rate * expit(slow) * spread)
        by_then = ndtr((np.log(steps) - middle[:, row]) / turn[:, row])
        return np.asarray(LAPSE / 2 + (1 - LAPSE) * ever[:, row] * by_then)


def _exp(value: Float64Array) -> Float64Array:
    return np.asarray(np.exp(np.clip(value, -30, 30)))


def _lottery(log_power: Float64Array, log_width: Float64Array) -> Float64Array:
    """1 − 2^−width^γ: the probability that some neuron wins, one half at width 1."""
    return np.asarray(1 - np.exp2(-np.exp(np.clip(_exp(log_power) * log_width, -30, 6))))


class _Counts:
    """Cells as arrays: successes between one number of steps and the next."""

    def __init__(self, cells: Sequence[ParityCell]) -> None:
        n, width, samples = (
            np.array([float(one) for one in column])
            for column in zip(*((cell.n, cell.width, _size(cell.samples)) for cell in cells), strict=True)
        )
        self.cell_features = _CellFeatures(n, width, samples)
        # Where nothing succeeded in between, only the ends matter: few of the counts are points to look at.
        points: dict[tuple[int, int], int] = {}
        spans = []
        for row, cell in enumerate(cells):
            before, won = 0, 0
            for steps, successes in zip(cell.steps, cell.successes, strict=True):
                if successes > won:
                    begin = points.setdefault((row, before), len(points)) if before else -1
                    spans.append((row, begin, points.setdefault((row, steps), len(points)), successes - won))
                before, won = steps, successes
        self.end = np.array([points.setdefault((row, c.steps[-1]), len(points)) for row, c in enumerate(cells)])
        self.row, looked = np.array(list(points)).T
        self.steps = looked.astype(np.float64)
        where, self.begin, self.until, new = np.array(spans, dtype=np.intp).reshape(-1, 4).T
        self.new = np.zeros((len(spans), len(cells)))
        self.new[np.arange(len(spans)), where] = new
        self.never = np.array([float(cell.runs - cell.successes[-1]) for cell in cells])

    def likelihood(self, parameters: Float64Array, nodes: tuple[int, ...]) -> tuple[Float64Array, Float64Array]:
        """The logarithm of each cell's likelihood, (cells,), and its slopes by differences, (cells, parameters)."""
        shifts, weights = _quadrature(nodes)
        values = self.cell_features.values(parameters)
        base = self._each(values, shifts, weights)
        slopes = []
        for name, value in values.items():
            moved = self._each({**values, name: value + STEP}, shifts, weights)
            slopes.append(((moved - base) / STEP)[:, None] * self.cell_features.features[name])
        return base, np.concatenate(slopes, axis=1)

    def _each(self, values: dict[str, Float64Array], shifts: Float64Array, weights: Float64Array) -> Float64Array:
        """The logarithm of each cell's likelihood, shape (cells,)."""
        from scipy.special import logsumexp

        probabilities = self.cell_features.probabilities(values, shifts, self.row, self.steps)
        before = np.where(self.begin < 0, 0.0, probabilities[:, self.begin])
        during = np.maximum(probabilities[:, self.until] - before, 1e-7)
        found = np.log(during) @ self.new + np.log(1 - probabilities[:, self.end]) * self.never
        return np.asarray(logsumexp(found, axis=0, b=weights[:, None]))


STEP = 1e-7  # for differences of likelihoods


@cache
def _quadrature(nodes: tuple[int, ...]) -> tuple[Float64Array, Float64Array]:
    """Points, shape (2, points, 1), and weights for means over two standard normals."""
    from numpy.polynomial.hermite_e import hermegauss

    points, weights = zip(*(hermegauss(count) for count in nodes), strict=True)
    grid = np.stack(np.meshgrid(*points, indexing="ij")).reshape(len(nodes), -1, 1)
    product = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
    return grid, product / product.sum()
