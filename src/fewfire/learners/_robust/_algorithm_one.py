"""Algorithm 1 of sublinear, full-batch adversarial training: find the worst points, then one step on W there.

Its numbers are the theorem's or practical ones:

=============  =====================================  =========================================================
               setting="theorem"                      setting="sublinear"
=============  =====================================  =========================================================
start          Definition 3.1                         Definition 3.1
threshold      1/m: half of the neurons fire          from `activity`, by the exact normal quantile
loss           absolute (Definition 3.2)              logistic; huber for regression
learning rate  m^(−3/5)/√T (Theorem 5.12, K = 1)      RATES[loss]/κ
=============  =====================================  =========================================================

κ = λ_max(K)/n, with K the tangent kernel of the n examples at the start, is how far one unit of gradient moves the
outputs at most; in units of 1/κ the useful rates do not depend on width, activity or scale. The logistic loss has
curvature at most 1/4, so plain descent starts to oscillate at 8/κ; half of that is used. The theorem's K bounds
‖W* − W₀‖_{2,∞}·m^(4/5) for a good W*, which is not known beforehand. Its rate is the corrected one; the paper prints
m^(−1/5)/√T, which `learning_rate="printed"` gives: too fast for its proof, and in practice the faster of the two.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
from sklearn.utils import check_random_state

from fewfire._errors import FewfireWarning, InvalidArgument, invalid
from fewfire._progress import Bar
from fewfire._random import Stream
from fewfire._threads import calm_products
from fewfire._types import Float64Array
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines.robust import ActiveTrainer, trainer
from fewfire.engines.robust._registry import TrainerMethod
from fewfire.learners._robust._inputs import InputMap
from fewfire.learners._robust._losses import BLOW_UP, LabelledLoss, diverged
from fewfire.networks import TwoLayer, init
from fewfire.networks.init._base import Initialiser
from fewfire.robustness import PGD
from fewfire.robustness._gradient import check_adversary, find_worst
from fewfire.robustness._problem import Criterion
from fewfire.robustness._threats import Threat

ITERATIONS: Final = 200
ACTIVITY: Final = 0.1  # share of the neurons that fires on average at the start, in the setting "sublinear"

RATES: Final = {"logistic": 4.0, "huber": 1.0, "hinge": 1.0, "absolute": 0.5}
"""Learning rate of each loss in the setting "sublinear", in units of 1/κ."""

SAMPLE: Final = 256  # rows that κ is measured on


def fit(model: Any, X: Float64Array, threat: Threat, heads: int, losses: LabelledLoss, weight: Float64Array) -> None:
    """Fit `heads` networks to a table (rows, columns) with weights (rows,) of mean 1, and set the fitted attributes."""
    for name in ("early_stopping", "warm_start"):
        if getattr(model, name):
            rule = f"must be False in setting={model.setting_!r}, where all rows are trained on from a random start"
            raise invalid(name, rule, getattr(model, name), "use setting='practical'")
    iterations = check_integer("iterations", ITERATIONS if model.iterations is None else model.iterations, 1)
    search = check_adversary(model.adversary)
    check_choice("method", model.method, get_args(TrainerMethod))
    inputs = InputMap.learn(model.domain, X, weight)
    points = inputs.points(X)
    embedded = inputs.embed(points)
    key = int(check_random_state(model.random_state).randint(2**31 - 1))
    draw = start(model.setting_, model.activity)
    width, streams = check_integer("width", model.width, 1), Stream(key, "init")
    starts = [draw(embedded.shape[1], width, streams.child(f"head {head}")) for head in range(heads)]
    rate = learning_rate(model.learning_rate, model.setting_, losses.name, starts, embedded, weight, iterations)
    # Inputs are float32 and so may lie a rounding further out than the threat allows.
    reach = 1e-6 + inputs.reach(threat.reach(points.shape[1])) * (1 + 1e-6) if search.steps else 1e-6
    table = np.ascontiguousarray(embedded, dtype=np.float32)
    trainers = [trainer(model.method, net, table, reach) for net in starts]
    progress = Bar("training: iteration") if model.verbose else None
    lowered, raised = losses.criteria()
    weighted = Criterion(
        lambda scores: lowered.value(scores) * weight, lambda scores: lowered.slope(scores) * weight[:, None]
    )
    plan = TrainingPlan(weighted, raised, threat, search, rate, iterations, Stream(key, "attack"), progress)
    with calm_products(len(points) * width * embedded.shape[1]):
        networks, history = train(trainers, inputs, points, plan)
    model._inputs, model.networks_, model.method_ = inputs, tuple(networks), trainers[0].name
    moved = zip(networks, starts, strict=True)
    model.drift_ = max(float(np.linalg.norm(new.hidden - old.hidden, axis=1).max()) for new, old in moved)
    model.history_, model.learning_rate_, model.n_iter_ = history, rate, len(history)
    model._constant_loss = float(plan.loss.value(np.zeros((len(points), heads))).mean())
    model.temperature_, model._standardisation = 1.0, None  # nothing that minibatches could continue


def start(setting: str, activity: object) -> Initialiser:
    """How networks are drawn."""
    if isinstance(activity, str):
        check_choice("activity", activity, ("auto",))
        return init.ntk(threshold="1/m") if setting == "theorem" else init.ntk(activity=ACTIVITY)
    return init.ntk(activity=check_number("activity", activity, 0.0, 0.5, open_low=True))


def learning_rate(
    choice: object,
    setting: str,
    loss: str,
    networks: Sequence[TwoLayer],
    inputs: Float64Array,
    weight: Float64Array,
    iterations: int,
) -> float:
    """The rate as a number; `inputs` (rows, d) are the network inputs of the examples, with weights (rows,)."""
    if not isinstance(choice, str):
        return check_number("learning_rate", choice, 0.0, open_low=True)
    check_choice("learning_rate", choice, ("auto", "theorem", "printed"))
    if choice != "auto" or setting == "theorem":
        return float(networks[0].width ** (-0.2 if choice == "printed" else -0.6) / math.sqrt(iterations))
    steepness = max(tangent_steepness(net, inputs, weight) for net in networks)
    return RATES[loss] / steepness if steepness > 0.0 else RATES[loss]


def tangent_steepness(net: TwoLayer, inputs: Float64Array, weight: Float64Array) -> float:
    """λ_max(K)/n of the tangent kernel K_ij = ⟨∂f(x_i)/∂W, ∂f(x_j)/∂W⟩, on at most SAMPLE rows of inputs (rows, d)."""
    step = -(-len(inputs) // SAMPLE)
    chosen = inputs[::step]
    fires = net.activation.slope(net.preactivations(chosen)).astype(np.float64) * net.output
    kernel = (fires @ fires.T) * (chosen @ chosen.T)
    weight = weight[::step]
    roots = np.sqrt(weight)
    return float(np.linalg.eigvalsh(roots[:, None] * kernel * roots)[-1]) / float(weight.sum())


@dataclass(frozen=True, eq=False)
class RobustHistory:
    """One entry per iteration, each field an array of shape (iterations,); losses are those before the step.

    Parameters
    ----------
    robust_loss, clean_loss : mean loss at the adversary's points and at the data
    mean_active, max_active : neurons of one network that fire on an example at the last points looked at
    neurons_touched, neurons_updated : rows of W read by attack and step, and changed by the step, over all networks
    multiply_adds, dense_multiply_adds : done by attack and step, and what all pairs would have taken
    """

    robust_loss: Float64Array
    clean_loss: Float64Array
    mean_active: Float64Array
    max_active: Float64Array
    neurons_touched: Float64Array
    neurons_updated: Float64Array
    multiply_adds: Float64Array
    dense_multiply_adds: Float64Array

    def __len__(self) -> int:
        return len(self.robust_loss)


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """What one training takes besides the trainers and the data."""

    loss: Criterion
    attacked: Criterion
    threat: Threat
    search: PGD
    rate: float
    iterations: int
    stream: Stream
    progress: Bar | None = None


class TrainerScores:
    """The networks in training as scores of points, for the adversary."""

    def __init__(self, trainers: Sequence[ActiveTrainer], inputs: InputMap) -> None:
        self.trainers, self.inputs = trainers, inputs

    def scores(self, points: Float64Array) -> Float64Array:
        """Scores at points (rows, d): shape (rows, heads)."""
        moved = self._moved(points)
        return np.column_stack([trainer.values(moved) for trainer in self.trainers]).astype(np.float64)

    def linearise(self, points: Float64Array) -> tuple[Float64Array, Callable[[Float64Array], Float64Array]]:
        """Scores, and the map from weights (rows, heads) to weighted gradients in the points (rows, d)."""
        moved = self._moved(points)
        pairs = [trainer.evaluate(moved) for trainer in self.trainers]

        def pull(weights: Float64Array) -> Float64Array:
            total = sum(weights[:, k, None] * gradients for k, (_, gradients) in enumerate(pairs))
            return self.inputs.pull(np.asarray(total, dtype=np.float64))

        return np.column_stack([values for values, _ in pairs]).astype(np.float64), pull

    def step(self, points: Float64Array, slopes: Float64Array, rate: float) -> None:
        """One gradient step on every network."""
        moved = self._moved(points)
        for head, own in enumerate(self.trainers):
            own.step(moved, slopes[:, head].astype(np.float32), rate)

    def _moved(self, points: Float64Array) -> Float64Array:
        return np.ascontiguousarray(self.inputs.embed(points), dtype=np.float32)


def train(
    trainers: Sequence[ActiveTrainer], inputs: InputMap, points: Float64Array, plan: TrainingPlan
) -> tuple[tuple[TwoLayer, ...], RobustHistory]:
    """Carry out a plan on points of shape (rows, d); an interrupt keeps what was reached, with a warning."""
    model, records = TrainerScores(trainers, inputs), list[tuple[float, ...]]()
    try:
        for iteration in range(plan.iterations):
            before = _work(trainers)
            stream = plan.stream.child(str(iteration))
            found = find_worst(model, plan.attacked, plan.threat, points, plan.search, stream)
            robust, clean = plan.loss.value(found.scores).mean(), plan.loss.value(found.clean_scores).mean()
            first = records[0][0] if records else float(robust)
            if not robust <= BLOW_UP * max(1.0, first):  # NaN too
                raise diverged("iteration", iteration, plan.rate, first, float(robust))
            try:
                model.step(found.points, plan.loss.slope(found.scores) / len(points), plan.rate)
            except InvalidArgument:  # the step would leave float32
                raise diverged("iteration", iteration + 1, plan.rate, first, math.inf) from None
            active = np.concatenate([trainer.active_counts for trainer in trainers])
            work = (after - earlier for after, earlier in zip(_work(trainers), before, strict=True))
            records.append((float(robust), float(clean), float(active.mean()), float(active.max()), *work))
            if plan.progress is not None:
                note = f"robust loss {robust:.4g}, clean loss {clean:.4g}"
                plan.progress(iteration + 1, plan.iterations, note)
    except KeyboardInterrupt:
        if not records:
            raise
        message = f"training was interrupted after {len(records)} of {plan.iterations} iterations; the model is usable"
        warnings.warn(message, FewfireWarning, stacklevel=4)
    try:
        networks = tuple(trainer.network() for trainer in trainers)
    except InvalidArgument:  # the last step left the finite numbers
        raise diverged("iteration", len(records), plan.rate, records[0][0], math.inf) from None
    return networks, RobustHistory(*np.array(records, dtype=np.float64).T.copy())


def _work(trainers: Sequence[ActiveTrainer]) -> tuple[int, ...]:
    """The counters that a history keeps, in its order, summed over the networks."""
    names = ("neurons_touched", "neurons_updated", "multiply_adds", "dense_multiply_adds")
    counters = [trainer.counters for trainer in trainers]
    return tuple(sum(getattr(counter, name) for counter in counters) for name in names)
