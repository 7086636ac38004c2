"""What a training schedule takes and gives back to the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewfire.engines import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array, SignArray
    from fewfire.engines import Engine, Result, Schedule
    from fewfire.networks import TwoLayer


@dataclass(frozen=True, eq=False)
class Task:
    """The data and the numbers a schedule works with.

    Parameters
    ----------
    X : ±1 array of shape (samples, inputs)
    y : array of ±1 of shape (samples,)
    X_held, y_held : held-out part, or None
    k : int or None
        Bits of the parity, where the schedule has to know them.
    """

    X: SignArray
    y: Float64Array
    X_held: SignArray | None
    y_held: Float64Array | None
    width: int
    sparsity: int
    k: int | None
    loss: str
    learning_rate: float
    weight_decay: float
    batch_size: int | None
    max_steps: int
    second_layer: str
    start: str
    strict: bool
    seed: int
    engine: Engine
    progress: Callable[[int, int], None] | None = None

    @property
    def inputs(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def train(self, initial: TwoLayer, schedule: Schedule) -> Result:
        """Carry out a schedule on the training part, measured on the held-out part."""
        run = Run(initial, schedule, self.X, self.y, self.X_held, self.y_held, seed=self.seed)
        return self.engine.train([run], progress=self.progress)[0]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The initial network, the fitted one, and the engine's record of the training."""

    initial: TwoLayer
    network: TwoLayer
    result: Result
