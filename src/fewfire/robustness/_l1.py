"""The ball of the 1-norm: an adversary who may move few features far, or many a little."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire.robustness._boxes import box_room, box_span, pull_inside

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._boxes import Radius, Span

SHARE: Final = 0.2
"""A step of ascent moves this share of the coordinates, those of the largest slopes: one alone climbs too slowly."""


@dataclass(frozen=True, eq=False)
class L1Ball:
    """Σ_j |x_j − x₀_j| ≤ ρ, within `low` and `high` (numbers or arrays of shape (d,))."""

    rho: Radius
    low: float | Float64Array = -math.inf
    high: float | Float64Array = math.inf

    def take(self, rows: AnyArray) -> L1Ball:
        """The same ball for some rows."""
        return replace(self, rho=self.rho[rows]) if isinstance(self.rho, np.ndarray) else self

    def reach(self, dimensions: int) -> float:
        """ρ."""
        return float(np.max(self.rho))

    def project(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """The nearest points of ball and box: every |δ_j| lessened by one λ, but not below 0, then clipped to the box.

        λ = 0 where clipping alone brings a point into the ball. Elsewhere Σ_j clip(|δ_j| − λ, 0, room_j) is linear in λ
        between the places |δ_j| and |δ_j| − room_j, so λ is found exactly.
        """
        nearest = np.clip(points, self.low, self.high).astype(points.dtype, copy=False)
        far = (np.abs(nearest - centres).sum(axis=1, keepdims=True) > self.rho)[:, 0]
        if far.any():
            nearest[far] = self.take(far)._soften((points - centres)[far].astype(np.float64), centres[far])
        return np.asarray(nearest)

    def _soften(self, delta: Float64Array, centres: Float64Array) -> Float64Array:
        size, rows = np.abs(delta), np.arange(len(delta))
        room = np.broadcast_to(np.where(delta > 0.0, self.high - centres, centres - self.low), delta.shape)
        room = np.minimum(room, size)
        # As λ grows the sum falls at rate 1 per coordinate, from where it leaves the box (size − room) to 0 (size).
        places = np.concatenate([size - room, size], axis=1)
        change = np.concatenate([np.ones_like(size), -np.ones_like(size)], axis=1)
        order = np.argsort(places, axis=1)
        places = np.take_along_axis(places, order, axis=1)
        count = np.cumsum(np.take_along_axis(change, order, axis=1), axis=1)
        fallen = np.cumsum(count[:, :-1] * np.diff(places, axis=1), axis=1)
        excess = room.sum(axis=1) - np.broadcast_to(np.ravel(np.asarray(self.rho, dtype=np.float64)), len(delta))
        last = np.minimum((fallen < excess[:, None]).sum(axis=1), fallen.shape[1] - 1)
        before = np.where(last > 0, fallen[rows, np.maximum(last - 1, 0)], 0.0)
        level = places[rows, last] + (excess - before) / np.maximum(count[rows, last], 1.0)
        kept = np.clip(size - level[:, None], 0.0, room)
        return np.asarray(np.clip(centres + np.sign(delta) * kept, self.low, self.high))

    def ascend(self, points: Float64Array, gradients: Float64Array, size: Radius) -> Float64Array:
        """Along the signs of the largest slopes, evenly."""
        many = max(1, round(SHARE * points.shape[1]))
        slopes = np.abs(gradients)
        least = np.partition(slopes, -many, axis=1)[:, -many, None]
        signs = np.where(slopes >= least, np.sign(gradients), 0.0).astype(points.dtype, copy=False)
        return np.asarray(points + (size / many) * signs)

    def extreme(self, gradients: Float64Array, centres: Float64Array) -> Float64Array:
        """Coordinates in the order of their slopes, each to the end of the box until ρ is used up."""
        slopes = np.abs(gradients)
        room = np.broadcast_to(np.where(gradients > 0.0, self.high - centres, centres - self.low), slopes.shape)
        order = np.argsort(-slopes, axis=1)
        sorted_room = np.minimum(np.take_along_axis(room, order, axis=1), np.max(self.rho))
        used = np.cumsum(sorted_room, axis=1) - sorted_room
        spent = np.clip(self.rho - used, 0.0, sorted_room)
        move = np.zeros_like(centres)
        np.put_along_axis(move, order, spent.astype(centres.dtype), axis=1)
        return np.clip(centres + np.sign(gradients) * move, self.low, self.high).astype(centres.dtype, copy=False)

    def settle(self, points: Float64Array, centres: Float64Array) -> Float64Array:
        """Clipped, then drawn in by a rounding."""
        return pull_inside(np.clip(points, self.low, self.high), centres, self.rho, 1)

    def draw(self, centres: Float64Array, stream: Stream) -> Float64Array:
        """Uniform in the ball, then projected."""
        rows, d = centres.shape
        shares = -np.log(stream.uniform((rows, d + 1)))  # exponential: d + 1 of them, divided by their sum
        moved = self.rho * (shares[:, :-1] / shares.sum(axis=1, keepdims=True)) * stream.child("signs").signs((rows, d))
        return self.project(centres + moved.astype(centres.dtype, copy=False), centres)

    def span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """±ρ‖w‖_∞, or what the box leaves of it."""
        most = self.rho * np.abs(weights).max(axis=1, initial=0.0)
        low, high = box_span(weights, *box_room(self, centres))
        return np.maximum(-most, low), np.minimum(most, high)

    def row_span(self, weights: Float64Array, centres: Float64Array) -> Span:
        """The values at the two extremes, exact with a box too."""
        high = np.einsum("ij,ij->i", weights, self.extreme(weights, centres) - centres)
        return -np.einsum("ij,ij->i", -weights, self.extreme(-weights, centres) - centres), high
