"""Half-space indexes fuzzed by exponents: every method on every instruction set against the exact scan of the baseline.

An operation is one query answered by one method on one instruction set, and compared; or one call that inserts, removes
or updates points of one index. Points and queries have exponents from the least to the largest of float32, chosen so
that their products fall where rounding changes its nature: below the normal range, at its ends, among typical numbers,
beyond the largest. Thresholds are scores of points, their neighbours, or anything. The scan itself is compared with the
reference implementation on some queries of each round.
"""

import numpy as np
import pytest

from fewfire import _extension
from fewfire.halfspace import Index
from fewfire.halfspace._reference import _fused, _scores

LEAST, LARGEST = -149, 127
QUERIES = 512
METHODS = ("scan", "screen", "tree")


def numbers(draw, shape, base):
    """Numbers of exponents around `base`: an int, or one for each row."""
    width = int(draw.choice([0, 1, 3, 12, 60, 300]))
    spread = draw.integers(-width, width + 1, size=shape if draw.random() < 0.7 else (shape[0], 1))
    exponents = np.clip(np.asarray(base).reshape(-1, 1) + spread, LEAST, LARGEST)
    mantissas = draw.integers(-8, 9, size=shape) / 8 if draw.random() < 0.3 else draw.uniform(-1.99, 1.99, size=shape)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.ldexp(mantissas, exponents).astype(np.float32))


class Cloud:
    """Points of one round, with an index of each method that holds them."""

    def __init__(self, draw):
        self.draw = draw
        self.dimension = int(draw.choice([1, 2, 3, 5, 16, 33], p=[0.15, 0.4, 0.2, 0.15, 0.07, 0.03]))
        self.base = int(draw.integers(LEAST, LARGEST + 1))
        self.plain = self.dimension == 2 and draw.random() < 0.7
        count = int(draw.choice([3, 64, 300, 400, 2100, 2600]))  # a tree is built from 2049 on
        self.ids = np.arange(count)
        self.points, self.offsets = self.fresh(count)
        self.methods = (*METHODS, "layers") if self.plain else METHODS
        self.indexes = {name: Index(self.points, self.offsets, name, threads=1) for name in self.methods}

    def fresh(self, count):
        base = self.base
        if self.draw.random() < 0.15:  # two clouds far apart
            base = np.where(self.draw.random(count) < 0.5, base, self.draw.integers(LEAST, LARGEST + 1))
        points = numbers(self.draw, (count, self.dimension), base)
        if self.plain or self.draw.random() < 0.3:
            return points, np.zeros(count, dtype=np.float32)
        offsets = numbers(self.draw, (count, 1), int(self.draw.integers(LEAST, LARGEST + 1)))
        return points, np.ascontiguousarray(offsets[:, 0])

    def change(self):
        """Insert, update or remove some points in every index; returns the number of calls."""
        kind = self.draw.choice(["insert", "update", "near", "remove"])
        some = self.draw.permutation(len(self.ids))[: int(self.draw.choice([1, 5, 80, 1200]))]
        if kind == "insert":
            points, offsets = self.fresh(len(some) + 1)
            added = [index.insert(points, offsets) for index in self.indexes.values()]
            assert all(np.array_equal(ids, added[0]) for ids in added)
            self.ids = np.concatenate([self.ids, added[0]])
            self.points = np.concatenate([self.points, points])
            self.offsets = np.concatenate([self.offsets, offsets])
        elif kind == "remove" and len(some) < len(self.ids):
            for index in self.indexes.values():
                index.remove(self.ids[some])
            self.ids, self.points, self.offsets = (
                np.delete(a, some, axis=0) for a in (self.ids, self.points, self.offsets)
            )
        else:
            points, offsets = self.fresh(len(some))
            if kind == "near":
                points, offsets = self.points[some] * np.float32(1.001), self.offsets[some]
                points = np.where(np.isfinite(points), points, self.points[some])
            for index in self.indexes.values():
                index.update(self.ids[some], points, offsets)
            self.points[some], self.offsets[some] = points, offsets
        return len(self.indexes)

    def questions(self):
        """Queries whose scores are near a power of two, and thresholds among them."""
        draw = self.draw
        total = draw.choice([LEAST - 2, LEAST, LEAST + 8, -126, -100, 0, 100, 126, 128], size=QUERIES)
        queries = numbers(draw, (QUERIES, self.dimension), total - self.base)
        at = draw.integers(len(self.ids), size=QUERIES)
        sums = np.zeros(QUERIES, dtype=np.float32)
        with np.errstate(all="ignore"):
            for j in range(self.dimension):
                sums = _fused(self.points[at, j], queries[:, j], sums)
            thresholds = (sums + self.offsets[at]).astype(np.float32)
        anything = numbers(draw, (QUERIES, 1), int(draw.integers(LEAST, LARGEST + 1)))[:, 0]
        kind = draw.integers(6, size=QUERIES)
        with np.errstate(all="ignore"):
            thresholds = np.where(kind == 0, np.nextafter(thresholds, np.float32(-np.inf)), thresholds)
            thresholds = np.where(kind == 1, np.nextafter(thresholds, np.float32(np.inf)), thresholds)
        thresholds = np.where((kind == 2) | ~np.isfinite(thresholds), anything, thresholds)
        thresholds = np.where(kind == 3, np.float32(0), thresholds)
        return queries, np.ascontiguousarray(thresholds, dtype=np.float32)

    def ask(self, core):
        """Compare all methods on all instruction sets; returns the number of queries compared."""
        queries, thresholds = self.questions()
        core.set_isa("baseline")
        expected = self.indexes["scan"].query_batch(queries, thresholds)
        for i in self.draw.integers(QUERIES, size=3):
            exact = _scores(self.points, self.offsets, queries[i])
            np.testing.assert_array_equal(expected.row(i), np.sort(self.ids[exact > thresholds[i]]))
        answers = 0
        for isa in core.available_isas():
            core.set_isa(isa)
            for name, index in self.indexes.items():
                if name == "scan" and isa == "baseline":
                    continue
                report = index.query_batch(queries, thresholds)
                same = np.array_equal(report.indptr, expected.indptr) and np.array_equal(
                    report.indices, expected.indices
                )
                if not same:
                    wrong = next(i for i in range(QUERIES) if not np.array_equal(report.row(i), expected.row(i)))
                    differs = np.setxor1d(report.row(wrong), expected.row(wrong))
                    point = self.points[np.isin(self.ids, differs)][0]
                    raise AssertionError(
                        f"{name} on {isa}: query {[float(x).hex() for x in queries[wrong]]}, threshold "
                        f"{float(thresholds[wrong]).hex()}, point {[float(x).hex() for x in point]}"
                    )
                answers += QUERIES
        return answers


@pytest.mark.least({"index operations": 100_000})
def test_every_method_equals_the_scan_at_every_exponent(rounds, draw, tally):
    core = _extension.load()
    if core is None:
        pytest.skip("the C++ part is not installed")
    for _ in rounds:
        cloud = Cloud(draw)
        for _ in range(6):
            tally("index operations", cloud.ask(core) + cloud.change())
        tally("index operations", cloud.ask(core))
