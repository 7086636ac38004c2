"""The value at which a share of the runs succeeds, with an interval, from the counts of a grid or a search."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf, isnan, nan
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.experiments.frontiers._posterior import FrontierCurve, FrontierPosterior

if TYPE_CHECKING:
    from fewfire._types import AnyArray

Side: TypeAlias = Literal["inside", "below", "above"]
"""Where the frontier is, as far as the runs say: in the bracket, or clearly below or above it."""


FEW = 64
"""Up to so many values, those without runs are looked at as well: the rows of a map then share their curves."""


@dataclass(frozen=True)
class FrontierEstimate:
    """Where half of the runs (or another share) succeed.

    Parameters
    ----------
    value, low, high : float
        The median of the posterior and the ends of its interval. 0 and infinity stand for values beyond the bracket:
        what was not tried is not named. NaN without runs.
    side : "inside", "below" or "above"
    level : float
        The probability that the interval holds the frontier.
    runs, successes : int
    end : tuple of (value, successes, runs)
        What was seen at the end of the bracket that the frontier lies beyond; at the nearest value tried for those
        inside.
    """

    value: float
    low: float
    high: float
    side: Side
    level: float
    runs: int
    successes: int
    end: tuple[float, int, int]

    @property
    def factor(self) -> float:
        """high / low: how wide the interval is; infinite where it is open."""
        return inf if self.low == 0 or isinf(self.high) or isnan(self.value) else self.high / self.low

    def __str__(self) -> str:
        if isnan(self.value):
            return "no runs"
        at, won, tried = self.end
        seen = f"{won} of {tried} runs succeed at {at:,.6g}"
        if self.side != "inside":
            return f"not {'below' if self.side == 'above' else 'above'} {at:,.6g}: {seen}"
        ends = ("below the bracket" if self.low == 0 else _number(self.low)) + " to "
        ends += "above the bracket" if isinf(self.high) else _number(self.high)
        middle = "" if self.value == 0 or isinf(self.value) else f"{_number(self.value)}, "
        return f"{middle}{self.level:.0%} interval {ends}"


def estimate_frontier(
    values: AnyArray,
    successes: AnyArray,
    runs: AnyArray,
    *,
    low: float | None = None,
    high: float | None = None,
    target: float = 0.5,
    level: float = 0.95,
    precision: float = 0.05,
    rising: bool = True,
) -> FrontierEstimate:
    """Where a share of the runs succeeds, from how many did at each value.

    Parameters
    ----------
    values : array of shape (values,)
        Positive and distinct.
    successes, runs : int arrays of shape (values,)
    low, high : float, optional
        The bracket; by default the smallest and the largest value. A frontier beyond it is not located.
    target : float
        The share of successes.
    level : float
        Of the interval.
    precision : float
        How finely the posterior is computed, as a relative accuracy.
    rising : bool
        Whether success becomes more frequent with the value.

    Examples
    --------
    >>> from fewfire.experiments import estimate_frontier
    >>> found = estimate_frontier([100, 200, 400, 800], successes=[0, 2, 9, 10], runs=[10, 10, 10, 10])
    >>> 200 < found.low < found.value < found.high < 400
    True
    """
    at, won, tried = (np.asarray(part, dtype=np.float64) for part in (values, successes, runs))
    if at.ndim != 1 or at.shape != won.shape or at.shape != tried.shape or not at.size:
        shapes = f"shapes {at.shape}, {won.shape}, {tried.shape}"
        raise invalid("values, successes and runs", "must be vectors of one length", shapes)
    if (at <= 0).any():
        raise invalid("values", "must be positive", float(at.min()), "the curve is one of their logarithms")
    if (won > tried).any() or (won < 0).any():
        raise invalid("successes", "must be between 0 and the number of runs", successes)
    bracket = (float(at.min()) if low is None else low, float(at.max()) if high is None else high)
    if not 0 < bracket[0] <= bracket[1]:
        raise invalid("low and high", "must be positive and in order", bracket)
    check_number("target", target, 0.05, 0.95)
    check_number("level", level, 0.5, 0.999)
    inner = bracket if rising else (1 / bracket[1], 1 / bracket[0])
    posterior = FrontierPosterior(FrontierCurve(*inner, target, precision))
    kept = tried > 0 if len(at) > FEW else np.ones(len(at), dtype=bool)
    if tried.any():
        posterior.observe(list(at[kept] if rising else 1 / at[kept]), won[kept], (tried - won)[kept], shared=True)
    return read(posterior, at, won, tried, bracket, level, rising)


def read(
    posterior: FrontierPosterior,
    values: AnyArray,
    successes: AnyArray,
    runs: AnyArray,
    bracket: tuple[float, float],
    level: float,
    rising: bool,
) -> FrontierEstimate:
    """What a posterior says, in the axis' own values; one of a falling axis was fed their reciprocals."""
    total, won = int(runs.sum()), int(successes.sum())
    if not total:
        return FrontierEstimate(nan, nan, nan, "inside", level, 0, 0, (nan, 0, 0))
    tail = (1 - level) / 2
    found = posterior.quantiles([tail, 0.5, 1 - tail])
    below, above = posterior.beyond
    if not rising:
        found, (below, above) = [1 / value for value in reversed(found)], (above, below)
    side: Side = "above" if above >= level else "below" if below >= level else "inside"
    if side == "above":
        found = [bracket[1], inf, inf]
    elif side == "below":
        found = [0.0, 0.0, bracket[0]]
    else:
        found = [0.0 if value < bracket[0] else inf if value > bracket[1] else value for value in found]
    wanted = {"above": bracket[1], "below": bracket[0], "inside": found[1]}[side]
    tried = np.flatnonzero(runs > 0)
    near = int(tried[np.argmin(np.abs(np.log(values[tried]) - np.log(max(min(wanted, bracket[1]), bracket[0]))))])
    end = (float(values[near]), int(successes[near]), int(runs[near]))
    return FrontierEstimate(found[1], found[0], found[2], side, level, total, won, end)


def _number(value: float) -> str:
    """Whole where it is large, three digits where it is small."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
