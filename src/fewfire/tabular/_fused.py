"""A network whose epochs run in C++ as a whole: forward, backward and optimiser (csrc/kernels/mlp_training.hpp).

`Backprop`, `LOSSES` and `Descent.step` are its twins. While it trains, parameters and the state of the optimiser are
packed, in an order that suits the kernels; `unpack` writes them back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire import _extension
from fewfire.tabular._embeddings import PeriodicEmbedding

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import Layout, TabularLoss
    from fewfire.tabular._optimisers import Descent
    from fewfire.tabular._training import TrainingRows

CACHE_LINE = 64


@lru_cache(maxsize=64)
def _packing(core: Any, layout: Layout) -> Any:
    embedding = layout.embedding
    frequencies = embedding.frequencies if isinstance(embedding, PeriodicEmbedding) else 0
    hidden = np.array(layout.hidden, np.int64)
    ladders = np.array(layout.ladders, np.int64)
    return core.PackedMlp(layout.inputs, hidden, layout.outputs, layout.skip, frequencies, ladders)


def packing(layout: Layout) -> Any | None:
    """The C++ side of a layout, or None where it is missing or does not know the embedding."""
    core = _extension.core()
    known = layout.embedding is None or type(layout.embedding) is PeriodicEmbedding
    return _packing(core, layout) if core is not None and known else None


def aligned(rows: int, size: int) -> FloatArray:
    """Zeros (rows, size), float32, that begin on a cache line."""
    count = rows * size * np.dtype(np.float32).itemsize
    memory = np.zeros(count + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + count].view(np.float32).reshape(rows, size)


class FusedNetwork:
    """Packed parameters and optimiser of a network.

    Parameters
    ----------
    packed : PackedMlp
        From `packing`.
    flat : array (layout.size,)
    descent : Descent
        Its steps are counted here too.

    Attributes
    ----------
    parameters : array (size,)
        Packed.
    """

    def __init__(self, packed: Any, flat: FloatArray, descent: Descent) -> None:
        self._packed, self._flat, self._descent = packed, flat, descent
        self.parameters = aligned(1, packed.size)[0]
        self._state = aligned(len(descent.state), packed.size)
        packed.pack(flat, self.parameters)
        for row, part in zip(self._state, descent.state, strict=True):
            packed.pack(part, row)

    def epoch(self, rows: TrainingRows, chosen: IdArray, loss: TabularLoss, batch: int) -> float:
        """One pass over the chosen rows in their order, `batch` per step; the mean loss met on the way."""
        total = self._packed.epoch(*self._descending(rows, chosen, loss, batch))
        return self._count(total, len(chosen), batch)

    def advance(
        self,
        rows: TrainingRows,
        loss: TabularLoss,
        batch: int,
        words: tuple[Stream, int],
        mean: FloatArray,
        newest: float,
        held: TrainingRows,
        outputs: int,
    ) -> tuple[float, Float64Array]:
        """One pass over the rows, the newest share of the mean of the weights, outputs (held, outputs) by that mean.

        `words` is where the order of the rows is drawn from: all in one call, which needs the interpreter once.
        """
        (stream, start), out = words, np.empty((len(held), outputs))
        total = self._packed.advance(
            *self._descending(rows, rows.places(), loss, batch),
            int(stream.key),
            stream.id,
            start,
            mean,
            newest,
            held.X,
            held.factors(),
            held.places(),
            out,
        )
        return self._count(total, len(rows), batch), out

    def _descending(self, rows: TrainingRows, chosen: IdArray, loss: TabularLoss, batch: int) -> tuple[Any, ...]:
        """The arguments of an epoch."""
        descent = self._descent
        table = rows.X, rows.factors(), chosen, rows.target, rows.weight
        rates = descent.learning_rate, descent.decay, *descent.memory
        return self.parameters, self._state, descent.steps, *table, loss, batch, *rates

    def _count(self, total: float, rows: int, batch: int) -> float:
        """Count the steps of an epoch; its mean loss."""
        self._descent.steps += -(-rows // batch)
        return float(total) / rows

    def values(
        self, X: FloatArray, gains: FloatArray, chosen: IdArray, outputs: int, parameters: FloatArray
    ) -> Float64Array:
        """Outputs (rows, outputs) at the chosen rows, by packed parameters (size,)."""
        out = np.empty((len(chosen), outputs))
        self._packed.outputs(parameters[None], X, gains, chosen, out)
        return out

    def unpack(self) -> None:
        """Write parameters and the optimiser's state back to where they came from."""
        self._packed.unpack(self.parameters, self._flat)
        for row, part in zip(self._state, self._descent.state, strict=True):
            self._packed.unpack(row, part)


class FusedOutputs:
    """The mean output of networks of one layout; what it says of a row does not depend on the others.

    Parameters
    ----------
    packed : PackedMlp
    flats : array (networks, layout.size)
    outputs : int
    """

    def __init__(self, packed: Any, flats: FloatArray, outputs: int) -> None:
        self._packed, self._columns, self._parameters = packed, outputs, aligned(len(flats), packed.size)
        for flat, row in zip(flats, self._parameters, strict=True):
            packed.pack(flat, row)

    def __call__(self, X: FloatArray, gains: FloatArray) -> Float64Array:
        """Outputs (rows, outputs) at X (rows, inputs), float32, times gains (inputs,)."""
        out = np.empty((len(X), self._columns))
        self._packed.outputs(self._parameters, np.ascontiguousarray(X), gains, np.arange(len(X)), out)
        return out
