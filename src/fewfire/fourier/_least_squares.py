"""Least squares over all monomials of degree ≤ d: the regression step of the low-degree algorithm.

sparse-activations, section 2.1: a class with Fourier weight at most ε above degree d is learned by linear regression
in the basis χ_S, |S| ≤ d (Lemma 7), also when no member of the class fits the labels (agnostically). The matrix of
samples × monomials is never formed; see `_monomial_matrix`, and the two solvers `_conjugate_gradients` and `_gram`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from fewfire._cores import thread_count
from fewfire._errors import ConvergenceWarning, invalid
from fewfire._validate import check_choice, check_integer, check_labels, check_number, check_signs
from fewfire.fourier._estimate import Estimate, Progress
from fewfire.fourier._gram import gram_seconds
from fewfire.fourier._monomials import monomial_count
from fewfire.fourier._solvers import SOLVERS, solve


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
    solver: str
    iterations: int
    error: float
    converged: bool


def least_squares(
    X: object,
    y: object,
    degree: int,
    *,
    alpha: float = 0.0,
    solver: str = "auto",
    tol: float = 1e-7,
    max_iter: int = 2000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LeastSquares:
    """Fit all coefficients of degree at most `degree` by (ridge) least squares, the constant term unpenalised.

    Minimises Σ_i (y_i − Σ_S v_S χ_S(x_i))² + alpha Σ_{S ≠ ∅} v_S². Where alpha is 0 and the minimum is not unique, the
    minimum of least Σ_{S ≠ ∅} v_S² is taken.

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
    threads : int, optional
        All cores unless given.
    progress : callable (done, total), optional
        Called about ten times a second with the steps done and those expected in all. A keyboard interrupt is served
        between steps.

    Returns
    -------
    LeastSquares
    """
    signs = check_signs("X", X)
    labels = np.asarray(check_labels("y", y, len(signs)), dtype=np.float64)
    degree = check_integer("degree", degree, 0, signs.shape[1], "a monomial has at most n distinct coordinates")
    alpha = check_number("alpha", alpha, 0.0)
    solver = check_choice("solver", solver, SOLVERS)
    tol = check_number("tol", tol, 0.0, 1.0, open_low=True, open_high=True)
    max_iter = check_integer("max_iter", max_iter, 1)
    workers = thread_count(threads)
    samples, n = signs.shape
    if solver == "gram" and gram_seconds(samples, n, degree, workers) == float("inf"):
        count = monomial_count(n, degree)
        raise invalid("solver", f"must be 'cg' or 'auto' for {count} monomials (too large for a Gram matrix)", solver)

    solution = solve(signs, labels, degree, alpha, solver, tol, max_iter, workers, progress)
    if solution.error > tol:
        warnings.warn(
            f"conjugate gradients stopped after max_iter = {solution.iterations} steps at an estimated relative error "
            f"of {solution.error:.1e}, above tol = {tol:.1e}. Remedy: raise alpha (near-duplicate columns, or as many "
            "monomials as samples, converge slowly without it), raise max_iter, or loosen tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LeastSquares(
        solution.values, n, degree, samples, alpha, solution.solver, solution.iterations, solution.error,
        solution.error <= tol,
    )  # fmt: skip
