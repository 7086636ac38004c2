"""The second layer of a run that is tried again and again: least logistic loss on the neurons that moved.

The same convex problem as the learner's (`learners.parity_net.solve_output`). Where few neurons moved it is solved by
Newton's method, several times faster; with hundreds of features, whose Hessian is dear, by the learner's own solver.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from fewfire.learners.parity_net import solve_output

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import Float64Array, SignArray
    from fewfire.networks import TwoLayer

FEW = 128
"""Features up to which Newton's method is faster."""

PENALTY = 1e-3
"""Of half the squared weights beside the summed loss, as the learner has it; features are at most 1."""

NEWTON_STEPS, LBFGS_STEPS = 30, 200
"""Newton's method is done after about ten; far below what is needed the other fit is of noise, and may end early."""


def second_layer_error(
    network: TwoLayer,
    moved: NDArray[np.bool_],
    train: tuple[SignArray, SignArray],
    test: tuple[SignArray, SignArray],
) -> float:
    """The test error with the second layer fitted on the neurons that moved.

    Parameters
    ----------
    network : TwoLayer
        After the first-layer step.
    moved : bool array of shape (width,)
    train, test : pairs of arrays of shapes (rows, inputs) and (rows,)
    """
    (X, y), (X_test, y_test) = train, test
    if moved.sum() > FEW:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = solve_output(network, X, y.astype(np.float64), moved, LBFGS_STEPS)(X_test)
    else:
        scores = _newton_scores(network, moved, X, y, X_test)
    return float(np.mean((scores > 0) != (y_test > 0)))


def _newton_scores(
    network: TwoLayer, moved: NDArray[np.bool_], X: SignArray, y: SignArray, X_test: SignArray
) -> Float64Array:
    frequent = np.full(len(X_test), 1.0 if y.mean() >= 0 else -1.0)  # where nothing fires
    if not moved.any():
        return frequent
    part = network.with_parameters(hidden=network.hidden[moved], bias=network.bias[moved], output=network.output[moved])
    features = part.features(X)
    size = np.abs(features).max(axis=0)
    fires = size > 0
    if not fires.any():
        return frequent
    tables = (features[:, fires], part.features(X_test)[:, fires])
    known, unknown = (np.column_stack([table / size[fires], np.ones(len(table))]) for table in tables)
    return np.asarray(unknown @ logistic_weights(known, y.astype(np.float64)))


def logistic_weights(features: Float64Array, y: Float64Array) -> Float64Array:
    """The weights of least Σ log(1 + exp(−y·⟨w, φ⟩)) + PENALTY/2 ‖w‖², the last one not penalised: damped Newton steps.

    Parameters
    ----------
    features : array of shape (rows, features), the last of them the constant 1
    y : array of ±1, shape (rows,)
    """
    ridge = np.full(features.shape[1], PENALTY)
    ridge[-1] = 1e-9  # only to keep the equations regular
    weights = np.zeros(len(ridge))
    loss = _loss(features, y, weights, ridge)
    for _ in range(NEWTON_STEPS):
        wrong = 1 / (1 + np.exp(np.minimum(y * (features @ weights), 500)))
        slope = features.T @ (y * wrong) - ridge * weights
        hessian = (features * (wrong * (1 - wrong))[:, None]).T @ features
        hessian[np.diag_indices_from(hessian)] += ridge
        step = cho_solve(cho_factor(hessian, overwrite_a=True), slope)
        gain, share = float(slope @ step), 1.0
        if gain < 1e-8:
            break
        while (tried := _loss(features, y, weights + share * step, ridge)) > loss - share * gain / 4 and share > 1e-6:
            share /= 2
        weights, loss = weights + share * step, tried
    return weights


def _loss(features: Float64Array, y: Float64Array, weights: Float64Array, ridge: Float64Array) -> float:
    return float(np.logaddexp(0.0, -y * (features @ weights)).sum() + ridge @ weights**2 / 2)
