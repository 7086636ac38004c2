"""What both estimators share: parameters, columns to signs, the search or the one fit asked for, explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._blas import calm_products
from fewfire._cores import job_count
from fewfire._errors import invalid
from fewfire._progress import told
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.fourier import estimate, least_squares
from fewfire.fourier._monomials import Term, strongest
from fewfire.learners._fitting import label_unit
from fewfire.learners._signs import Binarize, column_names, learn_signs
from fewfire.learners.low_degree._explain import Correction, Evidence, explain_polynomial, gather_evidence
from fewfire.learners.low_degree._logistic import logistic_degrees
from fewfire.learners.low_degree._polynomial import Polynomial, full_polynomial
from fewfire.learners.low_degree._sample import SMALL, SignSample, draw_folds
from fewfire.learners.low_degree._search import (
    Fit,
    Found,
    Method,
    combine,
    constant_fit,
    dense_degrees,
    estimation_fits,
    forest_fits,
    logistic_fits,
    ridge_fits,
    sparse_degrees,
    sparse_fits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.fourier._least_squares import Solver


class LowDegreeBase(BaseEstimator):  # type: ignore[misc]
    """A polynomial of low degree in columns of ±1; see `LowDegreeRegressor` for parameters and attributes."""

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
    def coefficients_(self) -> Float64Array:
        """All coefficients up to `degree_`, in the order of `fewfire.fourier.monomials`."""
        check_is_fitted(self)
        polynomial: Polynomial = self._polynomial
        return polynomial.full if polynomial.full_degree == self.degree_ else polynomial.dense(self.degree_)

    @property
    def coef_(self) -> list[Term]:
        """The non-zero coefficients as (tuple of columns, coefficient), largest first; () is the constant."""
        check_is_fitted(self)
        columns = [int(column) for column in self.active_]
        values, sets = self._polynomial.all_values, self._polynomial.all_sets
        kept = strongest(values, int(np.count_nonzero(values)))
        return [
            (tuple(columns[place] for place in sets[index].tolist() if place >= 0), float(values[index]))
            for index in kept.tolist()
        ]

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
        check_is_fitted(self)
        check_choice("correction", correction, get_args(Correction))
        level = check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
        chosen = self._evidence.significant(correction, level)
        columns = [int(column) for column in self.active_]
        values, sets = self._polynomial.all_values, self._polynomial.all_sets
        kept = [index for index in np.flatnonzero(chosen).tolist() if values[index]]
        found = [(tuple(columns[p] for p in sets[i].tolist() if p >= 0), float(values[i])) for i in kept]
        return sorted(found, key=lambda term: -abs(term[1]))

    def explain(self, top: int = 10, *, correction: Correction = "bonferroni", level: float = 0.05) -> str:
        """The `top` largest terms as text, a star at those that noise does not explain, and the noise floor.

        Parameters
        ----------
        top : int
        correction : {"bonferroni", "fdr"}
            See `significant_terms`.
        level : float
        """
        check_is_fitted(self)
        check_choice("correction", correction, get_args(Correction))
        level = check_number("level", level, 0.0, 1.0, open_low=True, open_high=True)
        names = [self._sign_map.names[column] for column in self.active_]
        top = check_integer("top", top, 0)
        return explain_polynomial(self._polynomial, names, self.degree_, top, self._evidence, correction, level)

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
        self._polynomial = polynomial.with_values(values)
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
        training = int((folds != 0).sum())
        fits = [constant_fit(sample, folds)] if degree is None or self.method in ("auto", "sparse") else []
        for stage in self._stages(sample, degree, limit, training, given, seed, classes):
            fits += stage(folds, threads)
        found = combine(fits, sample, folds, classes=classes, mix=self.method == "auto")
        if self.method in ("regression", "estimation"):
            final = self._direct(sample, found.polynomial.degree, threads, found.alpha or 0.0)
            scores = found.scores if degree is None else {}
            return Found(
                final.polynomial, found.fits, found.held_out, final.family, scores, found.alpha, final.iterations
            )
        return found

    def _stages(
        self,
        sample: SignSample,
        degree: int | None,
        limit: int,
        training: int,
        alpha: float | None,
        seed: int,
        classes: bool,
    ) -> list[Callable[..., list[Fit]]]:
        """The families to fit, one after the other."""
        n = sample.signs.shape[1]
        dense = [limit] if degree is not None and self.method != "auto" else dense_degrees(n, training, limit)
        dense = [d for d in dense if d or degree is not None]
        if self.method == "estimation":
            return [lambda folds, threads: list(estimation_fits(sample, dense, folds, threads))]
        stages: list[Callable[..., list[Fit]]] = []
        if self.method in ("auto", "regression"):
            for d in dense:
                stages.append(lambda folds, threads, d=d: list(ridge_fits(sample, d, folds, threads, alpha)))
        if self.method in ("auto", "sparse") and limit:
            sparse = sparse_degrees(n, training, limit)
            stages.append(lambda folds, threads: list(sparse_fits(sample, sparse, limit, folds, threads)))
        if self.method == "auto" and limit and len(sample) <= SMALL:
            stages.append(lambda folds, threads: list(forest_fits(sample, limit, seed)))
        if self.method == "auto" and classes:
            for d in logistic_degrees(n, training, limit):
                stages.append(lambda folds, threads, d=d: list(logistic_fits(sample, d, folds, threads)))
        return self._telling(stages)

    def _telling(self, stages: list[Callable[..., list[Fit]]]) -> list[Callable[..., list[Fit]]]:
        """The stages, with the progress told after each."""
        progress = self._progress
        if progress is None:
            return stages

        def told(place: int, stage: Callable[..., list[Fit]]) -> Callable[..., list[Fit]]:
            def run(*arguments: Any) -> list[Fit]:
                found = stage(*arguments)
                progress(place + 1, len(stages))
                return found

            return run

        return [told(place, stage) for place, stage in enumerate(stages)]

    @property
    def _progress(self) -> Callable[[int, int], object] | None:
        return told(self.verbose if callable(self.verbose) else bool(self.verbose), "low-degree fit")

    def _direct(self, sample: SignSample, degree: int, threads: int, alpha: float = 0.0) -> Found:
        """One fit of a known degree and penalty to all rows."""
        weights = None if np.all(sample.weights == 1.0) else sample.weights
        nothing = np.full(len(sample), np.nan)
        if self.method == "estimation":
            labels = sample.labels if weights is None else sample.labels * (weights / weights.mean())
            found = estimate(sample.signs, labels, degree, threads=threads, progress=self._progress)
            words = f"empirical coefficients of degree at most {degree}"
            return Found(full_polynomial(found.n, degree, found.values), [(1.0, words)], nothing, "estimate")
        fit = least_squares(
            sample.signs,
            sample.labels,
            degree,
            alpha=alpha,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            weights=weights,
            threads=threads,
            progress=self._progress,
        )
        words = f"ridge over all monomials of degree at most {degree}, penalty {alpha:.3g}"
        polynomial = full_polynomial(fit.n, degree, fit.values)
        return Found(polynomial, [(1.0, words)], nothing, fit.solver, {}, alpha, fit.iterations)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
