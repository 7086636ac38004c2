"""How much of a network is active on given inputs: counts per input and per neuron, and the dead neurons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import IdArray


@dataclass(frozen=True, eq=False)
class Activity:
    """Counts of firing neurons over a table of inputs.

    Parameters
    ----------
    per_input : int64 array of shape (rows,)
        How many neurons fire on each input.
    per_neuron : int64 array of shape (width,)
        On how many inputs each neuron fires.
    """

    per_input: IdArray
    per_neuron: IdArray

    @property
    def dead(self) -> IdArray:
        """The neurons that fire on none of the inputs, ascending."""
        return np.flatnonzero(self.per_neuron == 0).astype(np.int64)

    @property
    def mean_active(self) -> float:
        """The mean number of neurons that fire on an input."""
        return float(self.per_input.mean())

    @property
    def max_active(self) -> int:
        """The largest number of neurons that fire on one input: k of the class H(n, s, k) on these inputs."""
        return int(self.per_input.max())

    @property
    def fraction(self) -> float:
        """The share of (input, neuron) pairs that are active."""
        return self.mean_active / len(self.per_neuron)

    def __repr__(self) -> str:
        rows, width = len(self.per_input), len(self.per_neuron)
        active = f"mean_active={self.mean_active:g}, max_active={self.max_active}, dead={len(self.dead)}"
        return f"Activity(rows={rows}, width={width}, {active})"
