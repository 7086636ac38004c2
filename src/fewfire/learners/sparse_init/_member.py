"""One network of an ensemble: its weights and the state of its optimiser, trained epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.learners.sparse_init._losses import LOSSES
from fewfire.learners.sparse_init._network import Backprop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import IdArray
    from fewfire.learners.sparse_init._network import Layout
    from fewfire.learners.sparse_init._optimisers import Optimiser

    Floats = NDArray[np.floating[Any]]

FEWEST, MOST = 16, 1024
"""Rows of a prediction at a time, so that products are worth their call and the hidden layer stays in cache."""
BUFFERS = 2**24
"""Bytes the layers of those rows may take; waves of a wide table are many."""


@dataclass(frozen=True)
class Table:
    """Rows to train on: inputs (rows, inputs), target (rows, outputs), weight (rows,) of mean 1; all float32."""

    X: Floats
    target: Floats
    weight: Floats

    def __getitem__(self, rows: IdArray) -> Table:
        return Table(self.X[rows], self.target[rows], self.weight[rows])

    def __len__(self) -> int:
        return len(self.X)

    def gained(self, gains: Floats) -> Table:
        """Inputs multiplied by gains (inputs,)."""
        return Table(self.X * gains, self.target, self.weight)

    def smoothed(self, share: float) -> Table:
        """Targets of classes with a share of them spread evenly over all classes; two classes have one output."""
        if not share:
            return self
        even = np.float32(share / max(2, self.target.shape[1]))
        return Table(self.X, np.float32(1 - share) * self.target + even, self.weight)


class Member:
    """A network in training.

    Parameters
    ----------
    layout : Layout
    flat : array (layout.size,)
        Its start; changed in place.
    optimiser : AdamW or SGD
    loss : str
        A key of LOSSES.
    stream : Stream
        Orders the rows of every epoch.
    rows : int
        Rows it will train on, for settings that go by them.
    """

    def __init__(
        self, layout: Layout, flat: Floats, optimiser: Optimiser, loss: str, stream: Stream, rows: int
    ) -> None:  # fmt: skip
        self.layout, self.flat, self.optimiser, self.loss, self.stream = layout, flat, optimiser, loss, stream
        self.descent = optimiser.start(layout.size, layout.decayed, rows)
        self.rows_drawn = 0
        self._backprop: Backprop | None = None

    def train_epoch(self, rows: Table) -> float:
        """One pass over the rows in a fresh order; returns the mean loss met on the way."""
        size = self.optimiser.rows_per_step(len(rows))
        if self._backprop is None or self._backprop.rows < size:
            self._backprop = Backprop(self.layout, self.flat, size)
        # One step takes all rows: their order is of no account, and left alone it changes no sum.
        shuffled = rows if size == len(rows) else rows[self.order(len(rows))]
        backprop, total = self._backprop, 0.0
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            X, weight = shuffled.X[part], shuffled.weight[part]
            losses, errors = LOSSES[self.loss](backprop.values(X), shuffled.target[part])
            total += float(losses @ weight)
            errors *= (weight / len(X))[:, None]
            self.descent.step(self.flat, backprop.differentiate(X, errors))
        return total / len(rows)

    def order(self, rows: int) -> IdArray:
        """A fresh order of so many rows: the next of the member's stream."""
        order = self.stream.permutation(rows, start=self.rows_drawn)
        self.rows_drawn += rows
        return order

    def values(self, X: Floats) -> Floats:
        """Outputs (rows, outputs)."""
        return evaluate(self.layout, self.flat, X)

    def release(self) -> None:
        """Give back the buffers of training."""
        self._backprop = None


def rows_at_once(layout: Layout, itemsize: int) -> int:
    """How many rows to predict at a time with numbers of so many bytes."""
    waves = 2 * layout.inputs * layout.waves  # cosines, and sines or angles
    of_row = layout.fed + waves + sum(layout.hidden) + 2 * layout.outputs
    return min(MOST, max(FEWEST, BUFFERS // (of_row * itemsize)))


def evaluate(layout: Layout, flat: Floats, X: Floats) -> Floats:
    """Outputs (rows, outputs) of a network at X (rows, inputs), in the precision of `flat`."""
    out, block = np.empty((len(X), layout.outputs), flat.dtype), rows_at_once(layout, flat.itemsize)
    backprop = Backprop(layout, flat, min(block, max(len(X), 1)), gradient=False)
    for start in range(0, len(X), block):
        out[start : start + block] = backprop.values(X[start : start + block])
    return out
