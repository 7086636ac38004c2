"""The NumPy crew: members on threads of this process, matrix products by NumPy's BLAS, the rest in C++."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fewfire._blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire.learners.sparse_init._member import Member, Table

    Floats = NDArray[np.floating[Any]]


class NumpyCrew:
    """Members, the rows each trains on and, for early stopping, those it is judged by; a context manager.

    Parameters
    ----------
    members : list of Member
    parts, held : one table a member
        `held` may be empty where nothing stops early.
    threads : int
        Members trained at a time.
    """

    def __init__(self, members: list[Member], parts: list[Table], held: list[Table], threads: int) -> None:
        self.members, self.parts, self.held = members, parts, held
        self.threads = min(threads, len(members))
        self.learning_rate = float(members[0].optimiser.learning_rate)
        self.kept: list[Floats] = []

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self.threads)
        # Products of a batch are small: threads inside them cost more than they bring, and fight for the cores.
        ONE_BLAS_THREAD.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown()
        ONE_BLAS_THREAD.__exit__()
        for member in self.members:
            member.release()

    @property
    def steps(self) -> int:
        """Steps the first member has done."""
        return self.members[0].descent.steps

    def advance(self) -> float:
        """One epoch of every member; the mean loss."""
        return float(np.mean(list(self._pool.map(_train, self.members, self.parts))))

    def held_out(self) -> list[Floats]:
        """Outputs of each member at its held-out rows."""
        return list(self._pool.map(_predict, self.members, self.held))

    def keep(self) -> None:
        """Remember the weights."""
        self.kept = [member.flat.copy() for member in self.members]

    def restore(self) -> None:
        """Go back to the weights remembered."""
        for member, kept in zip(self.members, self.kept, strict=True):
            member.flat[:] = kept


def _train(member: Member, part: Table) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # a diverging loss is reported once, by its value
        return member.train_epoch(part)


def _predict(member: Member, held: Table) -> Floats:
    return member.values(held.X)
