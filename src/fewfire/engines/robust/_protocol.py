"""What a trainer of the hidden weights offers to an adversary and to gradient descent (sublinear, Algorithm 1).

The network is f(x) = Σ_r a_r σ(⟨w_r, x⟩ + b_r) + c with σ(z) = z·1[z > τ]; only the w_r change. Each of n examples, the
*anchors*, may move inside a ball: an adversary evaluates f and ∇_x f at moved examples, the step descends at them.
A trainer knows anchors and ball beforehand, which is what lets it leave out neurons that cannot be active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fewfire._types import AnyArray, FloatArray, IdArray
    from fewfire.engines.robust._counters import TrainerCounters
    from fewfire.networks import TwoLayer


@runtime_checkable
class ActiveTrainer(Protocol):
    """Evaluates a network at moved examples and trains its hidden weights there.

    Made as `Trainer(net, X, reach, *, threads=None, debug=False)`.

    Parameters
    ----------
    net : TwoLayer
        float32, with a relu or shifted relu; not changed.
    X : array of shape (n, inputs)
        The anchors.
    reach : float
        Largest ‖x̃_i − x_i‖₂; for an adversary that moves each coordinate by at most ρ it is ρ·√inputs.
    threads : int, optional
        All cores by default. Results do not depend on it.
    debug : bool
        Compare with a scan of all pairs after every call.
    """

    name: str

    def evaluate(self, X_moved: AnyArray) -> tuple[FloatArray, FloatArray]:
        """f, shape (n,), and ∇_x f, shape (n, inputs), at the moved examples; row i belongs to anchor i."""
        ...

    def values(self, X_moved: AnyArray) -> FloatArray:
        """f at the moved examples: shape (n,)."""
        ...

    def step(self, X_moved: AnyArray, slopes: AnyArray, rate: float) -> None:
        """W ← W − rate·Σ_i slopes_i ∂f(x̃_i)/∂W, with the active sets before the step; `slopes` has shape (n,)."""
        ...

    def network(self) -> TwoLayer:
        """The network as trained so far."""
        ...

    @property
    def counters(self) -> TrainerCounters:
        """Work done so far."""
        ...

    @property
    def active_counts(self) -> IdArray:
        """How many neurons were active on each example in the last evaluation: shape (n,)."""
        ...
