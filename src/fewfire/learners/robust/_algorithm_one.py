"""Full-batch adversarial training (sublinear, Algorithm 1): find the worst points, then one step on W there."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import DivergenceError, FewfireWarning, InvalidArgument
from fewfire.robustness._search import find_worst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._random import Stream
    from fewfire._types import Float64Array
    from fewfire.engines.robust import ActiveTrainer
    from fewfire.learners.robust._domains import InputMap
    from fewfire.networks import TwoLayer
    from fewfire.robustness import PGD, Criterion, Threat

BLOW_UP = 1e4
"""A robust loss this many times its first value (or 1) is divergence: the losses are Lipschitz, so none comes near."""


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

    @classmethod
    def of(cls, records: Sequence[tuple[float, ...]]) -> RobustHistory:
        """The history of records in the order of the fields."""
        table = np.array(records, dtype=np.float64).reshape(len(records), len(fields(cls)))
        return cls(*table.T.copy())

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
    progress: Callable[[int, float, float], None] | None = None


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
        for k, trainer in enumerate(self.trainers):
            trainer.step(moved, slopes[:, k].astype(np.float32), rate)

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
                raise _blown_up(iteration, plan.rate, first, float(robust))
            try:
                model.step(found.points, plan.loss.slope(found.scores) / len(points), plan.rate)
            except InvalidArgument:  # the step would leave float32
                raise _blown_up(iteration + 1, plan.rate, first, math.inf) from None
            active = np.concatenate([trainer.active_counts for trainer in trainers])
            work = (after - earlier for after, earlier in zip(_work(trainers), before, strict=True))
            records.append((float(robust), float(clean), float(active.mean()), float(active.max()), *work))
            if plan.progress is not None:
                plan.progress(iteration + 1, float(robust), float(clean))
    except KeyboardInterrupt:
        if not records:
            raise
        message = f"training was interrupted after {len(records)} of {plan.iterations} iterations; the model is usable"
        warnings.warn(message, FewfireWarning, stacklevel=4)
    try:
        networks = tuple(trainer.network() for trainer in trainers)
    except InvalidArgument:  # the last step left the finite numbers
        raise _blown_up(len(records), plan.rate, records[0][0], math.inf) from None
    return networks, RobustHistory.of(records)


def _blown_up(iteration: int, rate: float, first: float, now: float) -> DivergenceError:
    return DivergenceError(
        f"training diverged at iteration {iteration}: the robust loss went from {first:.4g} to {now:.4g} (rate "
        f"{rate:g}). Remedy: lower learning_rate, for example to {rate / 10:g}, or leave it out.",
        step=iteration,
        learning_rate=rate,
    )


def _work(trainers: Sequence[ActiveTrainer]) -> tuple[int, ...]:
    """The counters that a history keeps, in its order, summed over the networks."""
    names = ("neurons_touched", "neurons_updated", "multiply_adds", "dense_multiply_adds")
    counters = [trainer.counters for trainer in trainers]
    return tuple(sum(getattr(counter, name) for counter in counters) for name in names)
