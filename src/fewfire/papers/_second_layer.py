"""The convex second layer: output weights on fixed features, after one step has moved the first layer.

"solver" minimises the logistic loss over the neurons that fire. "descent" is pareto's Lemma 14: gradient descent on the
hinge loss plus λ/2‖u‖², the constant feature included, with rates 1/(λ t). The lemma's λ is ε/B_k², and it asks for
100(B‖ψ‖ + ε)²/ε² steps times a logarithm, 10⁸ and more; the features of a k-bit parity are nearly dependent, and fewer
steps leave k ≥ 4 unfinished. Without λ descent takes a thousandth of the features' mean square, and batches of 32 where
the lemma has the whole sample: some thousand steps then suffice at k = 2.
"""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fewfire._types import AnyArray, Float64Array, SignArray
from fewfire.engines import Engine, PerLayer, Phase, Run, Schedule
from fewfire.networks import TwoLayer

SecondLayer: TypeAlias = Literal["solver", "descent"]
"""How the convex second layer is fitted."""

MAX_ROWS = 50_000  # rows the solver looks at: far more than there are features
FEW = 128  # features up to which Newton's method is faster
LBFGS_STEPS = 200  # far below the features that are needed the fit of many is of noise, and may end early


def neurons(network: TwoLayer, chosen: AnyArray) -> TwoLayer:
    """The network of these neurons alone: indices, or a mask of shape (width,)."""
    return network.with_parameters(
        hidden=network.hidden[chosen], bias=network.bias[chosen], output=network.output[chosen]
    )


def solve_output(
    network: TwoLayer,
    X: AnyArray,
    y: Float64Array,
    moved: NDArray[np.bool_],
    iterations: int = 2000,
    solver: Literal["lbfgs", "newton-cholesky"] = "lbfgs",
) -> TwoLayer:
    """The network with output weights and offset of least logistic loss on the first rows, by neurons that moved."""
    X, y = X[:MAX_ROWS], y[:MAX_ROWS]
    output = np.zeros(network.width, dtype=network.dtype)
    offset = 1.0 if y.mean() >= 0 else -1.0  # nothing to fit: the more frequent label
    ids = np.flatnonzero(moved)
    if len(ids):
        features = neurons(network, ids).features(X)
        size = np.abs(features).max(axis=0)
        fires = size > 0
        if fires.any():
            model = LogisticRegression(C=1e3, max_iter=iterations, tol=1e-6, solver=solver)
            # In float32 Newton's method may give up, and scikit-learn 1.6 then ends in an error.
            kind = np.float64 if solver == "newton-cholesky" else features.dtype
            model.fit((features[:, fires] / size[fires]).astype(kind), y)
            output[ids[fires]] = model.coef_[0] / size[fires]
            offset = float(model.intercept_[0])
    return network.with_parameters(output=output, offset=offset)


def descend_output(
    network: TwoLayer,
    X: AnyArray,
    y: Float64Array,
    steps: int,
    engine: Engine,
    seed: int,
    *,
    regularisation: float | None = None,
) -> TwoLayer:
    """The network after descent on the mean hinge loss plus λ/2‖u‖², on the whole sample where λ is given."""
    weight = regularisation
    if weight is None:
        weight = 1e-3 * float(np.mean(network.features(X[:MAX_ROWS]) ** 2)) * network.width
    rates = [1.0 / (max(weight, 1e-12) * t) for t in range(1, steps + 1)]
    decay = [1.0 / t for t in range(1, steps + 1)]  # η_t·λ: step 1 forgets the start
    phase = Phase(
        steps,
        PerLayer(output=rates, offset=rates),
        PerLayer(output=decay, offset=decay),
        decay="direct",
        batch_size=32 if regularisation is None else None,
    )
    trained: TwoLayer = engine.train([Run(network, Schedule((phase,)), X, y, seed=seed)])[0].network
    return trained


def second_layer_error(
    network: TwoLayer, moved: NDArray[np.bool_], train: tuple[SignArray, SignArray], test: tuple[SignArray, SignArray]
) -> float:
    """The test error with the second layer fitted to the rows and labels of `train`, on the neurons that moved."""
    (X, y), (X_test, y_test) = train, test
    solver: Literal["lbfgs", "newton-cholesky"] = "lbfgs" if moved.sum() > FEW else "newton-cholesky"
    if used := bool(moved.any()):
        network = neurons(network, moved)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, LinAlgWarning):
            warnings.simplefilter("ignore", category)
        fitted = solve_output(network, X, y.astype(np.float64), np.full(network.width, used), LBFGS_STEPS, solver)
    return float(np.mean((fitted(X_test) > 0) != (y_test > 0)))
