"""Evaluation of a two-layer network in blocks of rows, so that memory does not grow with rows × width.

Only `preactivations` and `features` return a table of shape (rows, width); values, and the active sets and counts of
`_activity.py`, never hold more than one block of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, FloatArray
    from fewfire.networks._two_layer import TwoLayer

BLOCK_ELEMENTS = 1 << 20
"""Largest number of preactivations held at once: 4 MiB in float32, which stays in cache."""


def rows_per_block(network: TwoLayer) -> int:
    """How many inputs are evaluated together."""
    return max(1, BLOCK_ELEMENTS // max(network.width, network.inputs))


def preactivation_blocks(network: TwoLayer, X: AnyArray) -> Iterator[FloatArray]:
    """⟨w_j, x⟩ + b_j for one block of rows after the other, each of shape (rows of the block, width)."""
    table = check_inputs("X", X, network.inputs, network.dtype)
    step = rows_per_block(network)
    for start in range(0, len(table), step):
        z = table[start : start + step].astype(network.dtype, copy=False) @ network.hidden.T
        z += network.bias
        yield z


def values(network: TwoLayer, X: AnyArray) -> FloatArray:
    """f(x) for each row: shape (rows,), or (rows, outputs) where the output weights are a matrix."""
    parts = [network.activation.value(z) @ network.output for z in preactivation_blocks(network, X)]
    total: FloatArray = np.concatenate(parts)
    total += np.asarray(network.offset, dtype=network.dtype)
    return total


def preactivations(network: TwoLayer, X: AnyArray) -> FloatArray:
    """⟨w_j, x⟩ + b_j: shape (rows, width)."""
    return np.concatenate(list(preactivation_blocks(network, X)))
