"""Certificates of several hidden layers of ReLUs: lines for all layers but the first, then all there is for one.

A *cell* is a row, a function ⟨a, σ(z_L)⟩ + c of its last hidden layer that is to be proved large, and ranges [l, u] of
all neurons over the part of the adversary's set that is looked at. From the last layer down, g·σ(z) of a neuron with
l < 0 < u is bounded from below by a line: g·u(z − l)/(u − l) for g < 0, g·αz with any 0 ≤ α ≤ 1 for g > 0 (CROWN). So

    f(x) ≥ constant + Σ_r g_r σ(z_r(x)) over the first layer's neurons,

which is one hidden layer, that `_relaxation` bounds by parabolas, or ≥ constant + ⟨v, x⟩ where the first layer gets
lines too. Ranges of the layers after the first are bounds by lines of the same kind. A neuron that branching has put on
a side is linear there, and the side adds β·z with β ≥ 0 where z ≤ 0 and β ≤ 0 where z ≥ 0 (β-CROWN). α and β are
improved by Adam; the gradient takes one pass forward from the minimiser. A cell without undecided neurons is linear,
with a half-space per side taken, and solved as `_branch` solves such a cell: the search is complete where nodes last.

All weights from one layer to the next are sums of products that round. With s_1 the largest |terms| of the first layer
and s_{k+1} = s_k|W| + |b|, no term of any bound is above |a|·s_L, or |β|·s: bounds are lowered by a share of their sum.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fewfire._dense.kernels import adamw_step
from fewfire._dense.optimisers import adam_rates
from fewfire.robustness._bounds import ROUNDING, neuron_ranges
from fewfire.robustness._branch import BranchSearch, Node, Tree, descend, grow, polish
from fewfire.robustness._certify import CELLS, LARGEST, Pairs, enter, least_linear, make_cells, matters
from fewfire.robustness._relaxation import BETAS, EPSILON, TINY, CellArrays, Relaxed, first_multipliers, improve
from fewfire.robustness._threats import box_span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._certify import RefineMethod
    from fewfire.robustness._formula import Layers
    from fewfire.robustness._threats import Threat

    Trace = list[tuple[Float64Array, Float64Array, Float64Array]]

RATE: Final = 0.1
ITERATIONS: Final = 40, 16  # of Adam on α and β, for a pair and for a node of branch and bound
CURVED: Final = ((80, 0.2), (24, 0.05))  # the same on the first layer's parabolas, with its rate
TOGETHER: Final = 64  # problems improved at a time
NODES: Final = 8  # split at a time


@dataclass(frozen=True, eq=False)
class DeepCells(CellArrays):
    """Problems of one network; neurons of all hidden layers are side by side, N of them."""

    row: AnyArray  # (cells,): which centre
    output: Float64Array  # (cells, neurons of the last hidden layer): a
    value: Float64Array  # (cells,): c
    low: Float64Array  # (cells, N): ranges of preactivations; one ends at 0 where a side has been taken
    high: Float64Array
    side: AnyArray  # (cells, N): −1 silent and 1 active by branching, 0 otherwise
    slope: Float64Array  # (cells, N): α
    push: Float64Array  # (cells, N): β, 0 where no side has been taken

    @property
    def undecided(self) -> AnyArray:
        """Neurons that may be on both sides, shape (cells, N)."""
        return (self.low < 0.0) & (self.high > 0.0)

    def proved(self, bound: Float64Array) -> Float64Array:
        """The bound, infinite for cells that hold no point."""
        return np.where((self.low > self.high).any(axis=1), np.inf, bound)


class DeepBlock:
    """Rows of one network with several hidden layers, and the ranges of all their neurons."""

    def __init__(self, network: Layers, functions: tuple[Layers, ...], points: Float64Array, threat: Threat) -> None:
        self.network, self.functions, self.points, self.threat = network, functions, points, threat
        self.outputs = np.stack([net.weights[-1][:, 0] for net in functions])
        self.offsets = np.array([net.offset for net in functions])
        widths = [len(bias) for bias in network.biases[:-1]]
        last = np.eye(widths[-1]), np.zeros(widths[-1])
        self.hidden = replace(network, weights=(*network.weights[:-1], last[0]), biases=(*network.biases[:-1], last[1]))
        self.parts = [slice(*ends) for ends in pairwise(np.cumsum([0, *widths]).tolist())]
        self.first, self.least = neuron_ranges(network, points, threat), least_linear(threat, points)
        size = [self.first.terms + np.maximum(np.abs(self.first.low), np.abs(self.first.high))]
        for matrix, bias in zip(network.weights[1:-1], network.biases[1:-1], strict=True):
            size.append(size[-1] @ np.abs(matrix) + np.abs(bias))
        self.size = np.concatenate(size, axis=1)
        self.share = len(widths) * max(ROUNDING, 4.0 * EPSILON * (sum(widths) + network.inputs))
        none = np.full((len(points), sum(widths[1:])), np.inf)
        ends = np.hstack([self.first.low, -none]), np.hstack([self.first.high, none])
        self.low, self.high = self.ranges(np.arange(len(points)), *ends)

    def cells(self, row: AnyArray, function: AnyArray, constant: Float64Array | float) -> DeepCells:
        """The problems of rows and functions, over the whole set."""
        low, high = self.low[row], self.high[row]
        none, value = np.zeros_like(low), self.offsets[function] + constant
        return DeepCells(
            row, self.outputs[function], value, low, high, none.astype(np.int8), np.where(high > -low, 1.0, 0.0), none
        )

    def lower_bounds(self, function: int, rows: AnyArray) -> tuple[Float64Array, AnyArray]:
        """As of one hidden layer: by lines above 0 where a neuron is mostly active, and by none."""
        cells = self.cells(rows, np.full(len(rows), function), 0.0)
        relaxed, none = self.lines(cells)[0], np.full(len(rows), -np.inf)
        floor = self.lines(replace(cells, slope=np.zeros_like(cells.slope)))[0]
        return np.stack([none, none, relaxed, floor]), np.count_nonzero(cells.undecided, axis=1)

    def ranges(self, row: AnyArray, low: Float64Array, high: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Ranges (cells, N) within those known, layer by layer from the first."""
        low, high = low.copy(), high.copy()
        for k, (before, part) in enumerate(pairwise(self.parts), 1):
            matrix, bias = self.network.weights[k], self.network.biases[k]
            slack = self.share * (1.0 + self.size[row, part])
            least, most = box_span(matrix.T, np.maximum(low[:, before], 0.0), np.maximum(high[:, before], 0.0))
            low[:, part] = np.maximum(low[:, part], least + bias - slack)
            high[:, part] = np.minimum(high[:, part], most + bias + slack)
            fixed, many = np.where(high > -low, 1.0, 0.0), matrix.shape[1]
            for sign, known in ((1.0, low), (-1.0, high)):
                gain = np.broadcast_to(sign * matrix.T, (len(row), *matrix.T.shape))
                weights, constant, _ = self._backward(gain, sign * bias, low, high, fixed, None, k - 1)
                again = np.repeat(row, many)
                fall = self.threat.take(again).row_span(weights.reshape(len(again), -1), self.points[again])[0]
                bound = constant + np.einsum("imd,id->im", weights, self.points[row]) + fall.reshape(-1, many) - slack
                known[:, part] = np.maximum(low[:, part], bound) if sign > 0 else np.minimum(high[:, part], -bound)
        return low, high

    def _backward(
        self,
        gain: Float64Array,
        constant: Any,
        low: Float64Array,
        high: Float64Array,
        slope: Float64Array,
        push: Float64Array | None,
        top: int,
        bottom: int = 0,
    ) -> tuple[Float64Array, Float64Array, Trace]:
        """Weights and constants below ⟨gain, σ(z)⟩ of hidden layer `top`, for gain (cells, m, neurons).

        The weights are of the inputs, or of σ of the layer before `bottom`; the trace has gain, slope and bend of every
        layer that lines have replaced, the last one first.
        """
        trace = []
        for k in range(top, bottom - 1, -1):
            part = self.parts[k]
            least, most = low[:, None, part], high[:, None, part]
            both = (least < 0.0) & (most > 0.0)
            chord = np.where(both, most / np.where(both, most - least, 1.0), least >= 0.0)
            use = np.where(both & (gain >= 0.0), slope[:, None, part], chord)
            bend = np.where(both & (gain < 0.0), -chord * least, 0.0)
            trace.append((gain, use, bend))
            weights = gain * use if push is None else gain * use + push[:, None, part]
            constant = constant + (gain * bend).sum(axis=2) + weights @ self.network.biases[k]
            gain = weights @ self.network.weights[k].T
        return gain, constant, trace

    def below(self, cells: DeepCells, bottom: int = 0) -> tuple[Float64Array, Float64Array, Trace]:
        """Weights (cells, ·) and constants (cells,) below the cells' functions, and the trace without m."""
        state = cells.low, cells.high, cells.slope, cells.push, len(self.parts) - 1, bottom
        weights, constant, trace = self._backward(cells.output[:, None], cells.value[:, None], *state)
        return weights[:, 0], constant[:, 0], [(g[:, 0], u[:, 0], b[:, 0]) for g, u, b in trace]

    def slack(self, cells: DeepCells) -> Float64Array:
        """What rounding can take away from a bound of cells, (cells,)."""
        size = self.size[cells.row]
        terms = (np.abs(cells.output) * size[:, self.parts[-1]]).sum(axis=1) + (np.abs(cells.push) * size).sum(axis=1)
        return np.asarray(self.share * (1.0 + np.abs(cells.value) + terms))

    def lines(self, cells: DeepCells) -> tuple[Float64Array, Float64Array, Trace]:
        """Bounds (cells,) by the cells' lines, the moves (cells, d) at which they are least, and the trace."""
        weights, constant, trace = self.below(cells)
        fall, move = self.least(weights, cells.row)
        value = constant + (weights * self.points[cells.row]).sum(axis=1) + fall
        return cells.proved(value - self.slack(cells) - self.share * np.abs(fall)), move, trace

    def improve(
        self, cells: DeepCells, iterations: int, enough: Float64Array
    ) -> tuple[DeepCells, Float64Array, Float64Array]:
        """Cells with better α and β, their bounds (cells,) and moves (cells, d); ends where all bounds are enough."""
        best, now, memory = cells, cells, np.zeros((2, 2, *cells.slope.shape))  # Adam's, of α and of β
        bound, moves, _ = self.lines(cells)
        for step in range(iterations):
            found, move, trace = self.lines(now)
            better = found > bound
            bound, moves = np.maximum(bound, found), np.where(better[:, None], move, moves)
            best = best.put(better, now.take(better))
            if (bound > enough).all():
                break
            values, scale = self.points[cells.row] + move, np.zeros_like(cells.slope)
            gradients, steps = np.zeros((2, *scale.shape)), np.zeros((2, *scale.shape))  # one pass forward on the lines
            for k, (gain, use, bend) in enumerate(trace[::-1]):
                part, z = self.parts[k], values @ self.network.weights[k] + self.network.biases[k]
                gradients[0][:, part] = np.where(cells.undecided[:, part], np.maximum(gain, 0.0) * z, 0.0)
                gradients[1][:, part] = np.where(cells.side[:, part] != 0, z, 0.0)
                scale[:, part] = np.abs(gain).max(axis=1, keepdims=True)
                values = use * z + bend
            rate, tiny = adam_rates(RATE * 0.97**step, BETAS, step + 1, TINY)
            for moved, gradient, means in zip(steps, gradients, memory, strict=True):
                adamw_step(moved, gradient, means[0], means[1], rate, 0.0, *BETAS, tiny)
            push = now.push - scale * steps[1]
            push = np.where(cells.side < 0, np.maximum(push, 0.0), np.minimum(push, 0.0) * (cells.side > 0))
            now = replace(now, slope=np.clip(now.slope - steps[0], 0.0, 1.0), push=push)
        return best, bound, moves

    def curved(
        self, cells: DeepCells, schedule: tuple[int, float], enough: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Bounds (cells,) with the first layer bounded by parabolas, and moves (cells, d)."""
        gain, constant, _ = self.below(cells, 1)
        return self._by_parabolas(cells, gain, constant, self.slack(cells), schedule, enough)

    def _by_parabolas(
        self,
        cells: DeepCells,
        gain: Float64Array,
        constant: Float64Array,
        slack: Float64Array,
        schedule: tuple[int, float],
        enough: Float64Array | float,
    ) -> tuple[Float64Array, Float64Array]:
        """Bounds on constant + ⟨gain, σ⟩ of the first layer, and moves."""
        part, z = self.parts[0], self.first.centre[cells.row]
        low, high, side = (table[:, part] for table in (cells.low, cells.high, cells.side))
        still_open = cells.undecided[:, part] | (side != 0)
        index = np.argsort(~still_open, axis=1, kind="stable")[:, : still_open.sum(axis=1).max(initial=0)]
        taken = np.take_along_axis(still_open, index, axis=1)

        def of(table: Any, padding: Any) -> Any:
            return np.where(taken, np.take_along_axis(table, index, axis=1), padding)

        straight = np.where(~still_open & (low >= 0.0), gain, 0.0)
        value, weights = constant + (straight * z).sum(axis=1), self.network.hidden[index] * taken[:, :, None]
        ends, sides = (of(low - z, 0.0), of(high - z, 0.0)), (of(side <= 0, True), of(side >= 0, False))
        slope, size = straight @ self.network.hidden, slack / ROUNDING
        made = make_cells(
            self.threat, self.points, cells.row, value, slope, weights, of(gain, 0.0), of(z, -1.0), *ends, *sides, size
        )
        found = improve(made, first_multipliers(made), *schedule, enough)
        return cells.proved(found.bound), found.move

    def tighten(self, rows: AnyArray) -> None:
        """Narrower ranges of the neurons after the first layer that some rows leave undecided, by parabolas."""
        for k, part in enumerate(self.parts[1:], 1):
            place, neuron = np.nonzero((self.low[rows, part] < 0.0) & (self.high[rows, part] > 0.0))
            for start in range(0, len(place), TOGETHER):
                row, r = rows[place[start : start + TOGETHER]], neuron[start : start + TOGETHER]
                cells, at = self.cells(row, np.zeros_like(row), 0.0), part.start + r
                slack = self.share * (1.0 + self.size[row, at])
                for sign, ends, tighter in ((1.0, self.low, np.maximum), (-1.0, self.high, np.minimum)):
                    gain, bias = (sign * self.network.weights[k].T[r])[:, None], sign * self.network.biases[k][r, None]
                    below = self._backward(gain, bias, cells.low, cells.high, cells.slope, None, k - 1, 1)
                    bound, _ = self._by_parabolas(cells, below[0][:, 0], below[1][:, 0], slack, CURVED[0], 0.0)
                    ends[row, at] = tighter(ends[row, at], sign * bound)
            self.low[rows], self.high[rows] = self.ranges(rows, self.low[rows], self.high[rows])

    def _solved(self, cell: DeepCells, bound: float, enough: float) -> tuple[float, Float64Array]:
        """A better bound of one cell without undecided neurons, a linear program in its half-spaces, and its move."""
        fires, taken, row = cell.low[0] >= 0.0, np.flatnonzero(cell.side[0]), cell.row[0]
        matrix, z = self.network.weights[0], self.first.centre[row]
        rows, values = [matrix.T], [z]
        for part, weights, bias in zip(self.parts, self.network.weights[1:-1], self.network.biases[1:-1], strict=False):
            matrix, z = (matrix * fires[part]) @ weights, (z * fires[part]) @ weights + bias
            rows.append(matrix.T)
            values.append(z)
        side, room = cell.side[:, taken], self.share * (1.0 + self.size[row, taken])
        own = np.concatenate(values)[None, taken] + side * room  # half-spaces are moved outwards by their rounding
        ends = cell.low[:, taken] - own - 2.0 * room, cell.high[:, taken] - own + 2.0 * room
        output, none = cell.output * fires[self.parts[-1]], np.zeros((1, len(taken)))
        shape = np.vstack(rows)[None, taken], none, own, *ends, side < 0, side > 0, self.slack(cell) / ROUNDING
        linear = make_cells(self.threat, self.points, cell.row, cell.value + output @ z, output @ rows[-1], *shape)
        here = np.zeros((1, self.points.shape[1]))
        found = polish(linear, Relaxed(none, none, here, np.zeros(1), np.array([bound]), here), self.least, enough)
        return float(found.bound[0]), found.move

    def descend(self, cells: DeepCells, move: Float64Array, steps: int) -> Float64Array:
        """The least values met by projected descent from x₀ + move, shape (cells,)."""
        centres = self.points[cells.row]
        walked: Any = SimpleNamespace(
            row=cells.row,
            at=lambda moved: cells.value + (cells.output * self.hidden.scores(centres + moved)).sum(axis=1),
            gradient=lambda moved: self.hidden.linearise(centres + moved)[1](cells.output),
        )
        return descend(walked, self.points, self.threat, move, steps)

    def branch(
        self, cells: DeepCells, lower: Float64Array, upper: Float64Array, search: BranchSearch, curved: bool
    ) -> tuple[AnyArray, ...]:
        """As `branch` of one hidden layer: lower bounds, least values met and nodes bounded of every cell."""
        trees = [Tree(float(low), float(high)) for low, high in zip(lower, upper, strict=True)]
        for i, tree in enumerate(trees):
            cell = cells.take(slice(i, i + 1))
            tree.push(Node(tree.lower, cell, None, not cell.undecided.any()))

        def bound(some: list[Tree]) -> None:
            work = [(tree, *item) for tree in some for item in self._split(tree, max(1, NODES // len(some)))]
            joined = DeepCells.joined([cell for _, _, cell in work])
            low, high = self.ranges(joined.row, joined.low, joined.high)
            enough = np.array([search.enough(tree.upper) for tree, _, _ in work])
            joined, found, moves = self.improve(replace(joined, low=low, high=high), ITERATIONS[1], enough)
            left = np.flatnonzero(found <= enough)
            if curved and left.size:
                better, where = self.curved(joined.take(left), CURVED[1], enough[left])
                gain = better > found[left]
                found[left[gain]], moves[left[gain]] = better[gain], where[gain]
            met = self.descend(joined, moves, 3)
            for i, (tree, parent, _) in enumerate(work):
                cell, value = joined.take(slice(i, i + 1)), float(found[i])
                linear = not cell.undecided.any()
                if linear and value <= enough[i]:
                    value, move = self._solved(cell, value, float(enough[i]))
                    met[i] = min(met[i], self.descend(cell, move, 3)[0])
                tree.upper = min(tree.upper, float(met[i]))
                tree.push(Node(max(parent.bound, value), cell, None, linear))

        grow(trees, search, bound)
        return tuple(np.array([getattr(tree, name) for tree in trees]) for name in ("lower", "upper", "nodes"))

    def _split(self, tree: Tree, count: int) -> Iterator[tuple[Node, DeepCells]]:
        """Halves of the tree's lowest nodes, with the neuron whose line loses most silent, and active."""
        for _ in range(count):
            if not tree.heap or tree.heap[0][2].linear:
                return
            node = heapq.heappop(tree.heap)[2]
            cell = node.cell
            gains = np.concatenate([gain for gain, _, _ in self.below(cell)[2][::-1]], axis=1)
            room = cell.high * -cell.low / np.where(cell.undecided, cell.high - cell.low, 1.0)
            worst = int(np.where(cell.undecided, np.abs(gains) * room, -1.0)[0].argmax())
            for side, end in ((-1, "high"), (1, "low")):
                sides, ends = cell.side.copy(), getattr(cell, end).copy()
                sides[0, worst], ends[0, worst] = side, 0.0
                yield node, replace(cell, side=sides, **{end: ends})

    def refine(self, pairs: Pairs, upper: Float64Array, method: RefineMethod, search: BranchSearch) -> Iterator[None]:
        """As of one hidden layer."""
        count = max(1, min(TOGETHER, CELLS // self.network.weights[0].size))
        all_pairs, curved = (
            np.arange(len(pairs.row)),
            method != "alpha" and (method == "sdp" or self.points.shape[1] <= LARGEST),
        )
        for attacked in (True, False):
            worked_on = matters(pairs, all_pairs, upper, search)
            for start in range(0, len(worked_on), count):
                chosen = matters(pairs, worked_on[start : start + count], upper, search)
                pair = pairs.row[chosen], pairs.function[chosen], pairs.constant[chosen]
                cells = self.cells(*pair)
                if attacked:
                    still = np.zeros((len(chosen), self.points.shape[1]))
                    np.minimum.at(upper, cells.row, self.descend(cells, still, 20))
                    continue
                for stage in range(3 if curved else 1):  # lines, parabolas, and these within ranges by parabolas
                    now = np.flatnonzero(np.isin(chosen, matters(pairs, chosen, upper, search)))
                    if not now.size:
                        break
                    if stage == 2:
                        self.tighten(np.unique(cells.row[now]))
                        cells = self.cells(*pair)
                    some = cells.take(now)
                    enough = np.array([search.enough(float(upper[row])) for row in some.row])
                    if stage != 1:
                        some, found, moves = self.improve(some, ITERATIONS[0], enough)
                        cells = cells.put(now, some)
                        enter(pairs, chosen[now], found, "sdp" if stage else "alpha")
                    if stage:
                        found, moves = self.curved(some, CURVED[0], enough)
                        enter(pairs, chosen[now], found, "sdp")
                    np.minimum.at(upper, some.row, self.descend(some, moves, 5))
                left = np.isin(chosen, matters(pairs, chosen, upper, search))
                if method == "branch" and left.any():
                    cells, rest = cells.take(left), chosen[left]
                    known = self.branch(cells, pairs.lower[rest], upper[cells.row], search, curved)
                    enter(pairs, rest, known[0], "branch")
                    np.minimum.at(upper, cells.row, known[1])
                    pairs.nodes[rest] = known[2]
                yield
