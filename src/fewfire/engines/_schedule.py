"""What a training run does at each step: phases of constant or listed rates, per layer.

Update of a parameter θ of one layer at one step, with its rate η, decay and truncation γ:
    θ ← (1 − decay) θ − η · trunc(∇θ, γ)
where trunc zeroes entries of magnitude at most γ (pareto, B.3) and decay is η·weight_decay
("coupled": PyTorch's SGD, pareto C.1) or weight_decay itself ("direct": pareto 3.2.1). The
regulariser λ‖θ‖² of parities is coupled decay with weight_decay = 2λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines._losses import LOSSES

if TYPE_CHECKING:
    from fewfire._types import Float64Array

Value: TypeAlias = float | Sequence[float]
"""One number for all steps of a phase, or one number a step."""

LAYERS = ("hidden", "bias", "output", "offset")


@dataclass(frozen=True)
class PerLayer:
    """A value for each of the four parameter groups of `TwoLayer`."""

    hidden: Value = 0.0
    bias: Value = 0.0
    output: Value = 0.0
    offset: Value = 0.0


@dataclass(frozen=True)
class Phase:
    """A stretch of steps under one rule.

    Parameters
    ----------
    steps : int
    learning_rate, weight_decay, truncation : float, sequence of `steps` floats, or PerLayer of these
    decay : "coupled" or "direct"
        Whether weight_decay is multiplied by the learning rate.
    batch_size : int or None
        Examples a step; None is the whole training set (gradient descent).
    """

    steps: int
    learning_rate: Value | PerLayer = 0.1
    weight_decay: Value | PerLayer = 0.0
    truncation: Value | PerLayer = 0.0
    decay: str = "coupled"
    batch_size: int | None = 32

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)
        check_choice("decay", self.decay, ("coupled", "direct"))
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, 1, remedy="use None for full-batch gradient descent")
        for name in ("learning_rate", "weight_decay", "truncation"):
            table = self._table(name)
            # A negative learning rate is pareto Theorem 21's own choice; only decay and truncation have a sign.
            if name != "learning_rate" and table.min() < 0:
                raise invalid(name, "must not be negative", float(table.min()))

    def rates(self) -> Float64Array:
        """Learning rates of shape (steps, 4), columns hidden, bias, output, offset."""
        return self._table("learning_rate")

    def keeps(self) -> Float64Array:
        """The factors 1 − decay of shape (steps, 4)."""
        decay = self._table("weight_decay")
        return 1.0 - (decay * self.rates() if self.decay == "coupled" else decay)

    def truncations(self) -> Float64Array:
        """Truncation levels of shape (steps, 4)."""
        return self._table("truncation")

    def _table(self, name: str) -> Float64Array:
        value = getattr(self, name)
        layers = value if isinstance(value, PerLayer) else PerLayer(value, value, value, value)
        table = np.empty((self.steps, 4))
        for column, field in enumerate(fields(layers)):
            table[:, column] = self._column(f"{name}.{field.name}", getattr(layers, field.name))
        return table

    def _column(self, name: str, value: Value) -> Float64Array:
        if not isinstance(value, Sequence | np.ndarray):
            return np.full(self.steps, check_number(name, value))
        if len(value) != self.steps:
            raise invalid(name, f"must hold one number for each of the {self.steps} steps", f"a length of {len(value)}")
        return np.array([check_number(f"{name}[{i}]", number) for i, number in enumerate(value)])


@dataclass(frozen=True)
class Schedule:
    """How a run is trained.

    Parameters
    ----------
    phases : tuple of Phase
        Carried out in order; a single Phase is accepted too.
    loss : "hinge", "logistic", "square" or "absolute"
    sampling : "replacement" or "epochs"
        Minibatches of independent draws, or of consecutive pieces of a fresh permutation each epoch.
    evaluate : int or "log"
        When history is recorded and the early stop is checked: every so many steps, or on a grid of
        about 8 points a decade. Step 0 and the last step are always recorded.
    stop_error : float or None
        Stop at the first recorded step whose held-out error is at most this.
    """

    phases: tuple[Phase, ...]
    loss: str = "hinge"
    sampling: str = "replacement"
    evaluate: int | str = "log"
    stop_error: float | None = None

    def __post_init__(self) -> None:
        phases = (self.phases,) if isinstance(self.phases, Phase) else tuple(self.phases)
        if not phases or not all(isinstance(phase, Phase) for phase in phases):
            raise invalid("phases", "must be one or more Phase objects", self.phases, "pass Phase(steps=1000)")
        object.__setattr__(self, "phases", phases)
        check_choice("loss", self.loss, LOSSES)
        check_choice("sampling", self.sampling, ("replacement", "epochs"))
        if self.evaluate != "log":
            check_integer("evaluate", self.evaluate, 1, remedy='give a number of steps or "log"')
        if self.stop_error is not None:
            check_number("stop_error", self.stop_error, 0.0)

    @property
    def steps(self) -> int:
        """The number of steps of all phases together."""
        return sum(phase.steps for phase in self.phases)

    def checkpoints(self) -> list[int]:
        """The steps after which the run is evaluated, ascending, from 0 to `steps`."""
        if self.evaluate == "log":
            grid = np.unique(np.round(10.0 ** np.arange(0, np.log10(self.steps) + 1e-9, 1 / 8)).astype(int))
        else:
            grid = np.arange(0, self.steps, int(self.evaluate))
        return sorted({0, self.steps, *grid.tolist()})
