"""What an engine gives for a run: how it went, what it cost and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fewfire._errors import DivergenceError, FewfireError
from fewfire._html import card, curves
from fewfire._validate import check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray
    from fewfire.engines._run import Run
    from fewfire.networks import Mlp, TwoLayer

Stopped = Literal["steps", "test_error", "diverged"]
"""Why a run ended: all steps done, held-out error low enough, or no longer finite."""

OnDivergence = Literal["raise", "record"]
"""What happens when a run diverges: the first one ends the call, or it is noted in its result."""

ErrorCurve = Literal["test_error", "train_error", "train_loss"]
"""The curves of a history that fall as a run learns."""

MEASURED_ROWS = 10_000
"""A checkpoint looks at no more than so many rows of the training set, the first ones: all of 10⁶ would cost more than
the steps between two checkpoints."""

ARITHMETIC = 2
"""The revision of the arithmetic of training and drawing, recorded with every stored run.

Rows of two revisions may differ in their last digits, and after many steps in the rest. 1: the order of sums depends on
the instruction set, and normal numbers on functions of the C library. 2: sums have one order (`train.cpp`), functions
are fewfire's own (`_random/_reference.py`)."""


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What was measured at the recorded steps; each field is a vector of shape (records,).

    What is measured on the training set is measured on its first `MEASURED_ROWS` rows. Errors are shares of wrong signs
    where all labels of both sets are ±1, mean squared errors otherwise. `support_weight` is the share of the weight
    mass Σ_j |output_j|·|hidden_ji| on the inputs i of the run's `support`. NaN where there is no such data.
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
    def of(cls, records: Sequence[Sequence[float]]) -> History:
        """From one sequence of all fields per recorded step."""
        columns = np.array(records, dtype=np.float64).reshape(len(records), len(fields(cls))).T
        return cls(columns[0].astype(np.int64), *columns[1:])

    def first_step(self, error: float, curve: ErrorCurve = "test_error") -> int | None:
        """The first recorded step at which an error was at most this; None where there was none.

        Both sides are rounded to float32, in which stores keep histories: there 0.1 is a little above the number 0.1,
        and a stored history must give the same step as the one it was made from.
        """
        check_choice("curve", curve, get_args(ErrorCurve))
        reached = np.asarray(getattr(self, curve), dtype=np.float32) <= np.float32(error)
        return int(self.step[np.argmax(reached)]) if reached.any() else None

    def __repr__(self) -> str:
        steps = f", steps {self.step[0]} to {self.step[-1]}" if len(self.step) else ""
        return f"History({len(self.step)} records{steps})"

    def _repr_html_(self) -> str:
        return card("History", {"records": len(self.step)}, self._drawing())

    def _drawing(self) -> str:
        """The errors by step, the test error solid."""
        lines = {"test error": self.test_error, "training error": self.train_error}
        return curves("test error and training error (dashed) by step", self.step, lines)


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


def dense_counters(run: Run, steps: int, active_pairs: int) -> Counters:
    """What the first steps of a run take where every neuron is computed on every example."""
    examples, left = 0, steps
    for phase in run.schedule.phases:
        size = phase.batch_size or run.rows
        examples += min(left, phase.steps) * size
        left -= min(left, phase.steps)
    return Counters(steps, examples, active_pairs, 2 * examples * run.products)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """How a run ended.

    Parameters
    ----------
    kept : TwoLayer, Mlp or None
        The final weights, None when the engine was asked not to keep them; see `network`.
    history : History
    counters : Counters
    stopped : "steps", "test_error" or "diverged"
    engine : str
        The engine that trained it.
    divergence : DivergenceError, optional
    """

    kept: TwoLayer | Mlp | None
    history: History
    counters: Counters
    stopped: Stopped
    engine: str
    divergence: DivergenceError | None = field(default=None)

    @property
    def network(self) -> Any:
        """The final weights, a network of the run's kind; a diverged run, which has none, gives its initial network."""
        if self.kept is None:
            raise FewfireError("the network was not kept. Remedy: train with keep_networks=True.")
        return self.kept

    @property
    def test_error(self) -> float:
        """The last recorded held-out error."""
        return float(self.history.test_error[-1])

    def __repr__(self) -> str:
        error = f", test_error={self.test_error:.4g}" if len(self.history.step) else ""
        return f"Result(stopped={self.stopped!r}, steps={self.counters.steps}{error}, engine={self.engine!r})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "stopped by": self.stopped,
            "steps": self.counters.steps,
            "test error": f"{self.test_error:.4g}" if len(self.history.step) else "not recorded",
            "engine": self.engine,
            "network": self.kept if self.kept is not None else "not kept",
        }
        if self.divergence is not None:
            facts["divergence"] = self.divergence
        return card("Result", facts, self.history._drawing())


def divergence(step: int, rate: float) -> DivergenceError:
    """The error of a run whose output stopped being finite at `step`: one wording for all engines.

    Examples
    --------
    >>> from fewfire.engines import divergence
    >>> raise divergence(120, 10.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fewfire._errors.DivergenceError: ...
    """
    return DivergenceError(
        f"training diverged at step {step}: the network is no longer finite (learning rate {rate:g}). "
        f"Remedy: lower learning_rate, for example to {rate / 10:g}, or scale the inputs down.",
        step=step,
        learning_rate=rate,
    )
