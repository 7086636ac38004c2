"""Errors of many trials in few numbers: medians with bootstrap intervals, means, ranks (pareto, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DRAWS = 2000


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of one model in one cell.

    Parameters
    ----------
    trials : int
    median, low, high : float
        The median and its 95% bootstrap interval.
    mean, deviation : float
        The mean and the standard deviation over trials; 0 for a single one.
    """

    trials: int
    median: float
    low: float
    high: float
    mean: float
    deviation: float


def median_interval(values: Sequence[float], level: float = 0.95, draws: int = DRAWS) -> tuple[float, float, float]:
    """The median and the ends of its percentile bootstrap interval; the same values give the same ends.

    Parameters
    ----------
    values : floats, at least one
    level : float
        Confidence, between 0 and 1.
    draws : int
        Resamples.
    """
    check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
    check_integer("draws", draws, 1)
    sample = np.sort(np.asarray(values, dtype=np.float64))
    if not len(sample) or not np.isfinite(sample).all():
        raise invalid("values", "must be one or more finite numbers", list(values))
    chosen = Stream(0, "bootstrap").integers(len(sample), (draws, len(sample)))
    medians = np.median(sample[chosen], axis=1)
    tail = (1 - level) / 2
    # Ends that are medians of resamples, not numbers between two of them: errors on small test sets are grainy.
    low, high = np.quantile(medians, [tail, 1 - tail], method="inverted_cdf")
    return float(np.median(sample)), float(low), float(high)


def summarise(errors: Sequence[float]) -> ErrorSummary:
    """The summary of the errors of one or more trials."""
    median, low, high = median_interval(errors)
    deviation = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return ErrorSummary(len(errors), median, low, high, float(np.mean(errors)), deviation)


def mean_ranks(cells: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each model's mean rank over the cells (1 is the smallest error; ties share their mean rank).

    Parameters
    ----------
    cells : one mapping from model to error per cell
        Cells that lack one of the models that others have are left out: ranks among fewer rivals do not compare.
    """
    models = list(dict.fromkeys(model for cell in cells for model in cell))
    complete = [[cell[model] for model in models] for cell in cells if len(cell) == len(models)]
    if not complete:
        return {}
    ranks = rankdata(np.array(complete), method="average", axis=1).mean(axis=0)
    return dict(zip(models, ranks.tolist(), strict=True))
