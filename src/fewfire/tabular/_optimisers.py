"""How a network is trained: `AdamW` and `SGD` group what belongs to one way of descending.

They are scikit-learn estimators without `fit`, so a search may set `optimiser__learning_rate`, and `clone` copies them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.tabular._kernels import kernels

if TYPE_CHECKING:
    from fewfire._types import FloatArray


Auto = Literal["auto"]


class Optimiser(BaseEstimator, ABC):  # type: ignore[misc]
    """Settings every optimiser has."""

    learning_rate: float
    weight_decay: float | Auto
    batch_size: int | Auto
    epochs: int

    def check(self) -> None:
        """Raise on a setting outside its range."""
        check_number("learning_rate", self.learning_rate, 0.0, open_low=True)
        if self.weight_decay != "auto":
            check_number("weight_decay", self.weight_decay, 0.0, remedy="pass a number or 'auto'")
        if self.batch_size != "auto":
            check_integer("batch_size", self.batch_size, 1, remedy="pass a number of rows or 'auto'")
        check_integer("epochs", self.epochs, 1)

    def rows_per_step(self, rows: int) -> int:
        """The batch size for a training part of so many rows; "auto" is an eighth of them, at least 16, at most 256."""
        return min(rows, 256, max(16, rows // 8)) if self.batch_size == "auto" else min(rows, int(self.batch_size))

    def decay(self, rows: int) -> float:
        """The weight decay for a training part of so many rows; "auto" is 300 / rows, at most 3."""
        return min(3.0, 300 / rows) if self.weight_decay == "auto" else float(self.weight_decay)

    @abstractmethod
    def start(self, size: int, decayed: int, rows: int) -> Descent:
        """The state of one network of `size` parameters, the first `decayed` of which decay, on so many rows."""


class AdamW(Optimiser):
    """Adam with decoupled weight decay.

    Parameters
    ----------
    learning_rate : float
    weight_decay : float or "auto"
        Each step shrinks the weights, not the biases, by learning_rate · weight_decay; "auto" is 300 / training rows,
        at most 3.
    batch_size : int or "auto"
        Rows per step; "auto" is an eighth of the training rows, at least 16, at most 256.
    epochs : int
        Passes over the training rows, at most; those that networks cool down in come on top.
    betas : (float, float)
        Memory of the mean gradient and of its square.

    Examples
    --------
    >>> from fewfire.tabular import AdamW, SparseInitClassifier
    >>> model = SparseInitClassifier(optimiser=AdamW(learning_rate=0.001))
    """

    def __init__(
        self,
        learning_rate: float = 8e-3,
        weight_decay: float | Auto = "auto",
        batch_size: int | Auto = "auto",
        epochs: int = 400,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.betas = betas

    def check(self) -> None:
        """Raise on a setting outside its range."""
        super().check()
        try:
            count = len(self.betas)
        except TypeError:
            count = 0
        if count != 2:
            raise invalid("betas", "must be two numbers", self.betas, "pass (0.9, 0.999) for example")
        for position, beta in enumerate(self.betas):
            check_number(f"betas[{position}]", beta, 0.0, 1.0, open_high=True)

    def start(self, size: int, decayed: int, rows: int) -> Descent:
        """The state of one network."""
        return _AdamDescent(self, size, decayed, self.decay(rows))


class SGD(Optimiser):
    """Stochastic gradient descent with momentum; parameters as of `AdamW`.

    Parameters
    ----------
    learning_rate, weight_decay, batch_size, epochs
    momentum : float
        Share of the previous step that is repeated.

    Examples
    --------
    >>> from fewfire.tabular import SGD, SparseInitClassifier
    >>> model = SparseInitClassifier(optimiser=SGD(learning_rate=0.01))
    """

    def __init__(
        self,
        learning_rate: float = 0.01,
        weight_decay: float | Auto = 1e-3,
        batch_size: int | Auto = "auto",
        epochs: int = 200,
        momentum: float = 0.9,
    ) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.momentum = momentum

    def check(self) -> None:
        """Raise on a setting outside its range."""
        super().check()
        check_number("momentum", self.momentum, 0.0, 1.0, open_high=True)

    def start(self, size: int, decayed: int, rows: int) -> Descent:
        """The state of one network."""
        return _SgdDescent(self, size, decayed, self.decay(rows))


class Descent(ABC):
    """State of one network's optimiser: arrays (parts, size), and `steps`, which counts.

    `pace` is the share of the rule's learning rate that steps have, for now.
    """

    def __init__(self, rule: Optimiser, decay: float, decayed: int, state: FloatArray) -> None:
        self.rule, self.decay, self.decayed = rule, decay, decayed
        self.state, self.steps, self.pace = state, 0, 1.0

    @property
    def learning_rate(self) -> float:
        """The rule's, which may be changed between fits, at the present pace."""
        return self.pace * float(self.rule.learning_rate)

    @property
    @abstractmethod
    def memory(self) -> tuple[float, float]:
        """Shares of the state that a step keeps."""

    @abstractmethod
    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Move `parameters` (size,) along −`gradient` (size,), in place."""


class _AdamDescent(Descent):
    """`state`: the means of the gradient and of its square."""

    rule: AdamW

    def __init__(self, rule: AdamW, size: int, decayed: int, decay: float) -> None:
        super().__init__(rule, decay, decayed, np.zeros((2, size), np.float32))

    @property
    def memory(self) -> tuple[float, float]:
        beta1, beta2 = self.rule.betas
        return float(beta1), float(beta2)

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        self.steps += 1
        (beta1, beta2), (mean, square), learning_rate = self.memory, self.state, self.learning_rate
        # Both means start at 0; dividing them by 1 − βᵗ corrects that, here inside rate and tiny.
        of_square = math.sqrt(1 - beta2**self.steps)
        rate, tiny = learning_rate * of_square / (1 - beta1**self.steps), 1e-8 * of_square
        matrices, biases = slice(0, self.decayed), slice(self.decayed, None)
        for part, decay in ((matrices, learning_rate * self.decay), (biases, 0.0)):
            kernels().adamw_step(
                parameters[part], gradient[part], mean[part], square[part], rate, decay, beta1, beta2, tiny
            )


class _SgdDescent(Descent):
    """`state`: the velocity."""

    rule: SGD

    def __init__(self, rule: SGD, size: int, decayed: int, decay: float) -> None:
        super().__init__(rule, decay, decayed, np.zeros((1, size), np.float32))

    @property
    def memory(self) -> tuple[float, float]:
        return float(self.rule.momentum), 0.0

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        self.steps += 1
        velocity, learning_rate = self.state[0], self.learning_rate
        velocity *= self.memory[0]
        velocity -= learning_rate * gradient
        parameters[: self.decayed] *= 1 - learning_rate * self.decay
        parameters += velocity
