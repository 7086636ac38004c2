"""Setting "practical": both layers by minibatches, one hidden layer for all classes; the adversary keeps its points.

Where a row was moved to in the last epoch is nearly the worst point for this epoch's network, so that one step of
ascent from there does what ten from the row itself do (docs/robust.md has the figures). AdamW's rate falls linearly to
nothing; with held-out rows, which the adversary moves as well, the epoch of the least robust error is kept. On request
a share of the loss is taken at what lines prove of the margin to the nearest rival, in place of the adversary's points.

The network is one hidden layer of ReLUs that all scores share, in float32: score(x) = V·max(W·z + b, 0) + c at
z = (x − centre)/scale, with one scale for all columns, so that balls stay balls. It is dense: about half of the neurons
fires and AdamW moves every weight at every step, so that lists of neurons that may fire would hold most pairs, and one
product serves the scores of all classes (docs/robust.md).

What probabilities need is learned by narrow networks: each of up to three is trained on two thirds of the rows, and the
temperature that suits their scores of the rows left out suits the wide network's too (docs/robust.md).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from sklearn.utils import check_random_state

from fewfire._dense.losses import LOSSES
from fewfire._dense.network import Backprop, Layout, held_out_folds
from fewfire._dense.optimisers import AdamW, BestEpoch, Descent
from fewfire._errors import FewfireWarning, invalid
from fewfire._progress import Bar
from fewfire._random import Stream
from fewfire._threads import calm_products
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire._validate import check_integer, check_number
from fewfire.learners._robust._adversary import LineBounds, Moves, moves_of
from fewfire.learners._robust._inputs import InputMap
from fewfire.learners._robust._losses import BLOW_UP, LabelledLoss, diverged
from fewfire.networks import TwoLayer
from fewfire.robustness import PGD
from fewfire.robustness._gradient import check_adversary
from fewfire.robustness._threats import Threat

LEARNING_RATE: Final = 0.005
SPREAD: Final = 0.25  # deviation of the scaled columns, on average; see the table of what was tried in docs/robust.md
BATCH_SIZE, LEAST_BATCHES = 64, 8  # rows of a minibatch, and how many of these an epoch has at least
STOPPING_FOLDS: Final = 10  # a tenth of the rows decides when to stop early
PATIENCE: Final = 10
PILOT_FOLDS, PILOT_WIDTH = 3, 100
"""Networks whose scores of the third of the rows that each did not see give the temperature, and their neurons."""

PILOT_ROWS, ENOUGH_ROWS = 30, 100
"""The least rows for which there are pilots, and how many rows left out are enough to go by."""

CARRIED_SHARE = 0.7  # the step of carried points as a share of ρ; 1 did no better
RAMP = 0.5  # the share of the training over which the weight of proved bounds rises from 0
VALIDATION_STEPS = 3  # steps per epoch of the adversary of held-out rows, whose points are carried too


@dataclass(frozen=True, eq=False)
class Standardisation:
    """z = (x − centre)/scale: centre an array of shape (inputs,), scale one number."""

    centre: Float64Array
    scale: float

    @classmethod
    def learn(cls, points: Float64Array, weight: FloatArray) -> Self:
        """The map that brings points (rows, inputs) of some weights (rows,) to mean 0 and the deviation SPREAD."""
        centre = np.average(points, axis=0, weights=weight)
        spread = math.sqrt(float(np.average(np.mean((points - centre) ** 2, axis=1), weights=weight)))
        return cls(centre, spread / SPREAD if spread > 0.0 else 1.0)

    def __call__(self, points: Float64Array) -> FloatArray:
        return np.ascontiguousarray((points - self.centre) / self.scale, dtype=np.float32)

    def points(self, z: FloatArray) -> Float64Array:
        """The points (rows, inputs) of z."""
        return np.asarray(self.centre + self.scale * z.astype(np.float64))


class Perceptron(Backprop):
    """A network in training, in float32; it starts at normal weights of variance 2/inputs and 2/(width + heads)."""

    def __init__(self, inputs: int, width: int, heads: int, stream: Stream) -> None:
        layout = Layout(inputs, (width,), heads, skip=False)
        super().__init__(layout, np.zeros(layout.size, dtype=np.float32), 0)
        (hidden,), output = self.parameters.hidden, self.parameters.output
        hidden[:] = (stream.child("hidden").normal((inputs, width)) * math.sqrt(2 / inputs)).T
        output[:] = (stream.child("output").normal((width, heads)) * math.sqrt(2 / (width + heads))).T

    def set_network(self, network: TwoLayer, standardisation: Standardisation) -> None:
        """Go on from a network of points with these shapes."""
        hidden, bias, output = (
            np.asarray(part, dtype=np.float64) for part in (network.hidden, network.bias, network.output)
        )
        own = self.parameters
        own.hidden[0][:], own.biases[0][:] = hidden * standardisation.scale, bias + hidden @ standardisation.centre
        own.output[:], own.offset[:] = output.reshape(network.width, -1).T, network.offset

    def network(self, standardisation: Standardisation) -> TwoLayer:
        """The network of points in float64, with one output or one per class."""
        own = self.layout.unpack(self.flat.astype(np.float64))
        hidden = own.hidden[0] / standardisation.scale
        bias = own.biases[0] - hidden @ standardisation.centre
        if self.layout.outputs == 1:
            return TwoLayer(hidden, bias, own.output[0], float(own.offset[0]))
        return TwoLayer(hidden, bias, np.ascontiguousarray(own.output.T), own.offset)


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
    """Rows that are learned or validated on: inputs z (rows, inputs), their losses, and weights (rows,)."""

    z: FloatArray
    loss: LabelledLoss
    weight: AnyArray

    def take(self, chosen: IdArray) -> BatchRows:
        """Some of the rows, their weights in float32 with mean 1."""
        weight = self.weight[chosen] / (self.weight[chosen].mean() or 1.0)
        return BatchRows(self.z[chosen], self.loss.rows(chosen), weight.astype(np.float32))


@dataclass(frozen=True, eq=False)
class MinibatchPlan:
    """What a training takes besides network and rows; `patience` epochs without a better held-out error end it."""

    moves: Moves
    adversary: BatchAdversary
    optimiser: AdamW
    epochs: int
    batch_size: int
    stream: Stream
    proof_weight: float = 0.0
    falling: bool = True
    patience: int | None = None
    progress: Bar | None = None

    def start(self, net: Perceptron) -> Descent:
        """A fresh optimiser of a network, all of whose parameters decay."""
        return self.optimiser.start(net.flat.size, net.flat.size)


@dataclass(frozen=True, eq=False)
class EpochHistory:
    """One entry per epoch, each field an array of shape (epochs,).

    Parameters
    ----------
    robust_loss : mean loss at the adversary's points of each minibatch
    validation_error : error of held-out rows at theirs (classifiers: share of rows; regressors: loss); NaN without any
    best_epoch : int
        Whose weights were kept, counted from 1.
    """

    robust_loss: Float64Array
    validation_error: Float64Array
    best_epoch: int

    def __len__(self) -> int:
        return len(self.robust_loss)


def fit(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LabelledLoss, weight: Float64Array, continued: bool
) -> None:
    """Fit to a table (rows, columns) with weights (rows,) of mean 1, from the fitted network where `continued`."""
    patience = PATIENCE if model.early_stopping is True else None
    if not isinstance(model.early_stopping, bool):
        patience = check_integer("early_stopping", model.early_stopping, 1)
    streams, net, rows, plan = _begin(model, X, threat, heads, losses, weight, continued)
    plan = replace(plan, patience=patience)
    indices = np.arange(len(X))
    stopping = patience is not None and len(X) > 1
    validation = (
        held_out_folds(losses.labels, 1, STOPPING_FOLDS, streams.child("held out"))[0] if stopping else indices[:0]
    )
    history = _train(net, rows, plan, np.setdiff1d(indices, validation), validation)
    temperature = _temperature(net, rows, plan, streams) if len(X) >= PILOT_ROWS else 1.0
    _finish(model, net, history, plan, temperature)
    model._descent = None


def continue_once(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LabelledLoss, weight: Float64Array
) -> None:
    """One epoch over a table more, at a rate that does not fall; the first one starts a network."""
    continued = getattr(model, "_standardisation", None) is not None
    _, net, rows, plan = _begin(model, X, threat, heads, losses, weight, continued)
    descent = plan.start(net)
    if continued and model._descent is not None:
        descent.state, descent.steps = model._descent.state.copy(), model._descent.steps
    # The rows may be new ones: there are no points of theirs to continue from.
    adversary = BatchAdversary(3, 0.5, carried=False) if model.adversary == "pgd" else plan.adversary
    once = replace(plan, adversary=adversary, epochs=1, falling=False)
    history = _train(net, rows, once, np.arange(len(X)), np.arange(0), descent)
    _finish(model, net, history, plan, model.temperature_ if continued else 1.0)
    model._descent = descent


def _begin(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LabelledLoss, weight: Float64Array, continued: bool
) -> tuple[Stream, Perceptron, BatchRows, MinibatchPlan]:
    """The network to train, drawn or as fitted, and what it is trained on."""
    width = check_integer("width", model.width, 1)
    adversary = BatchAdversary.of(model.adversary, check_adversary(model.adversary), model.rho)
    epochs = check_integer("epochs", model.epochs, 1)
    batch_size = min(BATCH_SIZE, -(-len(X) // LEAST_BATCHES))
    if model.batch_size != "auto":
        batch_size = check_integer("batch_size", model.batch_size, 1)
    decay = check_number("weight_decay", model.weight_decay, 0.0)
    rate = LEARNING_RATE
    if model.learning_rate != "auto":
        rate = check_number("learning_rate", model.learning_rate, 0.0, open_low=True)
    streams = Stream(int(check_random_state(model.random_state).randint(2**31 - 1)), "robust")
    inputs = model._inputs if continued else InputMap.learn(model.domain, X, weight)
    points = inputs.points(X)
    standardisation = model._standardisation if continued else Standardisation.learn(points, weight)
    net = Perceptron(points.shape[1], width, heads, streams.child("init"))
    if continued:
        if model.networks_[0].width != width:
            rule = f"must stay {model.networks_[0].width}, that of the fitted network"
            raise invalid("width", rule, width, "start with a fresh estimator")
        net.set_network(model.networks_[0], standardisation)
    progress = Bar("training: epoch") if model.verbose else None
    moves, batches = moves_of(threat, standardisation), streams.child("batches")
    proofs = getattr(model, "proof_weight", 0.0) if model.rho else 0.0
    plan = MinibatchPlan(moves, adversary, AdamW(rate, decay), epochs, batch_size, batches, proofs, progress=progress)
    model._inputs, model._standardisation = inputs, standardisation
    return streams, net, BatchRows(standardisation(points), losses, weight), plan


def _train(
    net: Perceptron,
    rows: BatchRows,
    plan: MinibatchPlan,
    chosen: IdArray,
    validation: IdArray,
    descent: Descent | None = None,
) -> EpochHistory:
    """Train on the chosen rows; the held-out ones, if any, decide which epoch to keep; an interrupt keeps the last."""
    training = _MinibatchTraining(net, rows.take(chosen), plan, descent or plan.start(net))
    validate = _Validation(net, rows.take(validation), plan.moves) if validation.size else None
    losses, errors = list[float](), list[float]()
    best, kept = BestEpoch(plan.patience if validate is not None else None), net.flat
    try:
        with calm_products(plan.batch_size * rows.z.shape[1] * net.layout.hidden[0]):
            for epoch in range(plan.epochs):
                losses.append(training.epoch(epoch))
                if not losses[-1] <= BLOW_UP * max(1.0, losses[0]) or not np.isfinite(net.flat).all():
                    raise diverged("epoch", epoch + 1, plan.optimiser.learning_rate, losses[0], losses[-1])
                found = validate() if validate is not None else (math.nan, math.nan)
                errors.append(found[0])
                if plan.progress is not None:
                    validated = "" if validate is None else f", robust validation error {found[0]:.4g}"
                    plan.progress(epoch + 1, plan.epochs, f"robust loss {losses[-1]:.4g}{validated}")
                if best.better(found) and validate is not None:
                    kept = net.flat.copy()
                if best.over:
                    break
    except KeyboardInterrupt:
        losses = losses[: len(errors)]
        if not errors:
            raise
        message = f"training was interrupted after {len(errors)} of {plan.epochs} epochs; the model is usable"
        warnings.warn(message, FewfireWarning, stacklevel=3)
    net.flat[:] = kept
    return EpochHistory(np.array(losses), np.array(errors), best.epoch if validate is not None else len(losses))


def _temperature(net: Perceptron, rows: BatchRows, plan: MinibatchPlan, stream: Stream) -> float:
    """What the scores are to be divided by, from narrow networks' scores of rows they were not trained on."""
    indices, width, heads = np.arange(len(rows.z)), net.layout.hidden[0], net.layout.outputs
    folds = held_out_folds(rows.loss.labels, PILOT_FOLDS, PILOT_FOLDS, stream)
    scores: list[FloatArray] = []
    for number, validation in enumerate(folds):
        child = stream.child(f"pilot {number}")
        pilot = Perceptron(rows.z.shape[1], min(width, PILOT_WIDTH), heads, child.child("init"))
        alone = replace(plan, stream=child.child("batches"), patience=None, progress=None)
        _train(pilot, rows, alone, np.setdiff1d(indices, validation), validation[:0])
        scores.append(pilot.values(rows.z[validation]).copy())
        if sum(map(len, scores)) >= ENOUGH_ROWS:
            break
    seen = np.concatenate(folds[: len(scores)])
    return rows.loss.temperature(np.concatenate(scores).astype(np.float64), seen, rows.weight[seen])


def _finish(model: Any, net: Perceptron, history: EpochHistory, plan: MinibatchPlan, temperature: float) -> None:
    model.networks_ = (net.network(model._standardisation),)
    model.history_, model.learning_rate_, model.n_iter_ = history, plan.optimiser.learning_rate, len(history)
    model.temperature_, model.method_ = temperature, "dense"


class _MinibatchTraining:
    """Epochs of one training, and the points that its adversary has moved the rows to."""

    def __init__(self, net: Perceptron, rows: BatchRows, plan: MinibatchPlan, descent: Descent) -> None:
        self.net, self.rows, self.plan, self.descent = net, rows, plan, descent
        self.moved = rows.z.copy() if plan.adversary.carried else rows.z
        self.batches = -(-len(rows.z) // plan.batch_size)
        self.bounds = LineBounds(plan.moves) if plan.proof_weight else None

    def epoch(self, number: int) -> float:
        """One pass over the rows in a fresh order; the mean robust loss of its minibatches."""
        rows, plan, adversary = self.rows, self.plan, self.plan.adversary
        order = plan.stream.permutation(len(rows.z), start=number * len(rows.z))
        total = 0.0
        # As few rows as possible are left with a smaller minibatch: all are of one size or of one less.
        for batch, chosen in enumerate(np.array_split(order, self.batches)):
            centres, at = rows.z[chosen], self.moved[chosen]
            for _ in range(adversary.steps):
                slopes = rows.loss.ascent(self.net.values(at), chosen)
                at = plan.moves(at, centres, self.net.pull(slopes), adversary.share)
            if adversary.carried:
                self.moved[chosen] = at
            scores = self.net.values(at)
            values, slopes = rows.loss.descent(scores, chosen)
            total += float(values @ rows.weight[chosen])
            weight = rows.weight[chosen] / np.float32(len(chosen))
            slopes *= weight[:, None]
            done = (number + batch / self.batches) / plan.epochs if plan.falling else 0.0
            proved = None
            if self.bounds is not None:
                share = plan.proof_weight * (min(1.0, done / RAMP) if plan.falling else 1.0)
                margins, pull = self.bounds(self.net.parameters, centres, rows.loss.margin(scores, chosen))
                proved = pull(np.float32(share) * weight * LOSSES["logistic"].slope(margins, 1))
                slopes *= np.float32(1.0 - share)
            gradient = self.net.differentiate(at, slopes)
            if proved is not None:
                gradient += proved
            self.descent.factor = 1.0 - done
            self.descent.step(self.net.flat, gradient)
        return total / len(rows.z)


class _Validation:
    """The robust error of held-out rows, epoch by epoch; ties are broken by the loss."""

    def __init__(self, net: Perceptron, rows: BatchRows, moves: Moves) -> None:
        self.net, self.rows, self.moves = net, rows, moves
        self.moved, self.indices = rows.z.copy(), np.arange(len(rows.z))

    def __call__(self) -> tuple[float, float]:
        for _ in range(VALIDATION_STEPS):
            slopes = self.rows.loss.ascent(self.net.values(self.moved), self.indices)
            self.moved = self.moves(self.moved, self.rows.z, self.net.pull(slopes), CARRIED_SHARE)
        scores = self.net.values(self.moved)
        error = float(np.average(self.rows.loss.error(scores, self.indices), weights=self.rows.weight))
        loss = float(np.average(self.rows.loss.descent(scores, self.indices)[0], weights=self.rows.weight))
        return error, loss
