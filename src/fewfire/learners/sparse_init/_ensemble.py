"""Networks trained side by side, each on all folds but one, and stopped together where their held-out rows say.

A member's held-out part is too small to stop it well; together the parts cover every row. So all members advance epoch
by epoch, every row is predicted by the members that did not train on it, and the epoch of the lowest loss of that
prediction is the one whose weights every member keeps.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from fewfire._errors import DivergenceError
from fewfire.learners.sparse_init._losses import LOSSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.learners.sparse_init._member import Table

    Floats = NDArray[np.floating[Any]]


class Crew(Protocol):
    """Members in training, whatever carries them out."""

    learning_rate: float

    @property
    def steps(self) -> int:
        """Steps of a member so far."""

    def advance(self) -> float:
        """One epoch of every member; the mean loss."""

    def held_out(self) -> list[Floats]:
        """Outputs of each member at its held-out rows."""

    def keep(self) -> None:
        """Remember the weights."""

    def restore(self) -> None:
        """Go back to the weights remembered."""


@dataclass
class Curves:
    """Mean loss of every epoch, in training and on held-out rows."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


class HeldOut:
    """Which rows each member did not train on, and the loss of their pooled prediction.

    Parameters
    ----------
    table : Table
        The rows that `rows` counts.
    rows : one array of row numbers a member
    tables : one table a member
        Its rows as it sees them, gains included.
    loss : str
    """

    def __init__(self, table: Table, rows: list[IdArray], tables: list[Table], loss: str) -> None:
        self.rows, self.tables, self.loss = rows, tables, loss
        self.count = np.bincount(np.concatenate(rows), minlength=len(table))
        self.seen = np.flatnonzero(self.count)
        self.judged = table[self.seen]

    def pool(self, outputs: list[Floats]) -> Float64Array:
        """The mean output (seen, outputs) at each row that some member left out."""
        total = np.zeros((len(self.count), self.judged.target.shape[1]))
        for ids, values in zip(self.rows, outputs, strict=True):
            total[ids] += values
        return np.asarray(total[self.seen] / self.count[self.seen, None])

    def score(self, pooled: Float64Array) -> float:
        """The mean loss of pooled outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is reported once, by its value
            losses, _ = LOSSES[self.loss](pooled, self.judged.target)
            return float(np.average(losses, weights=self.judged.weight))


class Stop(NamedTuple):
    """Where training stopped: the best held-out loss and the pooled outputs that had it; NaN and None without any."""

    loss: float = np.nan
    pooled: Float64Array | None = None


def held_out_folds(strata: AnyArray, members: int, folds: int, stream: Stream) -> list[IdArray]:
    """For each member the rows it does not train on; `folds` members in a row together hold out every row once.

    Rows are dealt out stratum by stratum (classes, or sorted targets), so that every fold sees the same mix.
    """
    held: list[IdArray] = []
    for partition in range(-(-members // folds)):
        order = stream.child(f"folds{partition}").permutation(len(strata))
        dealt = order[np.argsort(strata[order], kind="stable")]
        held.extend(np.sort(dealt[fold::folds]) for fold in range(folds))
    return held[:members]


def train_together(
    crew: Crew, epochs: int, curves: Curves, held: HeldOut | None = None, patience: int = 1, label: str = ""
) -> Stop:
    """Advance the members by up to `epochs` epochs; with held-out rows, go back to the best epoch.

    Parameters
    ----------
    curves : Curves
        Continued.
    patience : int
        Epochs without a better held-out loss before all stop.
    label : str
        Named in the progress, which is told if it is not empty.
    """
    best, since = Stop(), 0
    for epoch in range(epochs):
        curves.training.append(crew.advance())
        if not np.isfinite(curves.training[-1]):
            raise _diverged(crew, len(curves.training))
        if held is not None:
            pooled = held.pool(crew.held_out())
            curves.validation.append(held.score(pooled))
            if not np.isfinite(curves.validation[-1]):
                raise _unjudgeable(crew, len(curves.training))
        if label:
            _tell(label, epoch, epochs, curves, held is not None)
        if held is None:
            continue
        since += 1
        if best.pooled is None or curves.validation[-1] < best.loss:
            best, since = Stop(curves.validation[-1], pooled), 0
            crew.keep()
        if since >= patience:
            break
    if held is not None:
        crew.restore()
    return best


def _tell(label: str, epoch: int, epochs: int, curves: Curves, judged: bool) -> None:
    held = f", held out {curves.validation[-1]:.4f}" if judged else ""
    print(f"{label}: epoch {epoch + 1} of at most {epochs}: loss {curves.training[-1]:.4f}{held}", file=sys.stderr)


def _diverged(crew: Crew, epoch: int) -> DivergenceError:
    return _divergence(crew, f"the loss of epoch {epoch}", "")


def _unjudgeable(crew: Crew, epoch: int) -> DivergenceError:
    """The weights diverged in the epoch's last steps, or the rows lie far outside those trained on."""
    rows = ", or look for extreme values in the held-out rows (validation_data, where it is passed)"
    return _divergence(crew, f"the held-out loss of epoch {epoch}", rows)


def _divergence(crew: Crew, what: str, otherwise: str) -> DivergenceError:
    return DivergenceError(
        f"{what} is not finite at learning rate {crew.learning_rate:g}. "
        f"Remedy: lower the optimiser's learning_rate, to {crew.learning_rate / 10:g} for example{otherwise}.",
        step=crew.steps,
        learning_rate=crew.learning_rate,
    )
