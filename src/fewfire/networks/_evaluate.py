"""Preactivations of a two-layer network in blocks of rows, so that memory does not grow with rows × width.

`Activity` counts firing neurons per input and per neuron. How many fire at most is `_sparsity`'s question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, FloatArray, IdArray
    from fewfire.networks._mlp import Mlp
    from fewfire.networks._two_layer import TwoLayer

BLOCK_ELEMENTS = 1 << 20
"""Largest number of preactivations at once: 4 MiB in float32, which stays in cache."""


def rows_per_block(network: TwoLayer | Mlp) -> int:
    """How many inputs are evaluated together."""
    return max(1, BLOCK_ELEMENTS // max(network.width, network.inputs))


def row_blocks(network: TwoLayer | Mlp, X: AnyArray) -> Iterator[AnyArray]:
    """The rows of X, checked, by as many as are evaluated together."""
    table = check_inputs("X", X, network.inputs, network.dtype)
    step = rows_per_block(network)
    for start in range(0, len(table), step):
        yield table[start : start + step]


def preactivation_blocks(network: TwoLayer, X: AnyArray) -> Iterator[FloatArray]:
    """⟨w_j, x⟩ + b_j for one block of rows after the other, each of shape (rows of the block, width)."""
    for rows in row_blocks(network, X):
        z = rows.astype(network.dtype, copy=False) @ network.hidden.T
        z += network.bias
        yield z


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
