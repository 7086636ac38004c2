"""Initial weights: s inputs a neuron in the first layer (pareto, sections 4.2 and C.3), everything else dense.

A sparse neuron starts with s weights of random sign and size 1/√s and with its kink through a training row: it splits
the data along s columns, as a split of a tree does along one. All weights are trained afterwards, so sparsity is a
start, not a constraint. The output layer and the skip start at 0, so every network starts as the constant `offset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.learners.sparse_init._waves import WaveInputs, Waves, draw_waves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire.learners.sparse_init._member import Table
    from fewfire.learners.sparse_init._network import Layout

    Floats = NDArray[np.floating[Any]]


def draw(layout: Layout, sparsity: int | None, rows: Table, offset: Floats, stream: Stream) -> Floats:
    """Initial parameters (layout.size,), float32.

    Parameters
    ----------
    sparsity : int or None
        Non-zero weights of each first-layer row; None, or at least the number of inputs: dense rows.
    rows : Table
        Training rows; kinks of the first layer pass through them, through a row of weight 2 as often as through two.
    offset : array (outputs,)
        Start of the outputs.
    """
    flat = np.zeros(layout.size, dtype=np.float32)
    parts = layout.views(flat)
    if parts.waves is not None:
        draw_waves(parts.waves, stream.child("waves"))
    for layer, weights in enumerate(parts.hidden):
        if layer == 0:
            weights[:] = first_layer(weights.shape[0], weights.shape[1], sparsity, stream.child("hidden"))
            chosen = _through(rows, len(weights), stream.child("kinks"))
            fed = (
                chosen
                if parts.waves is None
                else WaveInputs(_doubles(parts.waves), len(chosen), gradient=False).fed(chosen)
            )
            parts.biases[0][:] = -np.einsum("ji,ji->j", weights, fed)
        else:
            weights[:] = stream.child(f"hidden{layer}").normal(weights.shape) * np.sqrt(2.0 / weights.shape[1])
    parts.offset[:] = offset
    return flat


def _through(rows: Table, count: int, stream: Stream) -> Floats:
    """`count` rows drawn by their weights, in an order that depends on what the rows hold, not on where they stand."""
    X = rows.X.astype(np.float64)
    order = np.argsort(np.einsum("ij,j->i", X, stream.child("order").normal(X.shape[1])), kind="stable")
    mass = np.cumsum(rows.weight[order], dtype=np.float64)
    chosen = np.searchsorted(mass / mass[-1], stream.child("rows").uniform(count))
    return np.asarray(X[order[np.minimum(chosen, len(X) - 1)]])


def _doubles(waves: Waves) -> Waves:
    return Waves(*(part.astype(np.float64) for part in waves))


def first_layer(width: int, inputs: int, sparsity: int | None, stream: Stream) -> Floats:
    """Rows (width, inputs) with `sparsity` entries ±1/√sparsity each, or dense normal rows of unit expected length."""
    if sparsity is None:
        return np.asarray(stream.child("dense").normal((width, inputs)) / np.sqrt(inputs))
    few = min(sparsity, inputs)
    weights = np.zeros((width, inputs))
    chosen = stream.child("inputs").subsets(width, inputs, few)
    np.put_along_axis(weights, chosen, stream.child("signs").signs((width, few)) / np.sqrt(few), axis=1)
    return weights
