"""From cheap bounds to good ones: what fixed lines leave open is attacked, relaxed and branched on.

A *pair* is a row and one function that bounds its margin: f or −f for two classes, the error on either side for a
regressor, f_y − f_j for each other class j, as one function of the neurons they share. Only pairs that can still change
what is known of their row are worked on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from fewfire.robustness._branch import branch, descend
from fewfire.robustness._relaxation import Cells, first_multipliers, improve

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._bounds import NeuronRanges, ReluNetwork
    from fewfire.robustness._branch import BranchSearch
    from fewfire.robustness._relaxation import Inner, Relaxed
    from fewfire.robustness._threats import Threat

RefineMethod: TypeAlias = Literal["alpha", "sdp", "branch"]
LARGEST: Final = 512
"""Inputs up to which parabolas are tried unasked: every step factorises a matrix of this order."""
CELLS: Final = 1 << 21
"""Weights of all cells relaxed at once, which bounds the memory."""
ATTACK_STEPS: Final = 20
SCHEDULE: Final = {"alpha": ((60, 0.1),), "sdp": ((80, 0.2), (160, 0.05))}
"""Iterations of Adam and their rate, one after the other, as long as a cell is open."""


@dataclass(eq=False)
class Pairs:
    """What is known of pairs: arrays of shape (pairs,).

    Parameters
    ----------
    row, function : int arrays
        Which row, which of the functions.
    constant : array
        Added to the function.
    lower : array
        Proved.
    bound : array of str
        By which bound.
    undecided : int array
        Open neurons.
    nodes : int array
        Of branch and bound.
    """

    row: AnyArray
    function: AnyArray
    constant: Float64Array
    lower: Float64Array
    bound: AnyArray
    undecided: AnyArray
    nodes: AnyArray


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows, the functions of them and the ranges of their neurons.

    Parameters
    ----------
    functions : networks on the same neurons
    points : array of shape (rows, d)
    ranges : NeuronRanges
        Of all those neurons.
    threat : Threat
    """

    functions: tuple[ReluNetwork, ...]
    points: Float64Array
    ranges: NeuronRanges
    threat: Threat

    def cells(self, pairs: Pairs, chosen: AnyArray) -> Cells:
        """The problems of some pairs, sure neurons taken into the slope."""
        some, ranges = [self._cell(pairs, int(i)) for i in chosen], self.ranges
        row = pairs.row[chosen]
        tau = self.functions[0].threshold
        most = max((len(item[0]) for item in some), default=0)
        shape = (len(some), most)
        weights = np.zeros((*shape, self.points.shape[1]))
        output, centre, low, high = (np.zeros(shape) for _ in range(4))
        silent, active = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
        centre -= 1.0  # what pads is silent and cannot move
        for k, (neurons, net, *_) in enumerate(some):
            n, i = len(neurons), row[k]
            weights[k, :n], output[k, :n] = net.hidden[neurons], net.output[neurons]
            centre[k, :n] = ranges.centre[i, neurons]
            low[k, :n], high[k, :n] = (end[i, neurons] - centre[k, :n] for end in (ranges.low, ranges.high))
            active[k, :n] = True
        eye = np.eye(self.points.shape[1])
        points = self.points[row]
        down, up = self.threat.take(row).span(eye, points)
        down, up = np.minimum(down, 0.0) * (1 + 1e-12), np.maximum(up, 0.0) * (1 + 1e-12)
        movable = up > down
        radius = np.full(len(some), self.threat.reach(self.points.shape[1]) * (1 + 1e-12))
        return Cells(
            row=row,
            value=np.array([item[2] for item in some]) + pairs.constant[chosen],
            slope=np.array([item[3] for item in some]) * movable,
            weights=weights * movable[:, None, :],
            output=output,
            centre=centre,
            low=low,
            high=high,
            silent=silent,
            active=active,
            threshold=np.full(len(some), tau),
            down=down,
            up=up,
            radius=radius,
            size=np.array([item[4] for item in some]) + np.abs(pairs.constant[chosen]),
        )

    def _cell(self, pairs: Pairs, i: int) -> tuple[AnyArray, ReluNetwork, float, Float64Array, float]:
        """Open neurons, the function, its value and slope without them, and the size of what was added up."""
        net, row, ranges = self.functions[pairs.function[i]], pairs.row[i], self.ranges
        used = net.output != 0.0
        sure, silent = ranges.low[row] > net.threshold, ranges.high[row] <= net.threshold
        gain = np.where(sure & used, net.output, 0.0)
        value, slope = float(gain @ ranges.centre[row]) + net.offset, gain @ net.hidden
        size = float(np.abs(net.output[~silent]) @ ranges.terms[row, ~silent]) + abs(net.offset)
        if net.linear is not None:
            value, slope = value + float(net.linear @ self.points[row]), slope + net.linear
            size += float(np.abs(net.linear) @ np.abs(self.points[row]))
        return np.flatnonzero(used & ~sure & ~silent), net, value, slope, size

    def inner(self) -> Inner:
        """The exact minimum of linear functions over the threat, and where it is."""

        def least(weights: Float64Array, row: AnyArray) -> tuple[Float64Array, Float64Array]:
            centres, threat = self.points[row], self.threat.take(row)
            return threat.row_span(weights, centres)[0], threat.extreme(-weights, centres) - centres

        return least


def refine(
    block: RowBlock,
    pairs: Pairs,
    upper: Float64Array,
    method: RefineMethod,
    search: BranchSearch,
    progress: Callable[[], None] = lambda: None,
) -> None:
    """Improve the bounds of pairs and `upper`, the least values met per row (rows,), in place."""
    lines = block.inner()
    for part in _parts(block, pairs, _matters(pairs, np.arange(len(pairs.row)), upper, search), 256):
        cells = block.cells(pairs, part)
        _meet(block, cells, np.zeros_like(cells.down), ATTACK_STEPS, upper)
    for part in _parts(block, pairs, _matters(pairs, np.arange(len(pairs.row)), upper, search), 64):
        chosen = _matters(pairs, part, upper, search)
        if chosen.size:
            cells = block.cells(pairs, chosen)
            curved = method == "sdp" or (method != "alpha" and cells.down.shape[1] <= LARGEST)
            relaxed = _relax(block, cells, pairs, chosen, upper, ("alpha", "sdp")[: 1 + curved], search)
            left = np.isin(chosen, _matters(pairs, chosen, upper, search))
            if method == "branch" and left.any():
                some, cells, relaxed = chosen[left], cells.take(left), relaxed.take(left)
                found = branch(
                    cells, relaxed, upper[cells.row], block.points, block.threat, search, lines, curved=curved
                )
                _enter(pairs, some, found.lower, "branch")
                pairs.nodes[some] = found.nodes
                np.minimum.at(upper, cells.row, found.upper)
        progress()


def _parts(block: RowBlock, pairs: Pairs, chosen: AnyArray, count: int) -> list[AnyArray]:
    """Pairs with similar numbers of open neurons together, `count` at a time or as many as memory allows."""
    order = chosen[np.argsort(pairs.undecided[chosen], kind="stable")]
    parts, end = [], len(order)
    while end > 0:  # from the largest, which decides how many fit
        fit = CELLS // max(1, block.points.shape[1] * int(pairs.undecided[order[end - 1]]))
        start = max(0, end - max(1, min(count, fit)))
        parts.append(order[start:end])
        end = start
    return parts[::-1]


def _relax(
    block: RowBlock,
    cells: Cells,
    pairs: Pairs,
    chosen: AnyArray,
    upper: Float64Array,
    names: tuple[str, ...],
    search: BranchSearch,
) -> Relaxed:
    """Bounds by lines and then by parabolas, entered in pairs; the last relaxation of every cell."""
    lines, state = block.inner(), None
    for name in names:
        state, now = None, np.arange(len(cells))
        for iterations, rate in SCHEDULE[name]:
            some = cells.take(now)
            start = first_multipliers(some) if state is None else state.multipliers.take(now)
            enough = np.array([search.enough(float(upper[row])) for row in some.row])
            found = improve(some, start, iterations, rate, enough, lines if name == "alpha" else None)
            _meet(block, some, found.move, 5, upper)
            _enter(pairs, chosen[now], found.bound, name)
            state = found if state is None else state.put(now, found)
            now = np.flatnonzero(np.isin(chosen, _matters(pairs, chosen, upper, search)))
            if not now.size:
                break
    assert state is not None
    return replace(state, bound=pairs.lower[chosen])


def _meet(block: RowBlock, cells: Cells, move: Float64Array, steps: int, upper: Float64Array) -> None:
    met = descend(cells, block.points, block.threat, move, steps)
    np.minimum.at(upper, cells.row, met)


def _enter(pairs: Pairs, chosen: AnyArray, lower: Float64Array, name: str) -> None:
    better = lower > pairs.lower[chosen]
    pairs.lower[chosen[better]], pairs.bound[chosen[better]] = lower[better], name


def _matters(pairs: Pairs, chosen: AnyArray, upper: Float64Array, search: BranchSearch) -> AnyArray:
    """Those of the chosen pairs of which a better bound could change what is known of their row."""
    lower, least = pairs.lower[chosen], upper[pairs.row[chosen]]
    matters = (pairs.undecided[chosen] > 0) & (least - lower > search.gap)
    if search.decide:
        matters &= (lower <= 0.0) & (least > 0.0)
    return chosen[matters]
