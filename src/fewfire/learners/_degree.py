"""The degree with the least error on samples held out of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from fewfire._types import Float64Array, SignArray
from fewfire.fourier import evaluate, monomial_count

if TYPE_CHECKING:
    import numpy as np

Fit: TypeAlias = Callable[[SignArray, Float64Array, int], Float64Array]
"""Coefficients of the given degree, fitted to signs (samples, n) and labels (samples,)."""

Loss: TypeAlias = Callable[[Float64Array, Float64Array], float]
"""Error of predictions against labels, both of shape (samples,)."""

MONOMIALS_PER_SAMPLE = 10
"""Degrees with more monomials than this for each training sample are not tried."""


def choose_degree(
    signs: SignArray,
    labels: Float64Array,
    fit: Fit,
    loss: Loss,
    max_degree: int,
    validation_fraction: float,
    random_state: np.random.RandomState,
) -> tuple[int, dict[int, float]]:
    """The best degree and the held-out error of every degree tried; ties go to the lowest.

    All degrees up to the last are tried: a parity of k coordinates looks like noise below degree k.

    Parameters
    ----------
    signs : int8 array of shape (samples, n)
    labels : array of shape (samples,)
    """
    samples, n = signs.shape
    held_out = max(1, round(validation_fraction * samples))
    if held_out >= samples:
        return 0, {}
    order = random_state.permutation(samples)
    test, train = order[:held_out], order[held_out:]
    scores: dict[int, float] = {}
    for degree in range(min(max_degree, n) + 1):
        if degree > 1 and monomial_count(n, degree) > MONOMIALS_PER_SAMPLE * len(train):
            break
        values = fit(signs[train], labels[train], degree)
        scores[degree] = loss(evaluate(signs[test], values, degree), labels[test])
    return min(scores, key=lambda degree: (scores[degree], degree)), scores
