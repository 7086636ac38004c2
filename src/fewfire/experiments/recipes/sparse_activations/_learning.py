"""One fit of the low-degree algorithm to a network, measured relative to the variance of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier import Spectrum, spectrum
from fewfire.learners import LowDegreeRegressor
from fewfire.problems import NetworkTarget

if TYPE_CHECKING:
    from fewfire.networks import TwoLayer

TESTS = 10_000


def relative_error(net: TwoLayer, degree: int, samples: int, seed: int) -> float:
    """Mean squared test error over the variance of the labels, for regression of the given degree on uniform inputs."""
    problem = NetworkTarget(net)
    X, y = problem.sample(samples, seed)
    X_test, y_test = problem.sample(TESTS, seed + 10**6)
    fitted = LowDegreeRegressor(degree, method="regression", alpha=1.0).fit(X, y)
    return float(np.mean((fitted.predict(X_test) - y_test) ** 2) / np.var(y_test))


def variance(picture: Spectrum) -> float:
    """Σ_{S ≠ ∅} f̂(S)²."""
    return picture.tail(0)


def relative_tail(net: TwoLayer, degree: int) -> float:
    """The share of the variance above a degree: what regression of that degree must miss."""
    picture = spectrum(net)
    return picture.tail(min(degree, picture.n)) / variance(picture)
