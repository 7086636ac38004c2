"""The papers' ways to train a two-layer network on a sparse parity: one function per schedule, a task to an outcome.

"sgd": minibatch SGD with coupled weight decay on all layers (pareto, C.1). The paper's settings are the estimator's
defaults: rate 0.1, decay 0.01, batches of 32, hinge loss, start with 2 non-zero weights per neuron (or PyTorch's dense
one).

"over_sparse" and "under_sparse": one first-layer step from rows of s > 4k ones, or of s < k ones and ε elsewhere, then
the second layer (pareto, Theorems 4/16 and 5/21). The steps, practical and as the proofs have them, are in
`_first_step.py`, the second layer in `_second_layer.py`. The under-sparse theorem ends with the existence of a
subnetwork; the second layer is fitted on top.

"correlated": parities, Theorem 2, whose steps are in `_correlated.py`: gradient descent on both layers on D_A, or, with
the "solver", the first step, the support that it shows, and the second layer on that support. Descent stays at the best
half-space from some starts, the more often the more inputs there are; it then begins again from another start.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice
from fewfire.engines import MEASURED_ROWS, Phase, Run, Schedule
from fewfire.learners.parity_net._correlated import (
    RECORDS,
    at_half_space,
    best_iterates,
    first_phase,
    later_phase,
    later_rates,
    regularisation,
)
from fewfire.learners.parity_net._first_step import over_sparse_step, under_sparse_step
from fewfire.learners.parity_net._second_layer import SecondLayer, descend_output, solve_output
from fewfire.networks import init
from fewfire.theory.pareto import separator_norm

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array, SignArray
    from fewfire.engines import Engine, LossName, Result
    from fewfire.learners.parity_net._correlated import LearningRate
    from fewfire.learners.parity_net._first_step import StartStep, StepMethod
    from fewfire.networks import TwoLayer


InitName: TypeAlias = Literal["sparse", "dense"]
"""The start of "sgd": few non-zero weights per neuron, or PyTorch's default."""


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """The data and the numbers a schedule works with.

    Parameters
    ----------
    X : ±1 array of shape (samples, inputs)
    y : array of ±1 of shape (samples,)
    X_held, y_held : held-out part, or None
    k : int or None
        Bits of the parity, where the schedule has to know them.
    """

    X: SignArray
    y: Float64Array
    X_held: SignArray | None
    y_held: Float64Array | None
    width: int
    sparsity: int
    k: int | None
    loss: LossName
    learning_rate: LearningRate
    weight_decay: float
    batch_size: int | None
    max_steps: int
    second_layer: SecondLayer
    method: StepMethod
    epsilon: float
    start: InitName
    strict: bool
    restarts: int
    seed: int
    engine: Engine
    progress: Callable[[int, int], object] | None = None

    @property
    def inputs(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def run(self, initial: TwoLayer, schedule: Schedule) -> Run:
        """A schedule on the training part, measured on the held-out part."""
        return Run(initial, schedule, self.X, self.y, self.X_held, self.y_held, seed=self.seed)

    def train(self, initial: TwoLayer, schedule: Schedule) -> Result:
        """Carry it out."""
        return self.engine.train([self.run(initial, schedule)], progress=self.progress)[0]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The initial network, the fitted one, the engine's record, the step whose weights are kept, restarts made.

    A step of None is the last one.
    """

    initial: TwoLayer
    network: TwoLayer
    result: Result
    step: int | None = None
    restarts: int = 0


def train_sgd(task: TrainingTask) -> Outcome:
    """Train until `max_steps`, or until the held-out part, if there is one, is without error."""
    check_choice("init", task.start, get_args(InitName))
    start = init.dense() if task.start == "dense" else init.sparse(task.sparsity)
    initial = start(task.inputs, task.width, Stream(task.seed, "init"))
    if isinstance(task.learning_rate, str):
        raise invalid("learning_rate", 'must be a number for schedule="sgd"', task.learning_rate)
    phase = Phase(task.max_steps, task.learning_rate, task.weight_decay, batch_size=task.batch_size)
    stop = None if task.X_held is None else 0.0
    evaluate: int | Literal["log"] = "log" if stop is None else max(1, task.max_steps // 100)
    schedule = Schedule((phase,), loss=task.loss, evaluate=evaluate, stop_error=stop)
    result = task.train(initial, schedule)
    return Outcome(initial, result.network, result)


def train_over_sparse(task: TrainingTask) -> Outcome:
    """One step on the first layer, truncated or not, then the convex second layer."""
    k = required_k(task, "over_sparse")
    step = over_sparse_step(k, task.sparsity, task.method)
    smallest = 4 * k + 1
    if task.strict and (task.sparsity % 2 == 0 or not smallest <= task.sparsity < task.inputs):
        rule = f"must be odd, above 4k = {4 * k} and below the {task.inputs} inputs (pareto, Lemma 8)"
        remedy = f"use {smallest}, or pass strict=False" if smallest < task.inputs else "pass strict=False"
        raise invalid("sparsity", rule, task.sparsity, remedy)
    initial = init.over_sparse(k, task.sparsity, strict=False)(task.inputs, task.width, Stream(task.seed, "init"))
    # Lemma 14's λ is for features that are those of Lemma 11, which truncation only makes cleaner.
    regularisation = task.epsilon / separator_norm(k) ** 2 if task.method == "theorem" else None
    return take_step(task, initial, step, regularisation)


def take_step(task: TrainingTask, initial: TwoLayer, step: StartStep, regularisation: float | None = None) -> Outcome:
    """The step, and the second layer fitted on the neurons that it moved, which are those the theorems speak of.

    Descent has all neurons, as Lemma 14 has.
    """
    check_choice("second_layer", task.second_layer, get_args(SecondLayer))
    result = task.train(initial, Schedule((step.phase(),)))
    after = result.network
    if task.second_layer == "solver":
        return Outcome(initial, solve_output(after, task.X, task.y, step.moved(initial, after)), result)
    network = descend_output(
        after, task.X, task.y, task.max_steps, task.engine, task.seed, regularisation=regularisation
    )
    return Outcome(initial, network, result)


def required_k(task: TrainingTask, schedule: str) -> int:
    """The number of bits, which the theorems' schedules have to be told."""
    if task.k is None:
        raise invalid("k", f'must be given for schedule="{schedule}"', None, "pass the number of bits of the parity")
    if not 1 <= task.k <= task.inputs:
        raise invalid("k", f"must be between 1 and the {task.inputs} inputs", task.k)
    return task.k


def train_under_sparse(task: TrainingTask) -> Outcome:
    """One truncated step on the first layer, then the convex second layer."""
    k, s, n = required_k(task, "under_sparse"), task.sparsity, task.inputs
    if task.strict:
        _check_under_sparse(task, k)
    if s >= n:
        raise invalid("sparsity", f"must be below the {n} inputs", s, "leave some weights small")
    epsilon = 1 / (2 * (n - s))
    step = under_sparse_step(n, k, s, epsilon, task.method)
    initial = init.under_sparse(k, s, epsilon, strict=False)(n, task.width, Stream(task.seed, "init"))
    return take_step(task, initial, step)


def _check_under_sparse(task: TrainingTask, k: int) -> None:
    s = task.sparsity
    if k % 2 or k < 4:
        rule = "must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21)"
        remedy = "pass strict=False" if k % 2 == 0 else 'use schedule="sgd" for odd parities'
        raise invalid("k", rule, k, remedy)
    if s % 2 or not 0 < s < k:
        rule = f"must be even, above 0 and below k = {k} (pareto, Theorem 21)"
        raise invalid("sparsity", rule, s, "use 2, or pass strict=False")
    if (task.inputs - s) % 2 == 0:
        rule = f"must have an odd number of columns besides the {s} of a neuron (pareto, Lemmas 18 to 20)"
        raise invalid("X", rule, f"shape {task.X.shape}", "append or drop a column, or pass strict=False")


def train_correlated(task: TrainingTask) -> Outcome:
    """The first step on the whole sample, then descent on both layers, or the second layer on the support found."""
    k, n = required_k(task, "correlated"), task.inputs
    check_choice("second_layer", task.second_layer, get_args(SecondLayer))
    if task.strict and (k % 2 == 0 or k < 3):
        raise invalid("k", "must be odd and at least 3 (parities, section 2)", k, "or pass strict=False")
    if task.width % 2:
        raise invalid("width", "must be even, because neurons come in pairs", task.width, f"use {task.width + 1}")
    if task.second_layer == "solver":
        initial = init.symmetric(k, strict=False)(n, task.width, Stream(task.seed, "init"))
        result = task.train(initial, Schedule((first_phase(n),)))
        network = solve_output(on_support(result.network, k), task.X, task.y, np.ones(task.width, dtype=bool))
        return Outcome(initial, network, result)
    return _descend_again(task, k)


def _descend_again(task: TrainingTask, k: int) -> Outcome:
    """Descent from one start after another, until one leaves the best half-space; the one with the fewest errors."""
    held = task.X_held is not None and task.y_held is not None
    if not held:
        task = replace(task, X_held=task.X[:MEASURED_ROWS], y_held=task.y[:MEASURED_ROWS])
    X, y = cast("SignArray", task.X_held), cast("Float64Array", task.y_held)
    found: list[tuple[float, Outcome]] = []
    while len(found) <= task.restarts:
        seed = int(Stream(task.seed, f"restart {len(found)}").integers(2**31 - 1, 1)[0]) if found else task.seed
        outcome = _descend(replace(task, seed=seed), k)
        found.append((float(np.mean((outcome.network(X) > 0) != (y > 0))), outcome))
        if not at_half_space(outcome.network, X, y, k):
            break
    else:
        text = (
            f"of {len(found)} starts none has left the best half-space: the best is right on "
            f"{1 - min(wrong for wrong, _ in found):.1%} of the rows that choose the iterate. Remedy: raise max_steps, "
            'width, learning_rate or restarts, or pass second_layer="solver".'
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=5)  # where fit was called
    _, best = min(found, key=lambda pair: pair[0])
    result = best.result
    if not held:  # the rows that have chosen are no test
        history = replace(result.history, test_error=np.full(len(result.history.step), np.nan))
        result = replace(result, history=history)
    return replace(best, result=result, restarts=len(found) - 1)


def _descend(task: TrainingTask, k: int) -> Outcome:
    """The first step and the descent after it, up to the iterate with the fewest errors on the held-out part."""
    n = task.inputs
    initial = init.symmetric(k, strict=False)(n, task.width, Stream(task.seed, "init"))
    rates = later_rates(n, k, task.width, task.max_steps, task.learning_rate)
    decay = regularisation(n, k, task.weight_decay)

    def run(_: int, steps: int, evaluate: int | None = None) -> Run:
        later = (later_phase(n, rates[: steps - 1], decay, task.batch_size),) if steps > 1 else ()
        return task.run(initial, Schedule((first_phase(n), *later), evaluate=evaluate or steps, stop_error=0.0))

    whole = run(0, 1 + task.max_steps, max(1, task.max_steps // RECORDS))
    result = task.engine.train([whole], progress=task.progress)[0]
    ((step, network),) = best_iterates(task.engine, [result], run)
    return Outcome(initial, network, result, step)


def on_support(network: TwoLayer, k: int) -> TwoLayer:
    """The network with the weights of all but the k heaviest inputs set to 0."""
    heaviest = np.argsort(-np.abs(network.hidden).sum(axis=0, dtype=np.float64), kind="stable")[:k]
    hidden = np.zeros_like(network.hidden)
    hidden[:, heaviest] = network.hidden[:, heaviest]
    return network.with_parameters(hidden=hidden)
