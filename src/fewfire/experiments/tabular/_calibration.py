"""How good probabilities are: log loss, and the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.experiments.store import Measurement

BINS = 15
LEAST = 1e-6
"""A chance of less counts as this: a forest's 0 would cost infinitely much."""


def calibration(chances: Float64Array, labels: AnyArray) -> dict[str, float]:
    """Log loss and ECE of chances (rows, classes) at classes (rows,), numbered 0, 1, …

    The ECE is the mean distance, over bins of equal width of what the likeliest class is given, between that and the
    share of the bin's rows of which it is the class.
    """
    given = np.clip(chances[np.arange(len(labels)), labels], LEAST, 1.0)
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == labels
    bins = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, weights=sure - right, minlength=BINS)
    return {"log_loss": -float(np.log(given).mean()), "ece": float(np.abs(gaps).sum() / len(labels))}


def mean_calibration(measurements: Iterable[Measurement]) -> dict[str, float] | None:
    """Means of what measurements say of calibration, in their message; None where one says nothing."""
    told = [found.message for found in measurements if found.status == "done"]
    if not told or not all(told):
        return None
    read = [json.loads(text) for text in told]
    return {key: float(np.mean([values[key] for values in read])) for key in ("log_loss", "ece")}
