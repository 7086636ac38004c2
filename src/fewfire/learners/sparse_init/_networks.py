"""The networks of one view: their weights, and how they are trained.

Between fits only `weights` are kept, unless training may go on (`warm_start`, `partial_fit`): then the members with the
state of their optimisers stay as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.learners.sparse_init._crew import NumpyCrew
from fewfire.learners.sparse_init._ensemble import Curves, HeldOut, Stop, train_together
from fewfire.learners.sparse_init._member import Member, Table, evaluate
from fewfire.learners.sparse_init._start import draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import Float64Array, IdArray
    from fewfire.learners.sparse_init._network import Layout
    from fewfire.learners.sparse_init._optimisers import Optimiser
    from fewfire.learners.sparse_init._settings import Settings

    Floats = NDArray[np.floating[Any]]


class Networks:
    """Networks of one layout that see the same inputs.

    Parameters
    ----------
    layout : Layout
    loss : str
        A key of LOSSES.
    offset : array (outputs,)
        What every network says at its start.
    stream : Stream
    count : int
        Networks.
    """

    def __init__(self, layout: Layout, loss: str, offset: Floats, stream: Stream, count: int) -> None:
        self.layout, self.loss, self.offset, self.stream, self.count = layout, loss, offset, stream, count
        self.weights: Floats | None = None  # (members, size)
        self.members: list[Member] = []
        self.curves = Curves()

    def train(
        self, table: Table, gains: list[Floats], folds: list[IdArray] | None, validation: Table | None,
        settings: Settings, label: str = "",
    ) -> Stop:  # fmt: skip
        """Train until the held-out rows, or the epochs, say stop.

        Parameters
        ----------
        table, validation : Table
            Inputs without gains.
        gains : list of arrays (inputs,)
            How large each member sees the inputs.
        folds : list of arrays, optional
            Rows that each member does not train on, to stop by.
            `validation`, if given, is what all stop by instead.
        label : str
            Named in the progress, which is told if it is not empty.
        """
        held, smoothed = None, table.smoothed(settings.smoothing)
        if folds is not None and validation is None:
            everything = np.arange(len(table))
            shown = list(zip(folds, gains, strict=True))
            parts = [smoothed[np.setdiff1d(everything, fold)].gained(large) for fold, large in shown]
            held = HeldOut(table, folds, [table[fold].gained(large) for fold, large in shown], self.loss)
        else:  # the same rows and gains for all members: one table, not a copy a member
            parts = [smoothed.gained(gains[0])] * self.count
        if validation is not None:
            rows = [np.arange(len(validation))] * self.count
            held = HeldOut(validation, rows, [validation.gained(gains[0])] * self.count, self.loss)
        return self._run(parts, held, settings.optimiser.epochs, settings, label)

    def train_epoch(self, table: Table, settings: Settings, label: str = "") -> None:
        """One epoch of every member over all rows."""
        self._run([table.smoothed(settings.smoothing)] * self.count, None, 1, settings, label)

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        self.members = []

    def outputs(self, X: Floats) -> Float64Array:
        """Mean output (rows, outputs) of the networks at X (rows, inputs), float64."""
        assert self.weights is not None
        total, inputs = np.zeros((len(X), self.layout.outputs)), X.astype(np.float64)
        for flat in self.weights.astype(np.float64):
            total += evaluate(self.layout, flat, inputs)
        return total / len(self.weights)

    def _run(self, parts: list[Table], held: HeldOut | None, epochs: int, settings: Settings, label: str) -> Stop:
        if self.members and not _alike(self.members[0].optimiser, settings.optimiser):
            self.members = []  # another way to descend starts afresh, from these weights
        if not self.members:
            self.members = [self._member(number, part, settings) for number, part in enumerate(parts)]
        judged = [] if held is None else held.tables
        with self._crew(parts, judged, settings) as crew:
            best = train_together(crew, epochs, self.curves, held, settings.patience or epochs, label)
        self.weights = np.stack([member.flat for member in self.members])
        return best

    def _crew(self, parts: list[Table], judged: list[Table], settings: Settings) -> Any:
        if settings.engine != "torch":
            return NumpyCrew(self.members, parts, judged, settings.threads)
        from fewfire.learners.sparse_init._torch_crew import TorchCrew  # loads torch

        return TorchCrew(self.members, parts, judged)

    def _member(self, number: int, rows: Table, settings: Settings) -> Member:
        """A fresh network, or, after a finished fit, one with its weights and a fresh optimiser."""
        stream = self.stream.child(f"member{number}")
        if self.weights is None:
            flat = draw(self.layout, settings.sparsity, rows, self.offset, stream)
        else:
            flat = self.weights[number].copy()
        return Member(self.layout, flat, settings.optimiser, self.loss, stream.child("batches"), len(rows))


def _alike(one: Optimiser, other: Optimiser) -> bool:
    """Whether two optimisers differ in their number of epochs at most."""
    settings, others = one.get_params(), other.get_params()
    return type(one) is type(other) and {**settings, "epochs": 0} == {**others, "epochs": 0}
