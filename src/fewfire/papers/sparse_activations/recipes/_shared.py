"""What several recipes need: intervals, one fit of the low-degree algorithm, and PyTorch on one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

import numpy as np

from fewfire._optional import is_installed, require
from fewfire.learners import LowDegreeRegressor
from fewfire.networks import TwoLayer
from fewfire.papers import _effects
from fewfire.papers._claims import Effect, RecipeOutcome
from fewfire.papers._statistics import rising, rising_power
from fewfire.problems import NetworkTarget

TESTS = 10_000


def mean_share(name: str, shares: np.ndarray) -> Effect:
    """Student's interval for a mean of shares, but no end below 0 or above 1."""
    return _effects.mean(name, shares).map(lambda end: min(max(end, 0.0), 1.0))


def mean_ratio(name: str, logarithms: np.ndarray, level: float = 0.025) -> Effect:
    """Student's interval for a geometric mean."""
    return _effects.mean(name, logarithms, level).map(np.exp)


def pooled_deviation(table: np.ndarray) -> float:
    """The standard deviation within the columns of a table."""
    return float(np.sqrt(np.mean(np.var(table, axis=0, ddof=1))))


def falling(table: np.ndarray, step: float, level: float, noise: float = 0.0) -> tuple[float, np.ndarray, float]:
    """Page's test that a table falls by `step` per column: its p, the change from first to last, its power."""
    means = tuple(step * place for place in range(table.shape[1]))
    power = rising_power(means, noise or pooled_deviation(table), len(table), level)
    return rising(-table), table[:, -1] - table[:, 0], power


def relative_error(net: TwoLayer, degree: int, samples: int, seed: int) -> float:
    """Mean squared test error over the variance of the labels, for regression of the given degree on uniform inputs."""
    problem = NetworkTarget(net)
    X, y = problem.sample(samples, seed)
    X_test, y_test = problem.sample(TESTS, seed + 10**6)
    fitted = LowDegreeRegressor(degree, method="regression", alpha=1.0).fit(X, y)
    return float(np.mean((fitted.predict(X_test) - y_test) ** 2) / np.var(y_test))


def needs_torch(measure: Callable[[Any], RecipeOutcome]) -> Callable[[Any], RecipeOutcome]:
    """Measure on one thread of PyTorch, or report that it is not installed."""

    @wraps(measure)
    def measure_or_skip(settings: Any) -> RecipeOutcome:
        if not is_installed("torch"):
            reason = "PyTorch is not installed: pip install 'fewfire[torch]'"
            data = {"rows": [], "skipped": reason}
            return RecipeOutcome(parameters=asdict(settings), judgements=[], measured=[reason], data=data)
        torch: Any = require("torch", "torch", "this recipe")
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return measure(settings)
        finally:
            torch.set_num_threads(before)

    return measure_or_skip
