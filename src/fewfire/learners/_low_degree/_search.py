"""The search behind the defaults: fits of several families and degrees, validated on held-out rows, mixed or chosen.

Families: the constant; ridge regression over all monomials (`_ridge`); the lasso and its refits and all monomials of
few columns (`_sparse`); for small samples shallow forests, which are polynomials too (`_forest`); for classes logistic
regression over all monomials (`_logistic`), whose sign is all that counts. "regression" and "estimation" look at one
family each and take one fit.

How far degrees go. A parity of k columns looks like noise below degree k, so all degrees up to the last are tried.
Sparse fits continue while a scan of all monomials is cheap: whether m rows distinguish a term from noise depends on the
logarithm of the number of monomials, not on the number. Fits over all monomials end where there are
MONOMIALS_PER_SAMPLE of them per row: beyond, hardly anything is left after shrinkage.

To take the fit of least held-out error among hundreds is to take the luckiest. Within a group (one family and degree,
many penalties) fits are averaged with weights exp(−η·m·loss / 2σ²), as aggregation with exponential weights has it;
then the groups' averages are combined by least squares with weights of at least 0 (stacking), drawn towards exponential
weights by a penalty that fades with the number of rows; half of what it draws to are the forests, which assume the
least. A mixture of polynomials is a polynomial. But one fit is easier to read, so the best single one is preferred
where it explains enough and the mixture's held-out error is lower by no more than its weights, fitted to the same
rows, account for.

Logistic fits are of another scale, half log odds, and squares do not measure how good they are. The average of those of
one degree is taken instead of the mixture where it explains something and has fewer held-out rows wrong, beyond doubt,
or else a lower log loss on them, each with its best slope and the mixture's weights paid for: these are fitted to the
same rows, and with noisy labels that is worth more than what distinguishes the two. It is scaled to the least
squared error, so that coefficients have one unit whichever was taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.special import entr

from fewfire._dense.losses import LOSSES
from fewfire.fourier import estimate, evaluate, monomial_count
from fewfire.learners._fitting import logistic_slope
from fewfire.learners._low_degree._polynomial import Polynomial, add, full_polynomial
from fewfire.learners._low_degree._sample import Fit, SignSample, splits
from fewfire.learners._low_degree._sparse import scannable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from fewfire._types import Float64Array, IdArray

Method: TypeAlias = Literal["auto", "regression", "sparse", "estimation"]
"""All families; ridge regression over all monomials; few monomials; empirical Fourier coefficients."""

MONOMIALS_PER_SAMPLE = 10  # degrees with more monomials than this for each training sample are not fitted densely
SCAN_ALWAYS = 3  # sparse fits go to this degree wherever they can be made at all …
SCAN_CHEAP = 40_000  # … and beyond it up to this many monomials
ETA = 0.2  # how sharply losses are distinguished; 1 would be the likelihood of independent normal residuals
ANCHOR = 15.0  # rows that the exponential weights are worth when groups are combined
CAUTION = 0.5  # share of the anchor that goes to forests, whatever the other groups' losses

PER_WEIGHT = 1.0
"""Relative gain in held-out error, times the number of rows, that each weight of a mixture has to bring (Akaike)."""

INFORMED, EVIDENCE = 0.03, 12.0
"""Share of the labels' entropy that logistic fits must save, and in all how much per degree: less may be luck."""

DEAREST = 0.03
"""Log loss that weights of a mixture cost at most: where one is needed, it is better by more in small samples too."""

SURELY = 2.0  # standard deviations by which shares of wrong predictions have to differ to decide alone

EXPLAINED = 0.5
"""Share of the variance that a single fit must explain; where none does, all are uncertain and better mixed."""

ESTIMATION = "empirical coefficients of degree at most {}"
NEGLIGIBLE = 0.01  # share of a mixture below which a fit is left out


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with."""

    polynomial: Polynomial
    fits: list[tuple[float, str]]  # weights and words of what was mixed
    held_out: Float64Array  # (samples,), by fits without the row; NaN for rows never held out
    family: str  # "mixture" where there are several fits that are not logistic
    scores: dict[int, float] = field(default_factory=dict)  # held-out loss of the best fit of each degree
    alpha: float | None = None  # where a single ridge fit was taken
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


def estimation_fits(sample: SignSample, degrees: list[int], folds: IdArray, threads: int) -> list[Fit]:
    """Empirical coefficients: one scan per fold serves all degrees."""
    n = sample.signs.shape[1]
    held_out = np.full((len(degrees), len(sample)), np.nan)
    for train, test in splits(folds):
        values = estimated(sample.take(train), degrees[-1], threads)
        for index, degree in enumerate(degrees):
            part = values[: monomial_count(n, degree)]
            held_out[index, test] = evaluate(sample.signs[test], part, degree, threads=threads)

    def polynomial(degree: int) -> Polynomial:
        return full_polynomial(n, degree, estimated(sample, degree, threads))

    return [
        Fit("estimation", degree, ESTIMATION.format(degree), predicted, partial(polynomial, degree))
        for degree, predicted in zip(degrees, held_out, strict=True)
    ]


def estimated(
    sample: SignSample, degree: int, threads: int, progress: Callable[[int, int], object] | None = None
) -> Float64Array:
    """Weighted means of label times monomial."""
    weights = sample.weights
    equal = bool(np.all(weights == weights[0]))
    labels = sample.labels if equal else sample.labels * (weights / weights.mean())
    return estimate(sample.signs, labels, degree, threads=threads, progress=progress).values


def combine(fits: list[Fit], sample: SignSample, folds: IdArray, *, classes: bool, mix: bool) -> Found:
    """A mixture of fits, or the average of logistic ones where it is better, or (without `mix`) the best of them."""
    seen = folds >= 0
    validation = sample.take(seen)
    fits = [fit for fit in fits if np.isfinite(fit.held_out[seen]).all()]
    predictions = np.stack([fit.held_out for fit in fits])[:, seen]
    losses = squared_losses(predictions, validation, clip=classes)
    scores = losses
    if classes:  # the weighted share of wrong signs
        scores = ((predictions > 0.0) != (validation.labels > 0.0)) @ validation.weights / validation.weights.sum()
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
        weights[~odds], mixed = mixture_weights(predictions[~odds], groups, forests, validation, classes)
        degrees = np.array([fit.degree for fit in fits])[odds]
        terms = len({group for group, weight in zip(groups, weights[~odds], strict=True) if weight})
        better = better_odds(predictions[odds], degrees, validation, mixed, terms) if odds.any() else None
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
    rest = 0.0 if family == "logistic" else validation.mean * (1.0 - float(weights.sum()))
    parts = [full_polynomial(sample.signs.shape[1], 0, np.array([rest])), *[fits[i].polynomial() for i in chosen]]
    return Found(add(parts, [1.0, *weights[chosen]]), words, held_out, family, by_degree)


def mixture_weights(
    held_out: Float64Array, groups: Sequence[Hashable], forests: Collection[Hashable], sample: SignSample, clip: bool
) -> tuple[Float64Array, Float64Array]:
    """The weight of every fit, shape (fits,), and the held-out predictions of the mixture, shape (rows,).

    Weights need not sum to 1: the mixture is mean + Σ weight·(fit − mean), mean that of the labels. `held_out` is
    (fits, rows), and `clip` says that labels are ±1, beyond which nothing is lost.
    """
    from scipy.optimize import nnls

    def loss(predicted: Float64Array) -> Float64Array:
        return squared_losses(predicted, sample, clip)

    mean, rows = sample.mean, sample.effective
    variance = float(np.average((sample.labels - mean) ** 2, weights=sample.weights))
    losses = loss(held_out)
    best = int(np.argmin(losses))
    scale = max(float(losses[best]), 1e-3 * variance)
    if scale <= 0.0:
        return np.eye(len(losses))[best], held_out[best]
    names = list(dict.fromkeys(groups))
    inner = np.zeros((len(names), len(losses)))
    for index, name in enumerate(names):
        members = [fit for fit, group in enumerate(groups) if group == name]
        inner[index, members] = _exponential(losses[members], rows, scale)
    averages = inner @ held_out
    anchor = _exponential(loss(averages), rows, scale)
    cautious = np.where([name in forests for name in names], anchor, 0.0)
    if cautious.any():
        anchor = (1.0 - CAUTION) * anchor + CAUTION * cautious / cautious.sum()
    roots = np.sqrt(sample.weights / sample.weights.sum())
    pull = np.sqrt(ANCHOR * variance / rows)
    table = np.vstack([((averages - mean) * roots).T, pull * np.eye(len(names))])
    outer = nnls(table, np.concatenate([(sample.labels - mean) * roots, pull * anchor]))[0]
    weights = outer @ inner
    weights[weights < NEGLIGIBLE * weights.sum()] = 0.0
    mixed = mean + weights @ (held_out - mean)
    clear = losses[best] <= (1.0 - EXPLAINED) * variance
    price = PER_WEIGHT * (np.count_nonzero(outer) - 1) / rows
    if clear and losses[best] <= (1.0 + price) * float(loss(mixed[None])[0]):
        return np.eye(len(losses))[best], held_out[best]
    return weights, mixed


def better_odds(
    held_out: Float64Array, degrees: Float64Array, sample: SignSample, mixed: Float64Array, terms: int
) -> tuple[Float64Array, Float64Array] | None:
    """Weights (fits,) and held-out predictions of logistic fits, half log odds, if they beat a mixture of so many."""
    rows, labels, shares = sample.effective, sample.labels, sample.weights / sample.weights.sum()

    def loss(values: Float64Array) -> float:
        slope = logistic_slope(values, labels, sample.weights)
        return float(LOSSES["logistic"].value(slope * values, labels) @ shares)

    own = LOSSES["logistic"].value(2.0 * held_out, labels) @ shares
    least, weights, average, needed = np.inf, np.zeros(len(held_out)), mixed, 0.0
    for degree in np.unique(degrees):
        inner = np.exp(-rows * np.maximum(own - own[degrees == degree].min(), 0.0)) * (degrees == degree)
        inner[inner < NEGLIGIBLE * inner.sum()] = 0.0
        inner /= inner.sum()
        if loss(inner @ held_out) < least:
            least, weights, average = loss(inner @ held_out), inner, inner @ held_out
            needed = EVIDENCE * float(degree) / rows
    scale = float((labels * average) @ shares) / max(float(average**2 @ shares), 1e-300)
    share = float(shares[labels > 0.0].sum())
    entropy = float(entr(share) + entr(1.0 - share))
    if scale <= 0.0 or entropy - least < max(INFORMED * entropy, needed):
        return None
    gains = shares * ((labels * average > 0.0).astype(np.float64) - (labels * mixed > 0.0))
    gain, deviation = float(gains.sum()), float(np.sqrt(gains @ gains))
    price = min(0.5 * np.log(rows) * max(0, terms - 1) / rows, DEAREST)  # of weights fitted to these rows (Schwarz)
    better = gain > 0.0 if abs(gain) > SURELY * deviation else least < loss(mixed) + price
    return (scale * weights, scale * average) if better else None


def squared_losses(predicted: Float64Array, sample: SignSample, clip: bool) -> Float64Array:
    """Weighted mean squared error of each row of predictions, shape (fits, rows)."""
    limited = np.clip(predicted, -1.0, 1.0) if clip else predicted
    return np.asarray((limited - sample.labels) ** 2 @ sample.weights / sample.weights.sum())


def _exponential(losses: Float64Array, rows: float, scale: float) -> Float64Array:
    weights = np.exp(-ETA * rows * (losses - losses.min()) / (2.0 * scale))
    return np.asarray(weights / weights.sum())
