"""The papers' ways to train a two-layer network on a sparse parity: one function per schedule, a task to an outcome.

"sgd": minibatch SGD with coupled weight decay on all layers (pareto, C.1). The paper's settings are the estimator's
defaults: rate 0.1, decay 0.01, batches of 32, hinge loss, start with 2 non-zero weights per neuron (or PyTorch's dense
one).

"over_sparse": one first-layer step from rows of s > 4k ones, then the second layer (pareto, Theorem 4/16). With f = 0
at the start, the full-batch step of rate η = 1/(2k|C|), C = ½ Maj_s(k−1), and total decay turns a neuron whose ones
contain the support into ±Σ_{j∈S} x_j/(2k) plus its bias, and leaves the others silent (Lemmas 8, 9). The theorem has no
truncation and asks for s in the thousands to make the other coordinates of a good neuron, of size c/C ≈ k/s each,
harmless. The practical setting zeroes gradients below (|C| + |c|)/2: good neurons then hold exactly the support once
the sampling noise 1/√(2m) is a few times below (|C| − |c|)/2.

"under_sparse": one truncated step from rows of s < k ones and ε elsewhere (pareto, Theorem 5/21). A neuron whose ones
S' lie inside the support has gradient ξ = ½ Half_s(s)·Maj_{n−s}(k−s−1) on the missing bits and a far smaller one
elsewhere (Lemma 20; ratio (n−k)/(k−s−1)). The step keeps the share ε/(2k) of the old weights and adds ±ε/(2k) on the
missing bits, so the neuron becomes ε/(2k)·Σ_{j∈S} x_j. Truncation halfway between the two gradients drops the rest; the
printed level, the gradient outside S, needs more samples for the same effect. The theorem ends with the existence of a
subnetwork; the second layer is fitted on top.

"correlated": parities, Theorem 2, whose steps are in `_correlated.py`: gradient descent on both layers on D_A, or, with
the "solver", the first step, the support that it shows, and the second layer on that support.

The convex second layer, output weights on fixed features after the first layer has moved: pareto (Lemma 14) descends on
the hinge loss. "descent" does that with its step sizes 1/(λ t); it is slow, because the features of a k-bit parity are
nearly dependent. "solver", the practical choice, minimises the logistic loss over the neurons that fire to high
accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice
from fewfire.engines import PerLayer, Phase, Run, Schedule
from fewfire.learners.parity_net._correlated import (
    RECORDS,
    best_iterates,
    first_phase,
    later_phase,
    later_rates,
    regularisation,
)
from fewfire.networks import init
from fewfire.theory.pareto import over_sparse_gap, under_sparse_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array, SignArray
    from fewfire.engines import Engine, LossName, Result
    from fewfire.learners.parity_net._correlated import LearningRate
    from fewfire.networks import TwoLayer


InitName: TypeAlias = Literal["sparse", "dense"]
"""The start of "sgd": few non-zero weights per neuron, or PyTorch's default."""

SecondLayer: TypeAlias = Literal["solver", "descent"]
"""How the convex second layer is fitted."""

MAX_ROWS = 50_000
"""Rows the solver looks at: far more than there are features."""


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
    start: InitName
    strict: bool
    seed: int
    engine: Engine
    progress: Callable[[int, int], None] | None = None

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
    """The initial network, the fitted one, the engine's record of the training, and the step whose weights are kept.

    None is the last step.
    """

    initial: TwoLayer
    network: TwoLayer
    result: Result
    step: int | None = None


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
    """One truncated step on the first layer, then the convex second layer."""
    k = required_k(task, "over_sparse")
    if k % 2:
        # Majority has no Fourier weight on sets of even size: the first step would see nothing.
        raise invalid("k", "must be even (pareto, Theorem 4)", k, 'use schedule="sgd" for odd parities')
    smallest = 4 * k + 1
    if task.strict and (task.sparsity % 2 == 0 or not smallest <= task.sparsity < task.inputs):
        rule = f"must be odd, above 4k = {4 * k} and below the {task.inputs} inputs (pareto, Lemma 8)"
        remedy = f"use {smallest}, or pass strict=False" if smallest < task.inputs else "pass strict=False"
        raise invalid("sparsity", rule, task.sparsity, remedy)
    initial = init.over_sparse(k, task.sparsity, strict=False)(task.inputs, task.width, Stream(task.seed, "init"))
    gap = over_sparse_gap(k, max(task.sparsity, k) | 1)  # an even sparsity is taken for the next odd one
    size = abs(gap.relevant)
    step = Phase(
        1,
        PerLayer(hidden=1 / (2 * k * size)),
        weight_decay=PerLayer(hidden=1.0),
        truncation=PerLayer(hidden=(size + abs(gap.irrelevant)) / 2),
        decay="direct",
        batch_size=None,
    )
    result = task.train(initial, Schedule((step,)))
    moved = np.any(result.network.hidden != 0, axis=1)
    network = fit_output(result.network, task, moved)
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
    if k % 2 or k < 4:
        rule = "must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21)"
        raise invalid("k", rule, k, 'use schedule="sgd" for other parities')
    if s % 2 or not 0 < s < k:
        raise invalid("sparsity", f"must be even, above 0 and below k = {k} (pareto, Theorem 21)", s, "use 2")
    if (n - s) % 2 == 0:
        rule = f"must have an odd number of columns besides the {s} of a neuron (pareto, Lemmas 18 to 20)"
        raise invalid("X", rule, f"shape {task.X.shape}", "append or drop a column")
    eps = 1 / (2 * (n - s))
    initial = init.under_sparse(k, s, eps)(n, task.width, Stream(task.seed, "init"))
    gap = under_sparse_gap(n, k, s)
    size = abs(gap.relevant)
    step = Phase(
        1,
        PerLayer(hidden=eps / (2 * k * size)),
        weight_decay=PerLayer(hidden=1 - eps / (2 * k)),
        truncation=PerLayer(hidden=(size + abs(gap.irrelevant)) / 2),
        decay="direct",
        batch_size=None,
    )
    result = task.train(initial, Schedule((step,)))
    kept = eps / (2 * k) * initial.hidden
    # Rounding aside, a neuron that no gradient reached holds exactly the kept share of its start.
    moved = np.any(np.abs(result.network.hidden - kept) > eps / (8 * k), axis=1)
    network = fit_output(result.network, task, moved)
    return Outcome(initial, network, result)


def train_correlated(task: TrainingTask) -> Outcome:
    """The first step on the whole sample, then descent on both layers, or the second layer on the support found."""
    k, n = required_k(task, "correlated"), task.inputs
    check_choice("second_layer", task.second_layer, get_args(SecondLayer))
    if task.strict and (k % 2 == 0 or k < 3):
        raise invalid("k", "must be odd and at least 3 (parities, section 2)", k, "or pass strict=False")
    if task.width % 2:
        raise invalid("width", "must be even, because neurons come in pairs", task.width, f"use {task.width + 1}")
    initial = init.symmetric(k, strict=False)(n, task.width, Stream(task.seed, "init"))
    if task.second_layer == "solver":
        result = task.train(initial, Schedule((first_phase(n),)))
        network = fit_output(on_support(result.network, k), task, np.ones(task.width, dtype=bool))
        return Outcome(initial, network, result)
    rates = later_rates(n, k, task.width, task.max_steps, task.learning_rate)
    decay = regularisation(n, k, task.weight_decay)

    def run(_: int, steps: int, evaluate: int | None = None) -> Run:
        later = (later_phase(n, rates[: steps - 1], decay, task.batch_size),) if steps > 1 else ()
        stop = None if task.X_held is None else 0.0
        return task.run(initial, Schedule((first_phase(n), *later), evaluate=evaluate or steps, stop_error=stop))

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


def fit_output(network: TwoLayer, task: TrainingTask, moved: NDArray[np.bool_]) -> TwoLayer:
    """The network with its output weights and offset fitted to the labels.

    Parameters
    ----------
    network : TwoLayer
        After the first-layer step.
    task : TrainingTask
    moved : bool array of shape (width,)
        Neurons that the step gave a gradient: the subnetwork the theorems speak of. The solver uses no others.
    """
    check_choice("second_layer", task.second_layer, get_args(SecondLayer))
    if task.second_layer == "solver":
        return _solve(network, task.X[:MAX_ROWS], task.y[:MAX_ROWS], moved)
    return _descend(network, task.X, task.y, task.max_steps, task.engine, task.seed)


def _solve(network: TwoLayer, X: AnyArray, y: Float64Array, moved: NDArray[np.bool_]) -> TwoLayer:
    output = np.zeros(network.width, dtype=network.dtype)
    offset = 1.0 if y.mean() >= 0 else -1.0  # nothing to fit: the more frequent label
    ids = np.flatnonzero(moved)
    if len(ids):
        part = network.with_parameters(hidden=network.hidden[ids], bias=network.bias[ids], output=network.output[ids])
        features = part.features(X)
        size = np.abs(features).max(axis=0)
        fires = size > 0
        if fires.any():
            model = LogisticRegression(C=1e3, max_iter=2000, tol=1e-6)
            model.fit(features[:, fires] / size[fires], y)
            output[ids[fires]] = model.coef_[0] / size[fires]
            offset = float(model.intercept_[0])
    return network.with_parameters(output=output, offset=offset)


def _descend(network: TwoLayer, X: AnyArray, y: Float64Array, steps: int, engine: Engine, seed: int) -> TwoLayer:
    """λ/2‖u‖² added to the mean hinge loss, η_t = 1/(λ t): decay 1/t, so that step 1 forgets the start."""
    weight = 1e-3 * float(np.mean(network.features(X[:MAX_ROWS]) ** 2)) * network.width
    rates = [1.0 / (max(weight, 1e-12) * t) for t in range(1, steps + 1)]
    decay = [1.0 / t for t in range(1, steps + 1)]
    phase = Phase(steps, PerLayer(output=rates, offset=rates), PerLayer(output=decay, offset=decay), decay="direct")
    run = Run(network, Schedule((phase,)), X, y, seed=seed)
    return engine.train([run])[0].network
