"""Successive halving of the groups of a fit: those that held-out rows find hopeless stop, with what they have learned.

Most groups end without weight in the mixture, and it shows early. At every meeting the better half of those still in
training goes on, and whoever the mixture, as it would be now, gives a weight (after Jamieson and Talwalkar,
Non-stochastic Best Arm Identification and Hyperparameter Optimization, 2016, whose rule is the first half). Few rows
do not tell who is hopeless, and their networks are quickly trained: below `ENOUGH` of them all go on.

Of many rows a part chooses the finalists. It tells which gain suits an encoding, but not which encoding will suit all
rows: periodic embeddings need many to learn, and then are ahead where a target swings. So every encoding has its best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fewfire._types import Float64Array
    from fewfire.tabular._examples import Variant
    from fewfire.tabular._training import Stop

ENOUGH = 500  # held-out rows


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
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        if len(stops) > 1 and outputs.shape[1] >= ENOUGH:
            losses = np.where(running, [stop.loss for stop in stops], np.inf)
            half = np.argsort(losses, kind="stable")[: -(-int(running.sum()) // 2)]
            weights = self._mix(outputs)
            ahead = np.zeros_like(running)
            ahead[half] = True
            running &= ahead | (weights > 0)
        return [bool(runs) for runs in running]


def finalists(losses: Mapping[Variant, float], count: int) -> list[Variant]:
    """So many variants, by their losses: the best of every encoding, then the best of the others; the best first."""
    ranked = sorted(losses, key=lambda variant: losses[variant])
    leaders = {variant.encoding: variant for variant in reversed(ranked)}.values()
    chosen = sorted(ranked, key=lambda variant: variant not in leaders)[:count]
    return sorted(chosen, key=lambda variant: losses[variant])
