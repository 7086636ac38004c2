"""What a trainer of the hidden weights offers to an adversary and to gradient descent (sublinear, Algorithm 1).

The network is f(x) = Σ_r a_r σ(⟨w_r, x⟩ + b_r) + c with σ(z) = z·1[z > τ]; only the w_r change. Each of n examples, the
*anchors*, may move inside a ball: an adversary evaluates f and ∇_x f at moved examples, the step descends at them.
Anchors and ball are given beforehand, so a trainer can leave out neurons that cannot be active. Its counters
are exact on every machine, so tests can assert them; its arguments are checked before anything changes.

`DenseTrainer`, in NumPy, is the reference implementation of the others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import InvalidArgument, invalid
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire._validate import check_finite, check_inputs, check_number
from fewfire.networks import TwoLayer

FloatTable: TypeAlias = NDArray[np.float32]

LARGEST_WEIGHT = 1e15
"""Steps that could make a weight vector longer are refused: squares of scores would leave float32."""


@dataclass(frozen=True)
class TrainerCounters:
    """Work since the trainer was made; a pair is a neuron and an example.

    Parameters
    ----------
    active_last : active pairs of the last evaluation
    active : active pairs of all evaluations
    touched : pairs looked at to find them; at least `active`
    neurons_touched : neurons with such pairs, summed over evaluations
    neurons_updated : neurons whose weights changed, summed over steps
    refreshes : neurons scored on all anchors again after the first time
    full_passes : times that all neurons were scored on all examples
    multiply_adds : products of a weight and an input, in 8 or 32 bits, refreshes and full passes included
    dense_multiply_adds : what the same calls take when every pair is computed
    bytes : weights, lists and bookkeeping read and written
    """

    active_last: int = 0
    active: int = 0
    touched: int = 0
    neurons_touched: int = 0
    neurons_updated: int = 0
    refreshes: int = 0
    full_passes: int = 0
    multiply_adds: int = 0
    dense_multiply_adds: int = 0
    bytes: int = 0

    def __sub__(self, earlier: TrainerCounters) -> TrainerCounters:
        """Work between two readings; `active_last` stays that of the later one."""
        differences = {f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)}
        return TrainerCounters(**differences | {"active_last": self.active_last})


class ActiveTrainer(ABC):
    """Evaluates a network at moved examples and trains its hidden weights there.

    Parameters
    ----------
    network : TwoLayer
        float32, with a relu or shifted relu; not changed.
    X : array of shape (n, inputs)
        The anchors.
    reach : float
        Largest ‖x̃_i − x_i‖₂; for an adversary that moves each coordinate by at most ρ it is ρ·√inputs.
    threads : int, optional
        All cores by default. Results do not depend on it.
    """

    name: ClassVar[str]
    _hidden: FloatArray

    def __init__(self, network: TwoLayer, X: AnyArray, reach: float) -> None:
        if network.activation.name not in ("relu", "shifted_relu"):
            raise invalid("network", "must have the activation relu or shifted_relu(τ)", str(network.activation))
        if network.dtype != np.float32:
            got, remedy = f"dtype {network.dtype}", "use network.astype('float32')"
            raise invalid("network", "must hold float32 weights", got, remedy)
        anchors = check_inputs("X", X, network.inputs, network.dtype)
        self._anchors: FloatTable = np.ascontiguousarray(anchors, dtype=np.float32)
        self._reach = check_number("reach", reach, 0.0)
        norms = np.linalg.norm(self._anchors.astype(np.float64), axis=1)
        # Moves made in float32 round: by 1e-7 of the move and of the coordinates.
        self._slack = 1e-5 * self._reach + 1e-6 * float(norms.max())
        self._largest_input = float(norms.max()) + self._reach + self._slack
        self._largest_output = float(np.abs(network.output).max())
        self._length_bound = math.sqrt(np.einsum("ij,ij->i", network.hidden, network.hidden, dtype=np.float64).max())
        for name, size in (("network", self._length_bound), ("X", self._largest_input)):
            if size > LARGEST_WEIGHT:
                raise invalid(name, f"must have rows of norm at most {LARGEST_WEIGHT:g}", size, "rescale it")
        self._net = network
        self._active_counts: IdArray = np.zeros(len(self._anchors), dtype=np.int64)

    @abstractmethod
    def evaluate(self, X_moved: AnyArray) -> tuple[Float64Array, FloatArray]:
        """f in float64, shape (n,), and ∇_x f, shape (n, inputs), at the moved examples; row i belongs to anchor i."""

    @abstractmethod
    def values(self, X_moved: AnyArray) -> Float64Array:
        """f in float64 at the moved examples: shape (n,)."""

    @abstractmethod
    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        """W ← W − rate·Σ_i slopes_i ∂f(x̃_i)/∂W, with the active sets before the step; `slopes` has shape (n,)."""

    @property
    @abstractmethod
    def counters(self) -> TrainerCounters:
        """Work done so far."""

    @property
    def examples(self) -> int:
        """n, the number of anchors."""
        return len(self._anchors)

    @property
    def active_counts(self) -> IdArray:
        """Active neurons of each example in the last evaluation: shape (n,)."""
        return self._active_counts.copy()

    def network(self) -> TwoLayer:
        """The network as trained so far."""
        return self._net.with_parameters(hidden=self._hidden)

    def _table(self, X_moved: AnyArray) -> FloatTable:
        """The moved examples as contiguous float32; their distance is checked apart."""
        if not isinstance(X_moved, np.ndarray) or X_moved.dtype != np.float32:
            X_moved = check_inputs("X_moved", X_moved, self._net.inputs, self._net.dtype)
        if X_moved.shape != self._anchors.shape:
            rule = f"must have shape {self._anchors.shape}, a row for each anchor"
            raise invalid("X_moved", rule, f"shape {X_moved.shape}", "pass all examples, the resting ones too")
        return np.ascontiguousarray(X_moved, dtype=np.float32)

    def _placed(self, X_moved: AnyArray) -> FloatTable:
        """The moved examples, each found within reach of its anchor."""
        moved = self._table(X_moved)
        distances = np.linalg.norm(moved.astype(np.float64) - self._anchors, axis=1)
        far = np.flatnonzero(~(distances <= self._reach + self._slack))
        if len(far):
            raise self._misplaced(moved, int(far[0]))
        return moved

    def _misplaced(self, X_moved: FloatTable, row: int) -> InvalidArgument:
        """The error about a row that is not finite or too far from its anchor."""
        if not np.isfinite(X_moved[row]).all():
            return invalid("X_moved", "must hold finite numbers", f"a row {row} with NaN or infinity")
        distance = float(np.linalg.norm(X_moved[row].astype(np.float64) - self._anchors[row]))
        rule = f"must stay within reach = {self._reach:g} of the anchors"
        remedy = "project it onto the ball, or make the trainer with a larger reach"
        return invalid("X_moved", rule, f"a distance of {distance:.9g} in row {row}", remedy)

    def _check_step(self, slopes: AnyArray, rate: float) -> tuple[FloatTable, float, float]:
        """Slopes as float32, the rate, and how long weights can be after the step; refuses one that could overflow."""
        number = check_number("rate", rate)
        values = np.asarray(slopes)
        if values.shape != (self.examples,) or values.dtype.kind not in "biuf":
            rule = f"must be a vector of {self.examples} numbers, one per example"
            raise invalid("slopes", rule, f"shape {values.shape} and dtype {values.dtype}")
        check_finite("slopes", values)
        change = abs(number) * self._largest_output * self._largest_input * float(np.abs(values).sum(dtype=np.float64))
        length = self._length_bound + change
        if not math.isfinite(length) or length > LARGEST_WEIGHT:
            rule = f"must keep the norm of every neuron's weights below {LARGEST_WEIGHT:g}"
            raise invalid("rate", rule, number, "lower it: training diverges")
        return np.ascontiguousarray(values, dtype=np.float32), number, length


class DenseTrainer(ActiveTrainer):
    """The reference implementation: every neuron is scored on every example, in float32 matrix products.

    A pair within rounding of the threshold may be active here and not in another trainer, or the other way round.
    Threads are those of NumPy's products; parameters are those of `ActiveTrainer`.
    """

    name = "dense"

    def __init__(self, network: TwoLayer, X: AnyArray, reach: float, *, threads: int | None = None) -> None:
        super().__init__(network, X, reach)
        self._hidden = network.hidden.copy()
        self._evaluations = self._products = self._active = self._updated = 0

    def evaluate(self, X_moved: AnyArray) -> tuple[Float64Array, FloatArray]:
        z, active = self._score(self._placed(X_moved))
        self._products += 2
        weights = active * self._net.output  # ∂f/∂z of every pair
        return self._sum(z, weights), weights @ self._hidden

    def values(self, X_moved: AnyArray) -> Float64Array:
        z, active = self._score(self._placed(X_moved))
        self._products += 1
        return self._sum(z, active * self._net.output)

    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        moved = self._placed(X_moved)
        weights, number, self._length_bound = self._check_step(slopes, rate)
        _, active = self._score(moved)
        self._products += 2
        self._updated += int(np.count_nonzero(active.any(axis=0)))
        gradient = (active * self._net.output).T @ (weights[:, None] * moved)
        self._hidden -= np.float32(number) * gradient

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
