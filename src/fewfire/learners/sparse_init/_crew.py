"""The NumPy crew: members on threads of this process, matrix products by NumPy's BLAS, the rest in C++."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire.learners.sparse_init._member import Member, Table

    Floats = NDArray[np.floating[Any]]


class _OneBlasThread:
    """Keeps the BLAS of this process at one thread while anyone is in: the first in sets it, the last out restores it.

    The limit is the process's: were each crew to restore what it met, one that began during another's fit and ended
    after it would leave BLAS at one thread for good.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = threadpool_limits(1, "blas")
            self._inside += 1

    def __exit__(self, *details: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


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
        _ONE_BLAS_THREAD.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown()
        _ONE_BLAS_THREAD.__exit__()
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
