"""Rows held out: which each network does not train on, and what all networks together say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._network import LOSSES

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._training import TrainingRows


def held_out_folds(strata: AnyArray, networks: int, folds: int, stream: Stream) -> list[IdArray]:
    """For each network the rows it does not train on; `folds` networks in a row together hold out every row once.

    Rows are dealt out stratum by stratum (classes, or sorted targets), so that every fold sees the same mix.
    """
    held: list[IdArray] = []
    for partition in range(-(-networks // folds)):
        order = stream.child(f"folds{partition}").permutation(len(strata))
        dealt = order[np.argsort(strata[order], kind="stable")]
        held.extend(np.sort(dealt[fold::folds]) for fold in range(folds))
    return held[:networks]


class HeldOut:
    """Which rows each network did not train on, and the loss of their pooled prediction.

    Parameters
    ----------
    examples : TrainingRows
        The rows that `rows` counts.
    rows : one array of row numbers per network
    parts : one TrainingRows per network
        Its rows as it sees them, gains included.
    loss : str
    """

    def __init__(
        self, examples: TrainingRows, rows: list[IdArray], parts: list[TrainingRows], loss: TabularLoss
    ) -> None:
        self.rows, self.parts, self.loss = rows, parts, loss
        self.count = np.bincount(np.concatenate(rows), minlength=len(examples))
        self.seen = np.flatnonzero(self.count)
        self._once = np.argsort(np.concatenate(rows)) if self.count.max(initial=0) == 1 else None
        judged = examples[self.seen].places()
        self.target, self.weight = examples.target[judged], examples.weight[judged]

    def pool(self, outputs: list[FloatArray]) -> Float64Array:
        """The mean output (seen, outputs) at each row that some network left out."""
        if self._once is not None:  # the mean of one, to the bit
            return np.concatenate(outputs, dtype=np.float64)[self._once]
        total = np.zeros((len(self.count), self.target.shape[1]))
        for ids, values in zip(self.rows, outputs, strict=True):
            total[ids] += values
        return np.asarray(total[self.seen] / self.count[self.seen, None])

    def score(self, pooled: Float64Array) -> float:
        """The mean loss of pooled outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is reported once, by its value
            losses, _ = LOSSES[self.loss](pooled, self.target)
            return float(np.average(losses, weights=self.weight))
