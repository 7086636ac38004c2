"""The networks of pareto, appendix C.3: three hidden layers of one width, dense or with s inputs per neuron.

scikit-learn's `MLPClassifier` trains them (log loss, Adam, learning rate 1e-3, batches of 256, 100 epochs); the weights
start as C.1 says: uniform within one over the square root of the fan-in, a sparse first layer with s ones per row. The
paper names SGD in C.1 alone; with plain SGD at this rate the networks hardly leave their start (docs/errata.md).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from fewfire._random import Stream
from fewfire._validate import check_integer
from fewfire.networks import init

if TYPE_CHECKING:
    from fewfire._types import AnyArray


class PaperNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained as pareto, C.3, trains it.

    Parameters
    ----------
    width : int
        Of every hidden layer.
    sparsity : int or None
        Non-zero weights of each first-layer row; None is dense.
    depth : int
        Hidden layers.
    solver : "adam" or "sgd"
    learning_rate, batch_size, epochs
    random_state : int
    """

    def __init__(
        self,
        width: int = 100,
        sparsity: int | None = 2,
        depth: int = 3,
        solver: Literal["adam", "sgd"] = "adam",
        learning_rate: float = 1e-3,
        batch_size: int = 256,
        epochs: int = 100,
        random_state: int = 0,
    ) -> None:
        self.width = width
        self.sparsity = sparsity
        self.depth = depth
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: AnyArray, y: AnyArray) -> PaperNetwork:
        """Train on X (rows, features), already standardised, and classes y (rows,)."""
        X = np.asarray(X, dtype=np.float32)
        hidden = (check_integer("width", self.width, 1),) * check_integer("depth", self.depth, 1)
        network = MLPClassifier(
            hidden,
            solver=self.solver,
            alpha=0.0,
            batch_size=min(self.batch_size, len(X)),
            momentum=0.0,
            learning_rate_init=self.learning_rate,
            max_iter=1,
            tol=0.0,
            n_iter_no_change=self.epochs + 1,
            warm_start=True,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the stop
            network.fit(X, y)  # makes the arrays; what it learned is overwritten
            self._start(network)
            self.network_ = network.set_params(max_iter=self.epochs).fit(X, y)
        self.classes_ = network.classes_
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The classes of X (rows, features), shape (rows,)."""
        classes: AnyArray = self.network_.predict(np.asarray(X, dtype=np.float32))
        return classes

    def _start(self, network: Any) -> None:
        """Write the initial weights; scikit-learn keeps them as (fan-in, fan-out)."""
        stream = Stream(self.random_state, "paper network")
        for layer, (weights, biases) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
            inputs, width = weights.shape
            sparse = layer == 0 and self.sparsity is not None
            start = init.sparse(min(int(self.sparsity or inputs), inputs)) if sparse else init.dense()
            drawn = start(inputs, width, stream.child(f"layer{layer}"))
            weights[:], biases[:] = drawn.hidden.T, drawn.bias
