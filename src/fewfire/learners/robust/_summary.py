"""What a training says of itself: progress on standard error, and a summary afterwards."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fewfire._progress import Bar, in_notebook
from fewfire.robustness._search import check_adversary


class TrainingProgress:
    """Shows how far a training is: one bar in a notebook or on a terminal, elsewhere about twenty lines."""

    def __init__(self, unit: str, total: int, second: str) -> None:
        self.unit, self.total, self.second = unit, total, second
        self.bar = Bar(f"training: {unit}") if in_notebook() or sys.stderr.isatty() else None

    def __call__(self, done: int, robust: float, other: float) -> None:
        more = "" if np.isnan(other) else f", {self.second} {other:.4g}"
        if self.bar is not None:
            self.bar(done, self.total, f"robust loss {robust:.4g}{more}")
        elif done % max(1, self.total // 20) == 0 or done == self.total:
            print(f"training: {self.unit} {done} of {self.total}, robust loss {robust:.4g}{more}", file=sys.stderr)


def summary(model: Any) -> str:
    """What was trained, what it reached and what it cost."""
    lines = _practical(model) if model.setting_ == "practical" else _sublinear(model)
    return "\n".join(lines)


def _practical(model: Any) -> list[str]:
    history, (net,) = model.history_, model.networks_
    losses = history.robust_loss
    outputs = net.output.size // net.width
    how = "points carried from epoch to epoch" if model.adversary == "pgd" else str(check_adversary(model.adversary))
    lines = [
        f"one network of {net.width} neurons and {outputs} output{'s' if outputs > 1 else ''}, both layers trained",
        _adversary(model, how),
        f"robust loss {losses[0]:.4g} -> {losses[-1]:.4g} in {model.n_iter_} epochs of rate {model.learning_rate_:.4g}",
    ]
    if getattr(model, "proof_weight", 0.0):
        lines.append(f"a share of {model.proof_weight:g} of the loss at margins that lines prove")
    if not np.isnan(history.validation_error).all():
        error = history.validation_error[history.best_epoch - 1]
        lines.append(f"robust validation error {error:.4g} at epoch {history.best_epoch}, which was kept")
    return lines


def _sublinear(model: Any) -> list[str]:
    history, networks = model.history_, model.networks_
    many = f"{len(networks)} networks" if len(networks) > 1 else "one network"
    done, dense = history.multiply_adds.sum(), history.dense_multiply_adds.sum()
    robust, clean = ((losses[0], losses[-1]) for losses in (history.robust_loss, history.clean_loss))
    lines = [
        f"{many} of {networks[0].width} neurons, {networks[0].activation}, method {model.method_}",
        _adversary(model, str(check_adversary(model.adversary))),
        f"robust loss {robust[0]:.4g} -> {robust[1]:.4g}, clean loss {clean[0]:.4g} -> {clean[1]:.4g} "
        f"in {model.n_iter_} iterations of rate {model.learning_rate_:.4g}",
        f"active neurons per example: mean {history.mean_active[-1]:.1f}, largest {history.max_active[-1]:.0f}",
        f"weights moved by at most {model.drift_:.4g}; {done / dense:.1%} of the dense multiply-adds done",
    ]
    if robust[1] > 0.95 * model._constant_loss:
        lines.append("hardly better than a constant: lower rho, or raise width or iterations")
    return lines


def _adversary(model: Any, how: str) -> str:
    return f"adversary: rho {model.rho:g} ({model.norm}, {model.domain}), {how}"
