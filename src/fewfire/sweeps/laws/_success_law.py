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
is then scaled by cells at other n (`tools/success_law.py`). A prediction is one for a cell that was not seen: laws
drawn from the posterior (taken as normal), each with shifts of its own, and runs that succeed at random.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_integer

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
        cell_features = CellFeatures(np.array([float(n)]), np.array([float(width)]), np.array([size_of(samples)]))
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
        if size_of(samples) > most:
            size = "online" if samples is None else f"{samples:,} examples"
            return f"{size} (calibrated at this n: up to {most:,.0f})"
        longest = min(one.steps[1] for one in around)
        return f"{steps:,} steps (calibrated at this n: up to {longest:,})" if steps > longest else ""

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


def size_of(samples: int | None) -> float:
    """A number of samples; infinite where they are online."""
    return np.inf if samples is None else float(samples)


@cache
def shipped_success_laws() -> dict[tuple[int, str], SuccessLaw]:
    """The laws fitted to the shipped cells, by k and start."""
    table = json.loads((files(__package__) / "success_laws.json").read_text(encoding="utf-8"))
    laws = [SuccessLaw.from_dict(one) for one in table]
    return {(law.k, law.start): law for law in laws}


@cache
def _columns() -> dict[str, slice]:
    """Where the coefficients of each quantity are among the parameters."""
    found, start = {}, 0
    for name, terms in PRIORS.items():
        found[name] = slice(start, start + len(terms))
        start += len(terms)
    return found


class CellFeatures:
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
