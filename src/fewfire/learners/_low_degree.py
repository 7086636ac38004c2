"""The low-degree algorithm as scikit-learn estimators.

sparse-activations, section 2.1: a function with Fourier weight at most ε above degree d is learned to error O(ε) by
regression over the monomials χ_S, |S| ≤ d (Lemma 7); networks of few active neurons are such functions on uniform
inputs (Theorem 8). "estimation" takes f̂(S) ≈ mean of y·χ_S(x) instead: one pass, and right for uniform inputs only.
Neither forms the table of samples × monomials; see `fewfire.fourier.least_squares` and `estimate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from fewfire._classes import two_classes
from fewfire.learners._low_degree_base import LowDegreeBase

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array


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
        Largest degree "auto" tries; it also ends at 10 monomials a training sample.
    validation_fraction : float
        Share of the samples that "auto" holds out; the final fit uses all.
    random_state : int, RandomState or None
        Decides which samples are held out.
    threads : int or None
        All cores unless given.
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
        One pair a column; None where nothing did.
    degree_ : int
    degree_scores_ : dict
        Held-out mean squared error of each degree that "auto" tried.
    solver_ : str
        "cg", "gram", "estimate", or "mean" where every column is constant.
    n_iter_ : int
        Steps of "cg"; 1 where nothing was iterated.
    n_features_in_, feature_names_in_
    """

    def fit(self, X: object, y: object) -> Self:
        """Fit to a table of binary columns (samples, columns) and numbers (samples,)."""
        table, labels = validate_data(self, X, y, y_numeric=True)
        self._fit(table, labels.astype(np.float64), _squared_error)
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


def _squared_error(values: Float64Array, labels: Float64Array) -> float:
    return float(np.mean((values - labels) ** 2))


def _error_rate(values: Float64Array, labels: Float64Array) -> float:
    return float(np.mean((values > 0.0) != (labels > 0.0)))
