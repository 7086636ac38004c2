"""Update rules of several networks at once on PyTorch, in which a network that has no rows in a step stays as it is.

torch.optim moves all rows of a tensor alike; here members count their own steps. The rules are those of the tabular
learners' AdamW and SGD. Weight decay is not theirs: it comes before, and apart from momentum, for both alike.

A rule is asked for its factors of an epoch first, arrays (steps, members) computed at once from who moves when, so that
a step waits for nothing but the device; the factors of a member that does not move make every change 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Moves = NDArray[np.bool_]


class Rule(Protocol):
    """How parameters follow their gradient."""

    def factors(self, moves: Moves) -> list[Floats]:
        """Arrays (steps, members) for `step`, given which member moves in which of the next steps."""

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Change parameters (members, size) in place; factors are (members, 1)."""


class AdamRule:
    """Adam; each member's means are corrected by its own number of steps.

    Parameters
    ----------
    parameters : tensor (members, size)
        The state has its shape and place.
    learning_rate : float
    betas : (float, float)
    """

    def __init__(self, parameters: Any, learning_rate: float, betas: tuple[float, float]) -> None:
        self.learning_rate, self.betas = learning_rate, betas
        self.mean, self.square = parameters.new_zeros(parameters.shape), parameters.new_zeros(parameters.shape)
        self.steps = np.zeros(len(parameters), np.int64)

    def factors(self, moves: Moves) -> list[Floats]:
        """Shares of the gradient and of its square that are taken in, rate, and what keeps from dividing by 0."""
        counted = self.steps + np.cumsum(moves, axis=0)
        self.steps = counted[-1]
        beta1, beta2 = self.betas
        since = np.maximum(counted, 1)  # a member yet to move has nothing to correct
        of_square = np.sqrt(1 - beta2**since)
        rate = self.learning_rate * of_square / (1 - beta1**since)
        return [(1 - beta1) * moves, (1 - beta2) * moves, rate * moves, 1e-8 * of_square]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move along −mean / √square."""
        of_mean, of_square, rate, tiny = factors
        self.mean += of_mean * (gradient - self.mean)
        self.square += of_square * (gradient * gradient - self.square)
        parameters -= rate * self.mean / (self.square.sqrt() + tiny)


class MomentumRule:
    """Gradient descent with momentum; parameters as of `AdamRule`.

    Parameters
    ----------
    parameters, learning_rate
    momentum : float
    """

    def __init__(self, parameters: Any, learning_rate: float, momentum: float) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocity = parameters.new_zeros(parameters.shape)

    def factors(self, moves: Moves) -> list[Floats]:
        """Share of the velocity that is kept, rate, and whether the member moves."""
        return [np.where(moves, self.momentum, 1.0), self.learning_rate * moves, 1.0 * moves]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move by the velocity."""
        kept, rate, moves = factors
        self.velocity *= kept
        self.velocity -= rate * gradient
        parameters += moves * self.velocity


def rule_of(settings: Mapping[str, Any], parameters: Any) -> Rule:
    """The rule with "learning_rate" and "betas" (Adam) or "momentum"."""
    if "betas" in settings:
        return AdamRule(parameters, settings["learning_rate"], settings["betas"])
    return MomentumRule(parameters, settings["learning_rate"], settings["momentum"])
