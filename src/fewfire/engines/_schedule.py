"""What a training run does at each step: phases of constant or listed rates, per layer.

Update of a parameter θ of one layer at one step, with its rate η, decay and truncation γ:
    θ ← (1 − decay) θ − η · trunc(∇θ, γ)
where trunc zeroes entries of magnitude at most γ (pareto, B.3) and decay is η·weight_decay
("coupled": PyTorch's SGD, pareto C.1) or weight_decay itself ("direct": pareto 3.2.1). The
regulariser λ‖θ‖² of parities is coupled decay with weight_decay = 2λ.

Which examples a step sees is one law for all engines. Step t (from 0) of a run with batch size B reads words
tB … tB + B − 1 of its stream "batches": with replacement, example ⌊word·m / 2³²⌋; by epochs, position p = tB + j of the
endless concatenation of permutations, the e-th being the stable order of words em … em + m − 1 of the child stream
"epochs". Online, step t sees rows tB … tB + B − 1 of the child stream "online".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines._losses import LOSSES, LossName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fewfire._random import Stream
    from fewfire._types import Float64Array, IdArray

Value: TypeAlias = float | Sequence[float]
"""One number for all steps of a phase, or one number per step."""

Decay = Literal["coupled", "direct"]
Sampling = Literal["replacement", "epochs"]

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
        Examples per step; None is the whole training set (gradient descent).

    Examples
    --------
    >>> from fewfire.engines import PerLayer, Phase
    >>> Phase(1000, learning_rate=PerLayer(hidden=0.1, bias=0.1), weight_decay=0.01).steps  # only the first layer moves
    1000
    """

    steps: int
    learning_rate: Value | PerLayer = 0.1
    weight_decay: Value | PerLayer = 0.0
    truncation: Value | PerLayer = 0.0
    decay: Decay = "coupled"
    batch_size: int | None = 32

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 1)
        check_choice("decay", self.decay, get_args(Decay))
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, 1, remedy="use None for full-batch gradient descent")
        for name in ("learning_rate", "weight_decay", "truncation"):
            table = self._table(name)
            # A negative learning rate is pareto Theorem 21's own choice; only decay and truncation have a sign.
            if name != "learning_rate" and table.min() < 0:
                raise invalid(name, "must not be negative", float(table.min()))

    def rates(self) -> Float64Array:
        """Learning rates, columns hidden, bias, output, offset: shape (1, 4) for constant ones, else (steps, 4)."""
        return self._table("learning_rate")

    def keeps(self) -> Float64Array:
        """The factors 1 − decay, shaped as `rates` are."""
        decay = self._table("weight_decay")
        return 1.0 - (decay * self.rates() if self.decay == "coupled" else decay)

    def truncations(self) -> Float64Array:
        """Truncation levels, shaped as `rates` are."""
        return self._table("truncation")

    def tables(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Rates, keeps and truncations of one shape, read-only: (1, 4) when none of them changes, else (steps, 4)."""
        return self._tables

    @cached_property
    def _tables(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        # The runs of a sweep share their phases: computed once.
        shared = np.broadcast_arrays(self.rates(), self.keeps(), self.truncations())
        rates, keeps, truncations = (np.ascontiguousarray(table) for table in shared)
        for table in (rates, keeps, truncations):
            table.flags.writeable = False
        return rates, keeps, truncations

    def _table(self, name: str) -> Float64Array:
        value = getattr(self, name)
        layers = value if isinstance(value, PerLayer) else PerLayer(value, value, value, value)
        columns = [self._column(f"{name}.{layer}", getattr(layers, layer)) for layer in LAYERS]
        return np.stack(np.broadcast_arrays(*columns), axis=1)

    def _column(self, name: str, value: Value) -> Float64Array:
        if not isinstance(value, Sequence | np.ndarray):
            return np.array([check_number(name, value)])
        if len(value) != self.steps:
            raise invalid(name, f"must hold one number for each of the {self.steps} steps", f"a length of {len(value)}")
        return np.array([check_number(f"{name}[{i}]", number) for i, number in enumerate(value)])


@dataclass(frozen=True, init=False)
class Schedule:
    """How a run is trained.

    Parameters
    ----------
    phases : Phase, or several
        Carried out in order.
    loss : "hinge", "logistic", "square" or "absolute"
    sampling : "replacement" or "epochs"
        Minibatches of independent draws, or of consecutive pieces of a fresh permutation each epoch.
    evaluate : int or "log"
        When history is recorded and the early stop is checked: every so many steps, or on a grid of
        about 8 points per decade. Step 0 and the last step are always recorded.
    stop_error : float or None
        Stop at the first recorded step whose held-out error is at most this.

    Examples
    --------
    >>> from fewfire.engines import Phase, Schedule
    >>> schedule = Schedule([Phase(1, learning_rate=1.0, batch_size=None), Phase(1000)], loss="logistic", evaluate=500)
    >>> schedule.steps, schedule.checkpoints()
    (1001, [0, 500, 1000, 1001])
    """

    phases: tuple[Phase, ...]
    loss: LossName
    sampling: Sampling
    evaluate: int | Literal["log"]
    stop_error: float | None

    def __init__(
        self,
        phases: Phase | Iterable[Phase],
        loss: LossName = "hinge",
        sampling: Sampling = "replacement",
        evaluate: int | Literal["log"] = "log",
        stop_error: float | None = None,
    ) -> None:
        several = (phases,) if isinstance(phases, Phase) else tuple(phases)
        if not several or not all(isinstance(phase, Phase) for phase in several):
            raise invalid("phases", "must be one or more Phase objects", phases, "pass Phase(steps=1000)")
        check_choice("loss", loss, LOSSES)
        check_choice("sampling", sampling, get_args(Sampling))
        if evaluate != "log":
            check_integer("evaluate", evaluate, 1, remedy='give a number of steps or "log"')
        if stop_error is not None:
            check_number("stop_error", stop_error, 0.0)
        values = {"phases": several, "loss": loss, "sampling": sampling, "evaluate": evaluate, "stop_error": stop_error}
        for name, value in values.items():
            object.__setattr__(self, name, value)

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


def draw_batch(sampling: Sampling, stream: Stream, examples: int, batch_size: int, position: int) -> IdArray:
    """The examples of one step, of shape (batch_size,); `position` counts those drawn before.

    Examples
    --------
    >>> from fewfire import Stream
    >>> from fewfire.engines import draw_batch
    >>> sorted(draw_batch("epochs", Stream(0, "batches"), examples=4, batch_size=4, position=0).tolist())
    [0, 1, 2, 3]
    """
    if sampling == "replacement":
        return stream.integers(examples, batch_size, start=position)
    first, last = position // examples, (position + batch_size - 1) // examples
    epochs = stream.child("epochs")
    order = np.concatenate([epochs.permutation(examples, start=e * examples) for e in range(first, last + 1)])
    return order[position - first * examples :][:batch_size]
