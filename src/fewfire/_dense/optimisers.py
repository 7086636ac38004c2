"""AdamW and stochastic gradient descent with momentum, learning-rate schedules, and early stopping.

`AdamW` and `SGD` are settings: scikit-learn estimators without `fit`, so a search may set `optimiser__learning_rate`,
and `clone` copies them. `start` gives the state of one network in NumPy, `start_stack` the factors of networks that are
trained together on a GPU. C++ runs whole epochs by the same formulas (csrc/kernels/optimisers.hpp). Weight
decay is decoupled: it shrinks the leading parameters, apart from gradient and momentum.

Adam's means m of the gradient and v of its square start at 0, which dividing them by 1 − βᵗ after t steps corrects:

w ← w − rate · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + 1e-8)

Annealing: networks that held-out rows have stopped train a few last epochs on all rows, at a learning rate that falls
to zero. When all decisions are taken nothing need be held out any more, and the quarter of the rows that a network left
out is of use too. So networks go on with all rows, from the weights that were best and with a fresh optimiser, whose
first steps do not depend on where larger ones led.

The end is not validated: rows that have been trained on cannot, and held-out rows, each predicted by one network,
would not see what the mean of several gains when each is fitted further. The length is therefore a share of what the
held-out rows asked for, and weights of the mixture, temperature and shares of trees stay those learned before. Where
training may go on (`warm_start`), it does so from the weights before, which have not seen the validation rows.

Rows that are given to stop by (`validation_data`) validate the mean of all networks, which train on all other rows
anyway: there is nothing to make up for, and none anneals.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from fewfire._dense.kernels import kernels, reference
from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from fewfire._types import AnyArray, FloatArray

    Moves = NDArray[np.bool_]

Auto = Literal["auto"]
TINY = 1e-8
"""Keeps Adam from dividing by 0."""
ANNEALED = 0.3  # of the epochs up to the best
FIRST = 0.75  # share of the learning rate in the first of them
LAST = 0.01
"""The last learning rate of a cosine, as a share of the first."""


class Optimiser(BaseEstimator):  # type: ignore[misc]
    """Settings every optimiser has."""

    name: ClassVar[str | None] = None  # in C++; None where NumPy alone has the step
    descent: ClassVar[type[Descent]]
    stack: ClassVar[type[StackDescent]]
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

    def start(self, size: int, decayed: int, rows: int = 1, dtype: DTypeLike = np.float32) -> Descent:
        """The state of one network of `size` parameters, the first `decayed` of which decay, on so many rows."""
        return self.descent(self, decayed, rows, np.zeros((self.stack.states, size), dtype))

    def start_stack(self, networks: int) -> StackDescent:
        """The factors of the steps of so many networks on a device."""
        return self.stack(self, networks)


def adam_rates(learning_rate: Any, betas: tuple[float, float], steps: Any, tiny: float = TINY) -> tuple[Any, Any]:
    """Of numbers or arrays: rate and `tiny` with both corrections inside, for steps that use the means as they are."""
    beta1, beta2 = betas
    left = 1 - beta2**steps
    of_square = math.sqrt(left) if isinstance(steps, int) else np.sqrt(left)
    return learning_rate * of_square / (1 - beta1**steps), tiny * of_square


class Descent(ABC):
    """State of one network's optimiser: arrays (parts, size), and `steps`, which counts.

    `factor` is the share of the rule's learning rate that steps have, for now.
    """

    def __init__(self, rule: Optimiser, decayed: int, rows: int, state: FloatArray) -> None:
        self.rule, self.decayed, self.decay, self.state = rule, decayed, rule.decay(rows), state
        self.steps, self.factor = 0, 1.0

    @property
    def learning_rate(self) -> float:
        """The rule's, which may be changed between fits, times the factor."""
        return self.factor * float(self.rule.learning_rate)

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

    @property
    def memory(self) -> tuple[float, float]:
        beta1, beta2 = self.rule.betas
        return float(beta1), float(beta2)

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        self.steps += 1
        betas, learning_rate, end = self.memory, self.learning_rate, self.decayed
        rate, tiny = adam_rates(learning_rate, betas, self.steps)
        # In C++ there are steps of float32 alone.
        update = (kernels() if parameters.dtype == np.float32 else reference()).adamw_step
        arrays = (parameters, gradient, *self.state)
        if end:
            update(*(array[:end] for array in arrays), rate, learning_rate * self.decay, *betas, tiny)
        if end < len(parameters):
            update(*(array[end:] for array in arrays), rate, 0.0, *betas, tiny)


class _SgdDescent(Descent):
    """`state`: the velocity."""

    rule: SGD

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


class StackDescent(ABC):
    """Factors of the steps of networks that a kernel trains together (tabular/cuda/network.cuh).

    Each network counts its own steps; one that has no rows in a step stays as it is. Weight decay is left to the
    caller. Factors of an epoch are computed at once, so that a step waits for nothing but the device.
    """

    states: int
    """Arrays like the parameters that the optimiser keeps between steps."""

    def __init__(self, rule: Optimiser, networks: int) -> None:
        self.rule, self.steps = rule, np.zeros(networks, np.int64)

    @abstractmethod
    def factors(self, moves: Moves, rate_factors: AnyArray | float) -> list[FloatArray]:
        """Arrays (steps, networks), given which network moves in which of the next steps.

        `rate_factors` (networks,) are learning-rate factors.
        """


class _AdamStack(StackDescent):
    """The device keeps the means of the gradient and of its square."""

    rule: AdamW
    states = 2

    def factors(self, moves: Moves, rate_factors: AnyArray | float) -> list[FloatArray]:
        """Shares of the gradient and of its square that are taken in, rate, and what keeps from dividing by 0."""
        counted = self.steps + np.cumsum(moves, axis=0)
        self.steps = counted[-1]
        beta1, beta2 = self.rule.betas
        since = np.maximum(counted, 1)  # a network yet to move has nothing to correct
        rate, tiny = adam_rates(rate_factors * self.rule.learning_rate, self.rule.betas, since)
        return [(1 - beta1) * moves, (1 - beta2) * moves, rate * moves, tiny]


class _SgdStack(StackDescent):
    """The device keeps the velocity."""

    rule: SGD
    states = 1

    def factors(self, moves: Moves, rate_factors: AnyArray | float) -> list[FloatArray]:
        """Share of the velocity that is kept, rate, and whether the network moves."""
        return [np.where(moves, self.rule.momentum, 1.0), rate_factors * self.rule.learning_rate * moves, 1.0 * moves]


@dataclass(eq=False, repr=False)
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
        Passes over the training rows, at most; those of annealing come on top.
    betas : (float, float)
        Memory of the mean gradient and of its square.

    Examples
    --------
    >>> from fewfire.tabular import AdamW, TabularClassifier
    >>> model = TabularClassifier(optimiser=AdamW(learning_rate=0.001))
    """

    name: ClassVar = "AdamW"
    descent: ClassVar = _AdamDescent
    stack: ClassVar = _AdamStack
    learning_rate: float = 8e-3
    weight_decay: float | Auto = "auto"
    batch_size: int | Auto = "auto"
    epochs: int = 400
    betas: tuple[float, float] = (0.9, 0.999)

    def check(self) -> None:
        super().check()
        try:
            count = len(self.betas)
        except TypeError:
            count = 0
        if count != 2:
            raise invalid("betas", "must be two numbers", self.betas, "pass (0.9, 0.999) for example")
        for position, beta in enumerate(self.betas):
            check_number(f"betas[{position}]", beta, 0.0, 1.0, open_high=True)


@dataclass(eq=False, repr=False)
class SGD(Optimiser):
    """Stochastic gradient descent with momentum; parameters as of `AdamW`.

    Parameters
    ----------
    learning_rate, weight_decay, batch_size, epochs
    momentum : float
        Share of the previous step that is repeated.

    Examples
    --------
    >>> from fewfire.tabular import SGD, TabularClassifier
    >>> model = TabularClassifier(optimiser=SGD(learning_rate=0.01))
    """

    name: ClassVar = "SGD"
    descent: ClassVar = _SgdDescent
    stack: ClassVar = _SgdStack
    learning_rate: float = 0.01
    weight_decay: float | Auto = 1e-3
    batch_size: int | Auto = "auto"
    epochs: int = 200
    momentum: float = 0.9

    def check(self) -> None:
        super().check()
        check_number("momentum", self.momentum, 0.0, 1.0, open_high=True)


def annealing_factors(best: int) -> tuple[float, ...]:
    """Shares of the learning rate, epoch by epoch, of networks that were best after so many epochs.

    >>> annealing_factors(3), annealing_factors(13)
    ((0.75,), (0.75, 0.5625, 0.375, 0.1875))
    """
    epochs = max(1, round(ANNEALED * best))
    return tuple(FIRST * (epochs - epoch) / epochs for epoch in range(epochs))


def cosine(done: float) -> float:
    """The learning rate after a share of the steps, as a share of the first."""
    return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * done))


class BestEpoch:
    """The epoch, counted from 1, of the least score so far; training is over after `patience` epochs without a better.

    Scores are numbers or tuples of them; `patience` None means that training goes on.
    """

    def __init__(self, patience: int | None = None) -> None:
        self.patience, self.epoch, self.epochs = patience, 0, 0
        self._score: Any = None

    def better(self, score: Any) -> bool:
        """Take in the score of the next epoch; whether it is the least so far."""
        self.epochs += 1
        if self.epoch and not score < self._score:
            return False
        self._score, self.epoch = score, self.epochs
        return True

    @property
    def over(self) -> bool:
        """Whether training is to stop."""
        return self.patience is not None and self.epochs - self.epoch >= self.patience
