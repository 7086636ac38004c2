"""The search behind the defaults: fits of several families and degrees, judged on held-out rows, mixed or chosen.

Families: the constant; ridge regression over all monomials (`_dense`); the lasso and its refits (`_sparse`); all
monomials of few columns (`_subcube`); for small samples shallow forests, which are polynomials too (`_trees`); for
classes logistic regression over all monomials (`_logistic`), whose sign is all that counts.
"regression" and "estimation" look at one family each and take one fit.

How far degrees go. A parity of k columns looks like noise below degree k, so all degrees up to the last are tried.
Sparse fits go on while a scan of all monomials is cheap: whether m rows can tell a term from noise depends on the
logarithm of the number of monomials, not on the number. Fits over all monomials end where there are
MONOMIALS_PER_SAMPLE of them per row: beyond, hardly anything is left after shrinkage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fewfire.fourier import estimate, evaluate, monomial_count
from fewfire.learners.low_degree._dense import ridge_path
from fewfire.learners.low_degree._logistic import PENALTIES as LOGISTIC_PENALTIES
from fewfire.learners.low_degree._logistic import LogisticPath
from fewfire.learners.low_degree._mixture import better_odds, mixture_weights, squared_losses
from fewfire.learners.low_degree._polynomial import Polynomial, add, full_polynomial
from fewfire.learners.low_degree._sample import SignSample, splits
from fewfire.learners.low_degree._sparse import PENALTIES, scannable, sparse_path
from fewfire.learners.low_degree._subcube import subcube_fits
from fewfire.learners.low_degree._trees import SHARES, grow_forest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fewfire._types import Float64Array, IdArray

Method: TypeAlias = Literal["auto", "regression", "sparse", "estimation"]
"""All families; ridge regression over all monomials; few monomials; empirical Fourier coefficients."""

MONOMIALS_PER_SAMPLE = 10
"""Degrees with more monomials than this for each training sample are not fitted densely."""

SCAN_ALWAYS = 3
"""Sparse fits go to this degree wherever they can be made at all …"""

SCAN_CHEAP = 40_000
"""… and beyond it up to this many monomials."""

SUBCUBE_DEGREE = 3
"""Columns are taken in the order in which sparse fits of at most this degree name them."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit: its family and degree, a few words, its predictions of held-out rows, and the fit to all rows."""

    family: str
    degree: int
    words: str
    held_out: Float64Array
    polynomial: Callable[[], Polynomial]
    alpha: float | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with.

    Attributes
    ----------
    polynomial : Polynomial
    fits : list of (weight, words)
        What was mixed.
    family : str
        Of the one fit that was taken, or of the logistic ones; "mixture" where there are several.
    held_out : array of shape (samples,)
        Predictions by fits without the row; NaN for rows never held out.
    scores : dict
        Held-out loss of the best fit of each degree.
    alpha : float or None
        The ridge penalty, where a single ridge fit was taken.
    iterations : int
        Steps of the solver.
    """

    polynomial: Polynomial
    fits: list[tuple[float, str]]
    held_out: Float64Array
    family: str
    scores: dict[int, float] = field(default_factory=dict)
    alpha: float | None = None
    iterations: int = 0


def dense_degrees(n: int, rows: int, max_degree: int) -> list[int]:
    """The degrees from 1 that have at most MONOMIALS_PER_SAMPLE monomials per row; 1 always."""
    degrees = range(1, min(max_degree, n) + 1)
    return [d for d in degrees if d == 1 or monomial_count(n, d) <= MONOMIALS_PER_SAMPLE * rows]


def sparse_degrees(n: int, rows: int, max_degree: int) -> list[int]:
    """The degrees from 1 whose monomials can be scanned in reasonable time."""
    degrees = [d for d in range(1, min(max_degree, n) + 1) if scannable(n, rows, d)]
    return [d for d in degrees if d <= SCAN_ALWAYS or monomial_count(n, d) <= SCAN_CHEAP]


def constant_fit(sample: SignSample, folds: IdArray) -> Fit:
    """The mean of the labels."""
    held_out = np.full(len(sample), np.nan)
    for train, test in splits(folds):
        held_out[test] = sample.take(train).mean
    polynomial = full_polynomial(sample.signs.shape[1], 0, np.array([sample.mean]))
    return Fit("constant", 0, "constant", held_out, lambda: polynomial)


def ridge_fits(sample: SignSample, degree: int, folds: IdArray, threads: int, alpha: float | None) -> Iterator[Fit]:
    """Ridge regression over all monomials, with one penalty or several."""
    path = ridge_path(sample, degree, folds, threads, None if alpha is None else np.array([alpha]))
    for index, penalty in enumerate(path.alphas.tolist()):
        words = f"ridge over all monomials of degree at most {degree}, penalty {penalty:.3g}"
        yield Fit("ridge", degree, words, path.held_out[index], lambda i=index: path.polynomial(i), penalty)  # type: ignore[misc]


def sparse_fits(sample: SignSample, degrees: list[int], max_degree: int, folds: IdArray, threads: int) -> Iterator[Fit]:
    """The lasso and its refits of each degree, then all monomials of the columns that they name."""
    orders: list[IdArray] = []
    for degree in degrees:
        path = sparse_path(sample, degree, folds, threads)
        for index, held_out in enumerate(path.held_out):
            family = ("lasso", "refit")[index % 2]
            words = f"{family} of degree at most {degree}, penalty {PENALTIES[index // 2]:.2g} of the largest"
            yield Fit(family, degree, words, held_out, lambda p=path, i=index: p.polynomial(i))  # type: ignore[misc]
        if degree <= SUBCUBE_DEGREE:
            orders = path.orders
    if orders:
        cubes = subcube_fits(sample, max_degree, folds, orders)
        for index, (size, degree, ratio) in enumerate(cubes.settings):
            words = f"all monomials of degree at most {degree} on up to {size} columns, penalty {ratio:g} per row"
            yield Fit("subcube", degree, words, cubes.held_out[index], lambda i=index: cubes.polynomial(i))  # type: ignore[misc]


def forest_fits(sample: SignSample, depth: int, seed: int) -> Iterator[Fit]:
    """Forests of trees no deeper than the degree."""
    for share in SHARES:
        forest = grow_forest(sample, depth, share, seed)
        words = f"forest of depth {depth}, {share:.0%} of the columns per split"
        yield Fit("forest", depth, words, forest.held_out, forest.polynomial)


def logistic_fits(sample: SignSample, degree: int, folds: IdArray, threads: int) -> Iterator[Fit]:
    """Logistic regression over all monomials: half the log odds."""
    path = LogisticPath(sample, degree, folds, threads)
    for index, penalty in enumerate(LOGISTIC_PENALTIES):
        words = f"logistic regression over all monomials of degree at most {degree}, penalty {penalty:g}"
        yield Fit("logistic", degree, words, path.held_out[index], lambda i=index: path.polynomial(i))  # type: ignore[misc]


def estimation_fits(sample: SignSample, degrees: list[int], folds: IdArray, threads: int) -> Iterator[Fit]:
    """Empirical coefficients: one scan per fold serves all degrees."""
    n = sample.signs.shape[1]
    held_out = np.full((len(degrees), len(sample)), np.nan)
    for train, test in splits(folds):
        values = estimated(sample.take(train), degrees[-1], threads)
        for place, degree in enumerate(degrees):
            part = values[: monomial_count(n, degree)]
            held_out[place, test] = evaluate(sample.signs[test], part, degree, threads=threads)
    for place, degree in enumerate(degrees):
        words = f"empirical coefficients of degree at most {degree}"
        yield Fit(
            "estimation", degree, words, held_out[place],
            lambda d=degree: full_polynomial(n, d, estimated(sample, d, threads)),  # type: ignore[misc]
        )  # fmt: skip


def estimated(sample: SignSample, degree: int, threads: int) -> Float64Array:
    """Weighted means of label times monomial."""
    weights = sample.weights
    equal = bool(np.all(weights == weights[0]))
    labels = sample.labels if equal else sample.labels * (weights / weights.mean())
    return estimate(sample.signs, labels, degree, threads=threads).values


def combine(fits: list[Fit], sample: SignSample, folds: IdArray, *, classes: bool, mix: bool) -> Found:
    """A mixture of fits, or the average of logistic ones where it is better, or (without `mix`) the best of them.

    A single fit is chosen by its share of wrong predictions where labels are classes, else by squared error; ties go to
    the lowest degree.
    """
    seen = folds >= 0
    judged = sample.take(seen)
    fits = [fit for fit in fits if np.isfinite(fit.held_out[seen]).all()]
    predictions = np.stack([fit.held_out for fit in fits])[:, seen]
    losses = squared_losses(predictions, judged, clip=classes)
    scores = _wrong(predictions, judged) if classes else losses
    by_degree: dict[int, float] = {}
    for degree in sorted({fit.degree for fit in fits}):
        of_degree = [index for index, fit in enumerate(fits) if fit.degree == degree]
        by_degree[degree] = float(scores[min(of_degree, key=lambda index: (losses[index], scores[index]))])
    family = "mixture"
    if mix:
        odds = np.array([fit.family == "logistic" for fit in fits])
        groups = [(fit.family, fit.degree) for fit in fits if fit.family != "logistic"]
        forests = {group for group in groups if group[0] == "forest"}
        weights = np.zeros(len(fits))
        weights[~odds], mixed = mixture_weights(predictions[~odds], groups, forests, judged, classes)
        degrees = np.array([fit.degree for fit in fits])[odds]
        better = better_odds(predictions[odds], degrees, judged, mixed) if odds.any() else None
        if better is not None:
            weights[~odds], (weights[odds], mixed), family = 0.0, better, "logistic"
    else:
        best = min(range(len(fits)), key=lambda i: (scores[i], fits[i].degree if classes else 0, losses[i]))
        weights, mixed = np.eye(len(fits))[best], predictions[best]
    held_out = np.full(len(sample), np.nan)
    held_out[seen] = mixed
    chosen = np.flatnonzero(weights)
    if not len(chosen):  # a mixture of nothing is the mean
        fits, chosen, weights = [constant_fit(sample, folds)], np.array([0]), np.ones(1)
    words = sorted(((float(weights[i]), fits[i].words) for i in chosen), reverse=True)
    if len(chosen) == 1 and weights[chosen[0]] == 1.0:
        fit = fits[chosen[0]]
        return Found(fit.polynomial(), words, held_out, fit.family, by_degree, fit.alpha)
    # A mixture is mean + Σ weight·(fit − mean); log odds have no mean to start from.
    rest = 0.0 if family == "logistic" else judged.mean * (1.0 - float(weights.sum()))
    parts = [full_polynomial(sample.signs.shape[1], 0, np.array([rest])), *[fits[i].polynomial() for i in chosen]]
    return Found(add(parts, [1.0, *weights[chosen]]), words, held_out, family, by_degree)


def _wrong(predictions: Float64Array, sample: SignSample) -> Float64Array:
    """Weighted share of wrong signs of each row of predictions."""
    wrong = (predictions > 0.0) != (sample.labels > 0.0)
    return np.asarray(wrong @ sample.weights / sample.weights.sum())
