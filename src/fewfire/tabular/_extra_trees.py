"""Extremely randomised trees (Geurts, Ernst and Wehenkel 2006): C++ (csrc/core/extra_trees.hpp) and its NumPy twin.

A node tries a random part of the columns, each divided at a place drawn between its least and its largest value, and
takes the division that leaves the least squared error: with chances of classes for targets, Gini's impurity. Missing
values go to a side that is drawn, or are divided from all others. That is the rule of scikit-learn's `ExtraTrees`.

Targets become whole numbers of 30 bits, so that sums are exact and the twin grows the same trees to the bit. A tree is
known by its seed alone, whoever grows it beside which others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire import _extension
from fewfire.tabular._flat_trees import FlatTrees, mixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray

UNIT = 2.0**30  # of a target or a weight as a whole number


@dataclass(frozen=True)
class ExtraTreesRule:
    """Rows of a leaf at least, and the share of the columns that a node tries."""

    least_rows: int = 2
    share: float = 0.5

    def tried(self, columns: int) -> int:
        """How many columns a node tries, or more until one is not constant."""
        return max(1, int(self.share * columns))


class WholeTargets(NamedTuple):
    """A narrowed table by columns (columns, rows), targets (rows, outputs) and numbers (parts, rows) that tell them.

    Numbers are the weights, if the table is weighted, then weight · (target − centre) / scale, in units of 1 / UNIT.
    """

    table: FloatArray
    target: FloatArray
    numbers: NDArray[np.int32]
    weighted: bool
    centre: Float64Array
    scale: float

    def means(self, sums: NDArray[np.int64]) -> FloatArray:
        """Mean targets (leaves, outputs) by numbers of rows and sums (leaves, 1 + parts)."""
        weight = sums[:, 1] if self.weighted else UNIT * sums[:, 0]
        found = self.centre + self.scale * sums[:, 1 + self.weighted :] / weight[:, None]
        return np.asarray(found, np.float32)


def whole_targets(table: FloatArray, target: AnyArray, weight: AnyArray | None, *, centred: bool) -> WholeTargets:
    """What extra trees are grown from: a narrowed table (rows, columns), targets, and weights if they differ."""
    target = np.ascontiguousarray(target, np.float32)
    centre = target.mean(axis=0, dtype=np.float64) if centred else np.zeros(target.shape[1])
    shifted = target - centre
    scale = float(np.abs(shifted).max()) or 1.0
    parts = [*(shifted / scale).T]
    if weight is not None:
        # A fold may hold out every row that counts much: one unit at least, or its trees would be means of no weight.
        share = np.maximum(weight / np.max(weight), 1 / UNIT)
        parts = [share, *(share * part for part in parts)]
    numbers = np.rint(np.multiply(parts, UNIT)).astype(np.int32)
    return WholeTargets(np.ascontiguousarray(table.T), target, numbers, weight is not None, centre, scale)


def grown_trees(of: WholeTargets, rows: IdArray, rule: ExtraTreesRule, seeds: NDArray[np.uint64]) -> FlatTrees:
    """A tree per seed, grown to these rows; its leaves say the mean targets of their rows."""
    tried, core = rule.tried(len(of.table)), _extension.core()
    if core is None:
        forks, roots, sums = _grown_by_numpy(of, rows, rule.least_rows, tried, seeds)
    else:
        chosen = rows.astype(np.int32)
        grown = core.ExtraTrees(of.table, of.numbers, of.weighted, of.target, chosen, rule.least_rows, tried, seeds)
        forks, roots = np.empty((grown.forks, 4), np.int32), np.empty(len(seeds), np.int32)
        sums = np.empty((grown.leaves, 1 + len(of.numbers)), np.int64)
        grown.write(forks, roots, sums)
    return FlatTrees(forks, roots, np.zeros(len(seeds), np.int32), of.means(sums))


def _grown_by_numpy(
    of: WholeTargets, rows: IdArray, least_rows: int, tried: int, seeds: NDArray[np.uint64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """The twin: all nodes of a level at a time."""
    forks: list[NDArray[np.int32]] = []
    roots: list[int] = []
    sums: list[NDArray[np.int64]] = []
    fork_count = leaf_count = 0
    for seed in seeds:
        tree = _Twin(of, rows, least_rows, tried, seed)
        while len(tree.sizes):
            tree.grow_level()
        inner = np.concatenate(tree.forks) if tree.forks else np.zeros((0, 4), np.int32)
        children = inner[:, 2:]
        inner[:, 2:] = np.where(children < 0, children - leaf_count, children + fork_count)
        roots.append(fork_count if len(inner) else ~leaf_count)
        forks.append(inner)
        sums.extend(tree.leaf_sums)
        fork_count, leaf_count = fork_count + len(inner), leaf_count + len(inner) + 1
    return np.concatenate(forks), np.array(roots, np.int32), np.concatenate(sums)


class _Level(NamedTuple):
    """Nodes that may be divided: the rows of all, where those of each begin, how many, sums (nodes, parts)."""

    rows: IdArray
    starts: IdArray
    sizes: IdArray
    sums: NDArray[np.int64]


class _Choices(NamedTuple):
    """One entry per node: the best score, its column and threshold, whether missing values go left."""

    score: Float64Array
    column: IdArray
    threshold: FloatArray
    missing_left: NDArray[np.bool_]


class _Twin:
    """A tree that grows: rows by nodes of its last level, sizes of these nodes, forks and sums of leaves so far."""

    def __init__(self, of: WholeTargets, rows: IdArray, least_rows: int, tried: int, seed: np.uint64) -> None:
        self.of, self.least_rows, self.tried = of, least_rows, tried
        self.seed = mixed(np.full(1, seed))[0]
        self.rows, self.sizes, self.first = rows, np.array([len(rows)]), 0  # number of the level's first node
        self.forks: list[NDArray[np.int32]] = []
        self.leaf_sums: list[NDArray[np.int64]] = []
        self.fork_count = self.leaf_count = 0

    def grow_level(self) -> None:
        starts = np.cumsum(self.sizes) - self.sizes
        sums = _sums(self.of.numbers[:, self.rows].astype(np.int64), starts).T
        alike = np.ones(len(starts), bool)
        for target in self.of.target[self.rows].T:
            alike &= np.minimum.reduceat(target, starts) == np.maximum.reduceat(target, starts)
        open_ = np.flatnonzero((self.sizes >= 2 * self.least_rows) & ~alike)
        inside = np.repeat(np.isin(np.arange(len(starts)), open_), self.sizes)
        sizes = self.sizes[open_]
        level = _Level(self.rows[inside], np.cumsum(sizes) - sizes, sizes, sums[open_])
        chosen = self._choose(level, self.first + open_)
        divided = np.zeros(len(starts), bool)
        divided[open_] = np.isfinite(chosen.score)
        self.leaf_sums.append(np.column_stack([self.sizes, sums])[~divided])
        self._enter(divided, level, chosen)

    def _enter(self, divided: NDArray[np.bool_], level: _Level, chosen: _Choices) -> None:
        """Number forks and leaves of this level, and divide the rows among the nodes of the next."""
        numbers = np.where(
            divided, self.fork_count + np.cumsum(divided) - 1, ~(self.leaf_count + np.cumsum(~divided) - 1)
        )
        if self.forks:
            self.forks[-1][:, 2:] = numbers.reshape(-1, 2)
        self.first = 2 * self.fork_count + 1
        self.fork_count, self.leaf_count = self.fork_count + int(divided.sum()), self.leaf_count + int((~divided).sum())
        kept = np.isfinite(chosen.score)
        column, threshold, missing_left = (np.repeat(part, level.sizes) for part in chosen[1:])
        values = self.of.table[column, level.rows]
        right = ~((values <= threshold) | (np.isnan(values) & missing_left))
        node = np.repeat(np.cumsum(kept) - 1, level.sizes)
        child = np.where(np.repeat(kept, level.sizes), 2 * node + right, -1)
        order = np.argsort(child, kind="stable")[np.sum(child < 0) :]
        self.rows, self.sizes = level.rows[order], np.bincount(child[order], minlength=2 * int(kept.sum()))
        if kept.any():
            forks = np.zeros((int(kept.sum()), 4), np.int32)
            forks[:, 0] = 2 * chosen.column[kept] + chosen.missing_left[kept]
            forks[:, 1] = chosen.threshold[kept].view(np.int32)
            self.forks.append(forks)

    def _choose(self, level: _Level, numbers: IdArray) -> _Choices:
        if not len(numbers):
            return _Choices(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, bool))
        values, starts, sizes = self.of.table[:, level.rows], level.starts, level.sizes
        unknown = np.isnan(values)
        least = np.fmin.reduceat(values, starts, axis=1).astype(np.float64)
        largest = np.fmax.reduceat(values, starts, axis=1)
        missing = _sums(unknown, starts)
        keys = mixed(mixed(self.seed + numbers.astype(np.uint64)) + np.arange(len(values), dtype=np.uint64)[:, None])
        draws = mixed(keys)
        threshold = (least + ((draws >> np.uint64(40)) + 0.5) * 2.0**-24 * (largest - least)).astype(np.float32)
        threshold = np.where(threshold >= largest, least.astype(np.float32), threshold)
        missing_left = (missing > 0) & (draws & np.uint64(1) > 0)
        left = values <= np.repeat(threshold, sizes, axis=1)
        left |= unknown & np.repeat(missing_left, sizes, axis=1)
        tried = self._tried(keys, ~(least < largest))
        scores = np.full((len(values), 2, len(sizes)), -np.inf)
        count, score = self._scores(level, left)
        scores[:, 0] = np.where(tried, score, -np.inf)
        scores[:, 1] = np.where(tried & (missing > 0), self._scores(level, ~unknown)[1], -np.inf)
        best = scores.reshape(-1, len(sizes)).argmax(axis=0)
        column, apart, nodes = best // 2, best % 2 == 1, np.arange(len(sizes))
        goes = np.where(missing > 0, missing_left, 2 * count > sizes)[column, nodes] & ~apart
        places = np.where(apart, np.float32(np.inf), threshold[column, nodes])
        return _Choices(scores[column, best % 2, nodes], column, places, goes)

    def _tried(self, keys: NDArray[np.uint64], constant: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which columns each node tries (columns, nodes): those of the smallest keys, or the first that varies."""
        ranks = keys.argsort(axis=0).argsort(axis=0)
        within = (ranks < self.tried) & ~constant
        instead = np.where(constant, len(keys), ranks)
        first = (instead == instead.min(axis=0)) & ~constant
        return np.where(within.any(axis=0), within, first)

    def _scores(self, level: _Level, left: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Float64Array]:
        """Rows that go left and scores (columns, nodes) of divisions (columns, rows); −∞ where a side is too small."""
        count = _sums(left, level.starts)
        sides = [(_sums(left * part, level.starts), total) for part, total in self._totals(level)]
        of_left, of_right = count.astype(np.float64), (level.sizes - count).astype(np.float64)
        if self.of.weighted:
            weight, total = sides.pop(0)
            of_left, of_right = weight.astype(np.float64), (total - weight).astype(np.float64)
        score = np.zeros(count.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            for part, total in sides:
                a, b = part.astype(np.float64), (total - part).astype(np.float64)
                score += a * a / of_left + b * b / of_right
        enough = np.minimum(count, level.sizes - count) >= self.least_rows
        return count, np.where(enough & (of_left > 0) & (of_right > 0), score, -np.inf)

    def _totals(self, level: _Level) -> zip[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        return zip(self.of.numbers[:, level.rows].astype(np.int64), level.sums.T, strict=True)


def _sums(values: AnyArray, starts: IdArray) -> NDArray[np.int64]:
    return np.asarray(np.add.reduceat(values, starts, axis=1, dtype=np.int64))
