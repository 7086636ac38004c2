"""The separation of parities: on D_A a network learns the parity, linear methods on as many fixed features do not.

For each k, a network and its rivals of the same width learn from the same sample of D_A. Rivals: linear on the inputs;
linear on random features, Gaussian ReLU ones and those with which the network itself starts; the conjugate and the
tangent kernel, of infinite width. A rival is fitted at several strengths of regularisation and keeps the one that
does best *on the test set*, in its favour. "halfspace" is no learner but the accuracy of the best half-space. All
monomials of degree k are fixed features too, and hold the parity; at these k they are many more than the network has.

Expect the network above 95% and every rival at or below the best half-space, 87.5% for
k = 3, 84.4% for k = 5, 82.8% for k = 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.linear_model import LogisticRegression

from fewfire._random import Stream
from fewfire._types import AnyArray, SignArray
from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.learners import ParityNetClassifier
from fewfire.learners.baselines import ConjugateKernel, RandomFeatures, TangentKernel
from fewfire.networks import init
from fewfire.problems import CorrelatedParity
from fewfire.theory.parities import halfspace_accuracy

ALPHAS = (1e-4, 1e-2, 1.0)
TESTS = 4000
KERNEL_SAMPLES = 10_000
"""Kernel rivals see at most this many examples: their Gram matrix is quadratic in them."""


@dataclass(frozen=True)
class SeparationSetting:
    """One comparison: an (n, k)-parity, the width of network and features, and examples."""

    n: int
    k: int
    width: int
    samples: int


Predictor: TypeAlias = Callable[[SignArray], AnyArray]
NetworkLearner: TypeAlias = Callable[[SeparationSetting, SignArray, SignArray, int], Predictor]
"""(setting, X, y, seed) -> a function from ±1 rows to labels ±1, or to scores of that sign."""


def measure(
    settings: Sequence[SeparationSetting], *, network: NetworkLearner | None = None, seed: int = 0
) -> RecipeOutcome:
    """Rows of (n, k, width, samples, method, accuracy, alpha), one per method and setting.

    Parameters
    ----------
    settings : sequence of SeparationSetting
    network : NetworkLearner, optional
        The network's training; `correlated_network` unless given.
    seed : int
        Fixes the samples and the initial weights.
    """
    rows, networks, gaps = [], [], []
    for setting in settings:
        measured = list(_measure(setting, network or correlated_network, seed))
        rows += [{**asdict(setting), **row} for row in measured]
        scores = {row["method"]: row["accuracy"] for row in measured}
        networks.append(scores.pop("network"))
        del scores["halfspace"]
        gaps.append(networks[-1] - max(scores.values()))
    return RecipeOutcome(
        parameters={"seed": seed, "alphas": list(ALPHAS), "tests": TESTS},
        judgements=[
            Judgement("the network learns D_A", "lowest accuracy of the network", min(networks), 0.95, "at least"),
            Judgement("fixed features do not", "smallest lead over the best rival", min(gaps), 0.1, "at least"),
        ],
        data={"rows": rows, "gaps": gaps},
    )


def correlated_network(setting: SeparationSetting, X: SignArray, y: SignArray, seed: int) -> Predictor:
    """The network of Theorem 2 in its practical mode: the first step, the support it shows, the second layer on it."""
    model = ParityNetClassifier(schedule="correlated", k=setting.k, width=setting.width, random_state=seed)
    predictor: Predictor = model.fit(X, y).predict
    return predictor


def _measure(setting: SeparationSetting, network: NetworkLearner, seed: int) -> Iterator[dict[str, Any]]:
    problem = CorrelatedParity(setting.n, setting.k)
    X, y = problem.sample(setting.samples, Stream(seed, "data"))
    X_test, y_test = problem.sample(TESTS, Stream(seed, "test"))
    predict = network(setting, X, y, seed)
    yield _row("network", (np.where(predict(X_test) > 0, 1, -1) == y_test).mean())
    yield _row("halfspace", halfspace_accuracy(setting.k, largest_weight=5 if setting.k < 7 else 3))
    for method, make in _rivals(setting, seed).items():
        rows = slice(KERNEL_SAMPLES if "kernel" in method else None)
        # float32: scikit-learn would convert int8 on every pass.
        table, labels = X[rows].astype(np.float32), y[rows]
        scores = {alpha: make(alpha).fit(table, labels).score(X_test.astype(np.float32), y_test) for alpha in ALPHAS}
        best = max(scores, key=lambda alpha: scores[alpha])
        yield _row(method, scores[best], best)


def _row(method: str, accuracy: float, alpha: float | None = None) -> dict[str, Any]:
    return {"method": method, "accuracy": float(accuracy), "alpha": alpha}


def _rivals(setting: SeparationSetting, seed: int) -> dict[str, Callable[[float], Any]]:
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


RECIPE = Recipe(
    name="parities/separation",
    title="On D_A the network learns the parity, linear methods on as many random features or on its kernels do not",
    seconds=60,
    expectation="network above 95%; the best rival of the same width at least 10 points below it",
    figure="separation",
    scales={
        "quick": (
            SeparationSetting(n=61, k=3, width=300, samples=3000),
            SeparationSetting(n=61, k=5, width=500, samples=3000),
            SeparationSetting(n=201, k=3, width=300, samples=3000),
        ),
        "paper": (
            SeparationSetting(n=101, k=3, width=300, samples=6000),
            SeparationSetting(n=101, k=5, width=500, samples=6000),
            SeparationSetting(n=101, k=7, width=1000, samples=6000),
            SeparationSetting(n=301, k=5, width=1000, samples=10_000),
            SeparationSetting(n=501, k=7, width=1000, samples=20_000),
        ),
    },
    measure=measure,
)
