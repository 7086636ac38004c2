"""The one wording of a diverged run, for all engines."""

from __future__ import annotations

from fewfire._errors import DivergenceError


def divergence(step: int, rate: float) -> DivergenceError:
    """The error of a run whose output stopped being finite at `step`."""
    return DivergenceError(
        f"training diverged at step {step}: the network is no longer finite (learning rate {rate:g}). "
        f"Remedy: lower learning_rate, for example to {rate / 10:g}, or scale the inputs down.",
        step=step,
        learning_rate=rate,
    )
