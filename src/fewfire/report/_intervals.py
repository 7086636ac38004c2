"""Wilson's score interval: a range for a success probability that also makes sense at 0 of 5 and 5 of 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from fewfire._validate import check_number

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array


def wilson_interval(successes: AnyArray | int, runs: AnyArray | int, level: float = 0.95) -> Float64Array:
    """The probabilities p whose distance from the observed share is within the normal error of p itself.

    Parameters
    ----------
    successes, runs : int arrays of any one shape
    level : float
        Confidence, between 0 and 1.

    Returns
    -------
    array of shape (2, ...)
        Lower and upper ends; 0 and 1 where there are no runs.
    """
    check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
    won, total = np.asarray(successes, dtype=np.float64), np.asarray(runs, dtype=np.float64)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (won + z2 / 2) / (total + z2)
    reach = np.sqrt(z2 * (won * (total - won) / np.maximum(total, 1) + z2 / 4)) / (total + z2)
    share = won / np.maximum(total, 1)  # inside the interval, whatever the last digit says
    low = np.where(won > 0, np.minimum(centre - reach, share), 0.0)
    high = np.where(won < total, np.maximum(centre + reach, share), 1.0)
    return np.stack([low, high])
