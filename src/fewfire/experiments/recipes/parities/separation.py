"""The separation of parities: on D_A a network learns the parity, linear methods on fixed features do not.

For each k, a network and its rivals of the same width learn from the same sample of D_A. Rivals: linear on the inputs;
linear on random features, Gaussian ReLU ones and those with which the network itself starts; the conjugate and the
tangent kernel, of infinite width. A rival is fitted at several strengths of regularisation and keeps the one that
does best *on the test set*, in its favour. `halfspace` is no learner but the accuracy of the best half-space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.linear_model import LogisticRegression

from fewfire._random import Stream
from fewfire._types import AnyArray, SignArray
from fewfire._validate import check_choice
from fewfire.engines import PerLayer, Phase, Run, Schedule, get_engine
from fewfire.learners.baselines import ConjugateKernel, RandomFeatures, TangentKernel
from fewfire.networks import init
from fewfire.problems import CorrelatedParity
from fewfire.theory.parities import halfspace_accuracy

ALPHAS = (1e-4, 1e-2, 1.0)
TESTS = 4000
KERNEL_SAMPLES = 10_000
"""Kernel rivals see at most this many examples: their Gram matrix is quadratic in them."""


@dataclass(frozen=True)
class Setting:
    """One comparison: an (n, k)-parity, the width of network and features, examples, and SGD steps."""

    n: int
    k: int
    width: int
    samples: int
    steps: int


@dataclass(frozen=True)
class Measurement:
    """The test accuracy of one method in one setting; `alpha` is NaN where there is none."""

    setting: Setting
    method: str
    accuracy: float
    alpha: float = float("nan")


Predictor: TypeAlias = Callable[[SignArray], AnyArray]
NetworkLearner: TypeAlias = Callable[[Setting, SignArray, SignArray, int], Predictor]
"""(setting, X, y, seed) -> a function from ±1 rows to labels ±1 (or scores)."""

SCALES = {
    "quick": (Setting(61, 3, 300, 3000, 4000), Setting(61, 5, 500, 3000, 16_000)),
    "full": (
        Setting(101, 3, 300, 6000, 4000),
        Setting(101, 5, 500, 6000, 16_000),
        Setting(101, 7, 1000, 6000, 40_000),
        Setting(301, 5, 1000, 10_000, 20_000),
        Setting(501, 7, 2000, 20_000, 40_000),
    ),
}


def run(
    scale: str = "quick",
    *,
    network: NetworkLearner | None = None,
    settings: Sequence[Setting] | None = None,
    seed: int = 0,
    progress: Callable[[Measurement], None] | None = None,
) -> list[Measurement]:
    """Measure every method in every setting of the scale.

    Parameters
    ----------
    scale : "quick" (half a minute) or "full" (about ten)
    network : NetworkLearner, optional
        The network's training; `two_phase_descent` unless given.
    settings : sequence of Setting, optional
        Instead of those of the scale.
    seed : int
        Fixes the samples, the initial weights and the minibatches.
    progress : function of one Measurement, optional
        Called as each is made.
    """
    chosen = SCALES[check_choice("scale", scale, SCALES)] if settings is None else settings
    rows = []
    for setting in chosen:
        for row in _measure(setting, network or two_phase_descent, seed):
            rows.append(row)
            if progress is not None:
                progress(row)
    return rows


def gaps(rows: Sequence[Measurement]) -> dict[Setting, float]:
    """For each setting, the accuracy of the network minus that of its best rival."""
    found = {}
    for setting in dict.fromkeys(row.setting for row in rows):
        scores = {row.method: row.accuracy for row in rows if row.setting == setting}
        rivals = [score for method, score in scores.items() if method not in ("network", "halfspace")]
        found[setting] = scores["network"] - max(rivals)
    return found


def two_phase_descent(setting: Setting, X: SignArray, y: SignArray, seed: int) -> Predictor:
    """The training of parities, Theorem 2, at a rate that works at practical sizes.

    First step as in the theorem: whole sample, η₁ = 1, λ₁ = 1/2, which replaces the hidden weights by the gradient.
    Then SGD on both layers at a rate that falls linearly from 0.3: the theorem's k²/(T√q) moves the output weights by
    k²/√q in all, too little to fit a parity unless q is astronomical.
    """
    start = init.symmetric(setting.k)(setting.n, setting.width, seed)
    rates = 0.3 * (1 - np.arange(setting.steps) / setting.steps)
    inputs = setting.n  # on ±1 inputs the hidden layer's rates are divided by n, see networks.init.symmetric
    first = Phase(
        1,
        learning_rate=PerLayer(1 / inputs, 1.0, 1.0, 0.0),
        weight_decay=PerLayer(1.0, 0.0, 1.0, 0.0),
        decay="direct",
        batch_size=None,
    )
    rest = Phase(setting.steps, learning_rate=PerLayer(rates / inputs, rates, rates, 0.0))  # type: ignore[arg-type]
    schedule = Schedule((first, rest), evaluate=setting.steps + 1)
    result = get_engine().train([Run(start, schedule, X, y, seed=Stream(seed, "batches"))])[0]
    return result.network


def _measure(setting: Setting, network: NetworkLearner, seed: int) -> Iterator[Measurement]:
    problem = CorrelatedParity(setting.n, setting.k)
    X, y = problem.sample(setting.samples, Stream(seed, "data"))
    X_test, y_test = problem.sample(TESTS, Stream(seed, "test"))
    predict = network(setting, X, y, seed)
    yield Measurement(setting, "network", float((np.where(predict(X_test) > 0, 1, -1) == y_test).mean()))
    yield Measurement(setting, "halfspace", halfspace_accuracy(setting.k, largest_weight=5 if setting.k < 7 else 3))
    for method, make in _rivals(setting, seed).items():
        rows = slice(KERNEL_SAMPLES if "kernel" in method else None)
        # float32: the heads of scikit-learn would convert int8 on every pass.
        table, labels = X[rows].astype(np.float32), y[rows]
        scores = {alpha: make(alpha).fit(table, labels).score(X_test.astype(np.float32), y_test) for alpha in ALPHAS}
        best = max(scores, key=lambda alpha: scores[alpha])
        yield Measurement(setting, method, float(scores[best]), best)


def _rivals(setting: Setting, seed: int) -> dict[str, Callable[[float], Any]]:
    """Each rival as a function of the strength of its regularisation."""
    width, start = setting.width, init.symmetric(setting.k)
    return {
        "linear": lambda alpha: LogisticRegression(C=1 / (alpha * setting.samples), max_iter=2000),
        "random features": lambda alpha: RandomFeatures(width, alpha=alpha, random_state=seed),
        # The network's starting features are small (biases 1/(8k)), so is the penalty.
        "starting features": lambda alpha: RandomFeatures(width, init=start, alpha=1e-4 * alpha, random_state=seed),
        "conjugate kernel": lambda alpha: ConjugateKernel(alpha=alpha),
        "tangent kernel": lambda alpha: TangentKernel(alpha=alpha),
    }
