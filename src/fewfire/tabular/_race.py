"""Successive halving of the groups of a fit: those that held-out rows find hopeless stop, with what they have learned.

Most groups end without weight in the mixture, and it shows early. At every meeting the better half of those still in
training goes on, and whoever the mixture, as it would be now, gives a weight (after Jamieson and Talwalkar,
Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016, whose rule is the first half).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import Float64Array
    from fewfire.tabular._training import Stop


class Race:
    """The referee of groups in training.

    Parameters
    ----------
    mix : function
        From outputs (groups, rows, outputs) at the held-out rows to weights (groups,).
    groups : int
        How many take part.
    """

    def __init__(self, mix: Callable[[Float64Array], Float64Array], groups: int) -> None:
        self._mix, self._running = mix, np.ones(groups, dtype=bool)

    def __call__(self, stops: Sequence[Stop]) -> list[bool]:
        """Which groups go on, given the best stop of each so far."""
        running = self._running
        if len(stops) > 1:
            losses = np.where(running, [stop.loss for stop in stops], np.inf)
            half = np.argsort(losses, kind="stable")[: -(-int(running.sum()) // 2)]
            weights = self._mix(np.stack([stop.pooled for stop in stops if stop.pooled is not None]))
            ahead = np.zeros_like(running)
            ahead[half] = True
            running &= ahead | (weights > 0)
        return [bool(runs) for runs in running]
