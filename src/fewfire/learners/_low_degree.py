"""The low-degree algorithm as scikit-learn estimators.

sparse-activations, section 2.1: a function with Fourier weight at most ε above degree d is learned to error O(ε) by
regression over the monomials χ_S, |S| ≤ d (Lemma 7); networks of few active neurons are such functions on uniform
inputs (Theorem 8). "estimation" takes f̂(S) ≈ mean of y·χ_S(x) instead: one pass, and right for uniform inputs only.
Neither forms the table of samples × monomials; see `fewfire.fourier.least_squares` and `estimate`.

The degree "auto" is the one with the least error on samples held out of the fit (`choose_degree`); `explain_terms`
writes the leading monomials in the user's column names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._classes import two_classes
from fewfire._cores import job_count
from fewfire._errors import invalid
from fewfire._types import Float64Array, SignArray
from fewfire._validate import check_choice, check_finite, check_integer, check_number
from fewfire.fourier import estimate, evaluate, least_squares, monomial_count, monomial_members
from fewfire.fourier._monomials import Term, strongest, terms
from fewfire.learners._fitting import all_or_nothing, label_unit
from fewfire.learners._signs import Binarize, column_names, learn_signs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray
    from fewfire.fourier._least_squares import Solver


Method: TypeAlias = Literal["regression", "estimation"]
"""Least squares, or empirical Fourier coefficients."""

Fit: TypeAlias = Callable[[SignArray, Float64Array, int], Float64Array]
"""Coefficients of the given degree, fitted to signs (samples, n) and labels (samples,)."""

Loss: TypeAlias = Callable[[Float64Array, Float64Array], float]
"""Error of predictions against labels, both of shape (samples,)."""

MONOMIALS_PER_SAMPLE = 10
"""Degrees with more monomials than this for each training sample are not tried."""


class LowDegreeBase(BaseEstimator):  # type: ignore[misc]
    """A polynomial of low degree in columns of ±1; see `LowDegreeRegressor` for parameters and attributes."""

    def __init__(
        self,
        degree: int | Literal["auto"] = "auto",
        *,
        method: Method = "regression",
        alpha: float = 1.0,
        prune: float = 0.0,
        solver: Solver = "auto",
        tol: float = 1e-7,
        max_iter: int = 2000,
        binarize: Binarize | None = None,
        max_degree: int = 4,
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
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
        self.n_jobs = n_jobs
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
        """Fit to a validated table (samples, columns) and labels (samples,)."""
        check_choice("method", self.method, get_args(Method))
        prune = check_number("prune", self.prune, 0.0)
        sign_map = learn_signs(table, column_names(self), self.binarize)
        signs = sign_map.transform(table)
        unit = label_unit(labels)
        degree, scores = self._degree(signs, labels / unit, loss)
        values, solver, iterations = self._coefficients(signs, labels / unit, degree)
        values *= unit
        values[1:][np.abs(values[1:]) < prune] = 0.0
        self._sign_map = sign_map
        self.mapping_ = sign_map.mapping
        self.active_ = sign_map.active
        self.coefficients_ = values
        self.degree_, self.degree_scores_ = degree, {tried: score * unit * unit for tried, score in scores.items()}
        self.solver_, self.n_iter_ = solver, max(1, iterations)

    def _values(self, X: object) -> Float64Array:
        """The fitted polynomial at every row of a table."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        if not signs.shape[1]:
            return np.full(len(signs), self.coefficients_[0])
        return evaluate(signs, self.coefficients_, self.degree_, threads=job_count(self.n_jobs))

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
            found = estimate(signs, labels, degree, threads=job_count(self.n_jobs), progress=progress)
            return found.values, "estimate", 0
        fit = least_squares(
            signs,
            labels,
            degree,
            alpha=self.alpha,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            threads=job_count(self.n_jobs),
            progress=progress,
        )
        return fit.values, fit.solver, fit.iterations


class LowDegreeRegressor(RegressorMixin, LowDegreeBase):  # type: ignore[misc]
    """Least-squares polynomial of low degree in binary columns.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1
    (so 0 ↦ +1, 1 ↦ −1). Constant columns are ignored. Columns with more values are refused unless `binarize` is set.

    Parameters
    ----------
    degree : "auto" or int
        Largest number of columns in a monomial. "auto" tries 0 … max_degree on held-out samples.
    method : {"regression", "estimation"}
        Least squares, for any inputs; or empirical Fourier coefficients, for uniform inputs.
    alpha : float
        Ridge penalty of the regression on all coefficients but the constant one.
    prune : float
        Coefficients smaller in magnitude are set to zero (the constant one is kept).
    solver : {"auto", "cg", "gram"}
        How the regression is solved; see `fewfire.fourier.least_squares`.
    tol, max_iter : float, int
        Estimated relative error at which "cg" stops, and its most steps.
    binarize : None or "median"
        What happens to columns with more than two values: refused, or cut in two at the median.
    max_degree : int
        Largest degree "auto" tries; it also ends at 10 monomials per training sample.
    validation_fraction : float
        Share of the samples that "auto" holds out; the final fit uses all.
    random_state : int, RandomState or None
        Decides which samples are held out.
    n_jobs : int or None
        Threads; −1 is all cores, None is one.
    verbose : bool or callable (done, total)
        Tells the progress of long fits, on standard error or by calls.

    Attributes
    ----------
    coefficients_ : array of shape (monomial_count(len(active_), degree_),)
        In the order of `fewfire.fourier.monomials`, whose members are positions in `active_`.
    coef_ : list of (tuple of columns, coefficient)
        The non-zero ones, largest first.
    intercept_ : float
    active_ : array of the columns that are not constant
    mapping_ : list of (what became +1, what became −1)
        One pair per column; None where nothing did.
    degree_ : int
    degree_scores_ : dict
        Held-out mean squared error of each degree that "auto" tried.
    solver_ : str
        "cg", "gram", "estimate", or "mean" where every column is constant.
    n_iter_ : int
        Steps of "cg"; 1 where nothing was iterated.
    n_features_in_, feature_names_in_
    """

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table of binary columns (samples, columns) and numbers (samples,)."""
        table, labels = validate_data(self, X, y, y_numeric=True)
        self._fit(table, check_finite("y", labels.astype(np.float64)), _squared_error)
        return self

    def predict(self, X: object) -> Float64Array:
        """The polynomial at every row, shape (samples,)."""
        return self._values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A continuous column cut in two has lost most of what it said about a continuous label.
        tags.regressor_tags.poor_score = self.binarize is not None
        return tags


class LowDegreeClassifier(ClassifierMixin, LowDegreeBase):  # type: ignore[misc]
    """Sign of a polynomial of low degree in binary columns, for two classes.

    The polynomial is fitted to −1 for `classes_[0]` and +1 for `classes_[1]`. Its values are no probabilities, so
    there is no `predict_proba`; `sklearn.calibration.CalibratedClassifierCV` makes some from `decision_function`.

    Parameters and attributes are those of `LowDegreeRegressor`, with `degree_scores_` the held-out share of wrong
    predictions, and

    Attributes
    ----------
    classes_ : array of the two labels, ascending
    """

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table of binary columns (samples, columns) and labels of two classes (samples,)."""
        table, labels = validate_data(self, X, y)
        classes, signs = two_classes(labels)
        self._fit(table, signs, _error_rate)
        self.classes_ = classes
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The polynomial at every row, shape (samples,): positive for `classes_[1]`."""
        return self._values(X)

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (samples,)."""
        values = self._values(X)
        return np.asarray(self.classes_[(values > 0.0).astype(np.int64)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


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


def explain_terms(values: Float64Array, names: Sequence[str], degree: int, top: int) -> str:
    """A heading and one line per monomial, largest coefficient first.

    Parameters
    ----------
    values : array of shape (monomial_count(len(names), degree),)
    names : the columns the monomials are made of
    """
    shown = [index for index in strongest(values, top) if values[index]]
    total = float(np.sum(values**2))
    share = float(np.sum(values[shown] ** 2)) / total if total else 1.0
    count = int(np.count_nonzero(values))
    monomials = "monomial" if count == 1 else "monomials"
    lines = [f"degree {degree}, {count} {monomials}; the {len(shown)} largest hold {share:.1%} of the squared weight"]
    for index in shown:
        members = monomial_members(len(names), int(index)) if names else ()
        lines.append(f"{values[index]:+12.6g}  {'·'.join(names[member] for member in members) or '1'}")
    return "\n".join(lines)


def _print_progress(done: int, total: int) -> None:
    print(f"low-degree fit: {done} of about {total}", file=sys.stderr)


def _squared_error(values: Float64Array, labels: Float64Array) -> float:
    return float(np.mean((values - labels) ** 2))


def _error_rate(values: Float64Array, labels: Float64Array) -> float:
    return float(np.mean((values > 0.0) != (labels > 0.0)))
