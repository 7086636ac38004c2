"""The low-degree algorithm as scikit-learn estimators.

sparse-activations, section 2.1: a function with Fourier weight at most ε above degree d is learned to error O(ε) by
regression over the monomials χ_S, |S| ≤ d (Lemma 7); networks of few active neurons are such functions on uniform
inputs (Theorem 8). That is method "regression"; "estimation" takes f̂(S) ≈ mean of y·χ_S(x) instead: one pass, and right
for uniform inputs only. The default goes on from there: penalties, degree and sparsity are chosen on rows held out
(`_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._classes import two_classes
from fewfire._errors import invalid
from fewfire._validate import check_finite, check_number, check_sample_weight
from fewfire.learners._calibration import logistic_slope, two_probabilities
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners.low_degree._base import LowDegreeBase

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.fourier._least_squares import Solver
    from fewfire.learners._signs import Binarize
    from fewfire.learners.low_degree._search import Method


class LowDegreeRegressor(RegressorMixin, LowDegreeBase):  # type: ignore[misc]
    """Polynomial of low degree in binary columns, of least squared error.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1
    (so 0 ↦ +1, 1 ↦ −1). Constant columns are ignored. Columns with more values are refused unless `binarize` is set.
    Tables may be SciPy's sparse ones.

    Parameters
    ----------
    degree : "auto" or int
        Largest number of columns in a monomial. "auto" tries 0 … max_degree on held-out samples.
    method : {"auto", "regression", "sparse", "estimation"}
        "regression" is ridge regression over all monomials, for any inputs; "estimation" takes empirical Fourier
        coefficients, for uniform inputs; "sparse" looks for few monomials, or few columns, that suffice. "auto" fits
        the first and the third in many settings, and shallow forests to small samples, and mixes them by their held-out
        errors, or takes one that is as good.
    alpha : "auto" or float
        Ridge penalty of the regression on all coefficients but the constant one; "auto" chooses it on held-out samples.
    prune : float
        Coefficients smaller in magnitude are set to zero (the constant one is kept).
    solver : {"auto", "cg", "gram"}
        How method "regression" is solved in the end; see `fewfire.fourier.least_squares`.
    tol, max_iter : float, int
        Estimated relative error at which "cg" stops, and its most steps.
    binarize : None or "median"
        What happens to columns with more than two values: refused, or cut in two at the median.
    max_degree : int
        Largest degree "auto" tries. Fits over all monomials also end at 10 monomials per training sample, sparse ones
        where a scan of all monomials is too long.
    validation_fraction : float
        Share of the samples held out where there are more than 2000; fewer are cut into 5 folds (10 up to 300). The
        final fit uses all.
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
    significant_ : list of (tuple of columns, coefficient)
        Those that noise does not explain; see `significant_terms`.
    noise_floor_ : float
        The largest coefficient that noise alone gives, but with probability 0.05.
    active_ : array of the columns that are not constant
    mapping_ : list of (what became +1, what became −1)
        One pair per column; None where nothing did.
    degree_ : int
    degree_scores_ : dict
        Held-out mean squared error of each degree that was tried.
    fits_ : list of (weight, words)
        What was mixed, or the one fit that was taken.
    alpha_ : float or None
        The ridge penalty, where the fit is one of "regression".
    solver_ : str
        "cg", "gram", "estimate", "mean" where every column is constant, or the family taken by "auto" and "sparse".
    n_iter_ : int
        Steps of "cg"; 1 where nothing was iterated.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=30, k=3, support=[2, 5, 11], noise=0.1).sample(300, seed=0)
    >>> LowDegreeRegressor(random_state=0).fit(X, y).significant_[0][0]
    (2, 5, 11)
    """

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table of binary columns (samples, columns), numbers (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, y_numeric=True, accept_sparse="csc")
        labels = np.asarray(check_finite("y", labels.astype(np.float64)), dtype=np.float64)
        weights = check_sample_weight(sample_weight, len(labels))
        kept = np.flatnonzero(weights)
        if len(kept) < len(weights):
            table, labels, weights = table[kept], labels[kept], weights[kept]
        self._fit(table, labels, weights, classes=False)
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

    The polynomial is fitted to −1 for `classes_[0]` and +1 for `classes_[1]`. Method "auto" also fits logistic
    regressions over all monomials of degree 1 to 3, and takes those of one degree, averaged over penalties, where
    held-out rows say that they are better than the mixture: half-spaces and majorities. `solver_` is "logistic" then.
    Their polynomial is scaled to the least squared error on held-out rows, so whatever was taken, values and
    coefficients are in the unit of the labels, and `slope_` times a coefficient is the one of the log odds.

    Parameters and attributes are those of `LowDegreeRegressor`, with `degree_scores_` the held-out share of wrong
    predictions, and

    Parameters
    ----------
    class_weight : None, "balanced" or dict of class to weight
        Multiplies the weights of samples; "balanced" gives both classes the same total.

    Attributes
    ----------
    classes_ : array of the two labels, ascending
    slope_ : float
        Of the logistic function that makes probabilities of the polynomial's values, fitted to held-out samples:
        `slope_` times the value is the log odds of `classes_[1]`.

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(n=20, k=2, support=[2, 5]).sample(400, seed=0)
    >>> ff.LowDegreeClassifier(degree=2, method="regression").fit(X[:300], y[:300]).score(X[300:], y[300:])
    1.0
    """

    def __init__(
        self,
        degree: int | Literal["auto"] = "auto",
        *,
        method: Method = "auto",
        alpha: float | Literal["auto"] = "auto",
        prune: float = 0.0,
        solver: Solver = "auto",
        tol: float = 1e-7,
        max_iter: int = 2000,
        binarize: Binarize | None = None,
        max_degree: int = 6,
        validation_fraction: float = 0.2,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
        verbose: bool | Callable[[int, int], object] = False,
    ) -> None:
        super().__init__(
            degree,
            method=method,
            alpha=alpha,
            prune=prune,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            binarize=binarize,
            max_degree=max_degree,
            validation_fraction=validation_fraction,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table of binary columns (samples, columns), two classes (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, accept_sparse="csc")
        weights = check_sample_weight(sample_weight, len(labels))
        kept = np.flatnonzero(weights)
        if len(kept) < len(weights):
            table, labels, weights = table[kept], labels[kept], weights[kept]
        classes, signs = two_classes(labels)
        weights = weights * _class_weights(self.class_weight, classes, signs, weights)
        if not weights.all():
            table, signs, weights = table[weights > 0.0], signs[weights > 0.0], weights[weights > 0.0]
        sample, found = self._fit(table, signs, weights, classes=True)
        self.classes_ = classes
        self.slope_ = logistic_slope(found.held_out, sample.labels, sample.weights)
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The polynomial at every row, shape (samples,): positive for `classes_[1]`."""
        return self._values(X)

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (samples,)."""
        values = self._values(X)
        return np.asarray(self.classes_[(values > 0.0).astype(np.int64)])

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, 2): a logistic function of the polynomial's value."""
        check_is_fitted(self)
        return two_probabilities(self.slope_, self._values(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _class_weights(class_weight: object, classes: AnyArray, signs: Float64Array, weights: Float64Array) -> Float64Array:
    """The factor of each row's weight, shape (rows,)."""
    if class_weight is None:
        return np.ones(len(signs))
    if isinstance(class_weight, str) and class_weight == "balanced":
        positive = float(weights[signs > 0].sum())
        negative = float(weights[signs < 0].sum())
        return np.where(signs > 0, 0.5, 0.5 * positive / negative) * (positive + negative) / positive
    if not isinstance(class_weight, Mapping):
        raise invalid("class_weight", "must be None, 'balanced' or a dict of weights", class_weight)
    low, high = (
        check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), 0.0) for label in classes.tolist()
    )
    if not low and not high:
        raise invalid("class_weight", "must not be 0 for both classes", dict(class_weight))
    return np.where(signs > 0, high, low)
