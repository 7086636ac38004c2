"""The torch crew: all members of a view as one batched network, in the same batches as the NumPy crew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fewfire.learners.sparse_init._member import rows_at_once
from fewfire.networks.torch import TorchMembers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import IdArray
    from fewfire.learners.sparse_init._member import Member, Table

    Floats = NDArray[np.floating[Any]]

NO_ROW = -1  # the last row of a stack, which is empty


class TorchCrew:
    """Members trained by PyTorch; a context manager that hands the weights back to the members at its end.

    Parameters
    ----------
    members : list of Member
        Their optimisers' state is not carried over: a later fit starts with a fresh one.
    parts, held : one table a member
        Moved to the device once.
    """

    def __init__(self, members: list[Member], parts: list[Table], held: list[Table]) -> None:
        self.members, self.parts, self.held = members, parts, held
        first = members[0]
        self.learning_rate, self.steps = float(first.optimiser.learning_rate), 0
        flats = np.stack([member.flat for member in members])
        layout = first.layout
        self._torch = TorchMembers(
            layout.matrices, layout.others, flats, layout.skip, bool(layout.waves), first.loss,
            first.optimiser.get_params(), np.array([member.descent.decay for member in members]),
        )  # fmt: skip
        self._rows = self._torch.place(*_stack(parts))
        self._judged = self._torch.place(_stack(held)[0]) if held else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        for member, flat in zip(self.members, self._torch.flats(), strict=True):
            member.flat[:] = flat

    def advance(self) -> float:
        """One epoch of every member; the mean loss."""
        batches = [_batches(member, len(part)) for member, part in zip(self.members, self.parts, strict=True)]
        self.steps += len(batches[0])
        steps, size = np.max([batch.shape for batch in batches], axis=0)
        together = np.full((steps, len(batches), size), NO_ROW)
        for number, batch in enumerate(batches):
            together[: batch.shape[0], number, : batch.shape[1]] = batch
        return float(np.mean(self._torch.epoch(self._rows, together) / list(map(len, self.parts))))

    def held_out(self) -> list[Floats]:
        """Outputs of each member at its held-out rows."""
        values = self._torch.outputs(self._judged[0], rows_at_once(self.members[0].layout, 4))
        return [rows[: len(table)] for rows, table in zip(values, self.held, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        self._torch.keep()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        self._torch.restore()


def _batches(member: Member, rows: int) -> IdArray:
    """Rows (steps, size) of a member's next epoch, as `Member.train_epoch` would take them."""
    size = member.optimiser.rows_per_step(rows)
    order = np.arange(rows) if size == rows else member.order(rows)
    return np.pad(order, (0, -rows % size), constant_values=NO_ROW).reshape(-1, size)


def _stack(tables: list[Table]) -> tuple[Floats, Floats, Floats]:
    """Inputs, targets and weights of several tables, padded by rows of weight 0 to one more than the longest has.

    Of a table that all members share there is one block.
    """
    if all(table is tables[0] for table in tables):
        tables = tables[:1]
    rows = 1 + max(map(len, tables))
    padded = [(rows - len(table), table) for table in tables]
    return (
        np.stack([np.pad(table.X, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.target, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.weight, (0, more)) for more, table in padded]),
    )
