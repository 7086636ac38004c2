"""The best lines of one cell to the end: what Adam's steps come near to is solved, so that small networks are complete.

With κ = 0 the dual of a cell is linear in each λ_r between the slopes of its neuron's convex hull and has no maximum
outside. Over a box that is a linear program (HiGHS); a ball is cut out of the box by its tangent planes, one more
wherever the program's solution lies outside (Kelley's cutting planes), which few inputs need few of. Programs only
propose λ: `proved_bound` says what that is worth over the set itself. A half-space that no point of the set is in shows
as a bound that rises with the price of leaving it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import linprog

from fewfire.robustness._relaxation import neuron_minima, proved_bound

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.robustness._relaxation import Cells, Inner, Relaxed

CUTS: Final = 25
FEW_CUTS: Final = 4
"""Rounds of cutting planes for a linear cell, which is to be solved, and for one that will be split."""
PRICE: Final = 1e4
"""Of leaving a half-space, in units of the largest |a_r|: a finite one keeps programs solvable."""


def polish(cell: Cells, relaxed: Relaxed, inner: Inner, enough: float) -> Relaxed:
    """A better bound of one cell by lines, or the same; cutting ends where the bound passes `enough`."""
    slope = _best_slopes(cell, *hull_slopes(cell), inner, enough)
    if slope is None:
        return relaxed
    bound = proved_bound(cell, replace(relaxed.multipliers, slope=slope[None]), inner)
    if not bound[0] > relaxed.bound[0]:
        return relaxed
    _, move = inner(cell.slope + slope @ cell.weights[0], cell.row)
    return replace(relaxed, bound=bound, move=move)  # the multipliers stay: they belong to parabolas


def hull_slopes(cell: Cells) -> tuple[Float64Array, Float64Array]:
    """The least and the greatest useful λ of every neuron of one cell, shape (neurons,) each."""
    a, tau = cell.output[0], cell.threshold[0]
    least, most = cell.centre[0] + cell.low[0], cell.centre[0] + cell.high[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.where(most > tau, a * most / (most - tau), a)  # from (τ, 0) to the end of the range
        chord = np.where(most > least, a * most / (most - least), a)
        first = np.where(least < tau, a * tau / (tau - least), a)  # from the range's beginning to (τ, τ)
    low = np.where(a > 0.0, 0.0, np.where(least > 0.0, first, chord))
    high = np.where(a > 0.0, steep, np.where(least > 0.0, a, chord))
    silent, active = cell.silent[0] & ~cell.active[0], cell.active[0] & ~cell.silent[0]
    price = PRICE * max(1e-300, float(np.abs(a).max(initial=0.0)))
    low = np.where(silent, 0.0, np.where(active, a - price, low))
    high = np.where(silent, price, np.where(active, a, high))
    moves = np.any(cell.weights[0] != 0.0, axis=1)
    return np.where(moves, low, 0.0), np.where(moves, np.maximum(low, high), 0.0)


def _best_slopes(
    cell: Cells, low: Float64Array, high: Float64Array, inner: Inner, enough: float
) -> Float64Array | None:
    """λ from the multipliers of linear programs; None where HiGHS gives up.

    λ = low + m with m the multiplier of ⟨w, d⟩ − s ≤ bend, where the two lines of the neuron meet or its half-space
    ends; s ≥ 0 costs high − low, which is what keeps m below.
    """
    bent = np.flatnonzero(high > low)
    d, count = cell.slope.shape[1], len(bent)
    jump = cell.threshold[0] - cell.centre[0]
    bends = np.where(cell.active[0] & ~cell.silent[0], np.maximum(cell.low[0], jump), np.minimum(cell.high[0], jump))
    rows, limits = [np.hstack([cell.weights[0, bent], -np.eye(count)])], [bends[bent]]
    cost = np.concatenate([cell.slope[0] + low @ cell.weights[0], (high - low)[bent]])
    box = [*zip(cell.down[0], cell.up[0], strict=True), *([(0.0, None)] * count)]
    slope, constant = None, float(cell.value[0] + neuron_minima(cell, low[None], 0.0)[0].sum())
    for _ in range(FEW_CUTS if cell.undecided.any() else CUTS):
        found = linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(limits), bounds=box)
        if found.status != 0 or found.x is None or found.fun is None:
            return slope
        slope, move = low.copy(), found.x[:d]
        slope[bent] += np.clip(-found.ineqlin.marginals[:count], 0.0, (high - low)[bent])
        normals = np.stack([move, np.sign(move)])
        most = -inner(-normals, np.repeat(cell.row, 2))[0]
        outside = (normals @ move > most + 1e-6 * (1e-300 + np.abs(most))) & np.any(normals != 0.0, axis=1)
        if not outside.any() or constant + float(found.fun) > enough:
            return slope
        rows.append(np.hstack([normals[outside], np.zeros((int(outside.sum()), count))]))
        limits.append(most[outside])
    return slope
