"""What a training tells: its progress while it runs, a few lines afterwards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fewfire.learners.robust._search import check_adversary

if TYPE_CHECKING:
    from fewfire.learners.robust._base import RobustNetwork


def summary(model: RobustNetwork) -> str:
    """What was trained, what it reached and what it cost."""
    history, networks = model.history_, model.networks_
    many = f"{len(networks)} networks" if len(networks) > 1 else "one network"
    done, dense = history.multiply_adds.sum(), history.dense_multiply_adds.sum()
    stuck = history.robust_loss[-1] > 0.95 * model._constant_loss
    remedy = ["hardly better than a constant: lower rho, or raise width or max_iter"] if stuck else []
    return "\n".join([
        f"{many} of {networks[0].width} neurons, {networks[0].activation}, method {model.method_}",
        f"adversary: rho {model.rho:g} ({model.norm}, {model.domain}), {check_adversary(model.adversary)}",
        f"robust loss {history.robust_loss[0]:.4g} -> {history.robust_loss[-1]:.4g}, clean loss "
        f"{history.clean_loss[0]:.4g} -> {history.clean_loss[-1]:.4g} in {model.n_iter_} iterations of rate "
        f"{model.learning_rate_:.4g}",
        f"active neurons an example: mean {history.mean_active[-1]:.1f}, largest {history.max_active[-1]:.0f}",
        f"weights moved by at most {model.drift_:.4g}; {done / dense:.1%} of the dense multiply-adds done",
        *remedy,
    ])  # fmt: skip


class Progress:
    """Tells about twenty times on standard error how far a training is."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations

    def __call__(self, done: int, robust: float, clean: float) -> None:
        if done % max(1, self.iterations // 20) == 0 or done == self.iterations:
            text = f"training: iteration {done} of {self.iterations}, robust loss {robust:.4g}, clean loss {clean:.4g}"
            print(text, file=sys.stderr)
