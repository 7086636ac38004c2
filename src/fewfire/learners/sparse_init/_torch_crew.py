"""The torch crew: all members of a view as one batched network, in the same batches as the NumPy crew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fewfire.networks.torch import TorchMembers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire.learners.sparse_init._member import Member, Table

    Floats = NDArray[np.floating[Any]]


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
        settings = {**first.optimiser.get_params(), "weight_decay": first.descent.decay}
        self._torch = TorchMembers(
            layout.matrices, layout.others, flats, layout.skip, bool(layout.waves), first.loss, settings
        )
        self.device = self._torch.device
        self._rows = self._torch.place(*_stack(parts))
        self._judged = self._torch.place(_stack(held)[0]) if held else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        for member, flat in zip(self.members, self._torch.flats(), strict=True):
            member.flat[:] = flat

    def advance(self) -> float:
        """One epoch of every member; the mean loss."""
        counts = list(map(len, self.parts))
        longest = max(counts)
        orders = np.full((len(counts), longest), longest)  # the last row of a stack has no weight
        for row, member, count in zip(orders, self.members, counts, strict=True):
            row[:count] = member.order(count)
        size = self.members[0].optimiser.rows_per_step(longest)
        self.steps += -(-longest // size)
        return self._torch.epoch(self._rows, orders, size) / sum(counts)

    def held_out(self) -> list[Floats]:
        """Outputs of each member at its held-out rows."""
        values = self._torch.outputs(self._judged[0])
        return [rows[: len(table)] for rows, table in zip(values, self.held, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        self._torch.keep()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        self._torch.restore()


def _stack(tables: list[Table]) -> tuple[Floats, Floats, Floats]:
    """Inputs, targets and weights of several tables, padded by rows of weight 0 to one more than the longest has."""
    rows = 1 + max(map(len, tables))
    padded = [(rows - len(table), table) for table in tables]
    return (
        np.stack([np.pad(table.X, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.target, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.weight, (0, more)) for more, table in padded]),
    )
