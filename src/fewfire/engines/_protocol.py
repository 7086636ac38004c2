"""What an engine takes and gives: independent runs in, one result each out.

One run is a pure function of its fields: initial network, data, schedule and the stream that picks
minibatches. So engines can be compared run by run, and a batch of runs in any order gives the same results.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from fewfire._errors import DivergenceError, invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_inputs, check_labels, check_support

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray, FloatArray
    from fewfire.engines._schedule import Schedule
    from fewfire.networks import TwoLayer


class Source(Protocol):
    """Endless fresh examples, for online runs: row i of a stream is the same however it is drawn."""

    def sample(self, m: int, seed: int | Stream, start: int = 0) -> tuple[AnyArray, AnyArray]:
        """Rows start … start + m − 1."""
        ...


@dataclass(frozen=True, eq=False)
class Run:
    """One training run.

    Parameters
    ----------
    network : TwoLayer
        Initial weights; not changed.
    schedule : Schedule
    X, y : arrays of shape (m, inputs) and (m,), or None for an online run
    X_test, y_test : held-out arrays, optional
    source : Source, optional
        Fresh examples every step instead of X and y.
    seed : int or Stream
        Picks the minibatches (stream "batches").
    support : sequence of int, optional
        The inputs the target depends on, where known: the history then records how much weight lies on them.
    """

    network: TwoLayer
    schedule: Schedule
    X: AnyArray | None = None
    y: AnyArray | None = None
    X_test: AnyArray | None = None
    y_test: AnyArray | None = None
    source: Source | None = None
    seed: int | Stream = 0
    support: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.support is not None:
            object.__setattr__(self, "support", check_support("support", self.support, self.network.inputs))
        object.__setattr__(self, "seed", as_stream(self.seed, "batches"))
        if (self.X is None) == (self.source is None):
            raise invalid("X", "or source must be given, and not both", "a Run with both or neither")
        if (self.X is None) != (self.y is None) or (self.X_test is None) != (self.y_test is None):
            raise invalid(
                "y", "goes with X, and y_test with X_test", "a Run with one of a pair", "pass both or neither"
            )
        for table, labels in (("X", "y"), ("X_test", "y_test")):
            if getattr(self, table) is not None:
                X = check_inputs(table, getattr(self, table), self.network.inputs, self.network.dtype)
                object.__setattr__(self, table, X)
                object.__setattr__(self, labels, self._labels(labels, len(X)))
        if self.source is not None and any(phase.batch_size is None for phase in self.schedule.phases):
            raise invalid(
                "batch_size", "must be a number when examples come from a source", None, "choose one, e.g. 32"
            )
        if self.schedule.stop_error is not None and self.X_test is None:
            raise invalid("stop_error", "needs held-out data", self.schedule.stop_error, "pass X_test and y_test")

    @property
    def stream(self) -> Stream:
        """The stream that picks the minibatches."""
        return as_stream(self.seed, "batches")

    def _labels(self, name: str, rows: int) -> FloatArray:
        labels = check_labels(name, getattr(self, name), rows)
        if self.schedule.loss in ("hinge", "logistic") and np.any(np.abs(labels) != 1):
            wrong = float(labels[np.abs(labels) != 1][0])
            raise invalid(name, f"must be ±1 for the {self.schedule.loss} loss", wrong, "recode the two classes")
        return labels.astype(self.network.dtype)


@dataclass(frozen=True, eq=False)
class History:
    """What was measured at the recorded steps; each field is a vector of shape (records,).

    Errors are shares of wrong signs for ±1 labels, mean squared errors otherwise. `support_weight` is the share of the
    weight mass Σ_j |output_j|·|hidden_ji| on the inputs i of the run's `support`. NaN where there is no such data.
    """

    step: AnyArray
    train_loss: AnyArray
    train_error: AnyArray
    test_error: AnyArray
    hidden_norm: AnyArray
    output_norm: AnyArray
    active_fraction: AnyArray
    support_weight: AnyArray

    @classmethod
    def of(cls, records: Sequence[tuple[float, ...]]) -> History:
        """From one tuple a recorded step."""
        columns = np.array(records, dtype=np.float64).reshape(len(records), len(fields(cls))).T
        return cls(columns[0].astype(np.int64), *columns[1:])

    def first_step(self, error: float, curve: str = "test_error") -> int | None:
        """The first recorded step at which an error was at most this; None where there was none.

        Both sides are rounded to float32, in which stores keep histories: there 0.1 is a little above the number 0.1,
        and a stored history must give the same step as the one it was made from.
        """
        reached = np.asarray(getattr(self, curve), dtype=np.float32) <= np.float32(error)
        return int(self.step[np.argmax(reached)]) if reached.any() else None


@dataclass(frozen=True)
class Counters:
    """Work done by a run.

    Parameters
    ----------
    steps, examples : updates made and examples seen by them
    active_pairs : (neuron, example) pairs that fired in the updates
    multiply_adds : scalar products of weights done in the updates, forward and backward
    """

    steps: int = 0
    examples: int = 0
    active_pairs: int = 0
    multiply_adds: int = 0


@dataclass(frozen=True, eq=False)
class Result:
    """How a run ended: `stopped` is "steps", "test_error" or "diverged".

    `network` holds the final weights; a diverged run, which has none, gives back its initial network.
    """

    network: TwoLayer
    history: History
    counters: Counters
    stopped: str
    engine: str
    divergence: DivergenceError | None = field(default=None)

    @property
    def test_error(self) -> float:
        """The last recorded held-out error."""
        return float(self.history.test_error[-1])


@runtime_checkable
class Engine(Protocol):
    """Trains batches of independent runs."""

    name: str

    def unusable(self) -> str | None:
        """Why the engine cannot run here, with the remedy; None when it can."""
        ...

    def train(
        self,
        runs: Sequence[Run],
        *,
        on_divergence: str = "raise",
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Result]:
        """Train every run; "raise" stops at the first divergence, "record" notes it in the result."""
        ...
