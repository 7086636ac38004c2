"""What theory says about a frontier: the lower bound of pareto, Proposition 3, and its shape.

With r parameters, T steps, gradients of precision τ and chance of success δ, (n, k)-parities cannot all be learned
while r·T/(τ²·δ) ≤ ¼·C(n, k). m examples give τ = 1/√m up to logarithms, so the cost of a cell at even odds is 2·r·T·m.
The bound is for the worst parity and adversarial rounding of the gradients; SGD meets it with room to spare. What can
be seen on a map is its shape: along a curve of equal cost, r·m is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.theory import pareto

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.report._frontier import Group

ODDS = 0.5
"""The chance of success δ of the overlay, that of the measured line of one half."""


@dataclass(frozen=True, eq=False)
class TheoryOverlay:
    """The bound of a group, in the units of its map.

    Parameters
    ----------
    needed : float
        The cost below which the bound excludes learning: ¼·C(n, k).
    smallest : float
        The smallest cost r·T·m/δ of any cell of the group.
    bound : array of shape (widths,)
        Samples below which the bound excludes success at even odds.
    equal_cost : array of shape (starts, widths)
        Samples along the curve of equal cost that fits the measured line of one half best; NaN where that is not inside
        the map.
    """

    needed: float
    smallest: float
    bound: Float64Array
    equal_cost: Float64Array


def theory_info(group: Group) -> TheoryOverlay | None:
    """The overlay of a group; None for problems that are not parities, and for online data alone.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.experiments import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> report.theory_info(group).needed  # of a cost r·T·m/δ: Proposition 3 excludes learning below
    108.75
    """
    problem = group.spec["problem"]
    finite = [m for m in group.samples if m is not None]
    if problem["name"] != "parity" or not finite:
        return None
    parameters = [width * (problem["n"] + 2) + 1 for width in group.widths]
    steps = sum(int(phase["steps"]) for phase in group.spec["training"]["phases"])
    ones = [
        pareto.frontier(problem["n"], problem["k"], r, steps, pareto.gradient_precision(1), ODDS) for r in parameters
    ]
    unit = np.array([one.supply for one in ones])  # the cost of one example, by width
    bound = np.array([one.thresholds()["samples"] for one in ones])
    lines = np.stack([_fit(unit, frontier.half) for frontier in group.frontiers])
    return TheoryOverlay(ones[0].demand, float(unit[0] * finite[0]), bound, lines)


def _fit(unit: Float64Array, half: Float64Array) -> Float64Array:
    """samples(width) = c / unit(width), c being the geometric mean of the costs on the measured line."""
    inside = np.isfinite(half) & (half > 0)
    if not inside.any():
        return np.full(len(unit), np.nan)
    cost = float(np.exp(np.mean(np.log(unit[inside] * half[inside]))))
    curve: Float64Array = cost / unit
    return curve
