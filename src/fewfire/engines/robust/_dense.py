"""The obvious trainer: every neuron is scored on every example, in float32 matrix products. The oracle of the others.

A pair within rounding of the threshold may be active here and not in another trainer, or the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.engines.robust._trainer import TrainerBase, TrainerCounters

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.engines.robust._trainer import FloatTable
    from fewfire.networks import TwoLayer


class DenseTrainer(TrainerBase):
    """Scores all pairs in NumPy; see `ActiveTrainer` for the parameters. Threads are those of NumPy's products."""

    name = "dense"

    def __init__(
        self, network: TwoLayer, X: AnyArray, reach: float, *, threads: int | None = None, debug: bool = False
    ) -> None:
        super().__init__(network, X, reach)
        self._hidden = network.hidden.copy()
        self._active_counts = np.zeros(self.examples, dtype=np.int64)
        self._evaluations = self._products = self._active = self._updated = 0

    def evaluate(self, X_moved: AnyArray) -> tuple[Float64Array, FloatArray]:
        """f, shape (n,), and ∇_x f, shape (n, inputs), at the moved examples."""
        z, active = self._score(self._placed(X_moved))
        self._products += 2
        weights = active * self._net.output  # ∂f/∂z of every pair
        return self._sum(z, weights), weights @ self._hidden

    def values(self, X_moved: AnyArray) -> Float64Array:
        """f at the moved examples: shape (n,)."""
        z, active = self._score(self._placed(X_moved))
        self._products += 1
        return self._sum(z, active * self._net.output)

    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        """W ← W − rate·Σ_i slopes_i ∂f(x̃_i)/∂W."""
        moved = self._placed(X_moved)
        weights, number, self._length_bound = self._check_step(slopes, rate)
        _, active = self._score(moved)
        self._products += 2
        self._updated += int(np.count_nonzero(active.any(axis=0)))
        gradient = (active * self._net.output).T @ (weights[:, None] * moved)
        self._hidden -= np.float32(number) * gradient

    def network(self) -> TwoLayer:
        """The network as trained so far."""
        return self._net.with_parameters(hidden=self._hidden)

    @property
    def counters(self) -> TrainerCounters:
        """Every evaluation touches every pair; a step scores anew."""
        pairs = self._net.width * self.examples
        work = self._products * pairs * self._net.inputs
        return TrainerCounters(
            active_last=int(self._active_counts.sum()),
            active=self._active,
            touched=self._evaluations * pairs,
            neurons_touched=self._evaluations * self._net.width,
            neurons_updated=self._updated,
            full_passes=self._evaluations,
            multiply_adds=work,
            dense_multiply_adds=work,
            bytes=self._products * self._hidden.nbytes,
        )

    @property
    def active_counts(self) -> IdArray:
        """Active neurons of each example in the last evaluation: shape (n,)."""
        return self._active_counts.copy()

    def _score(self, moved: FloatTable) -> tuple[FloatArray, AnyArray]:
        z = moved @ self._hidden.T + self._net.bias
        active = self._net.activation.active(z)
        self._active_counts = np.count_nonzero(active, axis=1).astype(np.int64)
        self._active += int(self._active_counts.sum())
        self._evaluations += 1
        return z, active

    def _sum(self, z: FloatArray, weights: FloatArray) -> Float64Array:
        total: Float64Array = np.einsum("ij,ij->i", z, weights, dtype=np.float64) + self._net.offset
        return total
