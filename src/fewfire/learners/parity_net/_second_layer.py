"""The convex second layer: output weights on fixed features, after the first layer has moved.

pareto (Lemma 14) and parities (Theorem 2) descend on the hinge loss. "descent" does that with the step sizes
1/(λ t) of pareto's Lemma 14; it is slow, because the features of a k-bit parity are nearly dependent. "solver", the
practical choice, minimises the logistic loss over the neurons that fire to high accuracy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression

from fewfire._validate import check_choice
from fewfire.engines import PerLayer, Phase, Run, Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines import Engine
    from fewfire.learners.parity_net._outcome import Task
    from fewfire.networks import TwoLayer

MAX_ROWS = 50_000
"""Rows the solver looks at: far more than there are features."""


def fit_output(network: TwoLayer, task: Task, moved: NDArray[np.bool_]) -> TwoLayer:
    """The network with its output weights and offset fitted to the labels.

    Parameters
    ----------
    network : TwoLayer
        After the first-layer step.
    task : Task
    moved : bool array of shape (width,)
        Neurons that the step gave a gradient: the subnetwork the theorems speak of. The solver uses no others.
    """
    check_choice("second_layer", task.second_layer, ("solver", "descent"))
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
