"""What several recipes need: one fit of the low-degree algorithm, PyTorch on one thread, or its absence."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import is_installed, require
from fewfire.learners import LowDegreeRegressor
from fewfire.papers._claims._recipe import RecipeOutcome
from fewfire.problems import NetworkTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.networks import TwoLayer

TESTS = 10_000


def relative_error(net: TwoLayer, degree: int, samples: int, seed: int) -> float:
    """Mean squared test error over the variance of the labels, for regression of the given degree on uniform inputs."""
    problem = NetworkTarget(net)
    X, y = problem.sample(samples, seed)
    X_test, y_test = problem.sample(TESTS, seed + 10**6)
    fitted = LowDegreeRegressor(degree, method="regression", alpha=1.0).fit(X, y)
    return float(np.mean((fitted.predict(X_test) - y_test) ** 2) / np.var(y_test))


def without_torch(parameters: dict[str, Any]) -> RecipeOutcome | None:
    """The outcome that nothing was measured, where PyTorch is not installed."""
    if is_installed("torch"):
        return None
    reason = "PyTorch is not installed: pip install 'fewfire[torch]'"
    return RecipeOutcome(parameters=parameters, judgements=[], measured=[reason], data={"rows": [], "skipped": reason})


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run PyTorch on one thread: networks this small gain nothing from more, and sums round alike on any machine."""
    torch: Any = require("torch", "torch", "this recipe")

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
