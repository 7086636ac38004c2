"""Powers of what a run needs: least squares on logarithms, each run a point, with Student's intervals.

A width that luck decides is about exponentially distributed, so its logarithm has the same spread everywhere; numbers
of examples spread far less. Both make for an ordinary regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Exponent:
    """The power with which what is needed grows in one quantity.

    Parameters
    ----------
    value, low, high : float
        The estimate and its 95% interval.
    error : float
        Its standard error.
    freedom : int
        Degrees of freedom of the interval.
    """

    value: float
    low: float
    high: float
    error: float
    freedom: int

    def farthest(self, claimed: float) -> float:
        """How far from the power that is claimed the interval reaches; NaN if a run never succeeded."""
        return nan if not isfinite(self.value) else max(self.high - claimed, claimed - self.low)

    def power(self, effect: float, allowed: float) -> float:
        """The probability that an exponent off by `effect` has an interval that reaches beyond `allowed`.

        For "the whole interval lies within ± allowed of the claim": 1 less the probability that both ends do.
        """
        if not isfinite(self.error) or self.freedom < 1:
            return 0.0
        half = float(stats.t.ppf(0.975, self.freedom)) * self.error
        if self.error == 0.0:
            return float(effect > allowed)
        inside = stats.norm.cdf((allowed - half - effect) / self.error) - stats.norm.cdf(
            (-allowed + half - effect) / self.error
        )
        return float(1 - max(0.0, inside))

    def power_above(self, effect: float) -> float:
        """The probability that the lower end is above a bound which the exponent exceeds by `effect`."""
        if not isfinite(self.error) or self.freedom < 1:
            return 0.0
        if self.error == 0.0:
            return float(effect > 0)
        return float(stats.nct.sf(stats.t.ppf(0.975, self.freedom), self.freedom, effect / self.error))

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def fit_exponents(needed: Sequence[float], quantities: Mapping[str, Sequence[float]]) -> dict[str, Exponent]:
    """The power of each quantity, the others as they are.

    Parameters
    ----------
    needed : sequence of float
        What each run needed; one that is infinite leaves every exponent undefined.
    quantities : mapping from names to sequences of as many numbers
    """
    values = np.asarray(needed, dtype=np.float64)
    if not np.isfinite(values).all():
        return {name: Exponent(nan, -inf, inf, inf, 0) for name in quantities}
    table = np.column_stack([np.ones(len(values)), *(np.log(np.asarray(column)) for column in quantities.values())])
    coefficients, _, rank, _ = np.linalg.lstsq(table, np.log(values), rcond=None)
    freedom = len(values) - table.shape[1]
    if rank < table.shape[1] or freedom < 1:
        return {name: Exponent(nan, -inf, inf, inf, 0) for name in quantities}
    residuals = np.log(values) - table @ coefficients
    errors = np.sqrt(np.diag(np.linalg.inv(table.T @ table)) * float(residuals @ residuals) / freedom)
    half = float(stats.t.ppf(0.975, freedom)) * errors
    return {
        name: Exponent(float(value), float(value - ends), float(value + ends), float(error), freedom)
        for name, value, ends, error in zip(quantities, coefficients[1:], half[1:], errors[1:], strict=True)
    }
