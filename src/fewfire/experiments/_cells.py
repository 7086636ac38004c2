"""Successes a cell: the numbers behind every frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire.experiments._store import Setting, Store


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
    """One cell a setting, in order of the settings; a run succeeded when its best test error is at most this."""
    settings, columns = store.settings(), store.columns()
    place = columns["setting"]
    size = max((setting.id for setting in settings), default=0) + 1

    def count(chosen: np.ndarray) -> np.ndarray:
        return np.bincount(place[chosen], minlength=size)

    final = columns["status"] != "failed"
    good = (columns["status"] == "done") & (columns["best_test_error"] <= success_error)
    counts = [count(final), count(good), count(columns["status"] == "diverged"), count(~final)]
    return [Cell(setting, *(int(numbers[setting.id]) for numbers in counts)) for setting in settings]
