"""The examples an oracle takes its expectations over: the whole cube, or a large sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, SignArray

FEW_LABELS = 16
"""With at most this many different labels, the labels independent of the inputs are averaged over exactly."""


@dataclass(frozen=True, eq=False)
class Population:
    """Weighted examples.

    Parameters
    ----------
    X : int8 array of shape (rows, inputs)
    y : array of shape (rows,)
    weights : float64 array of shape (rows,), of sum 1
    samples : int or None
        How many examples were drawn; None for the whole cube.
    independent : list of (share, labels)
        Labels of shape (rows,) that do not depend on X, and the probability of each such labelling.
    """

    X: SignArray
    y: AnyArray
    weights: Float64Array
    samples: int | None
    independent: list[tuple[float, AnyArray]]


def whole_cube(problem: Any, stream: Stream) -> Population | None:
    """Every input of the cube with its labels; None where the label noise leaves no finite list of examples."""
    _refuse_correlated(problem, stream)
    X = cube(problem.inputs)
    y = np.asarray(problem.target(X))
    weights = np.full(len(X), 1.0 / len(X))
    noise = float(getattr(problem, "noise", 0.0))
    if noise:
        if np.any(np.abs(y) != 1):
            return None
        X, y = np.concatenate([X, X]), np.concatenate([y, -y])
        weights = np.concatenate([(1 - noise) * weights, noise * weights])
    return Population(X, y, weights, None, _independent(y, weights, stream))


def drawn(problem: Any, samples: int, stream: Stream) -> Population:
    """`samples` examples of the problem, equally weighted."""
    X, y = problem.sample(samples, stream.child("examples"))
    weights = np.full(samples, 1.0 / samples)
    return Population(X, np.asarray(y), weights, samples, _independent(np.asarray(y), weights, stream))


def _independent(y: AnyArray, weights: Float64Array, stream: Stream) -> list[tuple[float, AnyArray]]:
    labels = np.unique(y)
    if len(labels) <= FEW_LABELS:
        return [(float(weights[y == label].sum()), np.full_like(y, label)) for label in labels]
    return [(1.0, y[stream.child("shuffle").permutation(len(y))])]


def _refuse_correlated(problem: Any, stream: Stream) -> None:
    """A sample of the problem must look uniform: means and correlations of coordinates within 6 standard errors."""
    rows = 4096
    X = problem.sample(rows, stream.child("check"))[0].astype(np.float64)
    moments = X.T @ X / rows
    np.fill_diagonal(moments, X.mean(axis=0))
    largest = float(np.abs(moments).max())
    if largest > 6 / rows**0.5:
        got = f"a mean or correlation of {largest:.2f} between coordinates"
        raise invalid("problem", "must have uniform inputs here", got, 'pass distribution="drawn"')
