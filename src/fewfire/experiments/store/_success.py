"""What counts as success, run by run and cell by cell: the numbers behind every frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fewfire.experiments.store._row import final

if TYPE_CHECKING:
    from fewfire._types import AnyArray
    from fewfire.experiments.store._protocol import Setting, Store


@overload
def succeeded(status: str, best_test_error: float, success_error: float) -> bool: ...


@overload
def succeeded(status: AnyArray, best_test_error: AnyArray, success_error: float) -> AnyArray: ...


def succeeded(status: Any, best_test_error: Any, success_error: float) -> Any:
    """Whether runs succeeded: trained to their end, with a smallest recorded test error of at most `success_error`.

    Parameters
    ----------
    status, best_test_error : of one run, or columns of a store, shape (runs,)
    success_error : float

    Returns
    -------
    bool, or bool array of shape (runs,)

    Examples
    --------
    >>> from fewfire.experiments import succeeded
    >>> succeeded("done", 0.05, success_error=0.1), succeeded("diverged", 0.05, success_error=0.1)
    (True, False)
    """
    return (status == "done") & (best_test_error <= success_error)


@dataclass(frozen=True)
class Cell:
    """The runs of one setting: how many are final, how many of these succeeded or diverged, how many failed."""

    setting: Setting
    runs: int
    successes: int
    diverged: int
    failed: int

    @property
    def success(self) -> float:
        """The share of successes among final runs; NaN when there are none."""
        return self.successes / self.runs if self.runs else float("nan")


def cells(store: Store, success_error: float) -> list[Cell]:
    """One cell per setting, in order of the settings; see `succeeded` for what counts as success.

    Examples
    --------
    >>> from fewfire.experiments import MemoryStore, Sweep, cells
    >>> spec = {
    ...     "problem": {"name": "parity", "n": 8, "k": 2},
    ...     "network": {"start": "dense", "width": 20},
    ...     "data": {"samples": [20, 200]},
    ...     "training": {"steps": 500},
    ...     "trials": 2,
    ... }
    >>> store = MemoryStore()
    >>> done = Sweep.from_dict(spec).run(store, executor="inline")
    >>> [(cell.setting.samples, cell.successes) for cell in cells(store, success_error=0.1)]
    [(20, 0), (200, 2)]
    """
    settings, columns = store.settings(), store.columns()
    place, status = columns["setting"], columns["status"]
    size = max((setting.id for setting in settings), default=0) + 1

    def count(chosen: AnyArray) -> AnyArray:
        return np.bincount(place[chosen], minlength=size)

    ended = final(status)
    good = succeeded(status, columns["best_test_error"], success_error)
    counts = [count(ended), count(good), count(status == "diverged"), count(~ended)]
    return [Cell(setting, *(int(numbers[setting.id]) for numbers in counts)) for setting in settings]
