"""Setting "practical" of the robust estimators: both layers by minibatches, one hidden layer for all classes.

What probabilities need is learned by narrow networks: each of up to three is trained on two thirds of the rows, and the
temperature that suits their scores of the rows left out suits the wide network's too (docs/robust.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.utils import check_random_state

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_integer, check_number
from fewfire.learners.robust._domains import InputMap
from fewfire.learners.robust._minibatches import BatchAdversary, BatchRows, MinibatchPlan, train_minibatches
from fewfire.learners.robust._moves import moves_of
from fewfire.learners.robust._perceptron import Perceptron, Standardisation, as_network, formula_of
from fewfire.learners.robust._summary import TrainingProgress
from fewfire.robustness._search import check_adversary
from fewfire.tabular._held_out import held_out_folds

if TYPE_CHECKING:
    from fewfire._types import Float64Array, FloatArray, IdArray
    from fewfire.learners.robust._losses import LossOfRows
    from fewfire.learners.robust._minibatches import EpochHistory
    from fewfire.robustness import Threat

LEARNING_RATE: Final = 0.005
BATCH_SIZE, LEAST_BATCHES = 64, 8
"""Rows of a minibatch, and how many of these an epoch has at least."""

STOPPING_FOLDS: Final = 10
"""A tenth of the rows says when to stop early."""

PATIENCE: Final = 10
PILOT_FOLDS, PILOT_WIDTH = 3, 100
"""Networks whose scores of the third of the rows that each did not see give the temperature, and their neurons."""

PILOT_ROWS, JUDGED_ROWS = 30, 100
"""The least rows for which there are pilots, and how many rows left out are enough to go by."""


@dataclass(frozen=True, eq=False)
class _Task:
    """A table as inputs z (rows, inputs) with losses and weights (rows,), and how networks are trained on it."""

    z: FloatArray
    losses: LossOfRows
    weight: Float64Array
    plan: MinibatchPlan

    def rows(self, chosen: IdArray) -> BatchRows:
        """Some of the rows, their weights brought to mean 1."""
        weight = self.weight[chosen] / (self.weight[chosen].mean() or 1.0)
        return BatchRows(self.z[chosen], self.losses.rows(chosen), weight.astype(np.float32))

    def train(self, net: Perceptron, chosen: IdArray, held: IdArray, plan: MinibatchPlan | None = None) -> EpochHistory:
        """Train on the chosen rows; the held-out ones, if any, say which epoch to keep."""
        judged = self.rows(held) if held.size else None
        with calm_products(self.plan.batch_size * self.z.shape[1] * net.shapes[1][0]):
            return train_minibatches(net, self.rows(chosen), plan or self.plan, judged)

    def temperature(self, width: int, heads: int, stream: Stream) -> float:
        """What the scores are to be divided by, from narrow networks' scores of rows they were not trained on."""
        everyone = np.arange(len(self.z))
        folds = held_out_folds(self.losses.strata, PILOT_FOLDS, PILOT_FOLDS, stream)
        scores: list[FloatArray] = []
        judged: list[IdArray] = []
        for number, held in enumerate(folds):
            child = stream.child(f"pilot {number}")
            net = Perceptron(self.z.shape[1], min(width, PILOT_WIDTH), heads, child.child("init"))
            plan = replace(self.plan, stream=child.child("batches"), patience=None, progress=None)
            self.train(net, np.setdiff1d(everyone, held), held[:0], plan)
            judged.append(held)
            scores.append(net.scores(self.z[held]))
            if sum(map(len, judged)) >= JUDGED_ROWS:
                break
        rows = np.concatenate(judged)
        return self.losses.temperature(np.concatenate(scores).astype(np.float64), rows, self.weight[rows])


def fit(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LossOfRows, weight: Float64Array, continued: bool
) -> None:
    """Fit to a table (rows, columns) with weights (rows,) of mean 1, and set the fitted attributes.

    Parameters
    ----------
    continued : bool
        Whether to go on from the fitted network.
    """
    patience = _patience(model.early_stopping)
    width, streams, net, task = _begin(model, X, threat, heads, losses, weight, continued)
    task = replace(task, plan=replace(task.plan, patience=patience))
    everyone = np.arange(len(X))
    stopping = patience is not None and len(X) > 1
    held = held_out_folds(losses.strata, 1, STOPPING_FOLDS, streams.child("held out"))[0] if stopping else everyone[:0]
    history = task.train(net, np.setdiff1d(everyone, held), held)
    temperature = task.temperature(width, heads, streams) if len(X) >= PILOT_ROWS else 1.0
    _finish(model, net, history, task.plan.rate, temperature)
    model._moments = None


def continue_once(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LossOfRows, weight: Float64Array
) -> None:
    """One epoch over a table more, at a rate that does not fall; the first one starts a network."""
    continued = getattr(model, "_standardisation", None) is not None
    _, _, net, task = _begin(model, X, threat, heads, losses, weight, continued)
    if continued and model._moments is not None:
        net.resume(*model._moments)
    # The rows may be new ones: there are no points of theirs to go on from.
    adversary = BatchAdversary(3, 0.5, carried=False) if model.adversary == "pgd" else task.plan.adversary
    once = replace(task.plan, adversary=adversary, epochs=1, falling=False)
    history = task.train(net, np.arange(len(X)), np.arange(0), once)
    _finish(model, net, history, task.plan.rate, model.temperature_ if continued else 1.0)
    model._moments = net.moments()


def _begin(
    model: Any, X: Float64Array, threat: Threat, heads: int, losses: LossOfRows, weight: Float64Array, continued: bool
) -> tuple[int, Stream, Perceptron, _Task]:
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
            rule = f"must stay {model.networks_[0].width}, that of the network to go on with"
            raise invalid("width", rule, width, "start with a fresh estimator")
        net.set_formula(formula_of(model.networks_[0]), standardisation)
    progress = TrainingProgress("epoch", epochs, "robust validation error") if model.verbose else None
    moves, batches = moves_of(threat, standardisation), streams.child("batches")
    proofs = getattr(model, "proof_weight", 0.0) if model.rho else 0.0
    plan = MinibatchPlan(moves, adversary, rate, decay, epochs, batch_size, batches, proofs, progress=progress)
    model._inputs, model._standardisation = inputs, standardisation
    return width, streams, net, _Task(standardisation(points), losses, weight, plan)


def _finish(model: Any, net: Perceptron, history: EpochHistory, rate: float, temperature: float) -> None:
    model.networks_ = (as_network(net.formula(model._standardisation)),)
    model.history_, model.learning_rate_, model.n_iter_ = history, rate, len(history)
    model.temperature_, model.method_ = temperature, "dense"


def _patience(early_stopping: object) -> int | None:
    """Epochs without a better robust validation error before training stops; None where it does not."""
    if early_stopping is False or early_stopping is True:
        return PATIENCE if early_stopping else None
    return check_integer("early_stopping", early_stopping, 1)
