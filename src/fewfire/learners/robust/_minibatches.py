"""Adversarial training of both layers by minibatches: the adversary keeps its points from one epoch to the next.

Where a row was moved to in the last epoch is nearly the worst point for this epoch's network, so that one step of
ascent from there does what ten from the row itself do (docs/robust.md has the figures). AdamW's rate falls linearly to
nothing; with held-out rows, which the adversary moves as well, the epoch of the least robust error is kept. On request
a share of the loss is taken at what lines prove of the margin to the nearest rival, in place of the adversary's points.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from fewfire._errors import DivergenceError, FewfireWarning, invalid
from fewfire.learners.robust._algorithm_one import BLOW_UP
from fewfire.learners.robust._provable import LineBounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray
    from fewfire.learners.robust._losses import RowLoss
    from fewfire.learners.robust._moves import Moves
    from fewfire.learners.robust._perceptron import Perceptron
    from fewfire.robustness import PGD

CARRIED_SHARE = 0.7
"""The step of carried points as a share of ρ; 1 did no better."""

RAMP = 0.5
"""The share of the training over which the weight of proved bounds rises from 0."""

JUDGING_STEPS = 3
"""Steps per epoch of the adversary of held-out rows, whose points are carried too."""


@dataclass(frozen=True)
class BatchAdversary:
    """Steps of a share of ρ each per minibatch, from the points of the last epoch (carried) or from the rows."""

    steps: int
    share: float
    carried: bool

    @classmethod
    def of(cls, adversary: object, search: PGD, rho: float) -> BatchAdversary:
        """ "pgd" is one step of carried points; everything else starts at the rows."""
        if search.restarts:
            rule = "must have restarts=0 where minibatches are trained"
            raise invalid("adversary", rule, search, "raise steps, or use setting='sublinear'")
        if adversary == "pgd":
            return cls(1 if rho else 0, CARRIED_SHARE, carried=True)
        return cls(search.steps if rho else 0, float(search.size(rho)) / (rho or 1.0), carried=False)


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Rows to learn or to be judged by: inputs z (rows, inputs), their loss, and weights (rows,) of mean 1."""

    z: FloatArray
    loss: RowLoss
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class MinibatchPlan:
    """What a training takes besides network and rows; `patience` epochs without a better held-out error end it."""

    moves: Moves
    adversary: BatchAdversary
    rate: float
    weight_decay: float
    epochs: int
    batch_size: int
    stream: Stream
    proof_weight: float = 0.0
    falling: bool = True
    patience: int | None = None
    progress: Callable[[int, float, float], None] | None = None


@dataclass(frozen=True, eq=False)
class EpochHistory:
    """One entry per epoch, each field an array of shape (epochs,).

    Parameters
    ----------
    robust_loss : mean loss at the adversary's points, met on the way
    validation_error : error of held-out rows at theirs (classifiers: share of rows; regressors: loss); NaN without any
    best_epoch : int
        Whose weights were kept, counted from 1.
    """

    robust_loss: Float64Array
    validation_error: Float64Array
    best_epoch: int

    def __len__(self) -> int:
        return len(self.robust_loss)


def train_minibatches(
    net: Perceptron, rows: BatchRows, plan: MinibatchPlan, held: BatchRows | None = None
) -> EpochHistory:
    """Carry out a plan; an interrupt keeps what was reached, with a warning."""
    training = _MinibatchTraining(net, rows, plan)
    judge = None if held is None else _Judge(net, held, plan.moves)
    losses, errors = list[float](), list[float]()
    best, kept, best_epoch = (math.inf, math.inf), net.flat, 0
    try:
        for epoch in range(plan.epochs):
            losses.append(training.epoch(epoch))
            if not losses[-1] <= BLOW_UP * max(1.0, losses[0]) or not np.isfinite(net.flat).all():
                raise _blown_up(epoch + 1, plan.rate, losses[0], losses[-1])
            found = judge() if judge is not None else (math.nan, math.nan)
            errors.append(found[0])
            if plan.progress is not None:
                plan.progress(epoch + 1, losses[-1], found[0])
            if judge is None or found < best:
                best, best_epoch = found, epoch + 1
                kept = net.flat if judge is None else net.flat.copy()
            elif plan.patience is not None and epoch + 1 - best_epoch >= plan.patience:
                break
    except KeyboardInterrupt:
        losses = losses[: len(errors)]
        if not errors:
            raise
        message = f"training was interrupted after {len(errors)} of {plan.epochs} epochs; the model is usable"
        warnings.warn(message, FewfireWarning, stacklevel=4)
    net.flat[:] = kept
    return EpochHistory(np.array(losses), np.array(errors), best_epoch)


class _MinibatchTraining:
    """Epochs of one training, and the points that its adversary has moved the rows to."""

    def __init__(self, net: Perceptron, rows: BatchRows, plan: MinibatchPlan) -> None:
        self.net, self.rows, self.plan = net, rows, plan
        self.moved = rows.z.copy() if plan.adversary.carried else rows.z
        self.batches = -(-len(rows.z) // plan.batch_size)
        self.bounds = LineBounds(plan.moves) if plan.proof_weight and rows.loss.margin is not None else None

    def epoch(self, number: int) -> float:
        """One pass over the rows in a fresh order; the mean robust loss met on the way."""
        rows, plan, adversary = self.rows, self.plan, self.plan.adversary
        order = plan.stream.permutation(len(rows.z), start=number * len(rows.z))
        total = 0.0
        # As few rows as possible are left with a smaller minibatch: all are of one size or of one less.
        for batch, chosen in enumerate(np.array_split(order, self.batches)):
            centres, at = rows.z[chosen], self.moved[chosen]
            for _ in range(adversary.steps):
                slopes = rows.loss.ascent(self.net.scores(at), chosen)
                at = plan.moves(at, centres, self.net.pull(slopes), adversary.share)
            if adversary.carried:
                self.moved[chosen] = at
            scores = self.net.scores(at)
            values, slopes = rows.loss.descent(scores, chosen)
            total += float(values @ rows.weight[chosen])
            weight = rows.weight[chosen] / np.float32(len(chosen))
            slopes *= weight[:, None]
            done = (number + batch / self.batches) / plan.epochs if plan.falling else 0.0
            more = None
            if self.bounds is not None and rows.loss.margin is not None:
                share = plan.proof_weight * (min(1.0, done / RAMP) if plan.falling else 1.0)
                margins, pull = self.bounds(self.net, centres, rows.loss.margin(scores, chosen))
                more = pull(np.float32(-share) * weight * expit(-margins))  # of log(1 + exp(−margin))
                slopes *= np.float32(1.0 - share)
            self.net.descend(at, slopes, plan.rate * (1.0 - done), plan.weight_decay, more)
        return total / len(rows.z)


class _Judge:
    """The robust error of held-out rows, epoch by epoch; ties are broken by the loss."""

    def __init__(self, net: Perceptron, rows: BatchRows, moves: Moves) -> None:
        self.net, self.rows, self.moves = net, rows, moves
        self.moved, self.everyone = rows.z.copy(), np.arange(len(rows.z))

    def __call__(self) -> tuple[float, float]:
        for _ in range(JUDGING_STEPS):
            slopes = self.rows.loss.ascent(self.net.scores(self.moved), self.everyone)
            self.moved = self.moves(self.moved, self.rows.z, self.net.pull(slopes), CARRIED_SHARE)
        scores = self.net.scores(self.moved)
        error = float(np.average(self.rows.loss.error(scores, self.everyone), weights=self.rows.weight))
        loss = float(np.average(self.rows.loss.descent(scores, self.everyone)[0], weights=self.rows.weight))
        return error, loss


def _blown_up(epoch: int, rate: float, first: float, now: float) -> DivergenceError:
    return DivergenceError(
        f"training diverged at epoch {epoch}: the robust loss went from {first:.4g} to {now:.4g} (rate {rate:g}). "
        f"Remedy: lower learning_rate, for example to {rate / 10:g}, or leave it out.",
        step=epoch,
        learning_rate=rate,
    )
