"""Which solver of low-degree least squares runs, and how it reports.

Conjugate gradients cost 2 products a step, and the number of steps depends on the data; the Gram route costs the same
for any data. So "auto" compares the expected cost for uniform inputs, and where it starts with conjugate gradients it
gives them the time of the Gram route before turning to that: at most twice the cost of the better choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier._conjugate_gradients import conjugate_gradients, expected_iterations
from fewfire.fourier._gram import gram_seconds, solve_by_gram
from fewfire.fourier._monomial_matrix import MonomialMatrix

if TYPE_CHECKING:
    from fewfire._types import Float64Array, SignArray
    from fewfire.fourier._estimate import Progress

SOLVERS = ("auto", "cg", "gram")

_STEP_SECONDS = 5e-5
"""What a step of conjugate gradients costs beside its two products."""

_FEWEST_STEPS = 10
"""Cost models are not that exact: never stop conjugate gradients before."""

_TELL_SECONDS = 0.1
"""Progress is told about this often."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Coefficients, intercept first, shape (monomials,); the solver that ran last; steps and error of the iteration."""

    values: Float64Array
    solver: str
    iterations: int
    error: float


def solve(
    signs: SignArray,
    labels: Float64Array,
    degree: int,
    alpha: float,
    solver: str,
    tol: float,
    max_iter: int,
    threads: int,
    progress: Progress | None,
) -> Solved:
    """Run the solver named, or the one chosen; arguments as in `least_squares`, already checked."""
    matrix = MonomialMatrix(signs, degree, threads)
    limit = {"cg": max_iter, "gram": 0}.get(solver)
    if limit is None:
        gram_cost = gram_seconds(matrix.shape[0], signs.shape[1], degree, threads)
        limit = _steps_worth_trying(matrix, alpha, tol, max_iter, gram_cost)
    iterations = 0
    if limit:
        found = conjugate_gradients(matrix, labels, alpha, tol, limit, _Teller(progress, tol, max_iter))
        if found.error <= tol or limit == max_iter:
            return Solved(found.values, "cg", found.iterations, found.error)
        iterations = found.iterations
    mean = float(labels.mean())
    target = matrix.sums(labels - mean)[1:]
    means = matrix.sums(np.ones(len(labels)))[1:] / len(labels)
    values = solve_by_gram(signs, target, degree, alpha, threads, progress)
    return Solved(np.concatenate([[mean - float(means @ values)], values]), "gram", iterations, 0.0)


def _steps_worth_trying(matrix: MonomialMatrix, alpha: float, tol: float, max_iter: int, gram_cost: float) -> int:
    """How many steps to take before turning to the Gram matrix: 0 for none, max_iter to stay."""
    samples, count = matrix.shape
    if gram_cost == float("inf") or (alpha == 0.0 and count > samples):  # singular: the iteration finds least norm
        return max_iter
    step = 2.0 * matrix.product_seconds + _STEP_SECONDS
    if expected_iterations(samples, count, alpha, tol) * step > gram_cost:
        return 0
    return min(max_iter, max(ceil(gram_cost / step), _FEWEST_STEPS))


class _Teller:
    """Turns steps and errors into (done, total) calls, about ten a second."""

    def __init__(self, progress: Progress | None, tol: float, max_iter: int) -> None:
        self.progress, self.tol, self.max_iter = progress, tol, max_iter
        self.told = perf_counter()

    def __call__(self, steps: int, error: float) -> None:
        if self.progress is None:
            return
        done = error <= self.tol or steps == self.max_iter
        if done or perf_counter() - self.told >= _TELL_SECONDS:
            self.told = perf_counter()
            self.progress(steps, steps if done else self._expected(steps, error))

    def _expected(self, steps: int, error: float) -> int:
        """Steps in all, if the error goes on falling at the average rate since the start, where it was 1."""
        if not error < 1.0:
            return self.max_iter
        return min(self.max_iter, ceil(steps * log(self.tol) / log(error)))
