"""Gradient boosting of trees on binned columns: bins, the booster in C++ (csrc/core/boosting.hpp), and its NumPy twin.

Columns are binned once for all folds. Every round grows one tree per output along the slopes of the loss (Friedman
2001); the leaf whose best split gains most is split next, and tries a random part of the columns of its own (as
scikit-learn's and LightGBM's boosting of histograms do; Ke et al. 2017). Missing values go where the gain is larger.
Slopes and curvatures are rounded to whole numbers, whose sums are exact (as in quantised training, Shi et al. 2022, but
to 30 bits rather than a few).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from fewfire import _extension
from fewfire.tabular._flat_trees import FlatTrees, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.tabular._network import TabularLoss

LEAST_GAIN, LEAST_CURVATURE, LEAST_CHANCE = 1e-7, 1e-3, 1e-12


@dataclass(frozen=True)
class BoostingRule:
    """Leaves of a tree at most, rows of a leaf at least, bins of a column at most, the share of columns tried."""

    leaves: int
    least_rows: int
    learning_rate: float
    bins: int = 255
    l2: float = 1.0
    share: float = 0.5


class BinnedRows(NamedTuple):
    """Bins (columns, rows) of a narrowed table, the last of each column for missing values, and their upper edges."""

    bins: NDArray[np.uint8]
    counts: NDArray[np.int64]
    edges: list[FloatArray]


def binned(table: FloatArray, most: int) -> BinnedRows:
    """A narrowed table (rows, columns) in at most `most` bins per column: its distinct values, or equally full ones."""
    bins, edges = np.empty(table.shape[::-1], np.uint8), []
    for place, column in enumerate(np.ascontiguousarray(table.T)):
        known = np.sort(column)  # NaN come last
        known = known[: np.searchsorted(known, np.float32(np.inf), "right")]
        distinct = known[np.append(True, known[1:] != known[:-1])] if len(known) else known
        if len(distinct) > most:
            upper = np.unique(known[np.arange(1, most) * (len(known) - 1) // most])
        else:
            upper = distinct[:-1] / 2 + distinct[1:] / 2
        bins[place] = np.searchsorted(upper, column)
        if len(known) < len(column):
            bins[place, np.isnan(column)] = len(upper) + 1
        edges.append(np.append(upper, np.float32(np.inf)).astype(np.float32))
    return BinnedRows(bins, np.array([len(upper) + 1 for upper in edges], np.int64), edges)


def beside(pieces: Sequence[BinnedRows]) -> BinnedRows:
    """Columns of the same rows, binned piece by piece, as one table."""
    bins, counts = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("bins", "counts"))
    return BinnedRows(bins, counts, [edges for piece in pieces for edges in piece.edges])


class BoostedTrees(NamedTuple):
    """What was grown: forks with bins for thresholds, roots, where the forks of each tree end, leaves, the baseline."""

    forks: NDArray[np.int32]
    roots: NDArray[np.int32]
    ends: NDArray[np.int32]
    values: FloatArray
    baseline: Float64Array


class Booster:
    """One model in the making.

    Parameters
    ----------
    table : BinnedRows
    target, weight : arrays (rows, outputs) and (rows,), float32
    loss : str
    rows, held : arrays
        Numbers of the rows to train on, and of those to be judged by.
    rule : BoostingRule
    seed : int
    """

    def __init__(
        self,
        table: BinnedRows,
        target: FloatArray,
        weight: FloatArray,
        loss: TabularLoss,
        rows: IdArray,
        held: IdArray,
        rule: BoostingRule,
        seed: int,
    ) -> None:
        self._edges, self._outputs = table.edges, target.shape[1]
        core = _extension.core()
        if core is None:
            self._grower: Any = NumpyBooster(table, target, weight, loss, rows, held, rule, seed)
        else:
            ids = rows.astype(np.int32), held.astype(np.int32)
            sizes = rule.leaves, rule.least_rows, rule.learning_rate, rule.l2, rule.share
            self._grower = core.Booster(table.bins, table.counts, target, weight, loss, *ids, *sizes, seed)

    def advance(self, rounds: int) -> Float64Array:
        """Go on for so many rounds; the sum of the losses of the held-out rows after each (rounds,)."""
        losses = np.empty(rounds)
        self._grower.advance(losses)
        return losses

    def trees(self, rounds: int) -> tuple[FlatTrees, Float64Array]:
        """The trees of the first rounds, and what is said without them (outputs,)."""
        grown, count = self._grown(), rounds * self._outputs
        end = int(grown.ends[count - 1])
        forks = grown.forks[:end].copy()
        starts = np.cumsum([0, *map(len, self._edges)])[:-1]
        places = starts[forks[:, 0] >> 1] + forks[:, 1].view(np.float32).astype(np.int64)
        forks[:, 1] = np.concatenate(self._edges)[places].view(np.int32)
        first = np.tile(np.arange(self._outputs, dtype=np.int32), rounds)
        return FlatTrees(forks, grown.roots[:count], first, grown.values[: end + count, None]), grown.baseline

    def _grown(self) -> BoostedTrees:
        forks, trees = self._grower.forks, self._grower.trees
        places = np.empty((forks, 4), np.int32), np.empty(trees, np.int32), np.empty(trees, np.int32)
        grown = BoostedTrees(*places, np.empty(forks + trees, np.float32), np.empty(self._outputs))
        self._grower.write(*grown)
        return grown


def chances(loss: TabularLoss, outputs: Float64Array) -> Float64Array:
    """Chances of all classes (rows, classes) that outputs (rows, outputs) stand for; numbers stay.

    A class that a model has not seen begins at LEAST_CHANCE and stays there; its chance is 0.
    """
    if loss == "squared":
        return outputs
    found = np.hstack([expit(-outputs), expit(outputs)]) if loss == "logistic" else softmax(outputs, axis=1)
    found[found < 10 * LEAST_CHANCE] = 0.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def held_losses(loss: TabularLoss, outputs: Float64Array, target: FloatArray) -> Float64Array:
    """What boosting is judged by, row by row."""
    if loss == "squared":
        return np.asarray(((outputs - target) ** 2).mean(axis=1))
    if loss == "logistic":
        return np.asarray(np.logaddexp(0, outputs) - target * outputs)[:, 0]
    return np.asarray(np.logaddexp.reduce(outputs, axis=1) - (target * outputs).sum(axis=1))


class _Leaf:
    """Rows (numbers of training rows), sums of slopes, curvatures and rows, the same by bin, the best split."""

    def __init__(self, rows: IdArray, sums: Float64Array, fork: int, right: bool, number: int) -> None:
        self.rows, self.sums, self.fork, self.right, self.number = rows, sums, fork, right, number
        self.by_bin = np.zeros(0)
        self.gain, self.column, self.bin, self.missing_left, self.left = 0.0, 0, 0, False, sums


class NumpyBooster:
    """The twin of the C++ booster; parameters as of `Booster`."""

    def __init__(
        self,
        table: BinnedRows,
        target: FloatArray,
        weight: FloatArray,
        loss: TabularLoss,
        rows: IdArray,
        held: IdArray,
        rule: BoostingRule,
        seed: int,
    ) -> None:
        self.rule, self.seed, self.loss = rule, np.uint64(seed), loss
        self.counts, self.offsets = table.counts, np.cumsum(table.counts) - table.counts
        self.bins, self.held_bins = table.bins[:, rows].T.astype(np.int64), table.bins[:, held].T.astype(np.int64)
        self.target, self.held_target = target[rows], target[held]
        self.weight, self.held_weight = weight[rows], weight[held]
        mean = np.average(self.target, axis=0, weights=self.weight.astype(np.float64))
        if loss == "logistic":
            mean = np.log(np.maximum(mean, LEAST_CHANCE) / np.maximum(1 - mean, LEAST_CHANCE))
        elif loss == "cross_entropy":
            mean = np.log(np.maximum(mean, LEAST_CHANCE))
        self.baseline: Float64Array = np.asarray(mean, np.float64)
        self.said: Float64Array = np.tile(mean, (len(rows), 1))
        self.held_said: Float64Array = np.tile(mean, (len(held), 1))
        self.all_forks: list[list[float]] = []
        self.roots: list[int] = []
        self.ends: list[int] = []
        self.values: list[float] = []

    @property
    def forks(self) -> int:
        """How many."""
        return len(self.all_forks)

    @property
    def trees(self) -> int:
        """How many."""
        return len(self.roots)

    def advance(self, losses: Float64Array) -> None:
        """Fill in the losses of as many rounds."""
        for round_ in range(len(losses)):
            parts = self._parts()
            for output in range(self.target.shape[1]):
                self._grow(output, parts[output])
            judged = held_losses(self.loss, self.held_said, self.held_target)
            losses[round_] = float(judged @ self.held_weight)

    def write(self, forks: AnyArray, roots: AnyArray, ends: AnyArray, values: AnyArray, baseline: AnyArray) -> None:
        """Fill in what was grown."""
        if self.all_forks:
            table = np.array(self.all_forks)
            forks[:] = table
            forks[:, 1] = table[:, 1].astype(np.float32).view(np.int32)
        roots[:], ends[:], values[:], baseline[:] = self.roots, self.ends, self.values, self.baseline

    def _parts(self) -> Float64Array:
        """Slopes, curvatures and ones (outputs, rows, 3), rounded so that their sums are exact."""
        if self.loss == "squared":
            slope, curvature = self.said - self.target, np.ones_like(self.said)
        else:
            chance = expit(self.said) if self.loss == "logistic" else softmax(self.said, axis=1)
            slope, curvature = chance - self.target, chance * (1 - chance)
        length = len(slope).bit_length()
        bits = min(30, 51 - length), min(30, 51 - length, 62 - 2 * length)
        rounded = [
            _rounded((part * self.weight[:, None]).T, of) for part, of in zip((slope, curvature), bits, strict=True)
        ]
        return np.stack([*rounded, np.ones_like(slope.T)], axis=2)

    def _grow(self, output: int, parts: Float64Array) -> None:
        root = _Leaf(np.arange(len(parts)), parts.sum(axis=0, dtype=np.float64), -1, False, 0)
        if self._splittable(root):
            root.by_bin = self._sum_bins(root.rows, parts)
            self._find_split(root)
        leaves, first = [root], self.forks
        while len(leaves) < self.rule.leaves:
            best = max(range(len(leaves)), key=lambda number: leaves[number].gain)
            if leaves[best].gain <= 0:
                break
            leaves[best], right = self._divide(leaves[best], len(leaves), parts)
            leaves.append(right)
        self.roots.append(~len(self.values) if self.forks == first else first)
        self.ends.append(self.forks)
        begin = len(self.values)
        for leaf in leaves:
            if leaf.fork >= 0:
                self.all_forks[leaf.fork][2 + leaf.right] = ~len(self.values)
            value = np.float32(-self.rule.learning_rate * leaf.sums[0] / (leaf.sums[1] + self.rule.l2))
            self.values.append(float(value))
            self.said[leaf.rows, output] += value
        self._walk_held(output, first, begin)

    def _splittable(self, leaf: _Leaf) -> bool:
        return bool(leaf.sums[2] >= 2 * self.rule.least_rows and leaf.sums[1] >= LEAST_CURVATURE)

    def _sum_bins(self, rows: IdArray, parts: Float64Array) -> Float64Array:
        """Sums (bins of all columns, 3)."""
        size, columns = int(self.counts.sum()), len(self.counts)
        places = (self.bins[rows] + self.offsets).ravel()
        each = [np.repeat(parts[rows, part], columns) for part in range(3)]
        return np.stack([np.bincount(places, weights, size) for weights in each], axis=1)

    def _find_split(self, leaf: _Leaf) -> None:
        columns = len(self.counts)
        tried = math.ceil(self.rule.share * columns)
        with np.errstate(over="ignore"):
            here = mixed(mixed(self.seed + np.full(1, self.trees, np.uint64)) + np.uint64(leaf.number))
            draws = mixed(here + np.arange(columns).astype(np.uint64))
        for column in np.sort(np.argsort(draws, kind="stable")[:tried]):
            self._try_column(leaf, int(column))

    def _try_column(self, leaf: _Leaf, column: int) -> None:
        sums = leaf.by_bin[self.offsets[column] : self.offsets[column] + self.counts[column]]
        known = np.flatnonzero(sums[:-1, 2])
        left, missing = np.cumsum(sums[known], axis=0), sums[-1]
        if missing[2]:
            cases = [(left, np.zeros(len(known), bool)), (left + missing, np.ones(len(known), bool))]
        else:
            cases = [(left, 2 * left[:, 2] > leaf.sums[2])]
        for lefts, missing_left in cases:
            rights, l2 = leaf.sums - lefts, self.rule.l2
            fewer, flat = np.minimum(lefts[:, 2], rights[:, 2]), np.minimum(lefts[:, 1], rights[:, 1])
            before = leaf.sums[0] ** 2 / (leaf.sums[1] + l2)
            gains = lefts[:, 0] ** 2 / (lefts[:, 1] + l2) + rights[:, 0] ** 2 / (rights[:, 1] + l2) - before
            gains[(fewer < self.rule.least_rows) | (flat < LEAST_CURVATURE)] = 0
            if len(gains) and gains[best := int(gains.argmax())] > max(leaf.gain, LEAST_GAIN):
                leaf.gain, leaf.column, leaf.bin = float(gains[best]), column, int(known[best])
                leaf.missing_left, leaf.left = bool(missing_left[best]), lefts[best]

    def _divide(self, parent: _Leaf, leaves: int, parts: Float64Array) -> tuple[_Leaf, _Leaf]:
        bins = self.bins[parent.rows, parent.column]
        goes = np.where(bins == self.counts[parent.column] - 1, parent.missing_left, bins <= parent.bin)
        fork = self.forks
        if parent.fork >= 0:
            self.all_forks[parent.fork][2 + parent.right] = fork
        self.all_forks.append([2 * parent.column + parent.missing_left, parent.bin, 0, 0])
        left = _Leaf(parent.rows[goes], parent.left, fork, False, 2 * leaves - 1)
        right = _Leaf(parent.rows[~goes], parent.sums - parent.left, fork, True, 2 * leaves)
        if leaves + 1 < self.rule.leaves and (self._splittable(left) or self._splittable(right)):
            fewer, more = (left, right) if len(left.rows) <= len(right.rows) else (right, left)
            fewer.by_bin = self._sum_bins(fewer.rows, parts)
            more.by_bin = parent.by_bin - fewer.by_bin
            for child in (left, right):
                if self._splittable(child):
                    self._find_split(child)
        return left, right

    def _walk_held(self, output: int, first: int, begin: int) -> None:
        at = np.full(len(self.held_said), self.roots[-1])
        forks = np.array(self.all_forks[first:]).reshape(-1, 4).astype(np.int64)
        while len(walking := np.flatnonzero(at >= 0)):
            fork = forks[at[walking] - first]
            column = fork[:, 0] >> 1
            bins = self.held_bins[walking, column]
            left = np.where(bins == self.counts[column] - 1, fork[:, 0] & 1 == 1, bins <= fork[:, 1])
            at[walking] = np.where(left, fork[:, 2], fork[:, 3])
        self.held_said[:, output] += np.array(self.values[begin:])[~at - begin]


def _rounded(numbers: Float64Array, bits: int) -> Float64Array:
    """Numbers (outputs, rows) as whole multiples of 2^-bits times the least power of two above all of their output."""
    unit = np.ldexp(1.0, np.frexp(np.abs(numbers).max(axis=1, keepdims=True))[1] - bits)
    return np.asarray(np.rint(numbers / unit) * unit)
