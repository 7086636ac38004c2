"""The chance of success of practical SGD on a parity: enough data, times enough width, times enough steps.

For one k and one start, with L = log(n/30) and R = log(width/30), the share of runs that succeed within T steps is

    Φ(x/σ) · (1 − 2^−(width/r*)^γ) · Φ(log(T/T*)/ς),    x = log(m/m*),

that is: the training set is large enough for these weights (m*, pareto's frontier of width and data); among the neurons
is one that finds the parity, each with the same chance (r*, pareto's luck that width buys); and training has come that
far (T*, which grows as x comes near 0). log m*, log r*, log T* are linear in the features below. `fresh` goes from 0 to
1 where examples hardly repeat any more. With weight decay they then teach more slowly than a small set that does, and
at large n only wide networks hold on until they have learned, by a second lottery of the same form: this is why success
is not monotone in the samples (pareto, C.1, finding 4).

Fitted by maximum likelihood to counts by time, with weak normal priors that keep what a k was not swept for near a
usual value. The covariance is that of Laplace's approximation, times the dispersion that the cells show beside the
binomial one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray, Float64Array
    from fewfire.experiments.laws._cells import ParityCell

PRIORS: dict[str, tuple[float, float]] = {
    "data": (5.5, 9.0),
    "data·L": (1.5, 1.5),
    "data·L²": (0.0, 0.3),
    "data·R": (-0.15, 0.5),
    "data·R²": (0.0, 0.1),
    "data·RL": (0.0, 0.3),
    "log σ": (-1.2, 1.0),
    "log σ·R": (-0.1, 0.3),
    "log σ·L": (0.0, 0.5),
    "width": (1.4, 1.5),
    "width·L": (1.0, 2.0),
    "log γ": (0.0, 0.7),
    "fresh width": (0.0, 2.0),
    "fresh width·L": (3.0, 2.0),
    "log fresh γ": (0.0, 0.7),
    "steps": (7.0, 9.0),
    "steps·L": (1.0, 2.0),
    "steps·R": (-0.2, 0.5),
    "steps·R²": (0.0, 0.1),
    "steps·RL": (0.0, 0.3),
    "steps·fresh": (0.0, 1.0),
    "steps·fresh·L": (0.0, 1.0),
    "steps·fresh·R": (0.0, 0.3),
    "slow": (0.0, 1.5),
    "log slow rate": (0.0, 0.7),
    "log ς": (-0.7, 1.0),
    "log ς·R": (0.0, 0.2),
    "fresh": (10.0, 1.5),
    "fresh·L": (1.5, 1.0),
}
"""Every parameter with the mean and the standard deviation of its prior."""

MOST_SAMPLES = 3e6
"""Online is taken as so many examples: no run of the sweeps sees more than that."""

LAPSE = 0.004
"""Share of runs whose outcome says nothing: keeps one odd run from deciding a fit."""

SHARPEST = 0.06
"""The smallest σ: how unequal training sets of one size are, whatever the width."""

DRAWS = 400
"""Laws drawn from the posterior for an interval."""


@dataclass(frozen=True)
class Range:
    """What the cells of one n reach."""

    n: int
    width: tuple[int, int]
    samples: tuple[int, float]
    steps: tuple[int, int]


@dataclass(frozen=True, eq=False)
class SuccessLaw:
    """The fitted chance of success for one k and one start.

    Parameters
    ----------
    k : int
    start : str
    parameters : array of shape (parameters,), as `PRIORS` names them
    factor : array of shape (parameters, parameters)
        A square root of their covariance.
    ranges : tuple of Range, by n
    """

    k: int
    start: str
    parameters: Float64Array
    factor: Float64Array
    ranges: tuple[Range, ...]

    def chance(self, n: int, width: int, samples: int | None, steps: int) -> float:
        """The chance that a run succeeds."""
        return float(_chances(self.parameters, *_arrays(n, width, samples), np.array([float(steps)]))[0, 0])

    def interval(self, n: int, width: int, samples: int | None, steps: int, level: float = 0.9) -> tuple[float, float]:
        """Of the chance, by laws drawn from the posterior."""
        place, at = _arrays(n, width, samples), np.array([float(steps)])
        found = [_chances(drawn, *place, at)[0, 0] for drawn in self._drawn]
        low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    @cached_property
    def _drawn(self) -> Float64Array:
        normal = Stream(0, "laws/drawn").normal((DRAWS, len(self.parameters)))
        return np.asarray(self.parameters + normal @ self.factor.T)

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
        if (np.inf if samples is None else samples) > most:
            told = "online" if samples is None else f"{samples:,} examples"
            return f"{told} (calibrated at this n: up to {most:,.0f})"
        longest = min(one.steps[1] for one in around)
        return f"{steps:,} steps (calibrated at this n: up to {longest:,})" if steps > longest else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        ranges = [
            {"n": r.n, "width": r.width, "samples": [r.samples[0], _plain(r.samples[1])], "steps": r.steps}
            for r in self.ranges
        ]
        return {
            "k": self.k,
            "start": self.start,
            "parameters": {name: float(f"{value:.5g}") for name, value in zip(PRIORS, self.parameters, strict=True)},
            "factor": [[float(f"{value:.4g}") for value in row] for row in self.factor],
            "ranges": ranges,
        }

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> SuccessLaw:
        """The law that `to_dict` wrote."""
        ranges = tuple(
            Range(r["n"], tuple(r["width"]), (r["samples"][0], r["samples"][1] or np.inf), tuple(r["steps"]))
            for r in table["ranges"]
        )
        parameters = np.array([table["parameters"][name] for name in PRIORS])
        return cls(table["k"], table["start"], parameters, np.array(table["factor"]), ranges)


def _plain(samples: float) -> int | None:
    return None if np.isinf(samples) else int(samples)


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
    means, spreads = np.array(list(PRIORS.values())).T
    first = means.copy()
    located = [np.log(cell.samples) for cell in cells if cell.samples and 0.2 < cell.successes[-1] / cell.runs < 0.8]
    first[0] = float(np.median(located)) if located else first[0]

    def loss(parameters: Float64Array) -> float:
        return counts.loss(parameters) + 0.5 * float((((parameters - means) / spreads) ** 2).sum())

    found = first
    for exactness in (1e-1, 1e-2, 1e-3):  # begun again, since differences lose the curvature on the way
        found = minimize(loss, found, method="BFGS", options={"maxiter": 300, "gtol": exactness}).x
    scales = np.minimum(spreads, 0.1)
    values, vectors = np.linalg.eigh(_hessian(counts.loss, found, scales))
    # What differences make of a flat direction may be below zero; there the prior alone is known.
    information = (vectors * np.maximum(values, 0.0)) @ vectors.T / counts.dispersion(found)
    covariance = np.linalg.inv(information + np.diag((scales / spreads) ** 2))
    factor = scales[:, None] * np.linalg.cholesky(covariance)
    return SuccessLaw(k, start, found, factor, _ranges(cells))


def _ranges(cells: Sequence[ParityCell]) -> tuple[Range, ...]:
    found = []
    for n in sorted({cell.n for cell in cells}):
        here = [cell for cell in cells if cell.n == n]
        widths = [cell.width for cell in here]
        samples = [np.inf if cell.samples is None else cell.samples for cell in here]
        steps = [t for cell in here for t in cell.steps]
        sizes = (int(min(samples)), float(max(samples)))
        found.append(Range(n, (min(widths), max(widths)), sizes, (min(steps), max(steps))))
    return tuple(found)


def _arrays(n: int, width: int, samples: int | None) -> tuple[Float64Array, Float64Array, Float64Array]:
    return np.array([float(n)]), np.array([float(width)]), np.array([np.inf if samples is None else float(samples)])


def _chances(
    parameters: Float64Array, n: Float64Array, width: Float64Array, samples: Float64Array, steps: Float64Array
) -> Float64Array:
    """The chance of success of each place, shape (places,) each, after each number of steps: shape (places, steps)."""
    from scipy.special import ndtr  # late: the workers of a sweep load this package and need no SciPy

    p = dict(zip(PRIORS, parameters, strict=True))
    L, R = np.log(n / 30), np.log(width / 30)
    log_samples = np.log(np.minimum(samples, MOST_SAMPLES))
    data = (
        p["data"] + p["data·L"] * L + p["data·L²"] * L**2 + p["data·R"] * R + p["data·R²"] * R**2 + p["data·RL"] * R * L
    )
    x = np.where(np.isfinite(samples), log_samples - data, 50.0)
    spread = SHARPEST + np.exp(p["log σ"] + p["log σ·R"] * R + p["log σ·L"] * L)
    enough_data = ndtr(np.clip(x / spread, -30, 30))
    fresh = 1 / (1 + np.exp(-2 * (log_samples - p["fresh"] - p["fresh·L"] * L)))
    finds = _lottery(p["log γ"], width, p["width"] + p["width·L"] * L)
    holds = _lottery(p["log fresh γ"], width, p["fresh width"] + p["fresh width·L"] * L)
    enough_width = finds * (1 - fresh * (1 - holds))
    time = p["steps"] + p["steps·L"] * L + p["steps·R"] * R + p["steps·R²"] * R**2 + p["steps·RL"] * R * L
    time = time + fresh * (p["steps·fresh"] + p["steps·fresh·L"] * L + p["steps·fresh·R"] * R)
    time = time + np.log1p(np.exp(np.clip(p["slow"] - np.exp(p["log slow rate"]) * x, -30, 30)))
    turn = np.exp(p["log ς"] + p["log ς·R"] * R)
    enough_steps = ndtr(np.clip((np.log(steps) - time[:, None]) / turn[:, None], -30, 30))
    return np.asarray((enough_data * enough_width)[:, None] * enough_steps)


def _lottery(log_power: float, width: Float64Array, log_half: Float64Array) -> Float64Array:
    """1 − 2^−(width/r)^γ: the chance that some neuron wins, one half at width r."""
    tickets = np.exp(np.clip(np.exp(log_power) * (np.log(width) - log_half), -30, 6))
    return np.asarray(1 - np.exp2(-tickets))


class _Counts:
    """Cells as arrays: successes between one number of steps and the next."""

    def __init__(self, cells: Sequence[ParityCell]) -> None:
        self.steps = np.array(sorted({t for cell in cells for t in cell.steps}), dtype=np.float64)
        self.n = np.array([cell.n for cell in cells], dtype=np.float64)
        self.width = np.array([cell.width for cell in cells], dtype=np.float64)
        self.samples = np.array([np.inf if cell.samples is None else cell.samples for cell in cells], dtype=np.float64)
        self.runs = np.array([cell.runs for cell in cells], dtype=np.float64)
        pairs = [
            (row, int(np.searchsorted(self.steps, t)), won, before, last)
            for row, cell in enumerate(cells)
            for t, won, before, last in zip(
                cell.steps,
                cell.successes,
                (0, *cell.successes),
                (-1, *np.searchsorted(self.steps, cell.steps)),
                strict=False,
            )
        ]
        row, column, won, before, last = (np.array(part) for part in zip(*pairs, strict=True))
        self.row, self.column, self.last, self.new = row, column, last, (won - before).astype(np.float64)
        self.end = np.array([int(np.searchsorted(self.steps, cell.steps[-1])) for cell in cells])
        self.won = np.array([cell.successes[-1] for cell in cells], dtype=np.float64)

    def _chances(self, parameters: Float64Array) -> AnyArray:
        return LAPSE / 2 + (1 - LAPSE) * _chances(parameters, self.n, self.width, self.samples, self.steps)

    def loss(self, parameters: Float64Array) -> float:
        """Minus the logarithm of the likelihood."""
        chances = self._chances(parameters)
        before = np.where(self.last < 0, 0.0, chances[self.row, self.last])
        during = np.maximum(chances[self.row, self.column] - before, 1e-7)
        never = 1 - chances[np.arange(len(self.end)), self.end]
        return -float((self.new * np.log(during)).sum() + ((self.runs - self.won) * np.log(never)).sum())

    def dispersion(self, parameters: Float64Array) -> float:
        """Pearson's statistic of the last counts by its degrees of freedom, at least 1."""
        chances = self._chances(parameters)[np.arange(len(self.end)), self.end]
        squares = (self.won - self.runs * chances) ** 2 / (self.runs * chances * (1 - chances))
        return max(1.0, float(squares.sum() / max(len(squares) - len(parameters), 1)))


def _hessian(loss: Any, at: Float64Array, scales: Float64Array, step: float = 0.02) -> Float64Array:
    """Second derivatives in units of `scales`, by central differences."""
    size = len(at)
    moves = np.diag(step * scales)
    found = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            corners = [loss(at + a * moves[i] + b * moves[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            found[i, j] = found[j, i] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
    return found
