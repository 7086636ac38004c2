"""The exact least value of a linear function over a ball cut by a box, one small problem per row.

Minimise ⟨w, d⟩ over down ≤ d ≤ up (down ≤ 0 ≤ up) and ‖d‖ ≤ ρ. Every coordinate goes against its weight, by at most
its room, −down or up; only how the ball's budget is shared differs:

l2    d_j = −sign(w_j)·min(t|w_j|, room_j) with the largest t that fits. Σ_j min(t|w_j|, room_j)² = ρ² is solved by
      water filling: t = √((ρ² − Σ_met room²)/Σ_free w²), coordinates that meet the box leave the free ones, again until
      none does. t only grows and each round settles a coordinate at least, so that the end is exact, not a limit.
l1    the greatest |w_j| first, each until its room or the budget is spent: a fractional knapsack
linf  every coordinate to its end
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import Float64Array

    Radius = float | Float64Array


def linear_minimum(
    norm: str, weights: Float64Array, down: Float64Array, up: Float64Array, rho: Radius
) -> tuple[Float64Array, Float64Array]:
    """The least ⟨w, d⟩ and where it is, for every row.

    Parameters
    ----------
    norm : "l1", "l2" or "linf"
    weights, down, up : arrays of shape (rows, d)
        down ≤ 0 ≤ up; infinite where there is no box.
    rho : float, or array of shape (rows,) or (rows, 1)

    Returns
    -------
    least : array of shape (rows,)
    move : array of shape (rows, d)
    """
    radius = np.broadcast_to(np.reshape(np.asarray(rho, dtype=np.float64), (-1, 1)), (len(weights), 1))
    room = np.where(weights > 0.0, -down, up)
    size = np.abs(weights)
    length = np.where(size > 0.0, SHARES[norm](size, room, radius), 0.0)
    return -(size * length).sum(axis=1), -np.sign(weights) * length


def linear_span(
    norm: str, weights: Float64Array, down: Float64Array, up: Float64Array, rho: Radius
) -> tuple[Float64Array, Float64Array]:
    """The least and the greatest ⟨w, d⟩ of every row, each of shape (rows,)."""
    low, _ = linear_minimum(norm, weights, down, up, rho)
    high, _ = linear_minimum(norm, -weights, down, up, rho)
    return low, -high


def _filled(size: Float64Array, room: Float64Array, rho: Float64Array) -> Float64Array:
    """min(t·|w_j|, room_j) with the largest t for which its 2-norm is ρ at most."""
    square = size**2
    total = square.sum(axis=1, keepdims=True)
    t = np.divide(rho, np.sqrt(total), out=np.zeros_like(total), where=total > 0.0)
    length = t * size
    met = length > room
    todo = np.flatnonzero(met.any(axis=1))
    length = np.minimum(length, room)
    while todo.size:
        held = met[todo]
        left = rho[todo] ** 2 - (np.where(held, room[todo], 0.0) ** 2).sum(axis=1, keepdims=True)
        free = np.where(held, 0.0, square[todo]).sum(axis=1, keepdims=True)
        t = np.sqrt(np.divide(np.maximum(left, 0.0), free, out=np.zeros_like(free), where=free > 0.0))
        further = t * size[todo]
        more = (further > room[todo]) & ~held
        length[todo] = np.where(held, room[todo], np.minimum(further, room[todo]))
        met[todo] = held | more
        todo = todo[more.any(axis=1)]
    return np.asarray(length)


def _greedy(size: Float64Array, room: Float64Array, rho: Float64Array) -> Float64Array:
    """The budget ρ given out in the order of the weights."""
    order = np.argsort(-size, axis=1, kind="stable")
    ordered = np.minimum(np.take_along_axis(room, order, axis=1), rho)
    spent = np.cumsum(ordered, axis=1) - ordered
    length = np.empty_like(size)
    np.put_along_axis(length, order, np.clip(rho - spent, 0.0, ordered), axis=1)
    return length


def _ends(size: Float64Array, room: Float64Array, rho: Float64Array) -> Float64Array:
    """All of the room, ρ at most."""
    return np.minimum(room, rho)


SHARES: Final = {"l1": _greedy, "l2": _filled, "linf": _ends}
