"""What the low-degree regressor and classifier share: columns to signs, choice of degree, fit, prediction, terms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.fourier import estimate, evaluate, least_squares, monomial_members
from fewfire.fourier._monomials import Term, strongest, terms
from fewfire.learners._degree import Loss, choose_degree
from fewfire.learners._explain import explain_terms
from fewfire.learners._signs import BINARIZE, learn_signs

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, SignArray


class LowDegreeBase(BaseEstimator):  # type: ignore[misc]
    """A polynomial of low degree in columns of ±1; see `LowDegreeRegressor` for parameters and attributes."""

    def __init__(
        self,
        degree: int | str = "auto",
        *,
        method: str = "regression",
        alpha: float = 1.0,
        prune: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-7,
        max_iter: int = 2000,
        binarize: str | None = None,
        max_degree: int = 4,
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        threads: int | None = None,
        verbose: bool | Callable[[int, int], object] = False,
    ) -> None:
        self.degree = degree
        self.method = method
        self.alpha = alpha
        self.prune = prune
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.binarize = binarize
        self.max_degree = max_degree
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    @property
    def coef_(self) -> list[Term]:
        """The non-zero coefficients as (tuple of columns, coefficient), largest first; () is the constant."""
        check_is_fitted(self)
        columns = [int(column) for column in self.active_]
        kept = strongest(self.coefficients_, int(np.count_nonzero(self.coefficients_)))

        def members(index: int) -> tuple[int, ...]:
            return tuple(columns[place] for place in monomial_members(len(columns), index)) if index else ()

        return terms(self.coefficients_, kept, members)

    @property
    def intercept_(self) -> float:
        """The constant coefficient."""
        check_is_fitted(self)
        return float(self.coefficients_[0])

    def explain(self, top: int = 10) -> str:
        """The `top` largest terms as text: one line each, in the names of the columns."""
        check_is_fitted(self)
        names = [self._sign_map.names[column] for column in self.active_]
        return explain_terms(self.coefficients_, names, self.degree_, check_integer("top", top, 0))

    def _fit(self, table: AnyArray, labels: Float64Array, loss: Loss) -> None:
        """Fit to a validated table (samples, columns) and labels (samples,); sets attributes only at the end."""
        if self.binarize is not None:
            check_choice("binarize", self.binarize, BINARIZE)
        check_choice("method", self.method, ("regression", "estimation"))
        prune = check_number("prune", self.prune, 0.0)
        sign_map = learn_signs(table, self._column_names(), self.binarize)
        signs = sign_map.transform(table)
        degree, scores = self._degree(signs, labels, loss)
        values, solver, iterations = self._coefficients(signs, labels, degree)
        values[1:][np.abs(values[1:]) < prune] = 0.0
        self._sign_map = sign_map
        self.mapping_ = sign_map.mapping
        self.active_ = sign_map.active
        self.coefficients_ = values
        self.degree_, self.degree_scores_ = degree, scores
        self.solver_, self.n_iter_ = solver, max(1, iterations)

    def _values(self, X: object) -> Float64Array:
        """The fitted polynomial at every row of a table."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        if not signs.shape[1]:
            return np.full(len(signs), self.coefficients_[0])
        return evaluate(signs, self.coefficients_, self.degree_, threads=self.threads)

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{column}" for column in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _degree(self, signs: SignArray, labels: Float64Array, loss: Loss) -> tuple[int, dict[int, float]]:
        if isinstance(self.degree, str):
            if self.degree != "auto":
                raise invalid("degree", "must be 'auto' or an integer", self.degree)
            return choose_degree(
                signs,
                labels,
                lambda signs, labels, degree: self._coefficients(signs, labels, degree)[0],
                loss,
                check_integer("max_degree", self.max_degree, 0),
                check_number("validation_fraction", self.validation_fraction, 0.0, 1.0, open_low=True, open_high=True),
                check_random_state(self.random_state),
            )
        return min(check_integer("degree", self.degree, 0, remedy="or pass 'auto'"), signs.shape[1]), {}

    def _coefficients(self, signs: SignArray, labels: Float64Array, degree: int) -> tuple[Float64Array, str, int]:
        """Coefficients of one degree, the solver that found them, and its steps."""
        if not signs.shape[1]:
            return np.array([labels.mean()]), "mean", 0
        progress = self.verbose if callable(self.verbose) else _print_progress if self.verbose else None
        if self.method == "estimation":
            found = estimate(signs, labels, degree, threads=self.threads, progress=progress)
            return found.values, "estimate", 0
        fit = least_squares(
            signs, labels, degree, alpha=self.alpha, solver=self.solver, tol=self.tol, max_iter=self.max_iter,
            threads=self.threads, progress=progress,
        )  # fmt: skip
        return fit.values, fit.solver, fit.iterations


def _print_progress(done: int, total: int) -> None:
    print(f"low-degree fit: {done} of about {total}", file=sys.stderr)
