"""Least squares over all monomials of degree ≤ d: the regression step of the low-degree algorithm.

sparse-activations, section 2.1: a class with Fourier weight at most ε above degree d is learned by linear regression
in the basis χ_S, |S| ≤ d (Lemma 7), also when no member of the class fits the labels (agnostically). The matrix of
samples × monomials is never formed; see `_monomial_matrix`, and the two solvers `_conjugate_gradients` and `_gram`.

Conjugate gradients cost 2 products per step, and the number of steps depends on the data; the Gram route costs the same
for any data. So "auto" compares the expected cost for uniform inputs, and where it starts with conjugate gradients it
gives them the time of the Gram route before turning to that: at most twice the cost of the better choice. Costs are
those of one core, so that the route, and with it every bit of the result, does not depend on the number of threads.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, log
from time import perf_counter
from typing import Literal, TypeAlias, get_args

import numpy as np

from fewfire._errors import ConvergenceWarning, invalid
from fewfire._progress import ProgressCallback, progress_callback
from fewfire._threads import thread_count
from fewfire._validate import check_choice, check_integer, check_labels, check_number, check_sample_weight, check_signs
from fewfire.fourier._conjugate_gradients import Notify, conjugate_gradients, expected_iterations
from fewfire.fourier._estimate import Estimate
from fewfire.fourier._gram import gram_seconds, solve_by_gram
from fewfire.fourier._monomial_matrix import MonomialMatrix
from fewfire.fourier._monomials import monomial_count

Solver: TypeAlias = Literal["auto", "cg", "gram"]
SOLVERS: tuple[Solver, ...] = get_args(Solver)

_STEP_SECONDS = 5e-5
"""What a step of conjugate gradients costs besides its two products."""

_FEWEST_STEPS = 10
"""Cost models are not that exact: never stop conjugate gradients before."""

_REPORT_SECONDS = 0.1
"""Progress is reported about this often."""


@dataclass(frozen=True, eq=False)
class LeastSquares(Estimate):
    """The coefficients of the best polynomial of degree at most `degree` on a sample.

    Attributes
    ----------
    values : array of shape (monomial_count(n, degree),)
        Coefficients, in the order of `monomials(n, degree)`; index 0 is the intercept.
    n, degree, samples : int
    alpha : float
    solver : str
        "cg" or "gram": the one that ran last.
    iterations : int
        Steps of conjugate gradients.
    error : float
        Estimated error of the fitted values, relative to the centred labels (root mean square); 0.0 for "gram".
    converged : bool
        Whether the tolerance was reached.
    """

    alpha: float
    solver: Literal["cg", "gram"]
    iterations: int
    error: float
    converged: bool


def least_squares(
    X: object,
    y: object,
    degree: int,
    *,
    alpha: float = 0.0,
    solver: Solver = "auto",
    tol: float = 1e-7,
    max_iter: int = 2000,
    weights: object = None,
    threads: int | None = None,
    progress: bool | ProgressCallback | None = None,
) -> LeastSquares:
    """Fit all coefficients of degree at most `degree` by (ridge) least squares, the constant term unpenalised.

    Minimises Σ_i w_i (y_i − Σ_S v_S χ_S(x_i))² + alpha Σ_{S ≠ ∅} v_S². Where alpha is 0 and the minimum is not unique,
    the minimum of least Σ_{S ≠ ∅} v_S² is taken.

    Parameters
    ----------
    X : array of ±1, shape (samples, n)
    y : array of shape (samples,)
    degree : int
        Largest size of a set, at most n.
    alpha : float
        Ridge penalty, at least 0.
    solver : {"auto", "cg", "gram"}
        "cg" iterates; memory O(samples + monomials). "gram" factors the Gram matrix; memory O(monomials²), time hardly
        dependent on the number of samples or on how the columns are correlated. "auto" takes the one expected to be
        faster, and turns from "cg" to "gram" when the iteration has cost as much as the factorisation would.
    tol : float
        "cg" stops at this estimated relative error of the fitted values.
    max_iter : int
        Most steps of "cg"; stopping there warns.
    weights : array of shape (samples,), optional
        w, at least 0 and not all 0; 1 unless given. A weight of 2 counts as the sample twice.
    threads : int, optional
        All cores unless given; the result does not depend on it.
    progress : bool or callable (done, total), optional
        True shows one bar, in a notebook or on a terminal. A callable is called about ten times per second with the
        steps done and those expected in all. A keyboard interrupt is served between steps.

    Returns
    -------
    LeastSquares

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(12, 2, support=[3, 8]).sample(300, seed=0)
    >>> fit = ff.fourier.least_squares(X, y, degree=2)
    >>> [(members, round(value, 6)) for members, value in fit.largest(1)]
    [((3, 8), 1.0)]
    """
    signs = check_signs("X", X)
    labels = np.asarray(check_labels("y", y, len(signs)), dtype=np.float64)
    degree = check_integer("degree", degree, 0, signs.shape[1], "a monomial has at most n distinct coordinates")
    alpha = check_number("alpha", alpha, 0.0)
    check_choice("solver", solver, SOLVERS)
    tol = check_number("tol", tol, 0.0, 1.0, open_low=True, open_high=True)
    max_iter = check_integer("max_iter", max_iter, 1)
    workers = thread_count(threads)
    notify = progress_callback(progress, "least squares")
    samples, n = signs.shape
    row_weights = None if weights is None else check_sample_weight(weights, samples, "weights")
    by_gram = gram_seconds(samples, n, degree)
    if solver == "gram" and by_gram == float("inf"):
        count = monomial_count(n, degree)
        raise invalid("solver", f"must be 'cg' or 'auto' for {count} monomials (too large for a Gram matrix)", solver)

    matrix = MonomialMatrix(signs, degree, workers)
    limit = {"cg": max_iter, "gram": 0}.get(solver)
    if limit is None:
        limit = _steps_worth_trying(matrix, alpha, tol, max_iter, by_gram)
    used: Literal["cg", "gram"] = "gram"
    iterations, error = 0, 0.0
    if limit:
        found = conjugate_gradients(matrix, labels, alpha, tol, limit, _reporter(notify, tol, max_iter), row_weights)
        iterations = found.iterations
        if found.error <= tol or limit == max_iter:
            used, values, error = "cg", found.values, found.error
    if used == "gram":
        ones = np.ones(samples) if row_weights is None else row_weights
        mean = float(np.average(labels, weights=row_weights))
        target = matrix.sums(ones * (labels - mean))[1:]
        means = matrix.sums(ones)[1:] / ones.sum()
        others = solve_by_gram(signs, target, degree, alpha, workers, notify, row_weights)
        values = np.concatenate([[mean - float(means @ others)], others])
    if error > tol:
        warnings.warn(
            f"conjugate gradients stopped after max_iter = {iterations} steps at an estimated relative error "
            f"of {error:.1e}, above tol = {tol:.1e}. Remedy: raise alpha (near-duplicate columns, or as many "
            "monomials as samples, converge slowly without it), raise max_iter, or loosen tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LeastSquares(values, n, degree, samples, alpha, used, iterations, error, error <= tol)


def _steps_worth_trying(matrix: MonomialMatrix, alpha: float, tol: float, max_iter: int, gram_cost: float) -> int:
    """How many steps to take before turning to the Gram matrix: 0 for none, max_iter to stay."""
    samples, count = matrix.shape
    if gram_cost == float("inf") or (alpha == 0.0 and count > samples):  # singular: the iteration finds least norm
        return max_iter
    step = 2.0 * matrix.product_seconds + _STEP_SECONDS
    if expected_iterations(samples, count, alpha, tol) * step > gram_cost:
        return 0
    return min(max_iter, max(ceil(gram_cost / step), _FEWEST_STEPS))


def _reporter(progress: ProgressCallback | None, tol: float, max_iter: int) -> Notify:
    """Turns steps and errors into (done, total) calls, about ten per second."""
    reported = perf_counter()

    def report(steps: int, error: float) -> None:
        nonlocal reported
        done = error <= tol or steps == max_iter
        if progress is None or not (done or perf_counter() - reported >= _REPORT_SECONDS):
            return
        reported = perf_counter()
        # Steps in all, if the error goes on falling at the average rate since the start, where it was 1.
        expected = min(max_iter, ceil(steps * log(tol) / log(error))) if 0.0 < error < 1.0 else max_iter
        progress(steps, steps if done else expected)

    return report
