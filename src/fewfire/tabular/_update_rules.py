"""Update rules of networks that are rows of one matrix on a device: twins of `AdamW` and `SGD`.

torch.optim moves all rows of a tensor alike; here a network that has no rows in a step stays as it is, and each counts
its own steps. Weight decay is not theirs: it comes before, and apart from momentum, for both alike. A rule is asked for
its factors of an epoch first, arrays (steps, networks) computed at once from who moves when, so that a step waits for
nothing but the device; the factors of a network that does not move make every change 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, FloatArray

    Moves = NDArray[np.bool_]


class UpdateRule(Protocol):
    """How parameters follow their gradient."""

    @property
    def state(self) -> tuple[Any, Any]:
        """What is remembered between steps: one or two tensors like the parameters, or None for the second."""

    def factors(self, moves: Moves, paces: AnyArray | float) -> list[FloatArray]:
        """Arrays (steps, networks) for `step`, given which network moves in which of the next steps, and how fast.

        `paces` (networks,) are shares of the learning rate.
        """

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Change parameters (networks, size) in place; factors are (networks, 1)."""

    def select(self, networks: list[int]) -> None:
        """Go on with these networks alone."""


class AdamRule:
    """Adam; each network's means are corrected by its own number of steps.

    Parameters
    ----------
    parameters : tensor (networks, size)
        The state has its shape and place.
    learning_rate : float
    betas : (float, float)
    """

    def __init__(self, parameters: Any, learning_rate: float, betas: tuple[float, float]) -> None:
        self.learning_rate, self.betas = learning_rate, betas
        self.mean, self.square = parameters.new_zeros(parameters.shape), parameters.new_zeros(parameters.shape)
        self.steps = np.zeros(len(parameters), np.int64)

    @property
    def state(self) -> tuple[Any, Any]:
        """The means of the gradient and of its square."""
        return self.mean, self.square

    def factors(self, moves: Moves, paces: AnyArray | float) -> list[FloatArray]:
        """Shares of the gradient and of its square that are taken in, rate, and what keeps from dividing by 0."""
        counted = self.steps + np.cumsum(moves, axis=0)
        self.steps = counted[-1]
        beta1, beta2 = self.betas
        since = np.maximum(counted, 1)  # a network yet to move has nothing to correct
        of_square = np.sqrt(1 - beta2**since)
        rate = paces * self.learning_rate * of_square / (1 - beta1**since)
        return [(1 - beta1) * moves, (1 - beta2) * moves, rate * moves, 1e-8 * of_square]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move along −mean / √square."""
        of_mean, of_square, rate, tiny = factors
        self.mean.lerp_(gradient, of_mean)
        self.square.lerp_(gradient.square(), of_square)
        parameters.addcmul_(self.mean / self.square.sqrt().add_(tiny), rate, value=-1)

    def select(self, networks: list[int]) -> None:
        """Go on with these networks alone."""
        self.mean, self.square, self.steps = self.mean[networks], self.square[networks], self.steps[networks]


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

    @property
    def state(self) -> tuple[Any, Any]:
        """The velocity."""
        return self.velocity, None

    def factors(self, moves: Moves, paces: AnyArray | float) -> list[FloatArray]:
        """Share of the velocity that is kept, rate, and whether the network moves."""
        return [np.where(moves, self.momentum, 1.0), paces * self.learning_rate * moves, 1.0 * moves]

    def step(self, parameters: Any, gradient: Any, *factors: Any) -> None:
        """Move by the velocity."""
        kept, rate, moves = factors
        self.velocity.mul_(kept).addcmul_(gradient, rate, value=-1)
        parameters.addcmul_(self.velocity, moves)

    def select(self, networks: list[int]) -> None:
        """Go on with these networks alone."""
        self.velocity = self.velocity[networks]


def rule_of(settings: Mapping[str, Any], parameters: Any) -> UpdateRule:
    """The rule of an optimiser's settings: "learning_rate", and "betas" (Adam) or "momentum"."""
    if "betas" in settings:
        return AdamRule(parameters, settings["learning_rate"], settings["betas"])
    return MomentumRule(parameters, settings["learning_rate"], settings["momentum"])
