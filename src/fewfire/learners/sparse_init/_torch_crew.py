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
    """Members trained by PyTorch; a context manager that hands the weights back to the members.

    Parameters
    ----------
    members : list of Member
        Their optimisers' state is not carried over: a later fit starts with a fresh one.
    parts, held : one table a member
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def advance(self) -> float:
        """One epoch of every member; the mean loss."""
        orders = [member.order(len(part)) for member, part in zip(self.members, self.parts, strict=True)]
        longest = max(map(len, orders))
        size, total = self.members[0].optimiser.rows_per_step(longest), 0.0
        for start in range(0, longest, size):
            chosen = [part[order[start : start + size]] for part, order in zip(self.parts, orders, strict=True)]
            total += float(np.sum(self._torch.step(*_stack(chosen))))
            self.steps += 1
        self._hand_back()
        return total / sum(map(len, orders))

    def held_out(self) -> list[Floats]:
        """Outputs of each member at its held-out rows."""
        values = self._torch.outputs(_stack(self.held)[0])
        return [rows[: len(table)] for rows, table in zip(values, self.held, strict=True)]

    def keep(self) -> None:
        """Remember the weights."""
        self.kept = self._torch.flats()

    def restore(self) -> None:
        """Go back to the weights remembered."""
        for member, kept in zip(self.members, self.kept, strict=True):
            member.flat[:] = kept

    def _hand_back(self) -> None:
        for member, flat in zip(self.members, self._torch.flats(), strict=True):
            member.flat[:] = flat


def _stack(tables: list[Table]) -> tuple[Floats, Floats, Floats]:
    """Inputs, targets and weights of several tables, padded to one length by rows of weight 0."""
    rows = max(map(len, tables))
    padded = [(rows - len(table), table) for table in tables]
    return (
        np.stack([np.pad(table.X, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.target, ((0, more), (0, 0))) for more, table in padded]),
        np.stack([np.pad(table.weight, (0, more)) for more, table in padded]),
    )
