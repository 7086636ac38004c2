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
class FittedPower:
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
        """The probability that an exponent off by `effect` has an interval that reaches beyond ± `allowed`.

        The claim is that the whole interval lies within, so a wrong one passes only if both ends do.
        """
        half = self._half()
        if self.error == 0.0 or not isfinite(half):
            return float(effect > allowed) if isfinite(half) else 0.0
        inside = stats.norm.cdf((allowed - half - effect) / self.error) - stats.norm.cdf(
            (half - allowed - effect) / self.error
        )
        return float(1 - max(0.0, inside))

    def power_above(self, effect: float) -> float:
        """The probability that an exponent which exceeds a bound by `effect` has its upper end above the bound."""
        half = self._half()
        if self.error == 0.0 or not isfinite(half):
            return float(effect > 0) if isfinite(half) else 0.0
        return float(stats.norm.sf((-half - effect) / self.error))

    def _half(self) -> float:
        return float(stats.t.ppf(0.975, self.freedom)) * self.error if self.freedom > 0 else inf

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def fit_exponents(needed: Sequence[float], quantities: Mapping[str, Sequence[float]]) -> dict[str, FittedPower]:
    """The power of each quantity, the others as they are.

    Parameters
    ----------
    needed : sequence of float
        What each run needed; one that is infinite leaves every exponent undefined.
    quantities : mapping from names to sequences of as many numbers
    """
    values = np.asarray(needed, dtype=np.float64)
    if not np.isfinite(values).all():
        return {name: FittedPower(nan, -inf, inf, inf, 0) for name in quantities}
    table = np.column_stack([np.ones(len(values)), *(np.log(np.asarray(column)) for column in quantities.values())])
    coefficients, _, rank, _ = np.linalg.lstsq(table, np.log(values), rcond=None)
    freedom = len(values) - table.shape[1]
    if rank < table.shape[1] or freedom < 1:
        return {name: FittedPower(nan, -inf, inf, inf, 0) for name in quantities}
    residuals = np.log(values) - table @ coefficients
    errors = np.sqrt(np.diag(np.linalg.inv(table.T @ table)) * float(residuals @ residuals) / freedom)
    half = float(stats.t.ppf(0.975, freedom)) * errors
    return {
        name: FittedPower(float(value), float(value - ends), float(value + ends), float(error), freedom)
        for name, value, ends, error in zip(quantities, coefficients[1:], half[1:], errors[1:], strict=True)
    }
