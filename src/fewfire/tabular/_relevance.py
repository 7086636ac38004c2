"""Relevance gains: the more an input alone says about the target, the larger a network sees it.

Networks start blind to which columns matter, and on a hundred rows they fit the noise of those that do not. The share
of the target's variance an input explains by itself tells them apart: five equally full bins, their means against the
overall one, less what chance would explain. Three gains are made of it: "none" (all 1), "mild" (0.1 + 0.9·√share) and
"strong" (share), the largest share being 1. A column that matters only together with others is kept by the first two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._encodings import column_ranks
from fewfire.tabular._queue import mapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import Float64Array, FloatArray


GAINS = ("none", "mild", "strong")
BINS = 5
FLOOR = 0.1


def relevance_gains(shares: Float64Array, kind: str) -> FloatArray:
    """Gains (inputs,) in [0, 1], float32, of shares (inputs,); all 1 when no input alone says anything."""
    largest = shares.max(initial=0.0)
    if kind == "none" or largest <= 0:
        return np.ones(len(shares), np.float32)
    relative = shares / largest
    gains: FloatArray = FLOOR + (1 - FLOOR) * np.sqrt(relative) if kind == "mild" else relative
    return gains.astype(np.float32)


def explained_shares(X: FloatArray, target: FloatArray, weight: FloatArray, threads: int = 1) -> Float64Array:
    """Share of the variance of target (rows, outputs) that each column of X (rows, inputs) explains beyond chance."""
    rows, mass = len(X), weight.astype(np.float64)
    centred = target - np.average(target, axis=0, weights=mass)
    variance = float(np.average(centred**2, axis=0, weights=mass).sum())
    if variance <= 0 or rows < 3:
        return np.zeros(X.shape[1])
    bins = max(2, min(BINS, rows // 5))
    shares = mapped(lambda column: _share(column, centred, mass, bins) / variance, list(X.T), threads)
    return np.array(shares).clip(0.0)


def _share(column: FloatArray, centred: FloatArray, mass: Float64Array, bins: int) -> float:
    """Variance between the bins of a column (rows,), less what bins drawn at random would show."""
    place = _bins(column, mass, bins)
    filled = np.bincount(place, weights=mass, minlength=bins)
    present = filled > 0
    sums = np.column_stack([np.bincount(place, weights=mass * values, minlength=bins) for values in centred.T])
    between = (sums[present] ** 2 / filled[present, None]).sum() / mass.sum()
    overall = (mass[:, None] * centred**2).sum() / mass.sum()
    return float(between - overall * (np.count_nonzero(present) - 1) / (len(column) - 1))


def _bins(column: FloatArray, mass: Float64Array, bins: int) -> NDArray[np.int64]:
    """The bin of each row: that of its value's middle rank, so that two values of a column are never all in one."""
    found = column_ranks(column, mass)
    return np.minimum(found.middle * bins, bins - 1).astype(np.int64)[found.of_row]
