"""Which of many fits to use: weights for a mixture, or one fit where it is as good, judged on held-out rows.

To take the fit of least held-out error among hundreds is to take the luckiest. Within a group (one family and degree,
many penalties) fits are averaged with weights exp(−η·m·loss / 2σ²), as aggregation with exponential weights has it;
then the groups' averages are combined by least squares with weights of at least 0 (stacking), drawn towards exponential
weights by a penalty that fades with the number of rows; half of what it draws to are the forests, which assume the
least. A mixture of polynomials is a polynomial. But one fit is easier to read, so the best single one is preferred
where it explains enough and the mixture's held-out error is lower by no more than its weights, fitted to the same
rows, account for.

Logistic fits are of another scale, half log odds, and squares do not tell how good they are. The average of those of
one degree is taken instead of the mixture where it explains enough and has fewer held-out rows wrong, beyond doubt, or
else a lower log loss on them, each with its best slope. It is scaled to the least squared error, so that coefficients
have one unit whichever was taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr

from fewfire.learners._calibration import logistic_slope

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from fewfire._types import Float64Array
    from fewfire.learners.low_degree._sample import SignSample

ETA = 0.2
"""How sharply losses are told apart; 1 would be the likelihood of independent normal residuals."""

ANCHOR = 15.0
"""Rows that the exponential weights are worth when groups are combined."""

CAUTION = 0.5
"""Share of the anchor that goes to forests, whatever the other groups' losses."""

PER_WEIGHT = 1.0
"""Relative gain in held-out error, times the number of rows, that each weight of a mixture has to bring (Akaike)."""

INFORMED = 0.2
"""Share of the labels' entropy that logistic fits must save: where log odds are small, squares are as good."""

SURELY = 2.0
"""Standard deviations by which shares of wrong predictions have to differ to decide alone."""

EXPLAINED = 0.5
"""Share of the variance that a single fit must explain; where none does, all are uncertain and better mixed."""

NEGLIGIBLE = 0.01
"""Share of a mixture below which a fit is left out."""


def mixture_weights(
    held_out: Float64Array, groups: Sequence[Hashable], forests: Collection[Hashable], sample: SignSample, clip: bool
) -> tuple[Float64Array, Float64Array]:
    """The weight of every fit, shape (fits,), and the held-out predictions of the mixture, shape (rows,).

    Weights need not sum to 1: the mixture is mean + Σ weight·(fit − mean), mean that of the labels.

    Parameters
    ----------
    held_out : array of shape (fits, rows)
    groups : the group of each fit
    forests : the groups that are forests
    sample : the rows, which all have been held out
    clip : bool
        Whether labels are −1 and 1, so that nothing is lost beyond them.
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
    for place, name in enumerate(names):
        members = [index for index, group in enumerate(groups) if group == name]
        inner[place, members] = _exponential(losses[members], rows, scale)
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
    held_out: Float64Array, degrees: Float64Array, sample: SignSample, mixed: Float64Array
) -> tuple[Float64Array, Float64Array] | None:
    """The weights of logistic fits, shape (fits,), and their held-out predictions, if they beat those of the mixture.

    Parameters
    ----------
    held_out : array of shape (fits, rows)
        Half log odds.
    degrees : array of shape (fits,)
    sample : the rows, which all have been held out; labels are −1 and 1
    mixed : array of shape (rows,)
        What the mixture predicts.
    """
    rows, labels, shares = sample.effective, sample.labels, sample.weights / sample.weights.sum()

    def loss(values: Float64Array) -> float:
        slope = logistic_slope(values, labels, sample.weights)
        return float(np.logaddexp(0.0, -slope * labels * values) @ shares)

    own = np.logaddexp(0.0, -2.0 * labels * held_out) @ shares
    least, weights, average = np.inf, np.zeros(len(held_out)), mixed
    for degree in np.unique(degrees):
        inner = np.exp(-rows * np.maximum(own - own[degrees == degree].min(), 0.0)) * (degrees == degree)
        inner[inner < NEGLIGIBLE * inner.sum()] = 0.0
        inner /= inner.sum()
        if loss(inner @ held_out) < least:
            least, weights, average = loss(inner @ held_out), inner, inner @ held_out
    scale = float((labels * average) @ shares) / max(float(average**2 @ shares), 1e-300)
    share = float(shares[labels > 0.0].sum())
    if scale <= 0.0 or least > (1.0 - INFORMED) * float(entr(share) + entr(1.0 - share)):
        return None
    gains = shares * ((labels * average > 0.0).astype(np.float64) - (labels * mixed > 0.0))
    gain, deviation = float(gains.sum()), float(np.sqrt(gains @ gains))
    better = gain > 0.0 if abs(gain) > SURELY * deviation else least < loss(mixed)
    return (scale * weights, scale * average) if better else None


def squared_losses(predicted: Float64Array, sample: SignSample, clip: bool) -> Float64Array:
    """Weighted mean squared error of each row of predictions, shape (fits, rows)."""
    limited = np.clip(predicted, -1.0, 1.0) if clip else predicted
    return np.asarray((limited - sample.labels) ** 2 @ sample.weights / sample.weights.sum())


def _exponential(losses: Float64Array, rows: float, scale: float) -> Float64Array:
    weights = np.exp(-ETA * rows * (losses - losses.min()) / (2.0 * scale))
    return np.asarray(weights / weights.sum())
