"""The network of Theorem 2 beside linear rivals, from the same samples: neurons it needs, accuracies of each method.

What the recipe `parities/separation` measures beside dimensions; its header says which rivals are held to the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import comb, inf
from typing import Any, TypeAlias

import numpy as np
from sklearn.svm import SVC

from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, SignArray
from fewfire.experiments.parities._fixed_features import Family, fit_linear
from fewfire.learners import LowDegreeClassifier, ParityNetClassifier
from fewfire.learners.baselines import TangentKernel
from fewfire.networks import init
from fewfire.problems import CorrelatedParity
from fewfire.theory.parities import embedding_dimension, halfspace_accuracy

ACCURACY = 0.95
PENALTIES = (1e-4, 1e-2, 1.0)
TESTS = 4000
TOLD = 2
"""Seeds of the methods that are told and not judged."""
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True)
class NeuronSize:
    """An (n, k)-parity that a network learns from a sample."""

    n: int
    k: int
    samples: int


@dataclass(frozen=True)
class ComparisonSize:
    """An (n, k)-parity, neurons of the network and features of each rival, examples."""

    n: int
    k: int
    width: int
    samples: int


Predictor: TypeAlias = Callable[[SignArray], AnyArray]
NetworkLearner: TypeAlias = Callable[[int, int, SignArray, SignArray, int], Predictor]
"""(k, width, X, y, seed) -> a function from ±1 rows to labels ±1, or to scores of that sign."""


def correlated_network(k: int, width: int, X: SignArray, y: SignArray, seed: int) -> Predictor:
    """The network of Theorem 2 in its practical mode: the first step, the support it shows, the second layer on it."""
    model = ParityNetClassifier(schedule="correlated", k=k, width=width, random_state=seed)
    predictor: Predictor = model.fit(X, y).predict
    return predictor


def neurons_needed(size: NeuronSize, learn: NetworkLearner, seeds: range) -> dict[str, Any]:
    """For each seed the least width, a power of two, at which the network reaches 95% on the tests."""
    problem = CorrelatedParity(size.n, size.k)
    needed = []
    for seed in seeds:
        X, y, X_test, y_test = _draw(problem, size.samples, seed)
        scores = ((width, _accuracy(learn(size.k, width, X, y, seed)(X_test), y_test)) for width in WIDTHS)
        needed.append(next((float(width) for width, score in scores if score >= ACCURACY), inf))
    bound = embedding_dimension(size.n, size.k)
    return {**asdict(size), "monomials": comb(size.n, size.k), "bound": bound, "needed": needed}


def compared(
    size: ComparisonSize, families: Mapping[str, Family], learn: NetworkLearner, seed: int
) -> list[dict[str, Any]]:
    return [{**asdict(size), "seed": seed, **row} for row in _compare(size, families, learn, seed)]


def _compare(
    size: ComparisonSize, families: Mapping[str, Family], learn: NetworkLearner, seed: int
) -> Iterator[dict[str, Any]]:
    """One row per method: its accuracy, its dimension (None for a kernel), and whether it is held to the width."""
    n, k, width = size.n, size.k, size.width
    X, y, X_test, y_test = _draw(CorrelatedParity(n, k), size.samples, seed)
    yield _row("network", _accuracy(learn(k, width, X, y, seed)(X_test), y_test), width)
    start = init.symmetric(k)(n, width, Stream(seed, "init"))
    tables: dict[str, Callable[[SignArray], Float64Array]] = {
        "inputs": lambda rows: np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64),
        "network's start": lambda rows: start.features(rows).astype(np.float64),
    }
    for name, family in families.items():
        tables[name] = partial(family, k=k, dimension=width, stream=Stream(seed, f"separation/{name}"))
    mass = np.full(len(y), 1 / len(y))
    for name, table in tables.items():
        features, tests = table(X), table(X_test)
        fits = [fit_linear(features, y.astype(np.float64), mass, penalty=penalty)[0] for penalty in PENALTIES]
        yield _row(name, max(_accuracy(tests @ weights, y_test) for weights in fits), features.shape[1], rival=True)
    freer = (
        {}
        if seed >= TOLD
        else {
            "polynomial kernel": (SVC(kernel="poly", degree=k, gamma=1 / n, coef0=1.0, C=10.0), comb(n + k, k)),
            "tangent kernel": (TangentKernel(alpha=1e-2), None),
            "low-degree learner": (LowDegreeClassifier(random_state=seed), None),
        }
    )
    for name, (model, dimension) in freer.items():
        model.fit(X.astype(np.float32), y)
        yield _row(name, _accuracy(model.predict(X_test.astype(np.float32)), y_test), dimension)
    half_space = halfspace_accuracy(k, largest_weight=5 if k < 7 else 3)
    yield _row("best half-space", half_space, n, rival=True)


def _draw(problem: CorrelatedParity, samples: int, seed: int) -> tuple[SignArray, ...]:
    return (*problem.sample(samples, Stream(seed, "data")), *problem.sample(TESTS, Stream(seed, "test")))


def _accuracy(scores: AnyArray, y: SignArray) -> float:
    return float(np.mean((scores > 0) == (y > 0)))


def _row(method: str, accuracy: float, dimension: int | None, *, rival: bool = False) -> dict[str, Any]:
    return {"method": method, "accuracy": float(accuracy), "dimension": dimension, "rival": rival}
