"""Exponents fitted to counted work, with intervals over seeds and the power of the tests on them.

Work is w = c·m^e; each seed gives a slope of log w in log m by least squares, and the seeds are independent, so
Student's interval holds for their mean however the widths of one seed depend on each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t

from fewfire.experiments.recipes._judgement import Effect
from fewfire.experiments.recipes._power import mean_power
from fewfire.experiments.recipes._statistics import rising

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95


@dataclass(frozen=True)
class Exponent:
    """The power of the width in some work, one number per seed.

    Parameters
    ----------
    seeds : tuple of float
        The slope of each seed.
    """

    seeds: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.seeds))

    @property
    def error(self) -> float:
        """Standard error of the mean; infinite for a single seed."""
        return float(np.std(self.seeds, ddof=1) / math.sqrt(len(self.seeds))) if len(self.seeds) > 1 else math.inf

    @property
    def low(self) -> float:
        """Lower end of the 95% interval."""
        return self.value - self._half

    @property
    def high(self) -> float:
        """Upper end of the 95% interval."""
        return self.value + self._half

    @property
    def _half(self) -> float:
        return float(t.ppf((1 + LEVEL) / 2, len(self.seeds) - 1)) * self.error if len(self.seeds) > 1 else math.inf

    def power(self, effect: float, level: float = 0.05) -> float:
        """Probability that the one-sided t-test notices an exponent off by `effect`, with the spread that was seen."""
        if len(self.seeds) < 2:
            return 0.0
        return mean_power(effect, float(np.std(self.seeds, ddof=1)), len(self.seeds), level)

    def effect(self, name: str) -> Effect:
        """The mean with its interval, under this name."""
        return Effect(name, self.value, self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; ends of the interval are None where one seed gives none."""
        ends = (self.low, self.high) if len(self.seeds) > 1 else (None, None)
        return {"exponent": self.value, "low": ends[0], "high": ends[1], "seeds": list(self.seeds)}

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def exponent(rows: Sequence[dict[str, Any]], what: str) -> Exponent:
    """The power of row["width"] in row[what], by row["seed"]."""
    slopes = []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        widths, work = (np.log([row[key] for row in rows if row["seed"] == seed]) for key in ("width", what))
        slopes.append(float(np.polyfit(widths, work, 1)[0]))
    return Exponent(tuple(slopes))


def rises(fits: Sequence[Exponent]) -> float:
    """p of Page's trend test: exponents rise along `fits` within the seeds."""
    return rising(np.array([fit.seeds for fit in fits]).T)
