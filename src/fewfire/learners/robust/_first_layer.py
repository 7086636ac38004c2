"""Settings "sublinear" and "theorem" of the robust estimators: Algorithm 1, which moves the first layer alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from sklearn.utils import check_random_state

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice, check_integer
from fewfire.engines.robust import TrainerMethod, trainer
from fewfire.learners.robust import _settings
from fewfire.learners.robust._algorithm_one import TrainingPlan, train
from fewfire.learners.robust._domains import InputMap
from fewfire.learners.robust._summary import TrainingProgress
from fewfire.robustness import Criterion
from fewfire.robustness._search import check_adversary

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.learners.robust._losses import LossOfRows
    from fewfire.robustness import Threat

ITERATIONS = 200


def fit(model: Any, X: Float64Array, threat: Threat, heads: int, losses: LossOfRows, weight: Float64Array) -> None:
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
    draw = _settings.start(model.setting_, model.activity)
    width, streams = check_integer("width", model.width, 1), Stream(key, "init")
    starts = [draw(embedded.shape[1], width, streams.child(f"head {head}")) for head in range(heads)]
    rate = _settings.learning_rate(
        model.learning_rate, model.setting_, losses.name, starts, embedded, weight, iterations
    )
    # Inputs are float32 and so may lie a rounding further out than the threat allows.
    reach = 1e-6 + inputs.reach(threat.reach(points.shape[1])) * (1 + 1e-6) if search.steps else 1e-6
    table = np.ascontiguousarray(embedded, dtype=np.float32)
    trainers = [trainer(model.method, net, table, reach) for net in starts]
    progress = TrainingProgress("iteration", iterations, "clean loss") if model.verbose else None
    lowered, raised = losses.criteria()
    plan = TrainingPlan(
        weighted(lowered, weight), raised, threat, search, rate, iterations, Stream(key, "attack"), progress
    )
    with calm_products(len(points) * width * embedded.shape[1]):
        networks, history = train(trainers, inputs, points, plan)
    model._inputs, model.networks_, model.method_ = inputs, tuple(networks), trainers[0].name
    moved = zip(networks, starts, strict=True)
    model.drift_ = max(float(np.linalg.norm(new.hidden - old.hidden, axis=1).max()) for new, old in moved)
    model.history_, model.learning_rate_, model.n_iter_ = history, rate, len(history)
    model._constant_loss = float(plan.loss.value(np.zeros((len(points), heads))).mean())
    model.temperature_, model._standardisation = 1.0, None  # nothing that minibatches could go on from


def weighted(criterion: Criterion, weight: Float64Array) -> Criterion:
    """A criterion times weights (rows,)."""
    if (weight == 1.0).all():
        return criterion
    return Criterion(
        lambda scores: criterion.value(scores) * weight, lambda scores: criterion.slope(scores) * weight[:, None]
    )
