"""The low-degree algorithm as scikit-learn estimators.

sparse-activations, section 2.1: a function with Fourier weight at most ε above degree d is learned to error O(ε) by
regression over the monomials χ_S, |S| ≤ d (Lemma 7); networks of few active neurons are such functions on uniform
inputs (Theorem 8). That is method "regression"; "estimation" takes f̂(S) ≈ mean of y·χ_S(x) instead: one pass, and right
for uniform inputs only. The default goes on from there: penalties, degree and sparsity are chosen on rows held out
(`_search`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._explanation import Explanation
from fewfire._progress import progress_callback
from fewfire._threads import calm_products, job_count
from fewfire._validate import check_choice, check_finite, check_integer, check_number, two_classes
from fewfire.fourier import least_squares
from fewfire.fourier._monomials import Term, strongest
from fewfire.learners._fitting import (
    ScoreClassifier,
    all_or_nothing,
    class_weighted,
    label_unit,
    logistic_slope,
    probabilities,
    weighted_rows,
)
from fewfire.learners._low_degree._forest import forest_fits
from fewfire.learners._low_degree._logistic import logistic_degrees, logistic_fits
from fewfire.learners._low_degree._polynomial import full_polynomial
from fewfire.learners._low_degree._ridge import ridge_fits, ridge_words
from fewfire.learners._low_degree._sample import SMALL, SignSample, draw_folds
from fewfire.learners._low_degree._search import (
    ESTIMATION,
    Found,
    Method,
    combine,
    constant_fit,
    dense_degrees,
    estimated,
    estimation_fits,
    sparse_degrees,
)
from fewfire.learners._low_degree._significance import Correction, Evidence, gather_evidence
from fewfire.learners._low_degree._sparse import sparse_fits
from fewfire.learners._signs import Binarize, column_names, learn_signs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.fourier._least_squares import Solver
    from fewfire.learners._low_degree._polynomial import Polynomial
    from fewfire.learners._low_degree._sample import Fit


@dataclass(eq=False, repr=False)
class LowDegreeBase(BaseEstimator):  # type: ignore[misc]
    """A polynomial of low degree in columns of ±1; see `LowDegreeRegressor` for parameters and attributes."""

    degree: int | Literal["auto"] = "auto"
    _: KW_ONLY
    method: Method = "auto"
    alpha: float | Literal["auto"] = "auto"
    prune: float = 0.0
    solver: Solver = "auto"
    tol: float = 1e-7
    max_iter: int = 2000
    binarize: Binarize | None = None
    max_degree: int = 6
    validation_fraction: float = 0.2
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = -1
    verbose: bool = False

    @property
    def coefficients_(self) -> Float64Array:
        """All coefficients up to `degree_`, in the order of `fewfire.fourier.monomials`."""
        check_is_fitted(self)
        polynomial: Polynomial = self._polynomial
        return polynomial.full if polynomial.full_degree == self.degree_ else polynomial.dense(self.degree_)

    @property
    def coef_(self) -> list[Term]:
        """The non-zero coefficients as (tuple of columns, coefficient), largest first; () is the constant."""
        check_is_fitted(self)
        values = self._polynomial.all_values
        return self._terms(strongest(values, int(np.count_nonzero(values))))

    @property
    def intercept_(self) -> float:
        """The constant coefficient."""
        check_is_fitted(self)
        return float(self._polynomial.full[0])

    @property
    def significant_(self) -> list[Term]:
        """The terms of `coef_` that stand out from noise: Bonferroni at level 0.05."""
        return self.significant_terms()

    def significant_terms(self, *, correction: Correction = "bonferroni", level: float = 0.05) -> list[Term]:
        """The terms of `coef_` that stand out from noise.

        Parameters
        ----------
        correction : {"bonferroni", "fdr"}
            Whether any false term has probability `level` at most, or false ones are a share `level` of those listed.
        level : float
        """
        found = self._terms(np.flatnonzero(self._significant(correction, level)))
        return sorted(found, key=lambda term: -abs(term[1]))

    def explain(self, top: int = 10, *, correction: Correction = "bonferroni", level: float = 0.05) -> Explanation:
        """The `top` largest terms, a star at those that noise does not explain, and the noise floor.

        Parameters
        ----------
        top : int
        correction : {"bonferroni", "fdr"}
            See `significant_terms`.
        level : float
        """
        significant = self._significant(correction, level)
        values = self._polynomial.all_values
        shown = [index for index in strongest(values, check_integer("top", top, 0)).tolist() if values[index]]
        terms = [members for members, _ in self._terms(np.array(shown, dtype=np.int64))]
        total, count, stars = float(np.sum(values**2)), int(np.count_nonzero(values)), int(significant.sum())
        share = float(np.sum(values[shown] ** 2)) / total if total else 1.0
        rule = "Bonferroni" if correction == "bonferroni" else "false discovery rate"
        monomials, verb = "monomial" if count == 1 else "monomials", "is" if stars == 1 else "are"
        size = f"degree {self.degree_}, {count} {monomials}"
        tests, floor = self._evidence.tests, self._evidence.floor(level)
        lines = [
            f"{size}; the {len(shown)} largest hold {share:.1%} of the squared weight",
            f"* {stars} of {tests} {verb} significant ({rule}, level {level:g}); noise alone reaches {floor:.3g}",
        ]
        for index, members in zip(shown, terms, strict=True):
            product = "·".join(self._sign_map.names[column] for column in members) or "1"
            lines.append(f"{values[index]:+12.6g} {'*' if significant[index] else ' '} {product}")
        table: dict[str, Any] = {"columns": terms, "coefficient": values[shown], "significant": significant[shown]}
        return Explanation(type(self).__name__, lines, table)

    def _terms(self, indices: IdArray) -> list[Term]:
        """Some terms of the polynomial as (tuple of columns, coefficient)."""
        columns, values, sets = self.active_.tolist(), self._polynomial.all_values, self._polynomial.all_sets
        return [
            (tuple(columns[member] for member in sets[index].tolist() if member >= 0), float(values[index]))
            for index in indices.tolist()
        ]

    def _significant(self, correction: Correction, level: float) -> AnyArray:
        """Which terms of the polynomial stand out from noise and are not 0."""
        check_is_fitted(self)
        check_choice("correction", correction, get_args(Correction))
        level = check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
        return np.asarray(self._evidence.significant(correction, level) & (self._polynomial.all_values != 0.0))

    def _fit(
        self, table: AnyArray, labels: Float64Array, weights: Float64Array, *, classes: bool
    ) -> tuple[SignSample, Found]:
        """Fit to a validated table (samples, columns), labels and positive weights (samples,)."""
        check_choice("method", self.method, get_args(Method))
        prune = check_number("prune", self.prune, 0.0)
        given = None if isinstance(self.alpha, str) and self.alpha == "auto" else check_number("alpha", self.alpha, 0.0)
        sign_map = learn_signs(table, column_names(self), self.binarize, weights=weights)
        unit = label_unit(labels)
        sample = SignSample(sign_map.transform(table), labels / unit, weights)
        threads = job_count(self.n_jobs)
        with calm_products(len(sample) ** 2 * SMALL):
            found = self._found(sample, threads, given, classes)
        polynomial = found.polynomial
        degree = polynomial.degree if isinstance(self.degree, str) else min(int(self.degree), sample.signs.shape[1])
        values = polynomial.all_values * unit
        values[1:][np.abs(values[1:]) < prune] = 0.0
        evidence = gather_evidence(polynomial, degree, sample, found.held_out, threads)
        self._evidence = Evidence(evidence.effects * unit, evidence.deviation * unit, evidence.tests)
        split = len(polynomial.full)
        self._polynomial = replace(polynomial, full=values[:split], values=values[split:])
        self._sign_map = sign_map
        self.mapping_ = sign_map.mapping
        self.active_ = sign_map.active
        scale = 1.0 if classes else unit * unit
        self.degree_, self.degree_scores_ = degree, {tried: score * scale for tried, score in found.scores.items()}
        self.fits_, self.alpha_ = found.fits, found.alpha
        self.noise_floor_ = self._evidence.floor(0.05)
        self.solver_, self.n_iter_ = found.family, max(1, found.iterations)
        return sample, found

    def _values(self, X: object) -> Float64Array:
        """The fitted polynomial at every row of a table."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False, accept_sparse="csc"))
        return self._polynomial.at(signs, job_count(self.n_jobs))

    def _found(self, sample: SignSample, threads: int, given: float | None, classes: bool) -> Found:
        """The search, or the one fit that was asked for; `given` is the ridge penalty, if it is."""
        rows, n = sample.signs.shape
        degree: int | None = None
        if isinstance(self.degree, str):
            if self.degree != "auto":
                raise invalid("degree", "must be 'auto' or an integer", self.degree)
            limit = check_integer("max_degree", self.max_degree, 0)
        else:
            degree = limit = min(check_integer("degree", self.degree, 0, remedy="or pass 'auto'"), n)
        fraction = check_number(
            "validation_fraction", self.validation_fraction, 0.0, 1.0, open_low=True, open_high=True
        )
        limit = min(limit, n)
        if not n or rows < 2:
            mean = full_polynomial(n, 0, np.array([sample.mean]))
            return Found(mean, [(1.0, "constant")], np.full(rows, np.nan), "mean")
        if self.method == "estimation" and not classes and degree is not None:
            return self._direct(sample, degree, threads)
        if self.method == "regression" and not classes and degree is not None and given is not None:
            return self._direct(sample, degree, threads, given)
        random_state = check_random_state(self.random_state)
        folds = draw_folds(sample, fraction, random_state, stratify=classes)
        seed = int(random_state.randint(2**31 - 1))
        fits = [constant_fit(sample, folds)] if degree is None or self.method in ("auto", "sparse") else []
        stages = self._stages(sample, folds, degree, limit, threads, given, seed, classes)
        progress = self._progress
        for done, stage in enumerate(stages, 1):
            fits += stage()
            if progress is not None and self.method != "estimation":
                progress(done, len(stages))
        found = combine(fits, sample, folds, classes=classes, mix=self.method == "auto")
        if self.method in ("regression", "estimation"):
            final = self._direct(sample, found.polynomial.degree, threads, found.alpha or 0.0)
            scores = found.scores if degree is None else {}
            return replace(final, fits=found.fits, held_out=found.held_out, scores=scores, alpha=found.alpha)
        return found

    def _stages(
        self,
        sample: SignSample,
        folds: IdArray,
        degree: int | None,
        limit: int,
        threads: int,
        alpha: float | None,
        seed: int,
        classes: bool,
    ) -> list[Callable[[], list[Fit]]]:
        """The families to fit, one after the other."""
        n, training, auto = sample.signs.shape[1], int((folds != 0).sum()), self.method == "auto"
        dense = [limit] if degree is not None and not auto else dense_degrees(n, training, limit)
        dense = [d for d in dense if d or degree is not None]
        if self.method == "estimation":
            return [partial(estimation_fits, sample, dense, folds, threads)]
        stages: list[Callable[[], list[Fit]]] = []
        if self.method in ("auto", "regression"):
            stages += [partial(ridge_fits, sample, d, folds, threads, alpha) for d in dense]
        if self.method in ("auto", "sparse") and limit:
            stages.append(partial(sparse_fits, sample, sparse_degrees(n, training, limit), limit, folds, threads))
        if auto and limit and len(sample) <= SMALL:
            stages.append(partial(forest_fits, sample, limit, seed))
        if auto and classes:
            stages += [partial(logistic_fits, sample, d, folds, threads) for d in logistic_degrees(n, training, limit)]
        return stages

    @property
    def _progress(self) -> Callable[[int, int], object] | None:
        return progress_callback(bool(self.verbose), "low-degree fit")

    def _direct(self, sample: SignSample, degree: int, threads: int, alpha: float = 0.0) -> Found:
        """One fit of a known degree and penalty to all rows."""
        nothing = np.full(len(sample), np.nan)
        if self.method == "estimation":
            values = estimated(sample, degree, threads, self._progress)
            polynomial = full_polynomial(sample.signs.shape[1], degree, values)
            return Found(polynomial, [(1.0, ESTIMATION.format(degree))], nothing, "estimate")
        fit = least_squares(
            sample.signs,
            sample.labels,
            degree,
            alpha=alpha,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            weights=None if np.all(sample.weights == 1.0) else sample.weights,
            threads=threads,
            progress=self._progress,
        )
        polynomial, words = full_polynomial(fit.n, degree, fit.values), ridge_words(degree, alpha)
        return Found(polynomial, [(1.0, words)], nothing, fit.solver, {}, alpha, fit.iterations)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
    verbose : bool
        Show the progress as one bar, in a notebook or on standard error.

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
        table, labels, weights = weighted_rows(table, labels, sample_weight)
        self._fit(table, labels, weights, classes=False)
        return self

    def predict(self, X: object) -> Float64Array:
        """The polynomial at every row, shape (samples,)."""
        return self._values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A continuous column cut in two has lost most of its information on a continuous label.
        tags.regressor_tags.poor_score = self.binarize is not None
        return tags


@dataclass(eq=False, repr=False)
class LowDegreeClassifier(ScoreClassifier, LowDegreeBase):
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

    _: KW_ONLY
    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table of binary columns (samples, columns), two classes (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, accept_sparse="csc")
        table, labels, weights = weighted_rows(table, labels, sample_weight)
        classes, signs = two_classes(labels)
        weights = class_weighted(self.class_weight, classes, (signs > 0).astype(np.intp), weights, least=1)
        table, signs, weights = weighted_rows(table, signs, weights)
        sample, found = self._fit(table, signs, weights, classes=True)
        self.classes_ = classes
        self.slope_ = logistic_slope(found.held_out, sample.labels, sample.weights)
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The polynomial at every row, shape (samples,): positive for `classes_[1]`."""
        return self._values(X)

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, 2): a logistic function of the polynomial's value."""
        values = self._values(X)
        return probabilities(self.slope_ * values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
