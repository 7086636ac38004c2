"""The trainer with drift lists: exact, at the cost of the pairs near the threshold (C++, csrc/core/active_trainer.hpp).

Every neuron keeps the examples that could make it fire as long as it has not moved by more than its skin and examples
stay in their balls. A neuron whose list is empty is never touched: it cannot fire, so it does not move. Every pair of a
list keeps how far weights and examples can move before it can change sides, and is not scored until they have;
csrc/kernels/drift_lists.hpp has the inequalities. Activity is decided by one float32 score in one order of summation,
so results do not depend on the state of the lists or on threads; instruction sets differ in the rounding of
multiply-adds only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewfire._extension import load
from fewfire._threads import thread_count
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire.engines.robust._trainer import ActiveTrainer, TrainerCounters
from fewfire.networks import TwoLayer

# In the order in which csrc/bindings/robust.cpp gives them.
_COUNTS = ("active_last", "active", "touched", "scored", "summed", "slots", "lists", "updated", "refreshed")


class ListTrainer(ActiveTrainer):
    """Scores only pairs near the threshold, in C++; see `ActiveTrainer` for the parameters."""

    name = "lists"

    def __init__(self, network: TwoLayer, X: AnyArray, reach: float, *, threads: int | None = None) -> None:
        super().__init__(network, X, reach)
        core: Any = load()
        self._core = core.ActiveTrainer(
            hidden=network.hidden,
            bias=network.bias,
            output=network.output,
            threshold=float(network.activation.threshold),
            anchors=self._anchors,
            reach=self._reach,
            slack=self._slack,
            threads=thread_count(threads),
        )
        self._dense_products = 0  # matrix products that the same calls take when every pair is computed

    def evaluate(self, X_moved: AnyArray) -> tuple[Float64Array, FloatArray]:
        gradients = np.empty(self._anchors.shape, dtype=np.float32)
        values = self._evaluate(X_moved, gradients)
        self._dense_products += 2
        return values, gradients

    def values(self, X_moved: AnyArray) -> Float64Array:
        values = self._evaluate(X_moved, None)
        self._dense_products += 1
        return values

    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        """W ← W − rate·Σ_i slopes_i ∂f(x̃_i)/∂W; scores only what the call before has not left scored."""
        moved = self._table(X_moved)
        weights, number, length = self._check_step(slopes, rate)
        self._move_to(moved)
        self._core.update(weights, number)
        self._length_bound = length
        self._dense_products += 2

    def network(self) -> TwoLayer:
        hidden = np.empty_like(self._net.hidden)
        self._core.weights(hidden)
        return self._net.with_parameters(hidden=hidden)

    @property
    def counters(self) -> TrainerCounters:
        """Work done so far; the first scoring of all neurons is the one full pass."""
        network = self._net
        counts = dict(zip(_COUNTS, self._core.counts, strict=True))
        row = 64 * -(-network.inputs // 16)
        pairs = counts["scored"] + counts["summed"] + counts["refreshed"] * self.examples
        rows = counts["lists"] + 2 * counts["updated"] + counts["refreshed"]
        return TrainerCounters(
            active_last=counts["active_last"],
            active=counts["active"],
            touched=counts["touched"],
            neurons_touched=counts["lists"],
            neurons_updated=counts["updated"],
            refreshes=counts["refreshed"] - network.width,
            full_passes=1,
            multiply_adds=pairs * network.inputs,
            dense_multiply_adds=self._dense_products * network.width * self.examples * network.inputs,
            bytes=row * rows + 64 * counts["lists"] + 8 * counts["slots"] + 4 * counts["touched"],
        )

    @property
    def active_counts(self) -> IdArray:
        fired = np.empty(self.examples, dtype=np.int64)
        self._core.fired(fired)
        return fired

    def _move_to(self, moved: AnyArray) -> None:
        row = self._core.place(moved)
        if row >= 0:
            raise self._misplaced(moved, row)

    def _evaluate(self, X_moved: AnyArray, gradients: AnyArray | None) -> Float64Array:
        self._move_to(self._table(X_moved))
        sums = np.empty(self.examples, dtype=np.float64)
        self._core.evaluate(sums, gradients)
        return sums + self._net.offset
