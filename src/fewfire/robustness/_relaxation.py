"""Relaxations of many small problems at once: minimise a two-layer network over an adversary's set.

A *cell* is one such problem: a row, the function f(x₀ + d) = c + ⟨v, d⟩ + Σ_r a_r σ_τ(z_r + ⟨w_r, d⟩) that is to be
proved large, and which of its neurons may be silent or active (all that can be, before branching). Neurons that are
sure to fire are part of ⟨v, d⟩. Each neuron gets its own copy δ_r of ⟨w_r, d⟩; the copies are tied to d by multipliers,
λ_r for δ_r = ⟨w_r, d⟩ and κ_r ≥ 0 for δ_r² = ⟨w_r, d⟩²:

    f ≥ c + Σ_r t_r(λ_r, κ_r) + min_d [⟨v + Σ_r λ_r w_r, d⟩ − Σ_r κ_r⟨w_r, d⟩²],
    t_r(λ, κ) = min over the range of δ and the sides allowed of a_r σ_τ(z_r + δ) − λδ + κδ²,

which holds for every λ and κ, so no solver has to be trusted. t_r is in closed form: the jump at τ, an undecided neuron
and one that branching has put on a side are all the same formula, and λ of a decided neuron is the multiplier of its
half-space (β-CROWN's β).

κ = 0    the last minimum is linear, exact over the set. The best λ are α-CROWN's slopes: the convex hulls of all
         neurons apart.
κ > 0    neurons that are to be subtracted are bounded by parabolas: one d cannot push them all to
         their worst. The set is the ball of radius ρ and the box, whose multipliers are μ and ν:
         min_d dᵀMd + ⟨p, d⟩ − μρ² + Σ_j ν_j down_j up_j,  M = μI + diag(ν) − Σ_r κ_r w_r w_rᵀ positive definite,
         p = v + Σ λ_r w_r − ν(down + up). This is the dual of the semidefinite relaxation, with which ℓ₂ balls are
         bounded far better than by lines; each step takes a Cholesky factorisation of order d.

The multipliers are improved by Adam, whose steps are free of scale, μ by Newton's method on ‖d‖ = ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from scipy.linalg import lapack

from fewfire._dense.kernels import adamw_step
from fewfire._dense.optimisers import adam_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray, Float64Array

    Inner = Callable[[Float64Array, AnyArray], tuple[Float64Array, Float64Array]]
    Dual = tuple[Float64Array, Float64Array, list[Float64Array], Float64Array]

ROUNDING: Final = 1e-12
"""Bounds are lowered by this share of the terms they are made of, far more than what float64 rounding can take away."""
EPSILON: Final = float(np.finfo(np.float64).eps)
BETAS: Final = (0.9, 0.99)  # Adam's memory: some hundred steps are taken
TINY: Final = 1e-30  # keeps Adam from dividing by 0; a network's outputs may be of any size, so it is far below them


class CellArrays:
    """Dataclass fields that are arrays with one entry per cell."""

    def take(self, chosen: AnyArray | slice) -> Self:
        """Some of the cells."""
        return type(self)(*(getattr(self, name)[chosen] for name in self._names()))

    def put(self, indices: AnyArray, part: Self) -> Self:
        """These cells with some of them replaced."""
        table = [np.array(getattr(self, name)) for name in self._names()]
        for column, name in zip(table, self._names(), strict=True):
            column[indices] = getattr(part, name)
        return type(self)(*table)

    @classmethod
    def joined(cls, parts: Sequence[CellArrays]) -> Self:
        """Cells of one size, one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls._names()))

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Cells(CellArrays):
    """Problems of one size; neurons that a cell lacks have zero weights and a range of zero."""

    row: AnyArray  # (cells,): which centre
    value: Float64Array  # (cells,): c, f without its open neurons at the centre
    slope: Float64Array  # (cells, d): v
    weights: Float64Array  # (cells, neurons, d): the w_r of open neurons
    output: Float64Array  # (cells, neurons): a_r
    centre: Float64Array  # (cells, neurons): z_r
    low: Float64Array  # (cells, neurons): the range of ⟨w_r, d⟩
    high: Float64Array
    silent: AnyArray  # (cells, neurons): the sides of τ that are allowed; low or high ends at τ where only one is
    active: AnyArray
    threshold: Float64Array  # (cells,): τ
    down: Float64Array  # (cells, d): the box, down ≤ d ≤ up
    up: Float64Array
    radius: Float64Array  # (cells,): ‖d‖₂ ≤ radius
    size: Float64Array  # (cells,): the sum of what is added up in c and z, in absolute value: what rounds

    def __len__(self) -> int:
        return len(self.row)

    @property
    def undecided(self) -> AnyArray:
        """Neurons that may be on both sides, shape (cells, neurons)."""
        return self.silent & self.active

    def at(self, move: Float64Array) -> Float64Array:
        """f at x₀ + move for moves (cells, d): shape (cells,)."""
        z = self.centre + np.einsum("bnd,bd->bn", self.weights, move)
        fired = np.where(z > self.threshold[:, None], z, 0.0)
        return np.asarray(self.value + (self.slope * move).sum(axis=1) + (self.output * fired).sum(axis=1))

    def gradient(self, move: Float64Array) -> Float64Array:
        """The gradient of f at x₀ + move, shape (cells, d)."""
        z = self.centre + np.einsum("bnd,bd->bn", self.weights, move)
        weight = np.where(z > self.threshold[:, None], self.output, 0.0)
        return np.asarray(self.slope + np.einsum("bn,bnd->bd", weight, self.weights))


@dataclass(frozen=True, eq=False)
class Multipliers(CellArrays):
    """λ and log κ of shape (cells, neurons), log ν of shape (cells, d) and μ of shape (cells,)."""

    slope: Float64Array
    curvature: Float64Array
    box: Float64Array
    ball: Float64Array


@dataclass(frozen=True, eq=False)
class Relaxed(Multipliers):
    """The best multipliers met, the bound they prove, and d at which the relaxation is least, (cells, d)."""

    bound: Float64Array
    move: Float64Array


def neuron_minima(
    cells: Cells, slope: Float64Array, curvature: Float64Array | float
) -> tuple[Float64Array, Float64Array]:
    """t_r(λ, κ) and the δ_r where it is, shape (cells, neurons) each; +∞ where a neuron has no side left."""
    jump = cells.threshold[:, None] - cells.centre
    sides = (
        (cells.silent, cells.low, np.minimum(cells.high, jump), 0.0, 0.0),
        (cells.active, np.maximum(cells.low, jump), cells.high, cells.output, cells.output * cells.centre),
    )
    least, where = np.full(slope.shape, np.inf), np.zeros(slope.shape)
    for allowed, low, high, gain, constant in sides:
        line = gain - slope
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            free = np.where(line == 0.0, 0.0, -line / (2.0 * curvature))  # ±∞ where κ = 0
        place = np.clip(free, low, np.maximum(low, high))
        value = np.where(allowed, constant + line * place + curvature * place**2, np.inf)
        better = value < least
        least, where = np.where(better, value, least), np.where(better, place, where)
    return least, where


def first_multipliers(cells: Cells) -> Multipliers:
    """Where to begin: slopes between the sides, parabolas of about the neurons' ranges, a tenth of the box's pull."""
    fires = cells.centre > cells.threshold[:, None]
    both = cells.output * np.where(fires, 0.75, 0.25)
    slope = np.where(cells.undecided, both, np.where(cells.active, cells.output, 0.0))
    reach = np.maximum(np.maximum(np.abs(cells.low), np.abs(cells.high)), 1e-300)
    curvature = np.log(np.maximum(0.3 * np.abs(cells.output) / reach, 1e-300))
    pull = np.linalg.norm(cells.slope + np.einsum("bn,bnd->bd", slope, cells.weights), axis=1)
    box = np.log(np.maximum(0.1 * pull / np.maximum(cells.radius, 1e-300), 1e-12))
    start = Multipliers(slope, curvature, np.repeat(box[:, None], cells.down.shape[1], axis=1), np.zeros(len(cells)))
    kappa = np.where(_curved(cells), np.exp(curvature), 0.0)
    matrix = (cells.weights * kappa[:, :, None]).transpose(0, 2, 1) @ cells.weights
    top = np.linalg.eigvalsh(matrix)[:, -1] if matrix.size else np.zeros(len(cells))
    return replace(start, ball=1.01 * top + pull / (2.0 * np.maximum(cells.radius, 1e-300)) + 1e-300)


def improve(
    cells: Cells,
    start: Multipliers,
    iterations: int,
    rate: float,
    stop: float | Float64Array = np.inf,
    inner: Inner | None = None,
) -> Relaxed:
    """Multipliers improved by Adam, with the bounds they prove; cells whose bound passes `stop` are left as they are.

    `inner` gives, for weights (cells, d) and cells' rows, the least ⟨w, d⟩ over the set and where it is; with it bounds
    are by lines only, κ = 0, and without it by parabolas.
    """
    count, lines = len(cells), inner is not None
    stops = np.broadcast_to(np.asarray(stop, dtype=np.float64), (count,))
    begun = {name: np.array(getattr(start, name)) for name in Multipliers._names()}
    best = Relaxed(**begun, bound=np.full(count, -np.inf), move=np.zeros_like(cells.down))
    live, here, now = np.arange(count), cells, start
    memory = [np.zeros((2, *part.shape)) for part in (start.slope, start.curvature, start.box)]  # Adam's
    raw = np.full(count, -np.inf)  # the best value met, before rounding is counted
    for step in range(iterations):
        if not live.size:
            break
        value, move, gradients, ball = _dual_lines(here, now, inner) if inner is not None else _dual_curved(here, now)
        now = replace(now, ball=ball)
        better = value > raw[live]
        raw[live[better]] = value[better]
        for name in Multipliers._names():
            getattr(best, name)[live[better]] = getattr(now, name)[better]
        best.move[live[better]] = move[better]
        keep = raw[live] <= stops[live] + 1e-9 * (1.0 + here.size)
        falling, tiny = adam_rates(rate * (1.0 - step / iterations), BETAS, step + 1, TINY)
        moves = [np.zeros_like(gradient) for gradient in gradients]
        for moved, gradient, means in zip(moves, gradients, memory, strict=False):  # with lines there is one gradient
            adamw_step(moved, gradient, means[0], means[1], falling, 0.0, *BETAS, tiny)
        now = Multipliers(
            now.slope - np.abs(here.output) * moves[0],
            now.curvature if lines else now.curvature - 2.0 * moves[1],
            now.box if lines else np.clip(now.box - 2.0 * moves[2], -60.0, 60.0),
            ball,
        )
        if np.count_nonzero(keep) < 0.7 * live.size:
            live, here, now = live[keep], here.take(keep), now.take(keep)
            memory = [means[:, keep] for means in memory]
    return replace(best, bound=proved_bound(cells, best, inner))


def proved_bound(cells: Cells, multipliers: Multipliers, inner: Inner | None) -> Float64Array:
    """The bound that multipliers prove in float64, rounding taken off; shape (cells,).

    M counts as positive semidefinite where its Cholesky factorisation exists, which proves M ⪰ −ηI with
    η = O(d·ε·trace). With d₀ the computed minimiser and r = 2Md₀ + p its residual, convexity gives
    dᵀMd + ⟨p, d⟩ ≥ d₀ᵀMd₀ + ⟨p, d₀⟩ − ‖r‖(ρ + ‖d₀‖) − η(ρ + ‖d₀‖)² for every ‖d‖ ≤ ρ.
    """
    weight = np.linalg.norm(cells.weights, axis=2) * cells.radius[:, None]
    if inner is not None:
        least, _ = neuron_minima(cells, multipliers.slope, 0.0)
        fall, _ = inner(cells.slope + np.einsum("bn,bnd->bd", multipliers.slope, cells.weights), cells.row)
        total = cells.value + least.sum(axis=1) + fall
        size = 1.0 + cells.size + np.abs(multipliers.slope * weight).sum(axis=1) + np.abs(fall)
        return np.asarray(total - ROUNDING * (size + _finite(least)))
    kappa, nu = _kappa(cells, multipliers), np.exp(multipliers.box)
    least, _ = neuron_minima(cells, multipliers.slope, kappa)
    hessian, pull = _quadratic(cells, multipliers.slope, kappa, nu)
    bound = np.full(len(cells), -np.inf)
    for i in range(len(cells)):
        matrix, radius = hessian[i], float(cells.radius[i])
        matrix[np.diag_indices(len(matrix))] += multipliers.ball[i]
        factor, info = lapack.dpotrf(matrix.T, lower=1)
        if info:
            continue
        move, _ = lapack.dpotrs(factor, -0.5 * pull[i], lower=1)
        product = matrix @ move
        far = radius + float(np.linalg.norm(move))
        trace = float((kappa[i] * (cells.weights[i] ** 2).sum(axis=1)).sum() + nu[i].sum()) + len(matrix) * float(
            multipliers.ball[i]
        )
        eta = 8.0 * (len(matrix) + len(kappa[i]) + 8) * EPSILON * trace
        quadratic = float(move @ product + pull[i] @ move)
        slack = float(np.linalg.norm(2.0 * product + pull[i])) * far + eta * far**2
        corner = float((nu[i] * cells.down[i] * cells.up[i]).sum())
        sphere = float(multipliers.ball[i]) * radius**2
        size = abs(quadratic) + abs(corner) + sphere + float((kappa[i] * weight[i] ** 2).sum())
        bound[i] = quadratic - sphere + corner - slack - ROUNDING * size
    size = 1.0 + cells.size + np.abs(multipliers.slope * weight).sum(axis=1) + _finite(least)
    return np.asarray(cells.value + least.sum(axis=1) + bound - ROUNDING * size)


def relaxation_losses(cells: Cells, relaxed: Relaxed, lines: bool) -> Float64Array:
    """How much of the gap each undecided neuron makes at the relaxation's own minimiser, (cells, neurons)."""
    kappa = np.zeros_like(relaxed.slope) if lines else _kappa(cells, relaxed)
    least, _ = neuron_minima(cells, relaxed.slope, kappa)
    delta = np.clip(np.einsum("bnd,bd->bn", cells.weights, relaxed.move), cells.low, cells.high)
    z = cells.centre + delta
    true = cells.output * np.where(z > cells.threshold[:, None], z, 0.0)
    loss = np.maximum(true - (least + relaxed.slope * delta - kappa * delta**2), 0.0)
    # What a neuron could do at all breaks ties where the minimiser decides nothing.
    most = np.abs(cells.output) * np.minimum(cells.high - cells.low, np.abs(z) + 1e-12)
    return np.where(cells.undecided, loss + 1e-6 * most + 1e-300, -1.0)


def _finite(table: Float64Array) -> Float64Array:
    return np.asarray(np.where(np.isfinite(table), np.abs(table), 0.0).sum(axis=1))


def _curved(cells: Cells) -> AnyArray:
    """Neurons worth a parabola: undecided ones that are not convex already, as a positive share of a ReLU is."""
    return cells.undecided & ((cells.output < 0.0) | (cells.threshold[:, None] > 0.0))


def _kappa(cells: Cells, multipliers: Multipliers) -> Float64Array:
    return np.where(_curved(cells), np.exp(np.minimum(multipliers.curvature, 60.0)), 0.0)


def _quadratic(
    cells: Cells, slope: Float64Array, kappa: Float64Array, nu: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """M without μ, shape (cells, d, d), and p, shape (cells, d)."""
    hessian = -((cells.weights * kappa[:, :, None]).transpose(0, 2, 1) @ cells.weights)
    diagonal = np.arange(hessian.shape[1])
    hessian[:, diagonal, diagonal] += nu
    pull = cells.slope + np.einsum("bn,bnd->bd", slope, cells.weights) - nu * (cells.down + cells.up)
    return hessian, np.asarray(pull)


def _dual_lines(cells: Cells, now: Multipliers, inner: Inner) -> Dual:
    """Value, minimiser and gradient for κ = 0."""
    least, where = neuron_minima(cells, now.slope, 0.0)
    fall, move = inner(cells.slope + np.einsum("bn,bnd->bd", now.slope, cells.weights), cells.row)
    along = np.einsum("bnd,bd->bn", cells.weights, move)
    gradient = (along - where) * np.abs(cells.output)
    return cells.value + least.sum(axis=1) + fall, move, [gradient], now.ball


def _dual_curved(cells: Cells, now: Multipliers) -> Dual:
    """Value, minimiser, gradients in λ, log κ and log ν, and the μ used."""
    kappa, nu = _kappa(cells, now), np.exp(now.box)
    least, where = neuron_minima(cells, now.slope, kappa)
    hessian, pull = _quadratic(cells, now.slope, kappa, nu)
    move, used, quadratic = np.empty_like(pull), np.empty(len(pull)), np.empty(len(pull))
    for i in range(len(pull)):
        quadratic[i], move[i], used[i] = _over_ball(hessian[i], pull[i], float(now.ball[i]), float(cells.radius[i]))
    value = cells.value + least.sum(axis=1) + quadratic + (nu * cells.down * cells.up).sum(axis=1)
    along = np.einsum("bnd,bd->bn", cells.weights, move)
    gradients = [
        (along - where) * np.abs(cells.output),
        np.where(_curved(cells), (where**2 - along**2) * kappa, 0.0),
        nu * (move - cells.down) * (move - cells.up),
    ]
    return np.asarray(value), move, gradients, used


def _over_ball(
    hessian: Float64Array, pull: Float64Array, mu: float, radius: float
) -> tuple[float, Float64Array, float]:
    """max over μ of min_d dᵀ(H + μI)d + ⟨p, d⟩ − μρ², nearly: the value, its d and μ; every μ of a factorisation does.

    The root of ‖d(μ)‖ = ρ by Newton's method on 1/‖d‖ (Moré and Sorensen), from the last μ. Below the matrix's least
    eigenvalue there is no factorisation and μ goes up again.
    """
    diagonal = np.arange(len(pull))
    unit = 1e-3 * float(np.abs(hessian[diagonal, diagonal]).mean()) + 1e-300
    best, least, tries = (-np.inf, np.zeros_like(pull), mu), 0.0, 0
    for _ in range(60):
        matrix = hessian.copy()
        matrix[diagonal, diagonal] += mu
        factor, info = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
        if info:
            least, tries = max(least, mu), tries + 1
            mu += 0.01 * 2.0**tries * (mu + unit)
            continue
        move, _ = lapack.dpotrs(factor, -0.5 * pull, lower=1)
        half, _ = lapack.dtrtrs(factor, move, lower=1)
        length = float(np.linalg.norm(move))
        value = 0.5 * float(pull @ move) - mu * radius**2
        if value > best[0]:
            best = (value, move, mu)
        if tries > 2 or abs(length - radius) <= 0.05 * radius or radius == 0.0:
            break
        newton = mu + length**2 / max(float(half @ half), 1e-300) * (length - radius) / radius
        after = max(newton, 0.5 * (mu + least), 0.2 * mu)
        if abs(after - mu) <= 1e-3 * mu:
            break
        mu = after
    return best
