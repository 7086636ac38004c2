"""A given network as the target, on uniform ±1 inputs (the teacher of sparse-activations, section 3).

The network is anything that has a number of inputs and maps rows to numbers; this package imports
no network classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, SignArray
from fewfire._validate import check_integer, check_number
from fewfire.problems._base import CubeProblem, assign, check_flip_probability, check_outputs, flip


@runtime_checkable
class Network(Protocol):
    """What a target network must offer."""

    @property
    def inputs(self) -> int:
        """The number of columns it takes."""

    def __call__(self, X: AnyArray, /) -> AnyArray:
        """One number per row of X."""


@dataclass(frozen=True, eq=False)
class NetworkTarget(CubeProblem):
    """The value of a network on uniform ±1 inputs, or its sign above a threshold.

    Two of these are equal when they hold the same network object and equal numbers.

    Parameters
    ----------
    network : object with an integer `inputs` that is callable on X of shape (rows, inputs)
    noise : float
        Without a threshold, the standard deviation of Gaussian noise added to each label; with one,
        the probability in [0, 1/2] that a label is flipped.
    threshold : float, optional
        Makes labels ±1: +1 where the value is above the threshold, −1 where it is not.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.random_member(12, s=6, k=2, seed=0)
    >>> problem = ff.problems.NetworkTarget(network)
    >>> X, y = problem.sample(100, seed=0)
    >>> bool((y == network(X)).all())
    True
    """

    network: Network
    noise: float = 0.0
    threshold: float | None = None

    def __post_init__(self) -> None:
        network: object = self.network
        if not isinstance(network, Network):
            got = f"a {type(network).__name__}"
            raise invalid("network", "must have `inputs` and be callable", got, "pass a TwoLayer or a class like it")
        check_integer("network.inputs", network.inputs, 1)
        if self.threshold is None:
            assign(self, noise=check_number("noise", self.noise, 0.0, remedy="it is a standard deviation"))
        else:
            assign(self, threshold=check_number("threshold", self.threshold), noise=check_flip_probability(self.noise))

    @property
    def inputs(self) -> int:
        """The number of columns of X: the network's."""
        return int(self.network.inputs)

    @property
    def bayes_error(self) -> float:
        """What the target itself gets: mean squared error noise² for real labels, share of wrong labels for ±1."""
        return self.noise**2 if self.threshold is None else self.noise

    def _noisy(self, labels: AnyArray, stream: Stream, start: int) -> AnyArray:
        if self.threshold is not None:
            return flip(labels, self.noise, stream, start)
        return super()._noisy(labels, stream, start)

    def _values(self, X: SignArray) -> AnyArray:
        values = check_outputs("network", self.network(X), len(X))
        return values if self.threshold is None else np.where(values > self.threshold, 1, -1).astype(np.int8)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NetworkTarget):
            return NotImplemented
        return self.network is other.network and (self.noise, self.threshold) == (other.noise, other.threshold)

    def __hash__(self) -> int:
        return hash((id(self.network), self.noise, self.threshold))
