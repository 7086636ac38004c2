"""Branch and bound on undecided neurons: complete where the budget of nodes lasts, a better bound anywhere else.

A node is a cell some of whose neurons have been put on a side of τ, z ≤ τ (silent) or z ≥ τ (active); the two together
hold every point, and on both sides the neuron is linear. The node with the lowest bound is split next, at the neuron
that makes most of its gap, and its halves start from its multipliers. The least bound of all open nodes is the bound of
the cell; the worst point met is above it, so the gap is known at any time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire.robustness._polish import polish
from fewfire.robustness._relaxation import Cells, Multipliers, Relaxed, improve, relaxation_losses

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._relaxation import Inner
    from fewfire.robustness._threats import Threat

TOGETHER: Final = 16
"""Nodes split at a time, from as many cells as there are."""
ITERATIONS: Final = 24
RATE: Final = 0.03
SMALL: Final = 32
"""Neurons of a cell up to which the lines of all its nodes are polished; of larger ones only those of linear nodes."""


@dataclass(frozen=True)
class BranchSearch:
    """When to leave a cell.

    Parameters
    ----------
    nodes : int
        The most that are bounded for one cell.
    gap : float
        A bound that is this near to the least value met is as good as that.
    decide : bool
        Only the sign is asked for: a cell is left when its bound is positive, or a value that is not has been met.
    """

    nodes: int
    gap: float
    decide: bool

    def over(self, lower: float, upper: float) -> bool:
        """Whether nothing is left to find out."""
        return upper - lower <= self.gap or (self.decide and (lower > 0.0 or upper <= 0.0))

    def enough(self, upper: float) -> float:
        """The bound beyond which a node need not be looked at again."""
        return min(0.0, upper - self.gap) if self.decide else upper - self.gap


@dataclass(frozen=True, eq=False)
class Branched:
    """Lower bounds, least values met and nodes bounded, arrays of shape (cells,)."""

    lower: Float64Array
    upper: Float64Array
    nodes: AnyArray


@dataclass(frozen=True, eq=False)
class _Node:
    """A cell of one row and what is known of it; `linear` when no neuron is left to split."""

    bound: float
    cell: Cells
    relaxed: Relaxed
    linear: bool = False


@dataclass(eq=False)
class _Tree:
    """The open nodes of one cell, the lowest bound first."""

    lower: float
    upper: float
    heap: list[tuple[float, int, _Node]] = field(default_factory=list)
    nodes: int = 0
    over: bool = False

    def push(self, node: _Node) -> None:
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
) -> Branched:
    """Branch and bound of every cell, several at a time.

    Parameters
    ----------
    cells, relaxed : Cells, Relaxed
        The problems, and the bounds they have already.
    upper : array of shape (cells,)
        The least values met so far.
    points : array of shape (rows, d)
        The centres that cells' rows speak of.
    threat, search : Threat, BranchSearch
    inner : function
        Exact minima of linear functions, as in `improve`.
    curved : bool
        Bound nodes by parabolas too, not by lines alone.
    """
    trees = [_Tree(float(low), float(high)) for low, high in zip(relaxed.bound, upper, strict=True)]
    for i, tree in enumerate(trees):
        cell = cells.take(slice(i, i + 1))
        tree.push(_Node(tree.lower, cell, relaxed.take(slice(i, i + 1)), not cell.undecided.any()))
    while True:
        for tree in trees:
            tree.settle(search)
        busy = [tree for tree in trees if not tree.over]
        if not busy:
            break
        for start in range(0, len(busy), TOGETHER):
            some = busy[start : start + TOGETHER]
            work = [(tree, *item) for tree in some for item in _split(tree, TOGETHER // len(some), not curved)]
            _bound(work, points, threat, search, inner, curved)
    columns = ([getattr(tree, name) for tree in trees] for name in ("lower", "upper", "nodes"))
    return Branched(*map(np.array, columns))


def _split(tree: _Tree, count: int, lines: bool) -> list[tuple[_Node, Cells]]:
    """Halves of the tree's lowest nodes, with their parents."""
    found: list[tuple[_Node, Cells]] = []
    for _ in range(count):
        if not tree.heap or tree.heap[0][2].linear:
            break
        node = heapq.heappop(tree.heap)[2]
        found += [(node, half) for half in _halves(node, lines)]
    return found


def _halves(node: _Node, lines: bool) -> list[Cells]:
    """The cell with its worst neuron silent, and active."""
    cell, worst = node.cell, int(relaxation_losses(node.cell, node.relaxed, lines)[0].argmax())
    jump = cell.threshold[0] - cell.centre[0, worst]
    low, high, silent, active = (np.array(part) for part in (cell.low, cell.high, cell.silent, cell.active))
    low[0, worst], high[0, worst] = max(low[0, worst], jump), min(high[0, worst], jump)
    silent[0, worst] = active[0, worst] = False
    return [replace(cell, high=high, active=active), replace(cell, low=low, silent=silent)]


def _bound(
    work: list[tuple[_Tree, _Node, Cells]],
    points: Float64Array,
    threat: Threat,
    search: BranchSearch,
    inner: Inner,
    curved: bool,
) -> None:
    """Bound nodes together from their parents' multipliers and enter them in their trees."""
    cells = Cells.joined([cell for _, _, cell in work])
    start = Multipliers.joined([parent.relaxed.multipliers for _, parent, _ in work])
    enough = np.array([search.enough(tree.upper) for tree, _, _ in work])
    found = improve(cells, start, ITERATIONS, RATE, enough, None if curved else inner)
    for i, (tree, parent, cell) in enumerate(work):
        relaxed, linear = found.take(slice(i, i + 1)), not cell.undecided.any()
        if (linear or cell.output.shape[1] <= SMALL) and relaxed.bound[0] <= enough[i]:
            relaxed = polish(cell, relaxed, inner, float(enough[i]))
        met = descend(cell, points, threat, relaxed.move, 3)
        tree.upper = min(tree.upper, float(met[0]))
        tree.push(_Node(max(parent.bound, float(relaxed.bound[0])), cell, relaxed, linear))
