"""Branch and bound on undecided neurons: complete where the budget of nodes lasts, a better bound anywhere else.

A node is a cell some of whose neurons have been put on a side of τ, z ≤ τ (silent) or z ≥ τ (active); the two together
hold every point, and on both sides the neuron is linear. The node with the lowest bound is split next, at the neuron
that makes most of its gap, and its halves start from its multipliers. The least bound of all open nodes is the bound of
the cell; the worst point met is above it, so the gap is known at any time.

The best lines of one cell are *polished*: what Adam's steps come near to is solved, so that small networks are
complete. With κ = 0 the dual of a cell is linear in each λ_r between the slopes of its neuron's convex hull and has no
maximum outside. Over a box that is a linear program (HiGHS); a ball is cut out of the box by its tangent planes, one
more wherever the program's solution lies outside (Kelley's cutting planes), of which few inputs need few. Programs only
propose λ: `proved_bound` says what that is worth over the set itself. A half-space that no point of the set is in shows
as a bound that rises with the price of leaving it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import linprog

from fewfire.robustness._relaxation import (
    Cells,
    Multipliers,
    Relaxed,
    improve,
    neuron_minima,
    proved_bound,
    relaxation_losses,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._relaxation import Inner
    from fewfire.robustness._threats import Threat

TOGETHER: Final = 16  # nodes split at a time, from as many cells as there are
ITERATIONS: Final = 24
RATE: Final = 0.03
SMALL: Final = 32
"""Neurons of a cell up to which the lines of all its nodes are polished; of larger ones only those of linear nodes."""


@dataclass(frozen=True)
class BranchSearch:
    """When to leave a cell."""

    nodes: int  # the most that are bounded for one cell
    gap: float  # a bound this near to the least value met is as good as that
    decide: bool  # the sign is enough: a cell is left when its bound is positive, or a value that is not has been met

    def over(self, lower: float, upper: float) -> bool:
        """Whether nothing is left to find out."""
        return upper - lower <= self.gap or (self.decide and (lower > 0.0 or upper <= 0.0))

    def enough(self, upper: float) -> float:
        """The bound beyond which a node need not be looked at again."""
        return min(0.0, upper - self.gap) if self.decide else upper - self.gap


@dataclass(frozen=True, eq=False)
class Node:
    """A cell of one row and what is known of it; `linear` when no neuron is left to split."""

    bound: float
    cell: Any
    relaxed: Any
    linear: bool = False


@dataclass(eq=False)
class Tree:
    """The open nodes of one cell, the lowest bound first."""

    lower: float
    upper: float
    heap: list[tuple[float, int, Node]] = field(default_factory=list)
    nodes: int = 0
    over: bool = False

    def push(self, node: Node) -> None:
        heapq.heappush(self.heap, (node.bound, self.nodes, node))
        self.nodes += 1

    def settle(self, search: BranchSearch) -> None:
        """The bound of the cell, and whether to go on."""
        if not self.over:
            lowest = self.heap[0][2]
            self.lower = max(self.lower, lowest.bound)
            self.over = search.over(self.lower, self.upper) or lowest.linear or self.nodes >= search.nodes


def descend(cells: Cells, points: Float64Array, threat: Threat, move: Float64Array, steps: int) -> Float64Array:
    """The least f met by projected gradient descent from x₀ + move, brought into the set first; shape (cells,)."""
    centres, threat = points[cells.row], threat.take(cells.row)
    here = threat.project(centres + move, centres)
    least = cells.at(here - centres)
    size = 2.5 * threat.reach(centres.shape[1]) / max(1, steps)
    for step in range(steps):
        gradients = -cells.gradient(here - centres)
        here = threat.project(threat.ascend(here, gradients, size * (1.0 - 0.9 * step / steps)), centres)
        least = np.minimum(least, cells.at(here - centres))
    return np.asarray(least)


def branch(
    cells: Cells,
    relaxed: Relaxed,
    upper: Float64Array,
    points: Float64Array,
    threat: Threat,
    search: BranchSearch,
    inner: Inner,
    *,
    curved: bool = True,
) -> tuple[AnyArray, ...]:
    """Lower bounds, least values met and nodes bounded of every cell, arrays of shape (cells,).

    `relaxed` holds the bounds that cells have already, `upper` (cells,) the least values met so far, `points` (rows, d)
    the centres. `curved` bounds nodes by parabolas too, not by lines alone.
    """
    trees = [Tree(float(low), float(high)) for low, high in zip(relaxed.bound, upper, strict=True)]
    for i, tree in enumerate(trees):
        cell = cells.take(slice(i, i + 1))
        tree.push(Node(tree.lower, cell, relaxed.take(slice(i, i + 1)), not cell.undecided.any()))

    def bound(some: list[Tree]) -> None:
        """Halves of the lowest nodes, bounded together from their parents' multipliers."""
        work = [(tree, *item) for tree in some for item in _split(tree, TOGETHER // len(some), not curved)]
        joined = Cells.joined([cell for _, _, cell in work])
        begun = Multipliers.joined([parent.relaxed for _, parent, _ in work])
        enough = np.array([search.enough(tree.upper) for tree, _, _ in work])
        found = improve(joined, begun, ITERATIONS, RATE, enough, None if curved else inner)
        for i, (tree, parent, cell) in enumerate(work):
            relaxed, linear = found.take(slice(i, i + 1)), not cell.undecided.any()
            if (linear or cell.output.shape[1] <= SMALL) and relaxed.bound[0] <= enough[i]:
                relaxed = polish(cell, relaxed, inner, float(enough[i]))
            met = descend(cell, points, threat, relaxed.move, 3)
            tree.upper = min(tree.upper, float(met[0]))
            tree.push(Node(max(parent.bound, float(relaxed.bound[0])), cell, relaxed, linear))

    grow(trees, search, bound)
    return tuple(np.array([getattr(tree, name) for tree in trees]) for name in ("lower", "upper", "nodes"))


def grow(trees: list[Tree], search: BranchSearch, bound: Callable[[list[Tree]], None]) -> None:
    """Have `bound` replace the lowest nodes of some trees by their halves until nothing is left to find out."""
    while True:
        for tree in trees:
            tree.settle(search)
        busy = [tree for tree in trees if not tree.over]
        if not busy:
            return
        for start in range(0, len(busy), TOGETHER):
            bound(busy[start : start + TOGETHER])


def _split(tree: Tree, count: int, lines: bool) -> list[tuple[Node, Cells]]:
    """Halves of the tree's lowest nodes, with the worst neuron silent, and active; each with its parent."""
    found: list[tuple[Node, Cells]] = []
    for _ in range(count):
        if not tree.heap or tree.heap[0][2].linear:
            break
        node = heapq.heappop(tree.heap)[2]
        cell, worst = node.cell, int(relaxation_losses(node.cell, node.relaxed, lines)[0].argmax())
        jump = cell.threshold[0] - cell.centre[0, worst]
        low, high, silent, active = (np.array(part) for part in (cell.low, cell.high, cell.silent, cell.active))
        low[0, worst], high[0, worst] = max(low[0, worst], jump), min(high[0, worst], jump)
        silent[0, worst] = active[0, worst] = False
        found += [(node, replace(cell, high=high, active=active)), (node, replace(cell, low=low, silent=silent))]
    return found


CUTS: Final = 25
FEW_CUTS: Final = 4  # rounds of cutting planes for a linear cell, which is to be solved, and for one that will be split
PRICE: Final = 1e4  # of leaving a half-space, in units of the largest |a_r|: a finite one keeps programs solvable


def polish(cell: Cells, relaxed: Relaxed, inner: Inner, enough: float) -> Relaxed:
    """A better bound of one cell by lines, or the same; cutting ends where the bound passes `enough`."""
    slope = _best_slopes(cell, *hull_slopes(cell), inner, enough)
    if slope is None:
        return relaxed
    bound = proved_bound(cell, replace(relaxed, slope=slope[None]), inner)
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
    price = PRICE * max(1e-300, float(np.abs(a).max(initial=0.0)) or float(np.abs(cell.slope).max(initial=0.0)))
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
